//! One reader for each section, in the order of the contract. Each asks for its keys, lets the table find unknown
//! ones, and gives a value only where everything in it is right.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use ipnet::IpNet;
use toml::de::DeTable;

use super::amounts::{MonthDay, bit_rate, month_day, volume};
use super::error::Fault;
use super::hub;
use super::key::PublicKey;
use super::name_servers;
use super::parsers::{
    Endpoint, endpoint, interface_address, interface_name, interface_pattern, ip_address, keyword, link_name,
    listen_address, masquerade, metric, mtu, network, path, peer_name, public_key, web_address, weight,
};
use super::parsers_transport::{ip_protocol, tcp_congestion, tls_name};
use super::reader::{Sited, Table, boolean};
use super::scion::{self, ScionEndpoint};
use super::unique::Unique;
use super::values::{
    Cipher, Congestion, Fail, InterfaceName, IpProtocol, LinkName, PeerName, Protection, Scheduler, TlsName, Transport,
};
use super::{ANY_INTERFACE, DEFAULT_SOCKET, DEFAULT_STATE_DIR, DEFAULT_TUN_NAME};
use super::{DataCap, Gateway, Link, NamedEndpoint, Nat, Peer, Portal, Traffic, Tun, Web};

/// What must be there once in the whole file. Starts empty; used by one thread.
#[derive(Default)]
pub(super) struct Claims {
    link_names: Unique<LinkName>,
    peer_names: Unique<PeerName>,
    public_keys: Unique<PublicKey>,
    networks: Unique<IpNet>,
    /// Peers that another one names as its standby.
    standbys: BTreeSet<String>,
}

impl Claims {
    /// Nothing yet, of a file's sections.
    pub fn of(tree: &DeTable<'_>) -> Self {
        Self { standbys: hub::standbys(tree), ..Self::default() }
    }
}

pub(super) fn portal(mut table: Table<'_, '_, '_>) -> Option<Portal> {
    let key_file = table.required("private_key_file", "private_key_file = \"/etc/hawser/private.key\"", path);
    let listen = table.list("listen", listen_address);
    let transports = table.list("transports", |v| keyword::<Transport>("portal.transports", v));
    let tls = table.optional("tls", boolean);
    let ip_protocol = table.optional("ip_protocol", ip_protocol);
    let socket = table.optional("socket", path);
    let keylog = table.optional("keylog", path);
    let state_dir = table.optional("state_dir", path);
    let relay = table.optional("relay", boolean);
    let mut seen = Unique::default();
    let (listen, scion_listen) = by_kind(listen.unwrap_or_default());
    for l in &listen {
        seen.claim(&mut table, l.value, l.span.clone(), "listens there twice");
    }
    let mut seen_scion = Unique::default();
    for l in &scion_listen {
        seen_scion.claim(&mut table, l.value, l.span.clone(), "listens there twice");
    }
    let mut seen = Unique::default();
    for t in transports.iter().flatten() {
        seen.claim(&mut table, t.value, t.span.clone(), "the transport is there twice");
    }
    if let Some([]) = transports.as_deref() {
        table.fault(table.header(), Fault::new("`transports` is empty").hint("write: transports = [\"udp\"]"));
    }
    let listens_to_streams = transports.iter().flatten().any(|t| t.value == Transport::Tcp);
    if let Some(tls) = tls.as_ref().filter(|tls| tls.value && !listens_to_streams) {
        let fault = Fault::new("`tls`: no stream comes here: `transports` has no \"tcp\"");
        table.fault(tls.span.clone(), fault.hint("write: transports = [\"udp\", \"tcp\"]"));
    }
    table.finish();
    Some(Portal {
        tls: tls.is_some_and(|tls| tls.value),
        private_key_file: key_file?.value,
        listen: values(listen),
        scion_listen: values(scion_listen),
        transports: transports.map_or_else(|| vec![Transport::Udp], values),
        ip_protocol: ip_protocol.map_or(IpProtocol::EXPERIMENT, |p| p.value),
        socket: socket.map_or_else(|| DEFAULT_SOCKET.into(), |s| s.value),
        keylog: keylog.map(|k| k.value),
        state_dir: state_dir.map_or_else(|| DEFAULT_STATE_DIR.into(), |s| s.value),
        relay: relay.is_some_and(|r| r.value),
    })
}

