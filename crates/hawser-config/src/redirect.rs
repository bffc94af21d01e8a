//! What leads packets for this host's own addresses elsewhere: a port to a host behind a peer (`[[forward]]`), or a
//! whole address to a client behind the local portal, which has the remote portal's own address (`[takeover]`).
//!
//! 1. [`forward`] and [`takeover`] read a section.
//! 2. [`Section::settle`] looks at `[takeover]` together with the rest: a portal that has the address among a peer's
//!    `allowed_ips` is the remote one and gives it to that peer; else it is the local one, and the client behind it.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use toml::de::DeValue;

use super::Config;
use super::error::{Fault, Faults, Read, Span};
use super::links::Peer;
use super::matching::{Ports, ports};
use super::parsers::{interface_name, ip_address, keyword, parsed, peer_name, quoted, string};
use super::reading::{Sited, Table, Unique, values};
use super::sections::Portal;
use super::values::{InterfaceName, PeerName};
use super::words::{Keyword, Transport, Transported};

/// What stays at the remote portal where `keep` says nothing: SSH (RFC 4253 section 4.2), so that nobody is locked out.
const KEEP_DEFAULT: Kept = Kept { protocol: Transported::Tcp, ports: Ports { first: 22, last: 22 } };

/// `[[forward]]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The ports at this host.
    pub ports: Ports,
    /// The protocols, none of them twice; at least one.
    pub protocols: Vec<Transported>,
    /// The host behind a peer.
    pub host: IpAddr,
    /// Its port; none: the same as here.
    pub host_port: Option<u16>,
}

impl Forward {
    /// A port of it that the portal listens on.
    pub(super) fn hides(&self, portal: &Portal) -> Option<u16> {
        let protocol = |transport: &Transport| match transport {
            Transport::Udp => Some(Transported::Udp),
            Transport::Tcp => Some(Transported::Tcp),
            Transport::Ip | Transport::Scion | Transport::Auto => None,
        };
        let taken = |protocol| self.protocols.contains(&protocol);
        let listens = portal.transports.iter().filter_map(protocol).any(taken);
        let here = |address: &SocketAddr| address.is_ipv4() == self.host.is_ipv4() || address.is_ipv6();
        let over_ip = portal.listen.iter().copied().filter(|address| listens && here(address));
        let over_scion = portal.scion_sockets().filter(|_| taken(Transported::Udp));
        over_ip.chain(over_scion).map(|address| address.port()).find(|port| self.ports.contains(*port))
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let same_version = self.host.is_ipv4() == other.host.is_ipv4();
        let same_protocol = self.protocols.iter().any(|protocol| other.protocols.contains(protocol));
        same_version && same_protocol && self.ports.first <= other.ports.last && other.ports.first <= self.ports.last
    }
}

/// Reads a `[[forward]]`.
pub(super) fn forward(table: &mut Table<'_, '_, '_>) -> Option<Forward> {
    let ports = table.required("port", "port = 8080", ports);
    let protocols = table.list("protocols", keyword);
    let to = table.required("to", "to = \"192.168.8.5:80\"", target);
    table.not_empty("protocols", "write: protocols = [\"tcp\", \"udp\"]");
    let mut protocols = protocols.map_or_else(|| vec![Transported::Tcp], values);
    protocols.sort_unstable();
    protocols.dedup();
    let (ports, (host, host_port)) = (ports?.value, to?.value);
    if ports.first != ports.last && host_port.is_some() {
        let fault = Fault::new("several ports, and one to lead to");
        table.fault_at("to", fault.hint("each keeps its number").fix(quoted(&host.to_string())));
    }
    if ports.first == 0 {
        table.fault_at("port", Fault::new("there is no port 0").hint("a port such as 443, or a range"));
    }
    Some(Forward { ports, protocols, host, host_port })
}

