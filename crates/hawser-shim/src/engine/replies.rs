//! What is answered to this host itself, in the name of a way that is not there: ICMP (RFC 792, RFC 4443) and a RST.

use std::net::IpAddr;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER, PROTOCOL_TCP, TCP_HEADER};

use crate::mptcp::{Flags, ResetReason, Segment};

/// Protocol numbers (IANA, "Assigned Internet Protocol Numbers").
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
/// What an answer may live.
const HOP_LIMIT: u8 = 64;
/// Bytes of an ICMP header (RFC 792, RFC 4443 section 2.1).
const ICMP_HEADER: usize = 8;
/// What of a packet is quoted: of IPv4 its header, with options, and 8 bytes (RFC 792); of IPv6 as much as makes 1280
/// (RFC 4443 section 3.1), of which headers of 128 bytes are enough.
const QUOTED: usize = 128;
/// The first byte of an IPv4 header without options, and of an IPv6 header.
const IPV4_PLAIN: u8 = 0x45;
const IPV6_FIRST: u8 = 0x60;
/// MP_TCPRST (RFC 8684 section 3.6): kind, length, subtype and the flag T (transient), reason.
const MP_TCPRST: [u8; 3] = [30, 4, 0x81];

/// Why a packet is refused. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// No way leads there.
    Unreachable,
    /// The way takes packets of this many bytes.
    TooLarge(u16),
    /// This protocol does not cross.
    Prohibited,
}

impl Refusal {
    /// Type, code and what stands in the rest of the header (RFC 792, RFC 1191 section 4).
    fn v4(self) -> (u8, u8, u32) {
        match self {
            Self::Unreachable => (3, 1, 0),
            Self::TooLarge(mtu) => (3, 4, u32::from(mtu)),
            Self::Prohibited => (3, 13, 0),
        }
    }

    /// The same (RFC 4443 sections 3.1 and 3.2).
    fn v6(self) -> (u8, u8, u32) {
        match self {
            Self::Unreachable => (1, 0, 0),
            Self::TooLarge(mtu) => (2, 0, u32::from(mtu)),
            Self::Prohibited => (1, 1, 0),
        }
    }
}

/// Writes the refusal of a packet, in the name of whom it was for. Nothing where that is no packet.
pub(super) fn refuse(packet: &[u8], refusal: Refusal, out: &mut Vec<u8>) -> bool {
    out.clear();
    let quoted = &packet[..packet.len().min(QUOTED)];
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= IPV4_HEADER => {
            ipv4(&packet[16..20], &packet[12..16], PROTOCOL_ICMP, ICMP_HEADER + quoted.len(), out);
            icmp(refusal.v4(), quoted, out);
            let sum = !checksum::sum(&out[IPV4_HEADER..]);
            out[IPV4_HEADER + 2..IPV4_HEADER + 4].copy_from_slice(&sum.to_be_bytes());
            true
        }
        Some(6) if packet.len() >= IPV6_HEADER => {
            ipv6(&packet[24..40], &packet[8..24], PROTOCOL_ICMPV6, ICMP_HEADER + quoted.len(), out);
            icmp(refusal.v6(), quoted, out);
            let body = &out[IPV6_HEADER..];
            let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
            let pseudo = [&out[8..40], &[0, 0], &length.to_be_bytes(), &[0, 0, 0, PROTOCOL_ICMPV6]].concat();
            let sum = !checksum::add(checksum::sum(&pseudo), checksum::sum(body));
            out[IPV6_HEADER + 2..IPV6_HEADER + 4].copy_from_slice(&sum.to_be_bytes());
            true
        }
        _ => false,
    }
}