pub(super) fn tun(mut table: Table<'_, '_, '_>) -> Option<Tun> {
    let name = table.optional("name", interface_name);
    let addresses = table.required_list("addresses", "addresses = [\"10.77.0.2/24\"]", interface_address);
    let mtu = table.spelled("mtu", mtu);
    let default_route = table.optional("default_route", boolean);
    let answer_by_link = table.optional("answer_by_link", boolean);
    let fail = table.optional("fail", |v| keyword::<Fail>("tun.fail", v));
    let dns = name_servers::read(&mut table);
    let mut seen = Unique::default();
    for a in addresses.iter().flatten() {
        seen.claim(&mut table, a.value.addr(), a.span.clone(), "the address is there twice");
    }
    table.finish();
    Some(Tun {
        name: name.map_or_else(default_tun_name, |n| n.value),
        addresses: values(addresses?),
        mtu: mtu.and_then(|m| m.value),
        default_route: default_route.is_some_and(|d| d.value),
        answer_by_link: answer_by_link.is_some_and(|a| a.value),
        fail: fail.map_or(Fail::Open, |f| f.value),
        dns,
    })
}

/// The device's name where the file has none.
pub(super) fn default_tun_name() -> InterfaceName {
    InterfaceName::parse(DEFAULT_TUN_NAME).expect("the constant is a name")
}

pub(super) fn gateway(mut table: Table<'_, '_, '_>) -> Gateway {
    let serve = table.list("serve", interface_name);
    let masquerade = table.optional("masquerade", boolean);
    let mut seen = Unique::default();
    for s in serve.iter().flatten() {
        seen.claim(&mut table, s.value.clone(), s.span.clone(), "the interface is there twice");
    }
    table.finish();
    Gateway { serve: values(serve.unwrap_or_default()), masquerade: masquerade.is_some_and(|m| m.value) }
}

pub(super) fn web(mut table: Table<'_, '_, '_>) -> Web {
    let listen = table.optional("listen", web_address);
    table.finish();
    Web { listen: listen.map(|listen| listen.value) }
}

pub(super) fn nat(mut table: Table<'_, '_, '_>) -> Nat {
    let interface = table.spelled("masquerade", masquerade);
    table.finish();
    Nat { masquerade: interface.and_then(|i| i.value) }
}

