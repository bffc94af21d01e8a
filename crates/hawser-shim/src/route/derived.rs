//! IPv4 addresses of a SCION host: a range of them for every shim, by a hash of its ISD-AS and host.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use ring::digest::{SHA256, digest};

use super::addresses::{InterfaceIndex, ScionHost};

/// Where addresses are derived if nothing else is said: shared address space (RFC 6598).
pub const DEFAULT_RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10);
/// Bits of an address that say which of a host's interfaces it is: 16 addresses for each host.
const INTERFACE_BITS: u32 = 4;
/// The longest prefix that leaves room for 256 hosts.
pub const LONGEST_RANGE: u8 = 20;
/// Keeps these hashes apart from all others.
const LABEL: &[u8] = b"hawser shim ipv4";

/// The 16 IPv4 addresses of a SCION host. Two hosts have the same where their hashes are the same: there is no default.
/// Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Derived {
    first: Ipv4Addr,
}

impl Derived {
    /// Those that a host has in a range. Its prefix is at most [`LONGEST_RANGE`] long.
    pub fn new(host: ScionHost, range: Ipv4Net) -> Derived {
        let hash = digest(&SHA256, &bytes_of(host));
        let hash = hash.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let within = (hash << INTERFACE_BITS) & range.hostmask().to_bits();
        Derived { first: Ipv4Addr::from_bits(range.network().to_bits() | within) }
    }

    /// Whose an address of the range is, and of which interface; none outside of the range and for the ends of 16 that
    /// nobody has.
    pub fn containing(address: Ipv4Addr, range: Ipv4Net) -> Option<(Derived, InterfaceIndex)> {
        const MASK: u32 = (1 << INTERFACE_BITS) - 1;
        let interface = InterfaceIndex::new((address.to_bits() & MASK) as u8)?;
        let first = Ipv4Addr::from_bits(address.to_bits() & !MASK);
        range.contains(&address).then_some((Derived { first }, interface))
    }

    /// That of one of its interfaces.
    pub fn address(self, interface: InterfaceIndex) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() | u32::from(interface.get()))
    }

    /// Which of its interfaces has an address; none where it is not one of its.
    pub fn interface(self, address: Ipv4Addr) -> Option<InterfaceIndex> {
        let index = address.to_bits() ^ self.first.to_bits();
        u8::try_from(index).ok().and_then(InterfaceIndex::new)
    }
}

fn bytes_of(host: ScionHost) -> Vec<u8> {
    let mut bytes = LABEL.to_vec();
    bytes.extend(host.isd_as.to_bits().to_be_bytes());
    match host.ip {
        IpAddr::V4(ip) => bytes.extend(ip.octets()),
        IpAddr::V6(ip) => bytes.extend(ip.octets()),
    }
    bytes
}
