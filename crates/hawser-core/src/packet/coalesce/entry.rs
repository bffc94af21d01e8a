//! One super-packet in the making.

use crate::packet::checksum;
use crate::packet::inner::{IPV4_HEADER, IPV6_HEADER, Inner, Transport, UDP_HEADER, be16, be32, put16};
use crate::packet::pool::{LARGEST, Pool};
use crate::packet::train::{ACK, CWR, FIN, Gso, NEVER_IN_TRAIN, Offload, PSH, TCP_FLAGS};
use std::net::IpAddr;

/// The longest super-packet, bytes: what IPv4's total length can say, for both versions.
const MAX_LEN: usize = 65_535;
/// The most segments: what Linux takes for UDP (UDP_MAX_SEGMENTS before 6.2), and 64 KiB of TCP have no more.
const MAX_SEGMENTS: u16 = 64;
/// "Don't fragment" in IPv4's flags: the identification means nothing then (RFC 6864 section 4.1).
const DONT_FRAGMENT: u16 = 0x4000;

/// How a packet fitted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// Appended; more may follow.
    Open,
    /// Appended as the last.
    Closed,
    /// Not appended; nothing after it may be.
    Refused,
}

/// A packet and what was appended to it. One owner, the coalescer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) buffer: Vec<u8>,
    len: usize,
    inner: Inner,
    partial: bool,
    /// The first packet's checksum was verified, or is partial.
    verified: bool,
    header: usize,
    /// Payload of the first packet, bytes.
    size: usize,
    count: u16,
}

impl Entry {
    /// Starts with one packet; true when more may be appended.
    pub(super) fn start(packet: &[u8], inner: Inner, partial: bool, udp: bool, pool: &mut Pool) -> (Entry, bool) {
        let mut buffer = pool.take(packet.len());
        buffer[..packet.len()].copy_from_slice(packet);
        let header = inner.header_len().unwrap_or(packet.len());
        let entry = Entry {
            buffer,
            len: packet.len(),
            inner,
            partial,
            verified: partial,
            header,
            size: packet.len() - header,
            count: 1,
        };
        let open = entry.may_grow(packet, udp);
        (entry, open)
    }

    fn may_grow(&self, packet: &[u8], udp: bool) -> bool {
        let at = usize::from(self.inner.transport_at);
        let ip_fits = match self.inner.source {
            IpAddr::V4(_) => checksum::verifies(0, &packet[..at]),
            IpAddr::V6(_) => at == IPV6_HEADER,
        };
        let transport_fits = match self.inner.transport {
            Transport::Tcp { .. } => {
                let flags = packet[at + TCP_FLAGS];
                // The one flag that a data segment must have (RFC 9293 section 3.10.7.4).
                flags & ACK != 0 && flags & (NEVER_IN_TRAIN | CWR | FIN | PSH) == 0
            }
            Transport::Udp => {
                let whole = usize::from(be16(packet, at + 4)) == packet.len() - at;
                udp && whole && (self.partial || be16(packet, at + 6) != 0)
            }
            _ => false,
        };
        ip_fits && transport_fits && self.size > 0
    }

    /// True when `other` is of the flow that this entry is open for.
    pub(super) fn is_flow_of(&self, other: &Inner) -> bool {
        (self.inner.ports, self.inner.protocol) == (other.ports, other.protocol)
            && self.inner.source == other.source
            && self.inner.destination == other.destination
    }

    /// Bytes of the buffer.
    pub(super) fn capacity(&self) -> usize {
        self.buffer.len()
    }

    /// Packets in it.
    pub(super) fn count(&self) -> u16 {
        self.count
    }

    /// Appends `packet` when it continues this entry exactly.
    pub(super) fn append(&mut self, packet: &[u8], inner: &Inner, partial: bool, pool: &mut Pool) -> Fit {
        let fit = self.fit(packet, inner, partial);
        if fit == Fit::Refused {
            return fit;
        }
        let payload = &packet[self.header..];
        if self.buffer.len() < self.len + payload.len() {
            let mut larger = pool.take(LARGEST);
            larger[..self.len].copy_from_slice(&self.buffer[..self.len]);
            pool.put(std::mem::replace(&mut self.buffer, larger));
        }
        self.buffer[self.len..self.len + payload.len()].copy_from_slice(payload);
        self.len += payload.len();
        self.count += 1;
        if matches!(inner.transport, Transport::Tcp { .. }) {
            let flags = usize::from(inner.transport_at) + TCP_FLAGS;
            self.buffer[flags] |= packet[flags];
        }
        match fit {
            Fit::Open if self.count == MAX_SEGMENTS => Fit::Closed,
            fit => fit,
        }
    }

