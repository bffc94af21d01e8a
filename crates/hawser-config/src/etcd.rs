//! What `[hub]` says of etcd: where it is, by what a member shows who it is, and what it says of itself there.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::PeerName;
use super::error::Fault;
use super::kinds::{not_supported, quoted, string, within};
use super::parsers::{by_kind, endpoint, path};
use super::reading::Table;
use super::values::HostName;

/// Seconds that a member counts as there after etcd heard of it last: a few round trips and an election of etcd's at
/// least (its default election timeout is one second), and no more than anybody would wait.
const LEASE_S: std::ops::RangeInclusive<i64> = 3..=3_600;
const LEASE_DEFAULT: Duration = Duration::from_secs(10);
/// Where etcd listens for clients (its registered port).
const PORT: u16 = 2379;
const PREFIX_DEFAULT: &str = "/hawser/hub/";
/// Numbers of racks, and shares: more than anybody has members.
const NUMBERS: std::ops::RangeInclusive<i64> = 0..=65_535;
/// What etcd's keys say nothing without.
const WITH_ETCD: [&str; 9] = [
    "etcd_ca",
    "etcd_certificate",
    "etcd_key",
    "etcd_prefix",
    "etcd_lease",
    "etcd_strict",
    "endpoints",
    "weight",
    "rack",
];

/// What a member needs of etcd, and says there. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// Where it is; at least one.
    pub urls: Vec<EtcdUrl>,
    /// What a member shows who it is by; none where all of etcd is on this host.
    pub tls: Option<EtcdTls>,
    /// What all keys of the hub begin with; ends in `/`.
    pub prefix: String,
    /// For how long a member counts as there.
    pub lease: Duration,
    /// Peers from etcd are served only while it is reached.
    pub strict: bool,
    /// The member's own name.
    pub name: PeerName,
    /// Where peers reach it.
    pub endpoints: Vec<String>,
    /// Its share of the peers, relative to the others'.
    pub weight: u32,
    /// What fails together with it.
    pub rack: u32,
}

/// Files of TLS; relative to the configuration's folder. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdTls {
    /// Who vouches for etcd.
    pub ca: PathBuf,
    /// The member's certificate: its common name is its user (etcd, `--client-cert-auth`).
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// `https://host:port`, or `http://` of this host. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EtcdUrl(String);

