//! `[takeover]`: a client behind the local portal has the remote portal's own address.
//!
//! 1. [`read`] reads the section. 2. [`settle`] looks at it together with the rest: a portal that has the address among
//!    a peer's `allowed_ips` is the remote one and gives it to that peer; else it is the local one, and the client
//!    behind it.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use toml::de::DeValue;

use super::error::{Fault, Faults, Span};
use super::kinds::{quoted, string};
use super::links::Peer;
use super::parsers::{interface_name, ip_address, peer_name};
use super::reading::{Sited, Table, Unique, values};
use super::sections::Tun;
use super::values::{InterfaceName, PeerName};
use super::words::{Keyword, Transported};

/// What stays at the remote portal where `keep` says nothing: SSH (RFC 4253 section 4.2), so that nobody is locked out.
const KEEP_DEFAULT: Kept = Kept { protocol: Transported::Tcp, ports: 22..=22 };

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
    /// The first and the last of them.
    pub ports: RangeInclusive<u16>,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.ports.start(), self.ports.end());
        write!(f, "{}/{first}", self.protocol)?;
        if first == last { Ok(()) } else { write!(f, "-{last}") }
    }
}

/// The section by itself. Plain data.
pub(super) struct Section {
    header: Span,
    addresses: Vec<Sited<IpAddr>>,
    interface: Option<Sited<InterfaceName>>,
    peer: Option<Sited<PeerName>>,
    keep: Option<Vec<Sited<Kept>>>,
}

/// Step 1.
pub(super) fn read(table: &mut Table<'_, '_, '_>) -> Option<Section> {
    let header = table.header();
    let addresses = table.one_or_more("address", "address = \"198.51.100.7\"", public_address);
    let interface = table.optional("interface", interface_name);
    let peer = table.optional("peer", peer_name);
    let keep = table.list("keep", kept);
    let mut seen = Unique::default();
    for address in addresses.iter().flatten() {
        seen.claim(table, address.value, address.span.clone(), "the address is there twice");
    }
    Some(Section { header, addresses: addresses?, interface, peer, keep })
}

/// Step 2.
pub(super) fn settle(section: Section, tun: &Tun, peers: &[Sited<Peer>], faults: &mut Faults<'_>) -> Option<Takeover> {
    let Section { header, addresses, interface, peer, keep } = section;
    for address in addresses.iter().filter(|a| tun.addresses.iter().any(|own| own.addr() == a.value)) {
        let fault = Fault::new(format!("{} is an address of {} itself", address.value, tun.name));
        faults.add(address.span.clone(), fault.hint("write the remote portal's public address"));
    }
    if let Some(interface) = interface.as_ref().filter(|i| i.value == tun.name) {
        let fault = Fault::new(format!("{} is the tunnel itself", tun.name));
        faults.add(interface.span.clone(), fault.hint("name the interface towards the world, or towards the client"));
    }
    let given = |address: &IpAddr| peers.iter().any(|p| gives(&p.value, *address));
    let role = if peer.is_some() || addresses.iter().any(|a| given(&a.value)) {
        every_address_is_given(&addresses, peer.as_ref(), peers, faults);
        let keep = keep.map_or_else(|| vec![KEEP_DEFAULT], values);
        TakeoverRole::Remote { interface: interface.map(|i| i.value), keep }
    } else {
        every_address_is_reached(&addresses, peers, faults);
        if let Some(span) = keep.and_then(|keep| Some(keep.first()?.span.clone())) {
            let fault = Fault::new("`keep` is the remote portal's: here nothing is taken from this machine");
            faults.add(span, fault.hint("leave it out"));
        }
        TakeoverRole::Local { interface: client_interface(interface, &header, &addresses, faults)? }
    };
    Some(Takeover { addresses: values(addresses), role })
}

/// The remote portal: cryptokey routing must let the peer have them.
fn every_address_is_given(
    addresses: &[Sited<IpAddr>],
    named: Option<&Sited<PeerName>>,
    peers: &[Sited<Peer>],
    faults: &mut Faults<'_>,
) {
    if let Some(name) = named.filter(|name| peers.iter().all(|p| p.value.name != name.value)) {
        let known: Vec<&str> = peers.iter().map(|p| p.value.name.as_str()).collect();
        let fault = Fault::new(format!("no peer is called {}", quoted(name.value.as_str())));
        let others = || format!("peers: {}", known.join(", "));
        return faults.add(name.span.clone(), fault.meant(name.value.as_str(), &known, others));
    }
    let getters = || peers.iter().map(|p| &p.value).filter(|p| named.is_none_or(|name| p.name == name.value));
    for address in addresses.iter().filter(|a| !getters().any(|peer| gives(peer, a.value))) {
        let host = IpNet::from(address.value);
        let whom = named.map_or("any peer".to_owned(), |name| format!("peer {}", quoted(name.value.as_str())));
        let fault = Fault::new(format!("{host} is not among the `allowed_ips` of {whom}"));
        faults.add(address.span.clone(), fault.hint(format!("add \"{host}\" to allowed_ips of the peer who gets it")));
    }
}

/// The local portal: what comes for the client must be accepted from a peer.
fn every_address_is_reached(addresses: &[Sited<IpAddr>], peers: &[Sited<Peer>], faults: &mut Faults<'_>) {
    let allowed = || peers.iter().flat_map(|p| &p.value.allowed_ips);
    for address in addresses.iter().filter(|a| !allowed().any(|net| net.addr().is_ipv4() == a.value.is_ipv4())) {
        let (family, world) = if address.value.is_ipv4() { ("IPv4", "0.0.0.0/0") } else { ("IPv6", "::/0") };
        let fault = Fault::new(format!("no peer carries {family} for {}", address.value));
        faults.add(address.span.clone(), fault.hint(format!("add \"{world}\" to allowed_ips of the remote portal")));
    }
}

fn client_interface(
    interface: Option<Sited<InterfaceName>>,
    header: &Span,
    addresses: &[Sited<IpAddr>],
    faults: &mut Faults<'_>,
) -> Option<InterfaceName> {
    if interface.is_none() {
        let host = IpNet::from(addresses.first()?.value);
        let fault = Fault::new("[takeover] gives the address to no peer, and has no `interface` with a client");
        let hint = format!(
            "on the remote portal add \"{host}\" to allowed_ips of the peer who gets it; \
             on the local portal say where the client is: interface = \"lan0\""
        );
        faults.add(header.clone(), fault.hint(hint));
    }
    interface.map(|i| i.value)
}

fn gives(peer: &Peer, address: IpAddr) -> bool {
    peer.allowed_ips.contains(&IpNet::from(address))
}

/// An address that others reach.
fn public_address(value: &DeValue<'_>) -> Result<IpAddr, Fault> {
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

fn kept(value: &DeValue<'_>) -> Result<Kept, Fault> {
    string(value, |text| {
        let wrong = || {
            let fault = Fault::new(format!("{} is not a protocol with a port", quoted(text)));
            let fault = fault.hint("such as \"tcp/22\" or \"udp/60000-61000\"");
            match text.parse::<u16>() {
                Ok(port) => fault.fix(quoted(&format!("tcp/{port}"))),
                Err(_) => fault,
            }
        };
        let (protocol, ports) = text.split_once('/').ok_or_else(wrong)?;
        let protocol = Transported::from_word(protocol).ok_or_else(wrong)?;
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port != 0).ok_or_else(wrong);
        let (first, last) = (port(first)?, port(last)?);
        if first <= last { Ok(Kept { protocol, ports: first..=last }) } else { Err(wrong()) }
    })
}
