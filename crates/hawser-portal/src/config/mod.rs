//! The configuration of a portal (DESIGN section 5): strict TOML in, [`Config`] or every fault out.
//!
//! 1. `toml` reads the text into a tree that knows its bytes.
//! 2. Each section is read by its reader in `sections.rs`; what nobody asked for is unknown.
//! 3. `together.rs` looks at what must fit together across sections.
//! 4. [`load()`] does all that for a file and those of peers beside it (`peers.rs`), and reads the keys it names.

mod amounts;
mod error;
mod forward;
mod gateway;
mod hub;
mod key;
mod load;
mod log;
mod marks;
mod metrics;
mod name_servers;
mod parsers;
mod parsers_transport;
mod pattern;
mod peers;
mod reader;
pub mod reading;
mod rule_device;
mod rule_links;
mod rules;
pub mod schema;
#[cfg_attr(not(feature = "scion"), path = "scion_absent.rs")]
mod scion;
mod sections;
mod shape;
mod supported;
mod takeover;
#[cfg(test)]
mod tests;
mod text;
mod together;
mod types;
mod unique;
mod values;

use toml::de::DeTable;

pub use amounts::{BitRate, MonthDay, Volume, VolumeError};
pub use error::{ConfigError, Span};
pub use forward::Forward;
pub use key::{KEY_BYTES, KeyError, KeyFileError, PresharedKey, PrivateKey, PublicKey};
pub use load::{Keys, LoadError, load, read};
pub use log::log_format;
pub use marks::{MarkKinds, MarkMatch};
pub use name_servers::{DnsDomain, NameServerKeys};
pub use pattern::InterfacePattern;
pub use peers::PEERS_FOLDER;
pub use rule_device::{CLASS_MASK, Domain, Mac, class_bits};
pub use rules::{PortRange, Rule};
pub use scion::{ScionEndpoint, ScionPaths};
pub use takeover::{Kept, KeptProtocol, Takeover, TakeoverRole};
pub use text::{TEXT_LIMIT, read_text};
pub use types::{
    ANY_INTERFACE, Config, DataCap, Gateway, Hub, Link, NamedEndpoint, Nat, Peer, Portal, Traffic, Tun, Web,
};
pub use values::{
    Cipher, Congestion, Fail, HostName, InterfaceName, IpProtocol, Keyword, LinkName, LogFormat, MTU_MIN, Metric, Mtu,
    NameError, PeerName, Protection, Scheduler, TcpCongestion, TlsName, Transport, Transported,
};

use error::{Fault, Faults};
use reader::{Sited, Table};
use sections::Claims;
use shape::{repeated, single};

/// The port portals listen on where the contract's examples say nothing else.
pub const DEFAULT_PORT: u16 = 4920;
/// Where `hawser up` looks for its configuration.
pub const DEFAULT_FILE: &str = "/etc/hawser/hawser.toml";
/// Where a portal keeps what must outlive it.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/hawser";
/// Where the control socket is.
pub const DEFAULT_SOCKET: &str = "/run/hawser/hawser.sock";
/// The TUN device's name.
pub const DEFAULT_TUN_NAME: &str = "hawser0";

impl Config {
    /// Reads a configuration; `file` is what its faults are reported under.
    ///
    /// # Errors
    /// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
    pub fn parse(text: &str, file: &str) -> Result<Self, Vec<ConfigError>> {
        Self::parse_beside(text, file, None)
    }

    /// What of a configuration without faults is written in an old way: it is read, and a later version may not.
    #[must_use]
    pub fn outdated(text: &str, file: &str) -> Vec<ConfigError> {
        let mut faults = Faults::new(file, text);
        let Some(tree) = reading::tree(text, &mut faults) else { return Vec::new() };
        // Peers may stand in other files; what is missing is no old spelling.
        let _ = read_sections(tree.get_ref(), Some(&[]), &mut faults);
        faults.into_outdated()
    }

    /// The same with the peers of other files, where there is a folder for them: then this one need not have any.
    fn parse_beside(text: &str, file: &str, others: Option<&[Peer]>) -> Result<Self, Vec<ConfigError>> {
        let mut faults = Faults::new(file, text);
        let Some(tree) = reading::tree(text, &mut faults) else { return Err(faults.into_sorted()) };
        let config = read_sections(tree.get_ref(), others, &mut faults);
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(faults.into_sorted()),
        }
    }
}