impl EtcdUrl {
    /// As it is called.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is called by TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl std::fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads what `[hub]` says of etcd; none where it says nothing, or a fault was noted.
pub(super) fn read(table: &mut Table<'_, '_, '_>, name: Option<&PeerName>) -> Option<Etcd> {
    let urls = table.set("etcd", "the address is there twice", url);
    let tls = ["etcd_ca", "etcd_certificate", "etcd_key"].map(|key| table.get(key, path));
    let prefix = table.get("etcd_prefix", prefix);
    let lease = table.get("etcd_lease", |v| within(v, LEASE_S, |fault| fault.hint("in seconds")));
    let strict = table.is("etcd_strict");
    let (endpoints, scion) = {
        let all = table.set("endpoints", "the endpoint is there twice", endpoint).unwrap_or_default();
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        (shown, by_kind(all).1)
    };
    let weight = table.get("weight", |v| within(v, NUMBERS, |fault| fault)).unwrap_or(1);
    let rack = table.get("rack", |v| within(v, NUMBERS, |fault| fault)).unwrap_or(0);
    if !scion.is_empty() {
        table.fault_at("endpoints", Fault::new("a member of a hub is reached by IP addresses or names"));
    }
    if !table.has("etcd") {
        for key in WITH_ETCD.into_iter().filter(|key| table.has(key)).collect::<Vec<_>>() {
            let fault = Fault::new(format!("`{key}` in [hub] without `etcd`"));
            table.fault_at(key, fault.hint("add: etcd = [\"https://192.0.2.5:2379\"]"));
        }
        return None;
    }
    let urls = urls?;
    if urls.is_empty() {
        table.fault_at("etcd", Fault::new("`etcd` is empty").hint("write: etcd = [\"https://192.0.2.5:2379\"]"));
    }
    if !table.has("name") {
        table
            .here(Fault::new("missing key `name` in [hub]").hint("etcd knows members by name; add: name = \"zurich\""));
    }
    let tls = settle_tls(table, &urls, tls);
    Some(Etcd {
        urls,
        tls: tls?,
        prefix: prefix.unwrap_or_else(|| PREFIX_DEFAULT.to_owned()),
        lease: lease.map_or(LEASE_DEFAULT, Duration::from_secs),
        strict,
        name: name?.clone(),
        endpoints,
        weight,
        rack,
    })
}

/// All three files with TLS, none without. None only where a fault was noted.
fn settle_tls(table: &mut Table<'_, '_, '_>, urls: &[EtcdUrl], files: [Option<PathBuf>; 3]) -> Option<Option<EtcdTls>> {
    let keys = ["etcd_ca", "etcd_certificate", "etcd_key"];
    if !urls.iter().any(EtcdUrl::is_tls) {
        for key in keys.into_iter().filter(|key| table.has(key)).collect::<Vec<_>>() {
            let fault = Fault::new(format!("`{key}`, and no address of etcd is called by TLS"));
            table.fault_at(key, fault.hint("write https:// in `etcd`, or leave it out"));
        }
        return Some(None);
    }
    for key in keys.into_iter().filter(|key| !table.has(key)).collect::<Vec<_>>() {
        let fault = Fault::new(format!("missing key `{key}` in [hub]"));
        table.here(fault.hint(format!("a member shows etcd who it is; add: {key} = \"{key}.pem\"")));
    }
    let [ca, certificate, key] = files;
    Some(Some(EtcdTls { ca: ca?, certificate: certificate?, key: key? }))
}

fn url(value: &DeValue<'_>) -> Result<EtcdUrl, Fault> {
    const EXAMPLE: &str = "such as \"https://192.0.2.5:2379\"";
    if cfg!(not(feature = "etcd")) {
        return Err(not_supported("etcd").hint("this program was built without it: leave `etcd` out"));
    }
    string(value, |text| {
        let faulty = || Fault::new(format!("{} is no address of etcd", quoted(text))).hint(EXAMPLE);
        let (scheme, rest) = text.split_once("://").ok_or_else(faulty)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, full) = host(authority).ok_or_else(faulty)?;
        match scheme {
            "https" => {}
            "http" if host.is_this() => {}
            "http" => {
                let fault = Fault::new(format!("{} is not encrypted, and not on this host", quoted(text)));
                return Err(fault.hint("who writes there says who is a peer").fix(quoted(&format!("https://{full}"))));
            }
            _ => return Err(faulty()),
        }
        Ok(EtcdUrl(format!("{scheme}://{full}")))
    })
}

enum Host {
    Address(IpAddr),
    Name(HostName),
}

impl Host {
    fn is_this(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => name.to_string() == "localhost",
        }
    }
}

/// A host, and the same with its port.
fn host(authority: &str) -> Option<(Host, String)> {
    if let Ok(address) = authority.parse::<SocketAddr>() {
        return Some((Host::Address(address.ip()), address.to_string()));
    }
    let bare = authority.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(authority);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some((Host::Address(address), SocketAddr::new(address, PORT).to_string()));
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)?),
        None => (authority, PORT),
    };
    Some((Host::Name(HostName::parse(name)?), format!("{name}:{port}")))
}

fn prefix(value: &DeValue<'_>) -> Result<String, Fault> {
    string(value, |text| {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        match text {
            "" | "/" => Err(Fault::new("a prefix of nothing: other users of etcd would be in it").hint(PREFIX_DEFAULT)),
            _ if !plain => Err(Fault::new(format!("{} is no prefix", quoted(text)))
                .hint("letters, digits, `/`, `.`, `_` and `-`, as in \"/hawser/hub/\"")),
            _ => Ok(format!("{}/", text.trim_end_matches('/'))),
        }
    })
}

#[cfg(all(test, feature = "etcd"))]
mod tests;

#[cfg(all(test, not(feature = "etcd")))]
mod tests {
    use super::super::Config;

    #[test]
    fn a_program_without_it_says_so() {
        let text = "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n\
                    [tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\nname = \"a\"\netcd = [\"http://127.0.0.1\"]\n";
        let faults = Config::parse(text, "t.toml").expect_err("it needs etcd");
        assert_eq!(faults[0].message, "`etcd`: etcd is not supported in this version");
        assert_eq!(faults[0].hint.as_deref(), Some("this program was built without it: leave `etcd` out"));
    }
}
