//! What is where: the map from addresses of TCP and UDP to SCION ends, as a table that never changes.
//!
//! 1. [`RouteTable::new`] takes entries: networks, with a port or without, of one protocol. Of equal ones the first
//!    counts.
//! 2. [`RouteTable::to`]: a surrogate address says itself where it leads; else the longest prefix, and of equal ones
//!    that with the port; else the derived addresses of the ends that are in the map.
//! 3. [`RouteTable::may_send`]: a host's own addresses, and those that the map has at that host.
//! 4. [`RouteTable::destinations`]: what the kernel must be told to send to the shim.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;

use hawser_scion::EndpointAddr;
use ipnet::{IpNet, Ipv4Net};

use super::addresses::{InterfaceIndex, ScionHost};
use super::derived::Derived;
use super::surrogate::Surrogate;
use crate::flow::Protocol;

/// A port of TCP or UDP. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub NonZeroU16);

/// Which of a connection's flows go over SCION. All by default. Plain value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Main flow and subflows.
    #[default]
    Scion,
    /// The main flow goes over the ordinary internet, and subflows over SCION.
    Subflows,
    /// The main flow and subflows go over SCION, and one more subflow over the ordinary internet.
    Main,
}

/// Where an address is. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The shim there.
    pub end: EndpointAddr,
    /// Which flows go over SCION.
    pub side: Side,
}

/// Addresses that the map has. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Destination {
    /// The addresses.
    pub network: IpNet,
    /// The one port there; none: all.
    pub port: Option<Port>,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Which flows go over SCION: with [`Side::Subflows`] the kernel keeps its own route for the main flow.
    pub side: Side,
}

/// Two hosts of the map whose derived addresses are the same: the first one has them. Plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{second} has the same derived addresses ({address}) as {first}: reach it by other addresses")]
pub struct Clash {
    /// Who has them.
    pub first: EndpointAddr,
    /// Who has not.
    pub second: EndpointAddr,
    /// The first of them.
    pub address: Ipv4Addr,
}

/// The map of a moment. Empty by default: surrogate addresses are found all the same. Never changes: shared as `Arc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    ipv4: Option<Ipv4Net>,
    entries: BTreeMap<(IpNet, Option<Port>, Protocol), Target>,
    /// Prefix lengths that entries have, by IP version; the longest is tried first.
    lengths: [BTreeSet<u8>; 2],
    derived: BTreeMap<Derived, EndpointAddr>,
    clashes: Vec<Clash>,
}

impl RouteTable {
    /// A table of entries, which derives IPv4 addresses from a range.
    pub fn new(
        ipv4: Option<Ipv4Net>,
        entries: impl IntoIterator<Item = (IpNet, Option<Port>, Protocol, Target)>,
    ) -> RouteTable {
        let mut table = RouteTable { ipv4, ..RouteTable::default() };
        for (network, port, protocol, target) in entries {
            table.lengths[version(network.addr())].insert(network.prefix_len());
            table.entries.entry((network.trunc(), port, protocol)).or_insert(target);
            table.know(target.end);
        }
        table
    }

    /// An end whose derived addresses lead to it, also without an entry.
    #[must_use]
    pub fn with_end(mut self, end: EndpointAddr) -> RouteTable {
        self.know(end);
        self
    }

    fn know(&mut self, end: EndpointAddr) {
        let Some(range) = self.ipv4 else { return };
        let derived = Derived::new(end.into(), range);
        let first = *self.derived.entry(derived).or_insert(end);
        if ScionHost::from(first) != ScionHost::from(end) {
            let address = derived.address(InterfaceIndex::INGRESS);
            self.clashes.push(Clash { first, second: end, address });
        }
    }

    /// Where an address is, if it is in SCION.
    pub fn to(&self, protocol: Protocol, address: SocketAddr) -> Option<Target> {
        if let IpAddr::V6(ip) = address.ip()
            && let Some(surrogate) = Surrogate::of(ip)
        {
            return Some(Target { end: surrogate.end.endpoint(), side: Side::Scion });
        }
        self.mapped(protocol, address).or_else(|| self.derived(address.ip()))
    }

    fn mapped(&self, protocol: Protocol, address: SocketAddr) -> Option<Target> {
        let port = NonZeroU16::new(address.port()).map(Port);
        let lengths = self.lengths[version(address.ip())].iter().rev();
        let networks = lengths.filter_map(|length| IpNet::new(address.ip(), *length).ok());
        let mut keys = networks.flat_map(|network| [port, None].map(|port| (network.trunc(), port, protocol)));
        keys.find_map(|key| self.entries.get(&key).copied())
    }

    fn derived(&self, ip: IpAddr) -> Option<Target> {
        let IpAddr::V4(ip) = ip else { return None };
        let (derived, _) = Derived::containing(ip, self.ipv4?)?;
        self.derived.get(&derived).map(|end| Target { end: *end, side: Side::Scion })
    }

    /// Whether a packet from a SCION host may have this inner source: else it is forged.
    pub fn may_send(&self, from: ScionHost, protocol: Protocol, inner_source: IpAddr) -> bool {
        let own = match inner_source {
            IpAddr::V6(ip) => Surrogate::of(ip).is_some_and(|own| ScionHost::from(own.end.endpoint()) == from),
            IpAddr::V4(ip) => self.ipv4.is_some_and(|range| Derived::new(from, range).interface(ip).is_some()),
        };
        own || self.is_mapped_at(from, protocol, inner_source)
    }

    /// Whether the map has an address, with whichever port, at a host.
    fn is_mapped_at(&self, host: ScionHost, protocol: Protocol, ip: IpAddr) -> bool {
        self.lengths[version(ip)].iter().filter_map(|length| IpNet::new(ip, *length).ok()).any(|network| {
            let network = network.trunc();
            let range = (network, None, Protocol::Tcp)..=(network, Some(Port(NonZeroU16::MAX)), Protocol::Udp);
            let mut there = self.entries.range(range).filter(|((.., spoken), _)| *spoken == protocol);
            there.any(|(_, target)| ScionHost::from(target.end) == host)
        })
    }

    /// What the map has, in order. The ranges of surrogate and derived addresses are not among it.
    pub fn destinations(&self) -> impl Iterator<Item = Destination> + '_ {
        self.entries.iter().map(|(&(network, port, protocol), target)| Destination {
            network,
            port,
            protocol,
            side: target.side,
        })
    }

    /// The range of derived addresses; none where IPv4 is switched off.
    pub fn ipv4(&self) -> Option<Ipv4Net> {
        self.ipv4
    }

    /// Ends whose derived addresses another one has.
    pub fn clashes(&self) -> &[Clash] {
        &self.clashes
    }

    /// Entries of the map; one for both protocols counts once.
    pub fn len(&self) -> usize {
        let both = |(network, port, protocol): &&(IpNet, Option<Port>, Protocol)| {
            *protocol == Protocol::Tcp || !self.entries.contains_key(&(*network, *port, Protocol::Tcp))
        };
        self.entries.keys().filter(both).count()
    }

    /// Whether the map has no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn version(ip: IpAddr) -> usize {
    usize::from(ip.is_ipv6())
}
