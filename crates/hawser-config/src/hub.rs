//! A hub's configuration: `standby` of a [[peer]], which names the other members, and `[hub]` of a member itself, with
//! what it says of etcd: where that is, by what a member shows who it is, and what it says of itself there.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::Config;
use super::error::{Fault, Faults, Read};
use super::links::Peer;
use super::parsers::{Endpoint, endpoint, integer, not_supported, path, peer_name, quoted, string, within};
use super::reading::{Sited, Table, raw};
use super::values::{EtcdUrl, HostName, PeerName};

/// Numbers of the kernel's tables: `main`, and `local`, which is the kernel's own (rtnetlink(7)).
const TABLE_MAIN: u32 = 254;
const TABLE_LOCAL: u32 = 255;
/// Seconds that a member counts as there after etcd heard of it last: a few round trips and an election of etcd's at
/// least (its default election timeout is one second), and no more than anybody would wait.
const LEASE_S: RangeInclusive<i64> = 3..=3_600;
const LEASE_DEFAULT: Duration = Duration::from_secs(10);
/// Where etcd listens for clients (its registered port).
const PORT: u16 = 2379;
const PREFIX_DEFAULT: &str = "/hawser/hub/";
/// Numbers of racks, and shares: more than anybody has members.
const NUMBERS: RangeInclusive<i64> = 0..=65_535;
/// The files of TLS.
const FILES: [&str; 3] = ["etcd_ca", "etcd_certificate", "etcd_key"];
/// What else says nothing without etcd.
const WITH_ETCD: [&str; 6] = ["etcd_prefix", "etcd_lease", "etcd_strict", "endpoints", "weight", "rack"];

/// `[hub]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// The kernel's table that the networks of peers are announced in.
    pub table: u32,
    /// What the member is called; none where nobody has to know.
    pub name: Option<PeerName>,
    /// Where members, peers and revocations are kept for all members; none: in each member's files.
    pub etcd: Option<Etcd>,
}

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

impl Config {
    /// The members of each hub that this portal is a peer of: the active one, its standby, and those after it.
    pub fn hubs(&self) -> impl Iterator<Item = Vec<&Peer>> {
        let named = |name: &PeerName| self.peers.iter().find(|peer| peer.name == *name);
        let active = self.peers.iter().filter(|peer| !peer.standby.is_empty());
        active.map(move |active| std::iter::once(active).chain(active.standby.iter().filter_map(named)).collect())
    }
}

/// Reads `[hub]`.
pub(super) fn section(table: &mut Table<'_, '_, '_>) -> Hub {
    let wrong = "a kernel table for routes has a number from 1 to 4294967295, and 255 is the kernel's own";
    let hint = "leave it out for the main table, or choose a number: table = 4920";
    let number = table.get("table", |value| match u32::try_from(integer(value)?) {
        Ok(number) if number != 0 && number != TABLE_LOCAL => Ok(number),
        _ => Err(Fault::new(wrong).hint(hint)),
    });
    let name = table.get("name", peer_name);
    Hub { table: number.unwrap_or(TABLE_MAIN), etcd: etcd(table, name.as_ref()), name }
}

/// Reads what `[hub]` says of etcd; none where it says nothing, or a fault was noted.
fn etcd(table: &mut Table<'_, '_, '_>, name: Option<&PeerName>) -> Option<Etcd> {
    let urls = table.set("etcd", "the address is there twice", url);
    let files = FILES.map(|key| table.get(key, path));
    let prefix = table.get("etcd_prefix", prefix);
    let lease = table.get("etcd_lease", |v| within(v, LEASE_S, |fault| fault.hint("in seconds")));
    let strict = table.is("etcd_strict");
    let endpoints = table.set("endpoints", "the endpoint is there twice", endpoint).unwrap_or_default();
    let weight = table.get("weight", |v| within(v, NUMBERS, |fault| fault)).unwrap_or(1);
    let rack = table.get("rack", |v| within(v, NUMBERS, |fault| fault)).unwrap_or(0);
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Scion(_))) {
        table.fault_at("endpoints", Fault::new("a member of a hub is reached by IP addresses or names"));
    }
    if !table.has("etcd") {
        for key in table.present(&[&FILES[..], &WITH_ETCD].concat()) {
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
        let hint = "etcd knows members by name; add: name = \"zurich\"";
        table.here(Fault::new("missing key `name` in [hub]").hint(hint));
    }
    let tls = settle_tls(table, &urls, files);
    Some(Etcd {
        urls,
        tls: tls?,
        prefix: prefix.unwrap_or_else(|| PREFIX_DEFAULT.to_owned()),
        lease: lease.map_or(LEASE_DEFAULT, Duration::from_secs),
        strict,
        name: name?.clone(),
        endpoints: endpoints.iter().map(Endpoint::to_string).collect(),
        weight,
        rack,
    })
}