pub(super) fn link(mut table: Table<'_, '_, '_>, claims: &mut Claims) -> Option<Sited<Link>> {
    let header = table.header();
    let name = table.required("name", "name = \"dsl\"", link_name);
    let interface = table.optional("interface", interface_name);
    let exclude = table.list("exclude", interface_pattern);
    let address = table.optional("address", ip_address);
    let transport = table.optional("transport", |v| keyword::<Transport>("link.transport", v));
    let tls = tls(&mut table, transport.as_ref().map(|t| t.value));
    let scion = scion::link(&mut table, transport.as_ref().map(|t| t.value));
    let metric = table.optional("metric", metric);
    let weight = table.optional("weight", weight);
    let max_rate = table.optional("max_rate", bit_rate);
    let data_cap = table.optional("data_cap", volume);
    let reset = table.optional("data_cap_reset", month_day);
    if let Some(reset) = reset.as_ref().filter(|_| !table.has("data_cap")) {
        let fault = Fault::new("`data_cap_reset` without a `data_cap`");
        table.fault(reset.span.clone(), fault.hint("add: data_cap = \"50G\""));
    }
    if !table.has("interface") && !table.has("address") {
        let fault = Fault::new("a link needs an `interface` or an `address`");
        table.fault(header.clone(), fault.hint("add: interface = \"eth0\"    (`ip link` lists them)"));
    }
    let any = interface.as_ref().is_some_and(|i| i.value.as_str() == ANY_INTERFACE);
    if table.has("exclude") && !any {
        let fault = Fault::new("`exclude` is for a link of every interface");
        table.fault(header.clone(), fault.hint("write: interface = \"*\", or leave `exclude` out"));
    }
    if any && let Some(transport) = transport.as_ref().filter(|t| t.value == Transport::Scion) {
        let fault = Fault::new("a link over SCION has one interface");
        table.fault(transport.span.clone(), fault.hint("name the interface of this host's AS: interface = \"eth0\""));
    }
    if table.has("address") && any {
        let fault = Fault::new("a link of every interface has no `address` of its own");
        table.fault(header.clone(), fault.hint("leave `address` out, or name the interface"));
    }
    if let Some(name) = &name {
        claims.link_names.claim(&mut table, name.value.clone(), name.span.clone(), "the link name is taken");
    }
    table.finish();
    let link = Link {
        name: name?.value,
        interface: interface.map(|i| i.value),
        exclude: values(exclude.unwrap_or_default()),
        address: address.map(|a| a.value),
        transport: transport.map_or(Transport::Udp, |t| t.value),
        tls,
        scion,
        metric: metric.map_or_else(Default::default, |m| m.value),
        weight: weight.map_or(1, |w| w.value),
        max_rate: max_rate.map(|r| r.value),
        data_cap: data_cap.map(|cap| DataCap { volume: cap.value, reset: reset.map_or(MonthDay(1), |r| r.value) }),
    };
    Some(Sited { value: link, span: header })
}

/// TLS is of streams alone. A link that chooses by itself falls back to it.
fn tls(table: &mut Table<'_, '_, '_>, transport: Option<Transport>) -> Option<TlsName> {
    let tls = table.optional("tls", boolean);
    let name = table.optional("tls_name", tls_name);
    let auto = transport == Some(Transport::Auto);
    let on = tls.as_ref().is_some_and(|tls| tls.value) || auto;
    if let Some(tls) = tls.filter(|tls| tls.value && transport != Some(Transport::Tcp)) {
        table.fault(tls.span, Fault::new("`tls` is of the transport `tcp` alone").hint("add: transport = \"tcp\""));
    }
    match name {
        Some(name) if !on => {
            table.fault(name.span, Fault::new("`tls_name` needs `tls`").hint("add: tls = true"));
            None
        }
        name => on.then(|| name.map_or_else(TlsName::default, |name| name.value)),
    }
}

