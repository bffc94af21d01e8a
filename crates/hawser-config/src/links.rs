//! `[[link]]` and `[[peer]]`: what each says, and its reader.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use hawser_core::units::Rate;
use ipnet::IpNet;
use toml::de::DeValue;

use super::error::{Fault, Read};
use super::hub;
use super::key::PublicKey;
use super::parsers::{
    Endpoint, at_least, endpoint, interface_name, interface_pattern, ip_address, keyword_but, link_name, network,
    parsed, path, peer_name, string, weight, within,
};
use super::reading::{Document, Sited, Table, Unique, values};
use super::scion::{self, ScionEndpoint, ScionPaths};
use super::values::{HostName, InterfaceName, InterfacePattern, LinkName, PeerName, TlsName, VOLUME_MIN};
use super::words::Transport;

/// What stands for every interface.
pub const ANY_INTERFACE: &str = "*";
/// The least rate, bit/s: a path's own words take a tenth of it.
const RATE_MIN: u64 = 64_000;
/// Days that every month has.
const DAYS: RangeInclusive<i64> = 1..=28;

/// `[[link]]`. Plain data; it has an interface or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its name, once in a configuration.
    pub name: LinkName,
    /// The interface it binds to.
    pub interface: Option<InterfaceName>,
    /// With every interface: but these.
    pub exclude: Vec<InterfacePattern>,
    /// The source address it binds to.
    pub address: Option<IpAddr>,
    /// How its path carries packets.
    pub transport: Transport,
    /// Whether its streams go inside TLS, and the name that is asked for there.
    pub tls: Option<TlsName>,
    /// Its SCION paths, where that is its transport.
    pub scion: Option<ScionPaths>,
    /// Its tier: less is better.
    pub metric: u16,
    /// Its part of what `weighted` sends; at least one.
    pub weight: u8,
    /// The most that it may carry in each direction.
    pub max_rate: Option<Rate>,
    /// The most that it may carry in a month.
    pub data_cap: Option<DataCap>,
}

/// `data_cap` and `data_cap_reset`. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCap {
    /// The volume in bytes, both directions together.
    pub volume: u64,
    /// The day on which it begins anew; every month has it.
    pub reset: u8,
}

impl Link {
    /// Whether it stands for every interface with a way to an endpoint: each becomes a link of its own.
    pub fn is_any(&self) -> bool {
        self.interface.as_ref().is_some_and(|name| name.as_str() == ANY_INTERFACE)
    }

    /// The link of one interface of those that this one stands for.
    pub fn of_interface(&self, interface: InterfaceName) -> Self {
        let name = self.name.with_interface(&interface);
        Self { name, interface: Some(interface), exclude: Vec::new(), ..self.clone() }
    }
}

pub(super) fn link(table: &mut Table<'_, '_, '_>, names: &mut Unique<LinkName>) -> Option<Link> {
    let name = table.required("name", "name = \"dsl\"", link_name);
    names.claim_each(table, name.as_slice(), "the link name is taken");
    let interface = table.get("interface", interface_name);
    let exclude = table.list("exclude", interface_pattern).unwrap_or_default();
    let address = table.get("address", ip_address);
    let transport = table.get("transport", |v| keyword_but(v, scion::LATER_TRANSPORTS));
    let (tls, scion) = (tls(table, transport), scion::link(table, transport));
    check_place(table, interface.as_ref(), transport);
    Some(Link {
        interface,
        exclude: values(exclude),
        address,
        transport: transport.unwrap_or(Transport::Udp),
        tls,
        scion,
        metric: table.get("metric", |v| within(v, 0..=u16::MAX.into(), |fault| fault)).unwrap_or(0),
        weight: table.get("weight", weight).unwrap_or(1),
        max_rate: table.get("max_rate", |v| at_least(v, RATE_MIN, "bits a second", "\"20M\"")).map(Rate::from_bits),
        data_cap: data_cap(table),
        name: name?.value,
    })
}

