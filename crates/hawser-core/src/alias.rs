//! Addresses that stand for a way of which the kernel knows nothing: a SCION path to an endpoint.
//!
//! The core knows a path's far end by a socket address. A SCION path has none, so its link gives it an alias in the
//! discard prefix 100::/64 (RFC 6666), which no packet ever goes to. Beside a name it says what the core must know of
//! the path:
//!
//! ```text
//!   0100:0000:0000:0000  link:16  largest datagram:16  IPv6 below:1  bytes of headers / 4:9  name:22   port: generation
//! ```
//!
//! Another generation is the same way with other bytes on it (its hop fields were renewed), as another port is the same
//! host behind a NAT.

use crate::transport::{IPV4_HEADER, IPV6_HEADER, UDP_HEADER};
use crate::units::LinkId;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// 100::/64 (RFC 6666 section 4).
const PREFIX: u64 = 0x0100_0000_0000_0000;
/// Bits of a name.
const NAME_BITS: u32 = 22;
/// Names are less than this.
const NAMES: u32 = 1 << NAME_BITS;
/// Headers are counted in this many bytes: SCION's own unit of length (draft-dekater-scion-dataplane, HdrLen).
const HEADER_UNIT: u16 = 4;
/// Headers of more bytes do not fit in 9 bits: SCION's longest is 1020, and 8 of UDP in it.
const MAX_HEADER: u16 = 511 * HEADER_UNIT;
/// The bit above the headers' length.
const OVER_IPV6: u32 = 1 << 31;

/// What stands in the place of a SCION path's far end. There is no default. Plain data.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Alias {
    link: LinkId,
    largest: u16,
    ipv6: bool,
    header: u16,
    name: u32,
    generation: u16,
}

impl Alias {
    /// The `name`th way (of 4 million) of `link`, which carries datagrams of `largest` bytes (0: nobody knows) behind
    /// `header` bytes of headers of its own within UDP, over IPv6 or IPv4. None where the headers are no multiple of
    /// four, or too long.
    pub fn new(link: LinkId, largest: u16, ipv6: bool, header: u16, name: u32, generation: u16) -> Option<Alias> {
        let fits = header.is_multiple_of(HEADER_UNIT) && header <= MAX_HEADER;
        fits.then_some(Alias { link, largest, ipv6, header, name: name % NAMES, generation })
    }

    /// The alias that an address is, if it is one.
    pub fn of(address: &SocketAddr) -> Option<Alias> {
        let SocketAddr::V6(address) = address else { return None };
        let bits = u128::from(*address.ip());
        if (bits >> 64) as u64 != PREFIX {
            return None;
        }
        let low = bits as u32;
        Some(Alias {
            link: LinkId((bits >> 48) as u16),
            largest: (bits >> 32) as u16,
            ipv6: low & OVER_IPV6 != 0,
            header: ((low & !OVER_IPV6) >> NAME_BITS) as u16 * HEADER_UNIT,
            name: low % NAMES,
            generation: address.port(),
        })
    }

    /// The address that it is.
    pub fn address(&self) -> SocketAddr {
        let family = if self.ipv6 { OVER_IPV6 } else { 0 };
        let low = family | u32::from(self.header / HEADER_UNIT) << NAME_BITS | self.name;
        let bits =
            u128::from(PREFIX) << 64 | u128::from(self.link.0) << 48 | u128::from(self.largest) << 32 | u128::from(low);
        SocketAddrV6::new(Ipv6Addr::from(bits), self.generation, 0, 0).into()
    }

    /// The same way with other bytes on it.
    pub fn renewed(&self, generation: u16) -> Alias {
        Alias { generation, ..*self }
    }

    /// The link that it is a way of.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// Its name among the link's.
    pub fn name(&self) -> u32 {
        self.name
    }

    /// Which bytes are on it.
    pub fn generation(&self) -> u16 {
        self.generation
    }

    /// Bytes of the largest datagram that it is said to carry; none where nobody said.
    pub fn largest(&self) -> Option<u16> {
        (self.largest > 0).then_some(self.largest)
    }

    /// Bytes that the link writes before each datagram.
    pub fn header(&self) -> usize {
        usize::from(self.header)
    }

    /// Bytes beside each datagram on the wire.
    pub fn overhead(&self) -> usize {
        UDP_HEADER + self.header() + if self.ipv6 { IPV6_HEADER } else { IPV4_HEADER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_survives_being_an_address() {
        for (link, largest, ipv6, header, name, generation) in
            [(0, 0, false, 0, 0, 0), (7, 1392, false, 80, 1, 3), (u16::MAX, u16::MAX, true, 1028, NAMES - 1, u16::MAX)]
        {
            let alias = Alias::new(LinkId(link), largest, ipv6, header, name, generation).expect("it fits");
            assert_eq!(Alias::of(&alias.address()), Some(alias));
            let outer = if ipv6 { 48 } else { 28 };
            assert_eq!((alias.header(), alias.overhead()), (usize::from(header), usize::from(header) + outer));
            let renewed = Alias::of(&alias.renewed(9).address()).expect("still one");
            assert_eq!((renewed.name(), alias.address().ip()), (name, renewed.address().ip()), "only the port differs");
        }
    }

    #[test]
    fn what_does_not_fit_is_none_and_no_host_is_one() {
        assert_eq!(Alias::new(LinkId(0), 1000, false, 81, 0, 0), None);
        assert_eq!(Alias::new(LinkId(0), 1000, false, MAX_HEADER + 4, 0, 0), None);
        for host in ["192.0.2.1:4920", "[2001:db8::1]:4920", "[100:0:0:1::1]:4920", "[::1]:1"] {
            assert_eq!(Alias::of(&host.parse().expect("an address")), None, "{host}");
        }
        assert!(Alias::of(&"[100::1]:4920".parse().expect("an address")).is_some());
    }
}
