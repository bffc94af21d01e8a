//! UDP in IP packets, as far as the shim must know it (RFC 768).
//!
//! 1. [`Content::of`]: what of a packet the shim carries: a TCP segment, a UDP datagram, a fragment of one, or its
//!    refusal.
//! 2. [`fragment`]: a datagram that may be fragmented becomes fragments, as a router makes them.
//! 3. [`readdress`]: another address in the place of one of a packet's; checksums stay right, and wrong ones wrong.

mod fragment;
mod readdress;
mod refusal;
#[cfg(test)]
pub mod samples;

use std::net::{IpAddr, SocketAddr};

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{self, IPV4_HEADER, PROTOCOL_UDP, Transport, UDP_HEADER};

use crate::mptcp::Segment;

pub use fragment::{Fragment, fragment};
pub use readdress::{End, readdress};
pub use refusal::Refused;

/// Where length and checksum stand in a UDP header (RFC 768).
pub(crate) const LENGTH_AT: usize = 4;
pub(crate) const CHECKSUM_AT: usize = 6;
/// IPv4's flag "don't fragment" in the high byte of its field (RFC 791 section 3.1).
const DONT_FRAGMENT: u8 = 0x40;

/// What a packet holds. Borrows from it.
#[derive(Clone, Copy, Debug)]
pub enum Content<'p> {
    /// A TCP segment, of which the headers may be all that is there.
    Segment(Segment<'p>),
    /// A UDP datagram, or a train of them.
    Datagram(UserDatagram),
    /// A part of a UDP datagram.
    Fragment(Fragment),
    /// ICMP: a UDP datagram is refused by whom it was for.
    Refused(Refused),
    /// Nothing that the shim carries.
    Other,
}

/// A whole UDP datagram in a packet. Made by [`Content::of`] only. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserDatagram {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Where the UDP header starts in the packet.
    pub udp_at: u16,
    /// The UDP header says the length that the packet has: nothing stands after the data.
    pub is_exact: bool,
}

impl<'p> Content<'p> {
    /// Step 1.
    pub fn of(packet: &'p [u8]) -> Self {
        Segment::parse(packet).map_or_else(|_| Self::of_udp(packet), Self::Segment)
    }

    /// The same where it is no TCP segment.
    pub fn of_udp(packet: &'p [u8]) -> Self {
        let Ok(inner) = inner::parse(packet) else { return Self::Other };
        match (inner.transport, inner.ports) {
            (Transport::Udp, Some((source, destination))) if !inner.routed => {
                let at = usize::from(inner.transport_at);
                let length = u16::from_be_bytes([packet[at + LENGTH_AT], packet[at + LENGTH_AT + 1]]);
                Self::Datagram(UserDatagram {
                    source: SocketAddr::new(inner.source, source),
                    destination: SocketAddr::new(inner.destination, destination),
                    udp_at: inner.transport_at,
                    is_exact: usize::from(length) == packet.len() - at,
                })
            }
            (Transport::Fragment, _) if inner.protocol == PROTOCOL_UDP => {
                Fragment::of(packet, &inner).map_or(Self::Other, Self::Fragment)
            }
            (Transport::Icmp, _) => Refused::of(packet, &inner).map_or(Self::Other, Self::Refused),
            _ => Self::Other,
        }
    }
}

impl UserDatagram {
    /// Where the data starts in the packet.
    pub const fn payload_at(&self) -> usize {
        self.udp_at as usize + UDP_HEADER
    }
}

/// Completes a checksum that is the pseudo-header's sum alone, of a datagram whose header starts at `at`.
pub fn complete(packet: &mut [u8], at: usize) {
    let sum = checksum::of_transport(&packet[at..], CHECKSUM_AT as u16);
    packet[at + CHECKSUM_AT..at + CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Whether routers may fragment a packet: IPv4 without "don't fragment".
pub fn may_fragment(packet: &[u8]) -> bool {
    packet.len() >= IPV4_HEADER && packet[0] >> 4 == 4 && packet[6] & DONT_FRAGMENT == 0
}

/// The addresses of a packet that [`Content::of`] understood.
pub(crate) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let v4 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
    let v6 = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
    match packet.first()? >> 4 {
        4 => Some((v4(12)?, v4(16)?)),
        6 => Some((v6(8)?, v6(24)?)),
        _ => None,
    }
}
