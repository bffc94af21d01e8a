//! Fragments: which datagram each is of, and how a datagram becomes some.

use std::net::IpAddr;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{IPV4_HEADER, Inner, UDP_HEADER};

/// Bytes of IPv6's fragment header (RFC 8200 section 4.5), and where its parts stand, from its end.
const V6_FRAGMENT: usize = 8;
/// Bytes that offsets are counted in (RFC 791 section 3.1, RFC 8200 section 4.5).
const UNIT: usize = 8;
/// IPv4's offset, and its flag "more fragments"; IPv6's are the other way about (same sections).
const V4_OFFSET: u16 = 0x1fff;
const V4_MORE: u16 = 0x2000;
/// The first byte of an IPv4 header without options.
const IPV4_PLAIN: u8 = 0x45;

/// A part of a UDP datagram. Made by `Content::of` only. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// What all parts of the datagram have in common, between these addresses.
    pub identification: u32,
    /// The ports, source and destination; the first part alone has them.
    pub ports: Option<(u16, u16)>,
    /// Where the UDP header starts, or more of the data.
    pub data_at: u16,
}

impl Fragment {
    /// None where it is cut short.
    pub(super) fn of(packet: &[u8], inner: &Inner) -> Option<Self> {
        let at = usize::from(inner.transport_at);
        let half = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
        let (identification, is_first) = if inner.source.is_ipv4() {
            (u32::from(half(4)?), half(6)? & V4_OFFSET == 0)
        } else {
            let header = packet.get(at.checked_sub(V6_FRAGMENT)?..at)?;
            let identification = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            (identification, u16::from_be_bytes([header[2], header[3]]) >> 3 == 0)
        };
        let ports = if is_first { Some((half(at)?, half(at + 2)?)) } else { None };
        if is_first && packet.len() < at + UDP_HEADER {
            return None;
        }
        let (source, destination) = (inner.source, inner.destination);
        Some(Self { source, destination, identification, ports, data_at: inner.transport_at })
    }
}

/// Hands the fragments of an IPv4 packet to `take`, each of at most `most` bytes (RFC 791 section 3.2). Says whether it
/// did: the packet's header must have no options, and there must be room for some data. Fragments of fragments come of
/// it as well.
pub fn fragment(packet: &[u8], most: usize, mut take: impl FnMut(&[u8; IPV4_HEADER], &[u8])) -> bool {
    let Some((header, data)) = packet.split_first_chunk::<IPV4_HEADER>() else { return false };
    let size = most.saturating_sub(IPV4_HEADER) / UNIT * UNIT;
    if header[0] != IPV4_PLAIN || size == 0 {
        return false;
    }
    let field = u16::from_be_bytes([header[6], header[7]]);
    let count = data.len().div_ceil(size);
    for (number, piece) in data.chunks(size).enumerate() {
        let mut header = *header;
        let offset = (field & V4_OFFSET) + u16::try_from(number * size / UNIT).unwrap_or(V4_OFFSET);
        let more = if number + 1 < count { V4_MORE } else { field & V4_MORE };
        let length = u16::try_from(IPV4_HEADER + piece.len()).unwrap_or(u16::MAX);
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header[6..8].copy_from_slice(&(offset | more).to_be_bytes());
        header[10..12].fill(0);
        let sum = !checksum::sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        take(&header, piece);
    }
    true
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;
    use crate::udp::Content;

    fn packet(len: usize) -> Vec<u8> {
        let payload: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let mut packet = Vec::new();
        PacketBuilder::ipv4([10, 1, 0, 1], [10, 2, 0, 1], 64).udp(4000, 53).write(&mut packet, &payload).unwrap();
        packet[4..6].copy_from_slice(&0x1234_u16.to_be_bytes());
        packet[6] = 0;
        packet
    }

    #[test]
    fn fragments_are_packets_of_one_datagram_that_put_together_are_what_it_was() {
        let whole = packet(3000);
        for most in [28, 576, 1359, 2999] {
            let mut pieces = Vec::new();
            assert!(fragment(&whole, most, |header, data| pieces.push([&header[..], data].concat())));
            let mut data = vec![0; whole.len() - IPV4_HEADER];
            for (number, piece) in pieces.iter().enumerate() {
                assert!(piece.len() <= most && checksum::verifies(0, &piece[..IPV4_HEADER]), "{most}");
                let Content::Fragment(fragment) = Content::of(piece) else { panic!("{most}: it is a fragment") };
                assert_eq!(fragment.identification, 0x1234);
                assert_eq!(fragment.ports, (number == 0).then_some((4000, 53)));
                let field = u16::from_be_bytes([piece[6], piece[7]]);
                let at = usize::from(field & V4_OFFSET) * UNIT;
                assert_eq!(field & V4_MORE != 0, number + 1 < pieces.len());
                data[at..at + piece.len() - IPV4_HEADER].copy_from_slice(&piece[IPV4_HEADER..]);
            }
            assert_eq!(data, whole[IPV4_HEADER..], "{most}");
        }
    }

    #[test]
    fn a_fragment_is_cut_again_and_keeps_its_place() {
        let mut pieces = Vec::new();
        fragment(&packet(3000), 1500, |header, data| pieces.push([&header[..], data].concat()));
        let mut again = Vec::new();
        fragment(&pieces[1], 1000, |header, data| again.push([&header[..], data].concat()));
        let offsets = again.iter().map(|piece| u16::from_be_bytes([piece[6], piece[7]]));
        assert_eq!(offsets.collect::<Vec<_>>(), [V4_MORE | 185, V4_MORE | (185 + 122)]);
    }

    #[test]
    fn what_has_options_or_no_room_is_left_alone() {
        let mut options = packet(100);
        options[0] = 0x46;
        assert!(!fragment(&options, 60, |_, _| panic!("nothing comes of it")));
        assert!(!fragment(&packet(100), 27, |_, _| panic!("nothing comes of it")));
    }
}