/// Notes a fault where no interface can be bound to.
fn check_place(table: &mut Table<'_, '_, '_>, interface: Option<&InterfaceName>, transport: Option<Transport>) {
    let any = interface.is_some_and(|name| name.as_str() == ANY_INTERFACE);
    let one = interface.is_some() && !any;
    let (interface, address) = (table.has("interface"), table.has("address"));
    if !interface && !address {
        let fault = Fault::new("a link needs an `interface` or an `address`");
        table.here(fault.hint("add: interface = \"eth0\"    (`ip link` lists them)"));
    }
    // Where `interface` is missing or faulty, that is told.
    if table.has("exclude") && (one || address && !interface) {
        let fault = Fault::new("`exclude` is for a link of every interface");
        table.here(fault.hint("write: interface = \"*\", or leave `exclude` out"));
    }
    if address && any {
        let fault = Fault::new("a link of every interface has no `address` of its own");
        table.here(fault.hint("leave `address` out, or name the interface"));
    }
    if any && transport == Some(Transport::Scion) {
        let fault = Fault::new("a link over SCION has one interface");
        table.fault_at("transport", fault.hint("name the interface of this host's AS: interface = \"eth0\""));
    }
}

/// TLS is of streams alone. A link that chooses by itself falls back to it.
fn tls(table: &mut Table<'_, '_, '_>, transport: Option<Transport>) -> Option<TlsName> {
    let tls = table.is("tls");
    let name = table.get("tls_name", |v| parsed(v, TlsName::parse, "is no host name", "such as \"www.example.com\""));
    if tls && transport != Some(Transport::Tcp) {
        table.fault_at("tls", Fault::new("`tls` is of the transport `tcp` alone").hint("add: transport = \"tcp\""));
    }
    let on = tls || transport == Some(Transport::Auto);
    if name.is_some() && !on {
        table.fault_at("tls_name", Fault::new("`tls_name` needs `tls`").hint("add: tls = true"));
    }
    on.then(|| name.unwrap_or_default())
}

fn data_cap(table: &mut Table<'_, '_, '_>) -> Option<DataCap> {
    let volume = table.get("data_cap", |v| at_least(v, VOLUME_MIN, "bytes", "\"50G\""));
    let reset = table.get("data_cap_reset", |v| within(v, DAYS, |fault| fault.hint("a day that every month has")));
    if reset.is_some() && !table.has("data_cap") {
        let fault = Fault::new("`data_cap_reset` without a `data_cap`");
        table.fault_at("data_cap_reset", fault.hint("add: data_cap = \"50G\""));
    }
    Some(DataCap { volume: volume?, reset: reset.unwrap_or(1) })
}

/// `[[peer]]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, once in a configuration.
    pub name: PeerName,
    /// Its public key, once in a configuration.
    pub public_key: PublicKey,
    /// The file with a preshared key; relative to the configuration's folder.
    pub preshared_key_file: Option<PathBuf>,
    /// Where it is reached by all others, as far as that is known: the addresses of the file, and of a portal that runs
    /// those of `names`, too.
    pub endpoints: Vec<SocketAddr>,
    /// How little each of them is preferred: its place in the list of the file, where all addresses of a name have one.
    pub ranks: Vec<u8>,
    /// The endpoints that are names.
    pub names: Vec<NamedEndpoint>,
    /// Where it is reached by links over SCION.
    pub scion_endpoints: Vec<ScionEndpoint>,
    /// The networks behind it, host bits zero; at least one, none of them twice. A standby has none.
    pub allowed_ips: Vec<IpNet>,
    /// The peers that are its standbys in a hub: the first is asked first.
    pub standby: Vec<PeerName>,
    /// What a standby may take over: the networks of its active member.
    pub shared_ips: Vec<IpNet>,
}

/// An endpoint that is a name. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEndpoint {
    /// The name.
    pub name: HostName,
    /// The port.
    pub port: u16,
    /// How little it is preferred.
    pub rank: u8,
}

impl std::fmt::Display for NamedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Endpoints by their kind. Plain data.
#[derive(Default)]
pub(super) struct Endpoints {
    pub sockets: Vec<SocketAddr>,
    /// The places of `sockets` in the list.
    ranks: Vec<u8>,
    names: Vec<NamedEndpoint>,
    pub scion: Vec<ScionEndpoint>,
}

