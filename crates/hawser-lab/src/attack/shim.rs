//! A stranger's datagrams against a shim: nonsense, unknown ids, forged tokens, addresses of others.
//!
//! [`ShimArsenal`] writes one after the other, each within a SCION packet of the stranger's own AS.

use std::io;
use std::net::Ipv6Addr;

use etherparse::PacketBuilder;
use hawser_core::units::Random;
use hawser_scion::packet::{FlowId, Template};
use hawser_scion::{Dataplane, EndpointAddr};
use hawser_shim::route::{InterfaceIndex, NoSurrogate, ShimEnd, Surrogate};
use hawser_sim::random::Seeded;

use super::Arsenal;
use crate::error::LabError;

/// The stranger's port, which its SCION end names too.
pub(crate) const PORT: u16 = 31_600;
/// Bytes of noise: as many as a datagram may have, and no more than the network takes.
const NOISE: usize = 1_300;
/// What a datagram's first byte says. Source: crates/hawser-shim/README.md, "Datagrams".
const WHOLE_DEFINES: u8 = 0b0100_0010;
const COMPACT: u8 = 0b1000_0000;
const CONTROL: u8 = 0b1100_0000;
/// Bytes of a context id, and of what stands behind it in a compact datagram at least.
const ID: usize = 6;
const FIXED: usize = 12;
/// MP_JOIN of a SYN: kind, length, subtype, and address id; token and random number follow. Source: RFC 8684 section
/// 3.2.
const MP_JOIN: [u8; 4] = [30, 12, 1 << 4, 2];
const HOP_LIMIT: u8 = 64;
/// Ports of the flows that there are not.
const FLOW_PORTS: [u16; 2] = [40_000, 5_001];

/// How many kinds of datagrams there are.
const KINDS: usize = 5;

/// What is thrown, and whose turn it is. Begins with noise; the attack's thread owns it.
pub(crate) struct ShimArsenal {
    template: Template,
    sources: [Ipv6Addr; 2],
    target: Ipv6Addr,
    rng: Seeded,
    turn: usize,
    packet: Vec<u8>,
}

impl ShimArsenal {
    /// Of a stranger, against a shim of the same AS; in the name of another one, too.
    pub fn new(own: EndpointAddr, target: ShimEnd, other: ShimEnd) -> Result<Self, LabError> {
        let failed = |error: String| LabError::system("make hostile datagrams", io::Error::other(error));
        let own_end = ShimEnd::new(own).map_err(|error: NoSurrogate| failed(error.to_string()))?;
        let template = Template::new(own, target.endpoint(), &Dataplane::Empty, FlowId::default());
        let egress = InterfaceIndex::egresses(1).next().unwrap_or(InterfaceIndex::INGRESS);
        let sources = [own_end, other].map(|end| Surrogate { end, interface: egress }.address());
        Ok(Self {
            template: template.map_err(|error| failed(error.to_string()))?,
            sources,
            target: Surrogate { end: target, interface: InterfaceIndex::INGRESS }.address(),
            rng: Seeded::new(1),
            turn: 0,
            packet: Vec::new(),
        })
    }

    fn random(&mut self, len: usize) {
        let at = self.packet.len();
        self.packet.resize(at + len, 0);
        self.rng.fill(&mut self.packet[at..]);
    }

    /// A whole datagram that defines a context, with a SYN that asks to join a connection.
    fn join(&mut self, source: Ipv6Addr) {
        self.packet.push(WHOLE_DEFINES);
        self.random(ID);
        let (sequence, forged) = (self.rng.next_u64() as u32, self.rng.next_u64().to_be_bytes());
        let [from, to] = FLOW_PORTS;
        let ip = PacketBuilder::ipv6(source.octets(), self.target.octets(), HOP_LIMIT);
        let tcp = ip.tcp(from, to, sequence, u16::MAX).syn().options_raw(&[&MP_JOIN[..], &forged].concat());
        tcp.expect("twelve bytes fit").write(&mut self.packet, &[]).expect("memory takes everything");
    }
}

impl Arsenal for ShimArsenal {
    /// From its SCION header on.
    fn next(&mut self) -> &[u8] {
        let kind = self.turn % KINDS;
        self.turn += 1;
        let headroom = self.template.headroom();
        self.packet.clear();
        self.packet.resize(headroom, 0);
        match kind {
            // Bytes at random. A probe that is right may be answered: chance must not make one.
            0 => {
                let len = 1 + self.rng.next_u64() as usize % NOISE;
                self.random(len);
                if self.packet[headroom] & CONTROL == CONTROL {
                    self.packet[headroom] ^= CONTROL ^ COMPACT;
                }
            }
            // A compact datagram of an id that nobody defined.
            1 => {
                self.packet.push(COMPACT);
                self.random(ID + FIXED + self.turn / KINDS % NOISE);
            }
            // A subflow's SYN with a token that nobody has, and the same in another host's name.
            2 | 3 => self.join(self.sources[kind - 2]),
            // A control datagram that is too short.
            _ => {
                self.packet.push(CONTROL);
                self.random(2);
            }
        }
        self.template.finish(&mut self.packet);
        &self.packet
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use hawser_scion::packet::{Upper, parse};
    use hawser_shim::mptcp::Segment;

    use super::*;

    /// Where the token stands: behind IPv6's header, TCP's, and what MP_JOIN begins with.
    const TOKEN: usize = 40 + 20 + MP_JOIN.len();

    fn arsenal() -> ShimArsenal {
        let end = |text: &str| ShimEnd::new(text.parse().expect("an endpoint")).expect("an IPv4 host");
        let stranger = "2-ff00:0:210,10.210.0.11:31600".parse().expect("an endpoint");
        let (target, other) = (end("2-ff00:0:210,10.210.0.10:31000"), end("1-ff00:0:110,10.110.0.10:31000"));
        ShimArsenal::new(stranger, target, other).expect("it is made")
    }

    #[test]
    fn every_kind_of_hostile_datagram_is_thrown_in_a_packet_that_is_right() {
        let mut arsenal = arsenal();
        let mut tokens = Vec::new();
        for turn in 0..5_000 {
            let bytes = arsenal.next().to_vec();
            let packet = parse(&bytes).expect("a SCION packet");
            assert!(packet.verify_checksum());
            let Upper::Udp(udp) = packet.upper() else { panic!("{packet:?}") };
            let payload = udp.payload();
            let first = payload[0];
            match turn % KINDS {
                0 => assert_ne!(first & CONTROL, CONTROL),
                1 => assert_eq!((first, payload.len() >= 1 + ID + FIXED), (COMPACT, true)),
                4 => assert_eq!((first, payload.len()), (CONTROL, 3)),
                kind => {
                    assert_eq!(first, WHOLE_DEFINES);
                    let segment = Segment::parse(&payload[1 + ID..]).expect("a segment");
                    let expected = arsenal.sources[kind - 2];
                    assert_eq!(segment.source.ip(), IpAddr::V6(expected));
                    tokens.push(payload[1 + ID + TOKEN..][..4].to_vec());
                }
            }
        }
        tokens.sort();
        tokens.dedup();
        assert!(tokens.len() > 1_990, "they differ: {}", tokens.len());
    }
}