/// An address, perhaps with a port.
fn target(value: &DeValue<'_>) -> Read<(IpAddr, Option<u16>)> {
    let hint = "an address behind a peer, perhaps with a port: \"192.168.8.5:80\", \"[fd08::5]:80\"";
    string(value, |text| {
        let both = text.parse::<SocketAddr>().map(|both| (both.ip(), Some(both.port())));
        match both.or_else(|_| text.trim_matches(['[', ']']).parse().map(|host| (host, None))) {
            Ok((_, Some(0))) => Err(Fault::new("there is no port 0").hint(hint)),
            Ok(target) => Ok(target),
            Err(_) => Err(Fault::new(format!("{} is not an address", quoted(text))).hint(hint)),
        }
    })
}

/// `[takeover]`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The addresses that the client has; at least one, none of them twice.
    pub addresses: Vec<IpAddr>,
    /// What this portal does for it.
    pub role: TakeoverRole,
}

/// Which of the two portals this is. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeoverRole {
    /// The addresses are this machine's own, and it gives them to a peer.
    Remote {
        /// The interface that has them; none: whichever does.
        interface: Option<InterfaceName>,
        /// What stays here all the same.
        keep: Vec<Kept>,
    },
    /// The client is behind this machine.
    Local {
        /// The interface by which the client is reached.
        interface: InterfaceName,
    },
}

/// Ports of the remote portal that stay its own: `tcp/22`, `udp/60000-61000`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Whose ports.
    pub protocol: Transported,
    /// Which of them.
    pub ports: Ports,
}

/// `[takeover]` by itself. Plain data.
pub(super) struct Section {
    header: Span,
    addresses: Vec<Sited<IpAddr>>,
    interface: Option<Sited<InterfaceName>>,
    peer: Option<Sited<PeerName>>,
    keep: Option<Vec<Sited<Kept>>>,
}

/// Step 1.
pub(super) fn takeover(table: &mut Table<'_, '_, '_>) -> Option<Section> {
    let header = table.header();
    let example = "address = \"198.51.100.7\"";
    let addresses = match table.raw("address") {
        Some(DeValue::Array(_)) => table.required_list("address", example, public_address),
        _ => table.required("address", example, public_address).map(|one| vec![one]),
    };
    let interface = table.optional("interface", interface_name);
    let peer = table.optional("peer", peer_name);
    let keep = table.list("keep", kept);
    Unique::default().claim_each(table, addresses.as_deref().unwrap_or_default(), "the address is there twice");
    Some(Section { header, addresses: addresses?, interface, peer, keep })
}

impl Section {
    /// Step 2.
    pub fn settle(self, config: &Config, faults: &mut Faults<'_>) -> Option<Takeover> {
        let tun = &config.tun;
        for address in self.addresses.iter().filter(|a| tun.addresses.iter().any(|own| own.addr() == a.value)) {
            let fault = Fault::new(format!("{} is an address of {} itself", address.value, tun.name));
            faults.add(address.span.clone(), fault.hint("write the remote portal's public address"));
        }
        if let Some(interface) = self.interface.as_ref().filter(|i| i.value == tun.name) {
            let fault = Fault::new(format!("{} is the tunnel itself", tun.name));
            let hint = "name the interface towards the world, or towards the client";
            faults.add(interface.span.clone(), fault.hint(hint));
        }
        let given = |address: &Sited<IpAddr>| config.peers.iter().any(|peer| gives(peer, address.value));
        let role = if self.peer.is_some() || self.addresses.iter().any(given) {
            self.every_address_is_given(&config.peers, faults);
            let keep = self.keep.map_or_else(|| vec![KEEP_DEFAULT], values);
            TakeoverRole::Remote { interface: self.interface.map(|i| i.value), keep }
        } else {
            self.every_address_is_reached(&config.peers, faults);
            TakeoverRole::Local { interface: self.interface?.value }
        };
        Some(Takeover { addresses: values(self.addresses), role })
    }