    fn fit(&mut self, packet: &[u8], inner: &Inner, partial: bool) -> Fit {
        let payload = packet.len().saturating_sub(self.header);
        let fits = inner.header_len() == Some(self.header)
            && (inner.transport, inner.transport_at) == (self.inner.transport, self.inner.transport_at)
            && partial == self.partial
            && (1..=self.size).contains(&payload)
            && self.len + payload <= MAX_LEN
            && self.ip_continues(packet);
        let at = usize::from(inner.transport_at);
        let last = match inner.transport {
            _ if !fits => return Fit::Refused,
            Transport::Tcp { .. } if self.tcp_continues(packet, at) => packet[at + TCP_FLAGS] & (FIN | PSH) != 0,
            Transport::Udp if usize::from(be16(packet, at + 4)) == packet.len() - at => false,
            _ => return Fit::Refused,
        };
        if !self.both_verify(packet, inner) {
            return Fit::Refused;
        }
        if last || payload < self.size { Fit::Closed } else { Fit::Open }
    }

    /// The IP headers are equal but for length, identification and checksum.
    fn ip_continues(&self, packet: &[u8]) -> bool {
        let at = usize::from(self.inner.transport_at);
        let first = &self.buffer[..at];
        if self.inner.source.is_ipv6() {
            return first[..4] == packet[..4] && first[6..] == packet[6..at];
        }
        let id = be16(first, 4).wrapping_add(self.count);
        first[..2] == packet[..2]
            && first[6..10] == packet[6..10]
            && first[12..] == packet[12..at]
            && (be16(first, 6) & DONT_FRAGMENT != 0 || be16(packet, 4) == id)
            && checksum::verifies(0, &packet[..at])
    }

    /// The TCP headers are equal but for sequence, FIN, PSH and checksum, and the sequence goes on.
    fn tcp_continues(&self, packet: &[u8], at: usize) -> bool {
        let (first, next) = (&self.buffer[at..self.header], &packet[at..self.header]);
        let sequence = be32(first, 4).wrapping_add((self.len - self.header) as u32);
        be32(next, 4) == sequence
            && first[8..TCP_FLAGS] == next[8..TCP_FLAGS]
            && (first[TCP_FLAGS] ^ next[TCP_FLAGS]) & !(FIN | PSH) == 0
            && first[14..16] == next[14..16]
            && first[18..] == next[18..]
    }

    /// Both checksums are right, or will be made so: nothing wrong is covered up by a new one.
    fn both_verify(&mut self, packet: &[u8], inner: &Inner) -> bool {
        let right = |packet: &[u8]| {
            let transport = &packet[usize::from(inner.transport_at)..];
            let no_checksum = inner.transport == Transport::Udp && be16(transport, 6) == 0;
            let pseudo = checksum::pseudo(inner.source, inner.destination, inner.protocol, transport.len());
            !no_checksum && checksum::verifies(pseudo, transport)
        };
        if self.partial {
            return true;
        }
        self.verified = self.verified || right(&self.buffer[..self.len]);
        self.verified && right(packet)
    }

    /// Completes the headers and describes the packet.
    pub(super) fn finish(&mut self) -> Offload {
        let single = if self.partial { Offload::partial(&self.inner) } else { None };
        if self.count == 1 {
            return single.unwrap_or_default();
        }
        let at = usize::from(self.inner.transport_at);
        let v4 = self.inner.source.is_ipv4();
        let packet = &mut self.buffer[..self.len];
        if v4 {
            put16(packet, 2, packet.len() as u16);
            put16(packet, 10, 0);
            let checksum = !checksum::sum(&packet[..at.max(IPV4_HEADER)]);
            put16(packet, 10, checksum);
        } else {
            let payload = (packet.len() - IPV6_HEADER) as u16;
            put16(packet, 4, payload);
        }
        let transport = packet.len() - at;
        if self.header == at + UDP_HEADER && self.inner.transport == Transport::Udp {
            put16(packet, at + 4, transport as u16);
        }
        let offload = Offload::partial(&self.inner).expect("only TCP and UDP are appended to");
        let pseudo = checksum::pseudo(self.inner.source, self.inner.destination, self.inner.protocol, transport);
        put16(packet, at + usize::from(offload.csum_offset), pseudo);
        Offload {
            gso: match (self.inner.transport, v4) {
                (Transport::Udp, _) => Gso::UdpL4,
                (_, true) => Gso::TcpV4,
                (_, false) => Gso::TcpV6,
            },
            gso_size: self.size as u16,
            ..offload
        }
    }

    /// The packet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}