/// Writes the RST that answers a SYN (RFC 9293 section 3.10.7.1), with the reason for MPTCP: nothing is left to join
/// by.
pub(super) fn reset(syn: &Segment<'_>, out: &mut Vec<u8>) {
    out.clear();
    let len = TCP_HEADER + MP_TCPRST.len() + 1;
    match (syn.destination.ip(), syn.source.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ipv4(&from.octets(), &to.octets(), PROTOCOL_TCP, len, out),
        (IpAddr::V6(from), IpAddr::V6(to)) => ipv6(&from.octets(), &to.octets(), PROTOCOL_TCP, len, out),
        _ => return,
    }
    let at = out.len();
    out.extend(syn.destination.port().to_be_bytes());
    out.extend(syn.source.port().to_be_bytes());
    out.extend(0_u32.to_be_bytes());
    out.extend(syn.end().0.to_be_bytes());
    let words = u8::try_from(len / 4).unwrap_or_default();
    out.extend([words << 4, Flags::RST.with(Flags::ACK).0, 0, 0, 0, 0, 0, 0]);
    out.extend(MP_TCPRST);
    out.push(ResetReason::LACK_OF_RESOURCES.0);
    let pseudo = checksum::pseudo(syn.destination.ip(), syn.source.ip(), PROTOCOL_TCP, len);
    let sum = !checksum::add(pseudo, checksum::sum(&out[at..]));
    out[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
}

fn icmp((kind, code, rest): (u8, u8, u32), quoted: &[u8], out: &mut Vec<u8>) {
    out.extend([kind, code, 0, 0]);
    out.extend(rest.to_be_bytes());
    out.extend(quoted);
}

fn ipv4(from: &[u8], to: &[u8], protocol: u8, len: usize, out: &mut Vec<u8>) {
    let total = u16::try_from(IPV4_HEADER + len).unwrap_or(u16::MAX);
    out.extend([IPV4_PLAIN, 0]);
    out.extend(total.to_be_bytes());
    out.extend([0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0]);
    out.extend(from);
    out.extend(to);
    let sum = !checksum::sum(out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn ipv6(from: &[u8], to: &[u8], protocol: u8, len: usize, out: &mut Vec<u8>) {
    out.extend([IPV6_FIRST, 0, 0, 0]);
    out.extend(u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes());
    out.extend([protocol, HOP_LIMIT]);
    out.extend(from);
    out.extend(to);
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;
    use crate::mptcp::samples::{Draft, v6};
    use crate::mptcp::{MptcpOption, Sequence};

    fn packets() -> [Vec<u8>; 2] {
        let v6 = Draft { from: v6(1), to: v6(2), ..Draft::default() };
        [Draft { payload: vec![1; 2000], ..Draft::default() }.packet(), v6.packet()]
    }

    #[test]
    fn a_refusal_is_a_right_packet_from_whom_it_was_for() {
        for packet in packets() {
            for refusal in [Refusal::Unreachable, Refusal::TooLarge(1300), Refusal::Prohibited] {
                let mut out = Vec::new();
                assert!(refuse(&packet, refusal, &mut out));
                let (asked, told) = (Segment::parse(&packet).unwrap(), SlicedPacket::from_ip(&out).unwrap());
                match (told.net.unwrap(), told.transport.unwrap()) {
                    (NetSlice::Ipv4(ip), TransportSlice::Icmpv4(icmp)) => {
                        let header = ip.header();
                        assert_eq!(IpAddr::from(header.source_addr()), asked.destination.ip());
                        assert_eq!(IpAddr::from(header.destination_addr()), asked.source.ip());
                        assert!(checksum::verifies(0, &out[..20]) && checksum::verifies(0, icmp.slice()));
                        assert_eq!((icmp.type_u8(), icmp.code_u8()), (refusal.v4().0, refusal.v4().1));
                        assert_eq!(icmp.bytes5to8(), refusal.v4().2.to_be_bytes());
                    }
                    (NetSlice::Ipv6(ip), TransportSlice::Icmpv6(icmp)) => {
                        let header = ip.header();
                        let (from, to) = (header.source_addr(), header.destination_addr());
                        assert_eq!((IpAddr::from(from), IpAddr::from(to)), (asked.destination.ip(), asked.source.ip()));
                        assert!(icmp.is_checksum_valid(from.octets(), to.octets()));
                        assert_eq!((icmp.type_u8(), icmp.code_u8()), (refusal.v6().0, refusal.v6().1));
                        assert_eq!(icmp.bytes5to8(), refusal.v6().2.to_be_bytes());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_join_is_reset_with_a_reason() {
        for (from, to) in [(Draft::default().from, Draft::default().to), (v6(1), v6(2))] {
            let syn = Draft { from, to, flags: Flags::SYN, sequence: 41, ..Draft::default() }.packet();
            let mut out = Vec::new();
            reset(&Segment::parse(&syn).unwrap(), &mut out);
            let told = Segment::parse(&out).unwrap();
            assert_eq!((told.source, told.destination, told.acknowledgment), (to, from, Sequence(42)));
            assert_eq!(told.flags, Flags::RST.with(Flags::ACK));
            let said: Vec<_> = told.mptcp().flatten().collect();
            assert!(
                matches!(said[..], [MptcpOption::Reset { reason: ResetReason::LACK_OF_RESOURCES, .. }]),
                "{said:?}"
            );
            let tcp = &out[usize::from(told.tcp_at)..];
            assert!(checksum::verifies(checksum::pseudo(to.ip(), from.ip(), PROTOCOL_TCP, tcp.len()), tcp));
        }
    }

    #[test]
    fn what_is_no_packet_is_not_refused() {
        for nonsense in [&[][..], &[0x45; 19], &[0x60; 39], &[0xff; 100]] {
            assert!(!refuse(nonsense, Refusal::Unreachable, &mut Vec::new()));
        }
    }
}
