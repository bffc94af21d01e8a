//! Inner packets for tests, built field by field.

use super::checksum;
use super::flow::FlowKey;
use super::inner::{self, put16};
use super::store::{TrainId, TrainStore};
use super::train::{Gso, Offload};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A key for tests.
pub(crate) const KEY: FlowKey = FlowKey::new(1, 2);

/// What to build. `Sample::default()` is a full TCP segment over IPv4.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub v6: bool,
    pub udp: bool,
    /// Words of NOP options after IPv4's or TCP's header.
    pub ip_words: usize,
    pub tcp_words: usize,
    pub ports: (u16, u16),
    pub payload: usize,
    /// Zero: not to be segmented.
    pub gso_size: u16,
    pub traffic_class: u8,
    pub id: u16,
    pub dont_fragment: bool,
    pub sequence: u32,
    pub ack: u32,
    pub flags: u8,
    pub seed: u8,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            v6: false,
            udp: false,
            ip_words: 0,
            tcp_words: 3,
            ports: (4_000, 443),
            payload: 1_000,
            gso_size: 0,
            traffic_class: 0,
            id: 77,
            dont_fragment: true,
            sequence: u32::MAX - 1_500,
            ack: 9,
            flags: 0x10,
            seed: 0,
        }
    }
}

impl Sample {
    /// The packet, its checksum partial, and the kernel's description of it.
    pub(crate) fn partial(&self) -> (Vec<u8>, Offload) {
        let mut transport = Vec::new();
        transport.extend(self.ports.0.to_be_bytes());
        transport.extend(self.ports.1.to_be_bytes());
        let csum_offset = if self.udp {
            transport.extend(((8 + self.payload) as u16).to_be_bytes());
            transport.extend([0; 2]);
            6
        } else {
            transport.extend(self.sequence.to_be_bytes());
            transport.extend(self.ack.to_be_bytes());
            transport.extend([(5 + self.tcp_words as u8) << 4, self.flags]);
            transport.extend([1, 0, 0, 0, 0, 0]);
            transport.extend(vec![1; self.tcp_words * 4]);
            16
        };
        let seed = usize::from(self.seed);
        transport.extend((0..self.payload).map(|i| (i * 7 + i / 251 + seed) as u8));
        let mut packet = self.ip_header(transport.len());
        let protocol = if self.udp { 17 } else { 6 };
        let (source, destination) = self.addresses();
        let pseudo = checksum::pseudo(source, destination, protocol, transport.len());
        put16(&mut transport, csum_offset, pseudo);
        let offload = Offload {
            needs_csum: true,
            csum_start: packet.len() as u16,
            csum_offset: csum_offset as u16,
            gso: match (self.gso_size, self.udp, self.v6) {
                (0, ..) => Gso::None,
                (_, true, _) => Gso::UdpL4,
                (_, false, true) => Gso::TcpV6,
                (_, false, false) => Gso::TcpV4,
            },
            gso_size: self.gso_size,
        };
        packet.extend(transport);
        (packet, offload)
    }

    /// The packet with its checksum complete.
    pub(crate) fn full(&self) -> Vec<u8> {
        let (mut packet, offload) = self.partial();
        finish(&mut packet, &offload);
        packet
    }

    fn addresses(&self) -> (IpAddr, IpAddr) {
        if self.v6 {
            let a = |n| IpAddr::from(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n));
            (a(1), a(2))
        } else {
            let a = |n| IpAddr::from(Ipv4Addr::new(10, 77, 0, n));
            (a(1), a(2))
        }
    }

    fn ip_header(&self, transport: usize) -> Vec<u8> {
        let protocol = if self.udp { 17 } else { 6 };
        let mut ip = Vec::new();
        if self.v6 {
            ip.extend([0x60 | self.traffic_class >> 4, self.traffic_class << 4, 0, 5]);
            ip.extend((transport as u16).to_be_bytes());
            ip.extend([protocol, 64]);
        } else {
            let len = 20 + self.ip_words * 4;
            ip.extend([0x40 | (len / 4) as u8, self.traffic_class]);
            ip.extend(((len + transport) as u16).to_be_bytes());
            ip.extend(self.id.to_be_bytes());
            ip.extend([u8::from(self.dont_fragment) << 6, 0, 64, protocol, 0, 0]);
        }
        let (source, destination) = self.addresses();
        for address in [source, destination] {
            match address {
                IpAddr::V4(a) => ip.extend(a.octets()),
                IpAddr::V6(a) => ip.extend(a.octets()),
            }
        }
        if !self.v6 {
            ip.extend(vec![1; self.ip_words * 4]);
            let checksum = !checksum::sum(&ip);
            put16(&mut ip, 10, checksum);
        }
        ip
    }
}

/// Completes a partial checksum, as the kernel's last device would.
pub(crate) fn finish(packet: &mut [u8], offload: &Offload) {
    let start = usize::from(offload.csum_start);
    let checksum = checksum::of_transport(&packet[start..], offload.csum_offset);
    put16(packet, start + usize::from(offload.csum_offset), checksum);
}

/// All checksums of a packet are right.
pub(crate) fn verifies(packet: &[u8]) -> bool {
    let inner = inner::parse(packet).unwrap();
    let (ip, transport) = packet.split_at(usize::from(inner.transport_at));
    let pseudo = checksum::pseudo(inner.source, inner.destination, inner.protocol, transport.len());
    (inner.source.is_ipv6() || checksum::verifies(0, ip)) && checksum::verifies(pseudo, transport)
}

/// Admits a packet as the driver does.
pub(crate) fn admit(store: &mut TrainStore, packet: &[u8], offload: Offload) -> TrainId {
    store.read_buffer()[..packet.len()].copy_from_slice(packet);
    store.admit(packet.len(), offload).unwrap()
}

/// Segment `i` of a train as a whole packet.
pub(crate) fn segment(store: &TrainStore, id: TrainId, i: u16) -> Vec<u8> {
    let mut head = [0; super::train::MAX_HEAD];
    let len = store.train(id).head(i, &mut head);
    let mut packet = head[..len].to_vec();
    packet.extend(store.train(id).body(i));
    packet
}

/// Trains of 2 to 64 segments, of every kind.
pub(crate) fn any_train() -> impl Strategy<Value = Sample> {
    let kind = (any::<bool>(), any::<bool>(), 0..4usize, 0..8usize);
    let cut = (1_00u16..1_000, 2..64usize, 1..=100usize);
    let fields = (any::<u16>(), any::<bool>(), any::<u32>(), 0..4u8, 0..2u8, any::<u8>());
    (kind, cut, fields)
        .prop_map(|((v6, udp, ip_words, tcp_words), (size, full, rest), fields)| {
            let (id, dont_fragment, sequence, ecn, push, seed) = fields;
            Sample {
                v6,
                udp,
                ip_words,
                tcp_words,
                payload: usize::from(size) * (full - 1) + rest.min(usize::from(size)),
                gso_size: size,
                traffic_class: 0x28 << 2 | ecn,
                id,
                dont_fragment,
                sequence,
                flags: 0x10 | push << 3,
                seed,
                ..Sample::default()
            }
        })
        .prop_filter("more than one segment", |s| s.payload > usize::from(s.gso_size))
}