    /// The remote portal: cryptokey routing must let the peer have them.
    fn every_address_is_given(&self, peers: &[Peer], faults: &mut Faults<'_>) {
        let named = self.peer.as_ref();
        if let Some(name) = named.filter(|name| peers.iter().all(|peer| peer.name != name.value)) {
            let known: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
            let fault = Fault::new(format!("no peer is called {}", quoted(name.value.as_str())));
            let others = || format!("peers: {}", known.join(", "));
            return faults.add(name.span.clone(), fault.meant(name.value.as_str(), &known, others));
        }
        let getters = || peers.iter().filter(|peer| named.is_none_or(|name| peer.name == name.value));
        for address in self.addresses.iter().filter(|a| !getters().any(|peer| gives(peer, a.value))) {
            let host = IpNet::from(address.value);
            let whom = named.map_or("any peer".to_owned(), |name| format!("peer {}", quoted(name.value.as_str())));
            let fault = Fault::new(format!("{host} is not among the `allowed_ips` of {whom}"));
            let hint = format!("add \"{host}\" to allowed_ips of the peer who gets it");
            faults.add(address.span.clone(), fault.hint(hint));
        }
    }

    /// The local portal: what comes for the client must be accepted from a peer, and handed on by an interface.
    fn every_address_is_reached(&self, peers: &[Peer], faults: &mut Faults<'_>) {
        let carries = |v4: bool| peers.iter().flat_map(|peer| &peer.allowed_ips).any(|net| net.addr().is_ipv4() == v4);
        for address in self.addresses.iter().filter(|address| !carries(address.value.is_ipv4())) {
            let (family, world) = if address.value.is_ipv4() { ("IPv4", "0.0.0.0/0") } else { ("IPv6", "::/0") };
            let fault = Fault::new(format!("no peer carries {family} for {}", address.value));
            let hint = format!("add \"{world}\" to allowed_ips of the remote portal");
            faults.add(address.span.clone(), fault.hint(hint));
        }
        if let Some(kept) = self.keep.as_ref().and_then(|keep| keep.first()) {
            let fault = Fault::new("`keep` is the remote portal's: here nothing is taken from this machine");
            faults.add(kept.span.clone(), fault.hint("leave it out"));
        }
        if let (None, Some(address)) = (&self.interface, self.addresses.first()) {
            let fault = Fault::new("[takeover] gives the address to no peer, and has no `interface` with a client");
            let hint = format!(
                "on the remote portal add \"{}\" to allowed_ips of the peer who gets it; \
                 on the local portal say where the client is: interface = \"lan0\"",
                IpNet::from(address.value)
            );
            faults.add(self.header.clone(), fault.hint(hint));
        }
    }
}

fn gives(peer: &Peer, address: IpAddr) -> bool {
    peer.allowed_ips.contains(&IpNet::from(address))
}

/// An address that others reach.
fn public_address(value: &DeValue<'_>) -> Read<IpAddr> {
    let address = ip_address(value)?;
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if address.is_loopback() || link_local {
        let fault = Fault::new(format!("{address} is not an address that the world reaches"));
        return Err(fault.hint("the remote portal's public address, such as \"198.51.100.7\""));
    }
    Ok(address)
}

fn kept(value: &DeValue<'_>) -> Read<Kept> {
    let parse = |text: &str| {
        let (protocol, ports) = text.split_once('/')?;
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0);
        let (protocol, first, last) = (Transported::from_word(protocol)?, port(first)?, port(last)?);
        (first <= last).then_some(Kept { protocol, ports: Ports { first, last } })
    };
    let read = parsed(value, parse, "is not a protocol with a port", "such as \"tcp/22\" or \"udp/60000-61000\"");
    read.map_err(|fault| match value.as_str().and_then(|text| text.parse::<u16>().ok()) {
        Some(port) => fault.fix(quoted(&format!("tcp/{port}"))),
        None => fault,
    })
}
