//! What a host says of a datagram that it has no use for: ICMP's "destination unreachable" (RFC 792, RFC 4443
//! section 3.1).

use std::net::{IpAddr, SocketAddr};

use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER, Inner, PROTOCOL_UDP};

/// Bytes of an ICMP header before what is quoted (same sections).
const ICMP_HEADER: usize = 8;
/// The type, by IP version, and its codes that end systems send: protocol and port unreachable, and prohibited by a
/// filter there. Sizes are the shims' to tell (code 4 of IPv4).
const V4: (u8, [u8; 5]) = (3, [2, 3, 9, 10, 13]);
const V6: (u8, [u8; 5]) = (1, [1, 4, 1, 4, 1]);
/// The offset in IPv4's field of fragments (RFC 791 section 3.1).
const V4_OFFSET: u16 = 0x1fff;

/// A datagram is refused by whom it was for. Made by `Content::of` only. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Who sent the datagram.
    pub source: SocketAddr,
    /// For whom it was, who says this.
    pub destination: SocketAddr,
}

impl Refused {
    /// None where it is something else.
    pub(super) fn of(packet: &[u8], inner: &Inner) -> Option<Self> {
        let icmp = packet.get(usize::from(inner.transport_at)..)?;
        let (kind, codes) = if inner.source.is_ipv4() { V4 } else { V6 };
        let (quoted, is_it) = (icmp.get(ICMP_HEADER..)?, icmp[0] == kind && codes.contains(&icmp[1]));
        let (source, destination) = super::addresses(quoted)?;
        let is_same = source == inner.destination && destination == inner.source;
        let ports = quoted.get(udp_in(quoted)?..)?.first_chunk::<4>()?;
        let port = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let end = |ip: IpAddr, at| SocketAddr::new(ip, port(at));
        (is_it && is_same).then(|| Self { source: end(source, 0), destination: end(destination, 2) })
    }
}

/// Where the UDP header starts in a packet of which only the beginning is there.
fn udp_in(quoted: &[u8]) -> Option<usize> {
    let field = |at: usize| Some(u16::from_be_bytes(*quoted.get(at..)?.first_chunk()?));
    let (protocol, at) = match quoted.first()? >> 4 {
        4 if field(6)? & V4_OFFSET == 0 => (*quoted.get(9)?, usize::from(quoted[0] & 0xf) * 4),
        6 => (*quoted.get(6)?, IPV6_HEADER),
        _ => return None,
    };
    (protocol == PROTOCOL_UDP && at >= IPV4_HEADER).then_some(at)
}