/// Reads all sections, and then looks at them together. None only where a fault was noted.
fn read_sections<'t>(tree: &DeTable<'t>, others: Option<&[Peer]>, faults: &mut Faults<'_>) -> Option<Config> {
    let portal = single(tree, "portal", faults).and_then(|(t, s)| sections::portal(open("portal", t, s, faults)));
    let tun = single(tree, "tun", faults).and_then(|(t, s)| sections::tun(open("tun", t, s, faults)));
    let gateway = single(tree, "gateway", faults).map(|(t, s)| sections::gateway(open("gateway", t, s, faults)));
    let nat = single(tree, "nat", faults).map(|(t, s)| sections::nat(open("nat", t, s, faults)));
    let mut claims = Claims::of(tree);
    let links = repeated(tree, "link", faults).into_iter();
    let links: Vec<_> = links.map(|(t, s)| sections::link(open("link", t, s, faults), &mut claims)).collect();
    let peers = repeated(tree, "peer", faults).into_iter();
    let peers: Vec<_> = peers.map(|(t, s)| sections::peer(open("peer", t, s, faults), &mut claims)).collect();
    let traffic = single(tree, "traffic", faults).map(|(t, s)| sections::traffic(open("traffic", t, s, faults)));
    let rules = repeated(tree, "rule", faults).into_iter();
    let mut marks = MarkKinds::default();
    let known = rule_links::Known::of(tree);
    let mut rules: Vec<_> = rules.map(|(t, s)| rules::rule(open("rule", t, s, faults), &mut marks, &known)).collect();
    rule_device::classify(&mut rules, &mut marks, faults);
    let forwards = repeated(tree, "forward", faults).into_iter();
    let forwards: Vec<_> = forwards.map(|(t, s)| forward::forward(open("forward", t, s, faults))).collect();
    let metrics = single(tree, "metrics", faults).map(|(t, s)| metrics::read(open("metrics", t, s, faults)));
    let takeover = single(tree, "takeover", faults).and_then(|(t, s)| takeover::read(open("takeover", t, s, faults)));
    let web = single(tree, "web", faults).map(|(t, s)| sections::web(open("web", t, s, faults)));
    let hub = single(tree, "hub", faults).map(|(t, s)| hub::section(open("hub", t, s, faults)));
    // Only its faults: who begins the log asks for the format before (`log_format`).
    single(tree, "log", faults).map(|(t, s)| log::read(open("log", t, s, faults)));
    shape::unknown_sections(schema::SCHEMA, tree, faults);
    missing_sections(tree, others.is_some(), faults);

    let links: Vec<Sited<Link>> = links.into_iter().collect::<Option<_>>()?;
    let mut peers: Vec<Sited<Peer>> = peers.into_iter().collect::<Option<_>>()?;
    if faults.is_empty() {
        hub::settle(&mut peers, faults);
    }
    peers.extend(others.into_iter().flatten().map(|peer| Sited { value: peer.clone(), span: 0..0 }));
    let forwards: Vec<Sited<Forward>> = forwards.into_iter().collect::<Option<_>>()?;
    let (portal, tun) = (portal?, tun?);
    let mut settled = None;
    if faults.is_empty() {
        // Only then: what was left out because of a fault would look pointless.
        together::check(&portal, &tun, &links, &peers, faults);
        let (gateway, nat) = (gateway.as_ref(), nat.as_ref());
        gateway::check(tree, &tun, gateway, nat, &peers, faults);
        forward::check(&forwards, nat, &portal, &peers, faults);
        rule_device::check(&rules, &tun, gateway, faults);
        settled = takeover.and_then(|section| takeover::settle(section, &tun, &peers, faults));
    }
    Some(Config {
        portal,
        tun,
        gateway: gateway.unwrap_or_default(),
        nat: nat.unwrap_or_default(),
        links: links.into_iter().map(|l| l.value).collect(),
        peers: peers.into_iter().map(|p| p.value).collect(),
        traffic: traffic.unwrap_or_default(),
        rules: rules.into_iter().map(|r| r.value).collect(),
        forwards: forwards.into_iter().map(|f| f.value).collect(),
        metrics: metrics.flatten(),
        takeover: settled,
        web: web.unwrap_or_default(),
        hub,
    })
}

fn open<'a, 't, 'f>(name: &str, table: &'a DeTable<'t>, header: Span, faults: &'a mut Faults<'f>) -> Table<'a, 't, 'f> {
    Table::new(title(name), table, header, faults)
}

/// A section as a user writes it: `[tun]`, `[[link]]`.
fn title(name: &str) -> String {
    shape::title(schema::SCHEMA, name)
}

fn missing_sections(tree: &DeTable<'_>, has_others: bool, faults: &mut Faults<'_>) {
    let needed = [
        ("portal", "private_key_file = \"/etc/hawser/private.key\""),
        ("tun", "addresses = [\"10.77.0.2/24\"]"),
        ("peer", "name = \"hub\", public_key = \"…\", allowed_ips = [\"10.77.0.1/32\"]"),
    ];
    let has = |name: &str| tree.contains_key(name) || name == "peer" && has_others;
    for (name, with) in needed.into_iter().filter(|(name, _)| !has(name)) {
        let fault = Fault::new(format!("missing section {}", title(name)));
        faults.add(0..0, fault.hint(format!("add {} with {with}", title(name))));
    }
}
