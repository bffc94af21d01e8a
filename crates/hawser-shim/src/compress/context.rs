//! What of a flow's headers never changes, and the id that names it.

use std::net::{IpAddr, SocketAddr};

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER};

use crate::flow::{Direction, FlowKey, Protocol};

/// Bytes of an id: at random, so that what is still under way from before a restart meets no context of another flow.
pub(crate) const ID_BYTES: usize = 6;
/// IPv4's flag "don't fragment", and all that stands beside it in the same field (RFC 791 section 3.1).
const DONT_FRAGMENT: u16 = 0x4000;
/// The first byte of an IPv4 header without options, and the first half byte of an IPv6 header.
const IPV4_PLAIN: u8 = 0x45;
const IPV6_VERSION: u8 = 6;
/// The bits of IPv6's flow label in its first word (RFC 8200 section 3).
const FLOW_LABEL: u32 = 0xf_ffff;

/// Names a context, at the end that did not draw it. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ContextId(pub(crate) [u8; ID_BYTES]);

impl ContextId {
    pub(super) const fn drawn(random: u64) -> Self {
        let [a, b, c, d, e, f, ..] = random.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

/// What all segments or datagrams of a flow have in common, as its sender writes them.
/// There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Constants {
    pub protocol: Protocol,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub hop_limit: u8,
    /// IPv6's; zero in IPv4.
    pub flow_label: u32,
    /// IPv4's; true in IPv6.
    pub dont_fragment: bool,
}

/// What a packet's IP header says beside that. Plain value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying {
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// IPv4's; needed where the packet may be fragmented alone (RFC 6864 section 4.1).
    pub identification: u16,
}

impl Constants {
    /// Of the flow, where the peer is the sender.
    pub(super) const fn key(&self) -> FlowKey {
        FlowKey::between(self.protocol, self.source, self.destination, Direction::In)
    }

    /// The constants of a packet, of which the headers are enough, and what varies; none where its headers are such
    /// that a context cannot bring them back: options of IPv4, extension headers, a wrong checksum.
    pub(super) fn of(
        packet: &[u8],
        protocol: Protocol,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<(Self, Varying)> {
        let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        if source.is_ipv4() {
            let header = packet.get(..IPV4_HEADER)?;
            let fragment = half(6);
            let is_plain = header[0] == IPV4_PLAIN && fragment & !DONT_FRAGMENT == 0 && checksum::verifies(0, header);
            let dont_fragment = fragment == DONT_FRAGMENT;
            let all = Self { protocol, source, destination, hop_limit: header[8], flow_label: 0, dont_fragment };
            return is_plain.then_some((all, Varying { traffic_class: header[1], identification: half(4) }));
        }
        let header = packet.get(..IPV6_HEADER)?;
        let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let (traffic_class, flow_label, hop_limit) = ((half(0) >> 4) as u8, word & FLOW_LABEL, header[7]);
        let all = Self { protocol, source, destination, hop_limit, flow_label, dont_fragment: true };
        let is_plain = header[6] == protocol.number();
        is_plain.then_some((all, Varying { traffic_class, identification: 0 }))
    }

    /// Writes the IP header of a packet with this many bytes after it.
    pub(crate) fn write(&self, varying: Varying, len: usize, out: &mut Vec<u8>) -> Option<()> {
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let at = out.len();
                let total = u16::try_from(IPV4_HEADER + len).ok()?;
                let fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
                out.extend([IPV4_PLAIN, varying.traffic_class]);
                out.extend(total.to_be_bytes());
                out.extend(varying.identification.to_be_bytes());
                out.extend(fragment.to_be_bytes());
                out.extend([self.hop_limit, self.protocol.number(), 0, 0]);
                out.extend(source.octets());
                out.extend(destination.octets());
                let checksum = !checksum::sum(&out[at..]);
                out[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let payload = u16::try_from(len).ok()?;
                let word = u32::from(IPV6_VERSION) << 28 | u32::from(varying.traffic_class) << 20 | self.flow_label;
                out.extend(word.to_be_bytes());
                out.extend(payload.to_be_bytes());
                out.extend([self.protocol.number(), self.hop_limit]);
                out.extend(source.octets());
                out.extend(destination.octets());
            }
            _ => return None,
        }
        Some(())
    }
}