pub(super) fn peer(mut table: Table<'_, '_, '_>, claims: &mut Claims) -> Option<Sited<Peer>> {
    let header = table.header();
    let name = table.required("name", "name = \"hub\"", peer_name);
    let key = table.required("public_key", "public_key = \"…\"    (hawser pubkey < private.key)", public_key);
    let preshared = table.optional("preshared_key_file", path);
    let endpoints = table.list("endpoints", endpoint);
    let is_standby = name.as_ref().is_some_and(|name| claims.standbys.contains(name.value.as_str()));
    let allowed = if is_standby {
        shared(&mut table)
    } else {
        table.required_list("allowed_ips", "allowed_ips = [\"10.77.0.1/32\"]", network)
    };
    let standby = table.optional("standby", peer_name);
    if let Some(name) = &name {
        claims.peer_names.claim(&mut table, name.value.clone(), name.span.clone(), "the peer name is taken");
    }
    if let Some(key) = &key {
        claims.public_keys.claim(&mut table, key.value, key.span.clone(), "another peer has the public key");
    }
    for net in allowed.iter().flatten() {
        claims.networks.claim(&mut table, net.value, net.span.clone(), "the network belongs to a peer already");
    }
    let mut seen: Unique<String> = Unique::default();
    for (e, text) in endpoints.iter().flatten().map(|e| (e, e.value.to_string())) {
        seen.claim(&mut table, text, e.span.clone(), "the endpoint is there twice");
    }
    let names = named(endpoints.iter().flatten());
    let ranks = ranked(endpoints.iter().flatten());
    let (endpoints, scion_endpoints) = by_kind(endpoints.unwrap_or_default());
    table.finish();
    let peer = Peer {
        names,
        ranks,
        name: name?.value,
        public_key: key?.value,
        preshared_key_file: preshared.map(|p| p.value),
        endpoints: values(endpoints),
        scion_endpoints: values(scion_endpoints),
        allowed_ips: values(allowed?),
        standby: standby.map(|name| name.value),
        shared_ips: Vec::new(),
    };
    Some(Sited { value: peer, span: header })
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

pub(super) fn traffic(mut table: Table<'_, '_, '_>) -> Traffic {
    let scheduler = table.optional("scheduler", |v| keyword::<Scheduler>("traffic.scheduler", v));
    let congestion = table.optional("congestion", |v| keyword::<Congestion>("traffic.congestion", v));
    let tcp_congestion = table.optional("tcp_congestion", tcp_congestion);
    let protection = table.optional("protection", |v| keyword::<Protection>("traffic.protection", v));
    let cipher = table.optional("cipher", |v| keyword::<Cipher>("traffic.cipher", v));
    let default = Traffic::default();
    if let Some(Sited { value: Cipher::Blake2s, span }) = &cipher
        && protection.as_ref().map_or(default.protection, |p| p.value) != Protection::Authenticate
    {
        let fault = Fault::new("`cipher`: blake2s does not encrypt");
        let hint = "add to [traffic]: protection = \"authenticate\"    (inner packets then go in clear), or take another cipher";
        table.fault(span.clone(), fault.hint(hint));
    }
    table.finish();
    Traffic {
        scheduler: scheduler.map_or(default.scheduler, |s| s.value),
        congestion: congestion.map_or(default.congestion, |c| c.value),
        tcp_congestion: tcp_congestion.map(|c| c.value),
        protection: protection.map_or(default.protection, |p| p.value),
        cipher: cipher.map_or(default.cipher, |c| c.value),
    }
}

/// Endpoints with their places in the list.
fn placed<'e>(endpoints: impl Iterator<Item = &'e Sited<Endpoint>>) -> impl Iterator<Item = (u8, &'e Endpoint)> {
    // Beyond 255 all are as good.
    endpoints.enumerate().map(|(place, e)| (u8::try_from(place).unwrap_or(u8::MAX), &e.value))
}

fn named<'e>(endpoints: impl Iterator<Item = &'e Sited<Endpoint>>) -> Vec<NamedEndpoint> {
    let named = placed(endpoints).filter_map(|(rank, endpoint)| match endpoint {
        Endpoint::Name(name, port) => Some(NamedEndpoint { name: name.clone(), port: *port, rank }),
        _ => None,
    });
    named.collect()
}

/// The places of the addresses.
fn ranked<'e>(endpoints: impl Iterator<Item = &'e Sited<Endpoint>>) -> Vec<u8> {
    placed(endpoints).filter(|(_, endpoint)| matches!(endpoint, Endpoint::Socket(_))).map(|(rank, _)| rank).collect()
}

/// Socket addresses, and SCION's.
fn by_kind(endpoints: Vec<Sited<Endpoint>>) -> (Vec<Sited<SocketAddr>>, Vec<Sited<ScionEndpoint>>) {
    let (mut sockets, mut scion) = (Vec::new(), Vec::new());
    for Sited { value, span } in endpoints {
        match value {
            Endpoint::Socket(value) => sockets.push(Sited { value, span }),
            Endpoint::Scion(value) => scion.push(Sited { value, span }),
            Endpoint::Name(..) => {}
        }
    }
    (sockets, scion)
}

fn values<T>(sited: Vec<Sited<T>>) -> Vec<T> {
    sited.into_iter().map(|s| s.value).collect()
}