impl Endpoints {
    /// Those of a list, where there is one.
    pub fn of(list: Option<Vec<Endpoint>>) -> Self {
        let mut sorted = Self::default();
        for (place, endpoint) in list.into_iter().flatten().enumerate() {
            // Beyond 255 all are as good.
            let rank = u8::try_from(place).unwrap_or(u8::MAX);
            match endpoint {
                Endpoint::Socket(address) => {
                    sorted.sockets.push(address);
                    sorted.ranks.push(rank);
                }
                Endpoint::Name(name, port) => sorted.names.push(NamedEndpoint { name, port, rank }),
                Endpoint::Scion(endpoint) => sorted.scion.push(endpoint),
            }
        }
        sorted
    }
}

impl Peer {
    /// The networks behind it, those that it shares with the active member of its hub among them.
    pub fn networks(&self) -> Vec<IpNet> {
        [&self.allowed_ips[..], &self.shared_ips].concat()
    }

    /// Whether we may call it.
    pub fn has_endpoints(&self) -> bool {
        !self.endpoints.is_empty() || !self.names.is_empty() || !self.scion_endpoints.is_empty()
    }
}

/// What only one peer of a file may have. Starts empty; used by one thread.
#[derive(Default)]
struct Claims {
    names: Unique<PeerName>,
    public_keys: Unique<PublicKey>,
    networks: Unique<IpNet>,
    /// Peers that another one names as its standby.
    standbys: BTreeSet<String>,
}

/// All peers of a file; where nothing was found wrong so far, each standby has its active member's networks.
pub(super) fn peers(file: &mut Document<'_, '_, '_>) -> Option<Vec<Sited<Peer>>> {
    let mut claims = Claims { standbys: hub::standbys(file.tree), ..Claims::default() };
    let mut peers = file.each("peer", |table| peer(table, &mut claims))?;
    if file.faults.is_empty() {
        hub::settle(&mut peers, file.faults);
    }
    Some(peers)
}

fn peer(table: &mut Table<'_, '_, '_>, claims: &mut Claims) -> Option<Peer> {
    let name = table.required("name", "name = \"hub\"", peer_name);
    claims.names.claim_each(table, name.as_slice(), "the peer name is taken");
    let key = table.required("public_key", "public_key = \"…\"    (hawser pubkey < private.key)", public_key);
    claims.public_keys.claim_each(table, key.as_slice(), "another peer has the public key");
    let preshared_key_file = table.get("preshared_key_file", path);
    let endpoints = Endpoints::of(table.set("endpoints", "the endpoint is there twice", endpoint));
    let allowed = match &name {
        Some(name) if claims.standbys.contains(name.value.as_str()) => shared(table),
        _ => table.required_list("allowed_ips", "allowed_ips = [\"10.77.0.1/32\"]", network),
    };
    let standby = table.get("standby", hub::names).unwrap_or_default();
    let networks = allowed.as_deref().unwrap_or_default();
    claims.networks.claim_each(table, networks, "the network belongs to a peer already");
    Some(Peer {
        name: name?.value,
        public_key: key?.value,
        preshared_key_file,
        endpoints: endpoints.sockets,
        ranks: endpoints.ranks,
        names: endpoints.names,
        scion_endpoints: endpoints.scion,
        allowed_ips: values(allowed?),
        standby,
        shared_ips: Vec::new(),
    })
}

/// A standby's networks: none of its own.
fn shared(table: &mut Table<'_, '_, '_>) -> Option<Vec<Sited<IpNet>>> {
    let own = table.list("allowed_ips", network).unwrap_or_default();
    if let Some(first) = own.first() {
        let fault = Fault::new("a standby has its active member's networks");
        table.fault(first.span.clone(), fault.hint("leave `allowed_ips` out here, or `standby` there"));
    }
    Some(Vec::new())
}

fn public_key(value: &DeValue<'_>) -> Read<PublicKey> {
    let hint = "44 characters, as printed on the other side by: hawser pubkey < private.key";
    string(value, |text| PublicKey::parse(text).map_err(|error| Fault::new(error.to_string()).hint(hint)))
}