/// All three files with TLS, none without. None only where a fault was noted.
fn settle_tls(table: &mut Table<'_, '_, '_>, urls: &[EtcdUrl], files: [Option<PathBuf>; 3]) -> Option<Option<EtcdTls>> {
    if !urls.iter().any(EtcdUrl::is_tls) {
        for key in table.present(&FILES) {
            let fault = Fault::new(format!("`{key}`, and no address of etcd is called by TLS"));
            table.fault_at(key, fault.hint("write https:// in `etcd`, or leave it out"));
        }
        return Some(None);
    }
    for key in FILES {
        if !table.has(key) {
            let fault = Fault::new(format!("missing key `{key}` in [hub]"));
            table.here(fault.hint(format!("a member shows etcd who it is; add: {key} = \"{key}.pem\"")));
        }
    }
    let [ca, certificate, key] = files;
    Some(Some(EtcdTls { ca: ca?, certificate: certificate?, key: key? }))
}

fn url(value: &DeValue<'_>) -> Read<EtcdUrl> {
    if cfg!(not(feature = "etcd")) {
        return Err(not_supported("etcd").hint("this program was built without it: leave `etcd` out"));
    }
    string(value, |text| {
        let example = "such as \"https://192.0.2.5:2379\"";
        let faulty = || Fault::new(format!("{} is no address of etcd", quoted(text))).hint(example);
        let (scheme, rest) = text.split_once("://").ok_or_else(faulty)?;
        let (is_this_host, authority) = authority(rest.strip_suffix('/').unwrap_or(rest)).ok_or_else(faulty)?;
        match scheme {
            "http" if !is_this_host => {
                let fault = Fault::new(format!("{} is not encrypted, and not on this host", quoted(text)));
                let fix = quoted(&format!("https://{authority}"));
                Err(fault.hint("who writes there says who is a peer").fix(fix))
            }
            "http" | "https" => Ok(EtcdUrl(format!("{scheme}://{authority}"))),
            _ => Err(faulty()),
        }
    })
}

/// Whether it is this host, and the same with its port.
fn authority(text: &str) -> Option<(bool, String)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return (address.port() != 0).then(|| (address.ip().is_loopback(), address.to_string()));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some((address.is_loopback(), SocketAddr::new(address, PORT).to_string()));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)?),
        None => (text, PORT),
    };
    HostName::parse(name)?;
    Some((name == "localhost", format!("{name}:{port}")))
}

fn prefix(value: &DeValue<'_>) -> Read<String> {
    string(value, |text| {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        match text.trim_end_matches('/') {
            "" => Err(Fault::new("a prefix of nothing: other users of etcd would be in it").hint(PREFIX_DEFAULT)),
            _ if !plain => Err(Fault::new(format!("{} is no prefix", quoted(text)))
                .hint("letters, digits, `/`, `.`, `_` and `-`, as in \"/hawser/hub/\"")),
            folder => Ok(format!("{folder}/")),
        }
    })
}

/// The names of peers that are another's standby, right or wrong.
pub(super) fn standbys(tree: &DeTable<'_>) -> BTreeSet<String> {
    let names = raw(tree, "peer", "standby").flat_map(one_or_more);
    names.filter_map(DeValue::as_str).map(str::to_owned).collect()
}

/// Reads `standby`: a name, or a list of names.
pub(super) fn names(value: &DeValue<'_>) -> Read<Vec<PeerName>> {
    one_or_more(value).map(peer_name).collect()
}

fn one_or_more<'v, 't>(value: &'v DeValue<'t>) -> impl Iterator<Item = &'v DeValue<'t>> {
    let list = value.as_array().map(|items| items.iter().map(|item| item.get_ref()));
    let one = list.is_none().then_some(value);
    list.into_iter().flatten().chain(one)
}

/// Gives each standby the networks of its active member, and notes a fault for one that cannot be.
pub(super) fn settle(peers: &mut [Sited<Peer>], faults: &mut Faults<'_>) {
    for place in 0..peers.len() {
        let Sited { value: active, span } = peers[place].clone();
        for name in &active.standby {
            let fault = match peers.iter_mut().find(|peer| peer.value.name == *name).map(|peer| &mut peer.value) {
                None => {
                    let whose = format!("standby \"{name}\" of peer \"{}\"", active.name);
                    Fault::new(format!("{whose} is no [[peer]] of this file"))
                        .hint(format!("add a [[peer]] with name = \"{name}\", public_key and endpoints"))
                }
                Some(_) if *name == active.name => no_standby(&active, "it is its own standby"),
                Some(standby) if !standby.standby.is_empty() => no_standby(&active, "its standby has a standby, too"),
                Some(standby) if !standby.shared_ips.is_empty() => {
                    no_standby(&active, "its standby is another peer's already, or named twice")
                }
                Some(standby) => {
                    standby.shared_ips.clone_from(&active.allowed_ips);
                    continue;
                }
            };
            faults.add(span.clone(), fault);
        }
    }
}

fn no_standby(active: &Peer, wrong: &str) -> Fault {
    Fault::new(format!("peer \"{}\": {wrong}", active.name))
        .hint("each member of a hub has a [[peer]] section; the first names the others")
}
