//! What a link over SCION has, and how a SCION endpoint is written.
//!
//! Endpoints and places to listen at are told from others by `scion://`; the rest is as SCION writes it.

use std::net::SocketAddr;

use toml::de::DeValue;

use super::error::{Fault, Read};
use super::parsers::{integer, keyword, quoted, string, within};
use super::reading::{Table, values};
use super::words::{Keyword, Transport};

pub use hawser_scion::EndpointAddr as ScionEndpoint;
use hawser_scion::daemon::DaemonAddr;
use hawser_scion::select::{Acl, Criterion, HopPredicate, Policy, PolicyError, Sequence};

/// Before a SCION endpoint.
pub(super) const SCHEME: &str = "scion://";
/// Transports of links that this version carries out: all.
pub(super) const LATER_TRANSPORTS: &[Transport] = &[];
/// Paths of a link, where nothing is said.
const DEFAULT_PATHS: u8 = 2;
/// Paths of a link, at most: a session has 64 in all.
const MAX_PATHS: i64 = 16;
/// A link has no port below this one: that is for servers, and takes a privilege that portals give up
/// (capabilities(7)).
const PORTS_FREE_FROM: u16 = 1024;
/// How an endpoint is written.
const EXAMPLE: &str = "such as \"scion://1-ff00:0:110,10.0.0.1:31000\"";
/// Keys of a `[[link]]` that are SCION's alone.
const KEYS: [&str; 7] = ["daemon", "paths", "select", "sequence", "allow", "deny", "port"];

/// What a link over SCION has beside what every link has. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScionPaths {
    /// Whom it asks for paths; none: the environment's daemon, or that of the host.
    pub daemon: Option<DaemonAddr>,
    /// Paths used at once, to each endpoint.
    pub count: u8,
    /// How they are chosen.
    pub select: Criterion,
    /// Which may be chosen.
    pub policy: Policy,
    /// Its UDP port; 0: one that routers send to.
    pub port: u16,
}

impl Keyword for Criterion {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Criterion::Mtu, "mtu"),
        (Criterion::Length, "length"),
        (Criterion::Latency, "latency"),
        (Criterion::Bandwidth, "bandwidth"),
        (Criterion::Sharability, "sharability"),
        (Criterion::Health, "health"),
    ];
}

/// Reads the keys of SCION's in a `[[link]]`; with another transport each is a fault.
pub(super) fn link(table: &mut Table<'_, '_, '_>, transport: Option<Transport>) -> Option<ScionPaths> {
    let paths = ScionPaths {
        daemon: table.get("daemon", daemon),
        count: table.get("paths", |v| within(v, 1..=MAX_PATHS, |fault| fault)).unwrap_or(DEFAULT_PATHS),
        select: table.get("select", keyword).unwrap_or(Criterion::Sharability),
        policy: policy(table),
        port: table.get("port", port).unwrap_or(0),
    };
    if transport == Some(Transport::Scion) {
        return Some(paths);
    }
    for key in table.present(&KEYS) {
        let fault = Fault::new(format!("`{key}` is of the transport `scion` alone"));
        table.here(fault.hint("add: transport = \"scion\""));
    }
    None
}

/// Reads `sequence`, `allow` and `deny`: which paths may be used. All, where they are absent or wrong.
pub fn policy(table: &mut Table<'_, '_, '_>) -> Policy {
    let no_policy = |error: PolicyError| Fault::new(error.to_string());
    let hop = |v: &DeValue<'_>| string(v, |text| text.parse::<HopPredicate>().map_err(no_policy));
    let sequence = table.get("sequence", |v| string(v, |text| text.parse::<Sequence>().map_err(no_policy)));
    let mut hops = |key| values(table.list(key, hop).unwrap_or_default());
    Policy { acl: Acl::of_lists(&hops("allow"), &hops("deny")), sequence: sequence.unwrap_or_default() }
}

/// The address of a SCION daemon.
pub fn daemon(value: &DeValue<'_>) -> Read<DaemonAddr> {
    string(value, |text| text.parse::<DaemonAddr>().map_err(|error| Fault::new(error.to_string())))
}

fn port(value: &DeValue<'_>) -> Read<u16> {
    let number = integer(value)?;
    let port = u16::try_from(number).ok().filter(|port| *port == 0 || *port >= PORTS_FREE_FROM);
    port.ok_or_else(|| {
        Fault::new(format!("{number} is neither 0 nor between {PORTS_FREE_FROM} and {}", u16::MAX))
            .hint("0 takes a port that routers send to; else one of the AS's `dispatched_ports`")
    })
}

/// What follows `scion://` where a peer is reached, or a portal listens.
pub(super) fn endpoint(text: &str) -> Read<ScionEndpoint> {
    let fault = match text.parse::<ScionEndpoint>() {
        Err(_) => format!("{} is not a SCION endpoint", quoted(&format!("{SCHEME}{text}"))),
        Ok(endpoint) if endpoint.isd_as.is_wildcard() => format!("{} is no single AS", endpoint.isd_as),
        Ok(endpoint) if endpoint.host.port() == 0 => "port 0 is no port".to_owned(),
        Ok(endpoint) => return Ok(endpoint),
    };
    Err(Fault::new(fault).hint(EXAMPLE))
}

/// Its host and port.
pub(super) fn host(endpoint: &ScionEndpoint) -> SocketAddr {
    endpoint.host
}

/// Whether text is an endpoint without its scheme.
pub(super) fn is_bare(text: &str) -> bool {
    text.parse::<ScionEndpoint>().is_ok()
}
