//! Two portals joined by a wire without delay: for tests and benchmarks.
#![allow(dead_code, reason = "each user takes what it needs")]
#![allow(missing_docs, reason = "shared by tests and benchmarks, not published")]

pub mod sender;
pub mod world;

use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk};
use hawser_core::policy::Tuning;
use hawser_core::session::{Buffers, Settings, Sink};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkGroup, LinkId, Random, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::net::SocketAddr;
use std::time::Duration;

pub struct Seeded(pub u64);

impl Random for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33) as u8;
        }
    }
}

#[derive(Default)]
pub struct Delivered(pub Vec<Vec<u8>>);

impl Sink for Delivered {
    fn deliver(&mut self, packet: &[u8], _: bool) {
        self.0.push(packet.to_vec());
    }
}

pub struct Buffer(pub Vec<u8>);

impl Buffers for Buffer {
    fn spare(&mut self, _: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }
}

/// A core whose private key is this byte repeated.
pub fn endpoint(ours: u8, peers: Vec<PeerConfig>) -> Endpoint {
    let config = Config {
        identity: Identity::new([ours; 32]),
        offer: Offer {
            protection: Protection::Encrypt,
            ciphers: CipherSet::for_machine(true),
            instance: InstanceId(u64::from(ours)),
        },
        settings: Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() },
        peers,
    };
    Endpoint::new(config, Box::new(Seeded(u64::from(ours))))
}

/// How others know it.
pub fn peer(key: u8, endpoints: &[&str], allowed: &str) -> PeerConfig {
    PeerConfig {
        public_key: Identity::new([key; 32]).public(),
        psk: Psk::default(),
        endpoints: endpoints.iter().map(|text| text.parse().expect("an endpoint")).collect(),
        ranks: Vec::new(),
        allowed_ips: vec![allowed.parse().expect("a prefix")],
    }
}

/// A link of metric 0 over IPv4, up, in a group of its own.
pub fn link(id: u16, transport: Transport, opens: bool) -> Link {
    let group = LinkGroup(id);
    Link { id: LinkId(id), group, preference: 0, metric: 0, transport, ipv4: true, ipv6: false, opens, up: true }
}

pub struct Portal {
    pub endpoint: Endpoint,
    pub delivered: Delivered,
    /// The remote portal has one socket; the local one an address a link.
    remote: bool,
}

impl Portal {
    pub fn new(ours: u8, theirs: u8, endpoints: &[&str], allowed: &str) -> Portal {
        let endpoint = endpoint(ours, vec![peer(theirs, endpoints, allowed)]);
        Portal { endpoint, delivered: Delivered::default(), remote: endpoints.is_empty() }
    }

    pub fn address(&self, link: LinkId) -> SocketAddr {
        let text = if self.remote { "198.51.100.1:4920".to_owned() } else { format!("192.0.2.{}:1000", link.0 + 1) };
        text.parse().expect("an address")
    }

    /// The link of ours that a datagram to `address` comes by.
    pub fn link_at(&self, address: SocketAddr) -> LinkId {
        LinkId((0..4).find(|link| self.address(LinkId(*link)) == address).unwrap_or(0))
    }
}

/// Moves all that one has to say to the other, without delay; tells whether it was anything.
pub fn speak(now: Time, from: &mut Portal, to: &mut Portal) -> bool {
    let mut buffer = Buffer(vec![0; 65_536]);
    let mut spoke = false;
    while let Some(transmit) = from.endpoint.poll_transmit(now, &mut buffer) {
        spoke = true;
        let (source, link) = (from.address(transmit.link), to.link_at(transmit.remote));
        for datagram in buffer.0[..transmit.len].chunks(transmit.segment_size) {
            let mut datagram = datagram.to_vec();
            to.endpoint.handle_datagram(now, link, source, None, Ecn::NotEct, &mut datagram, &mut to.delivered);
        }
    }
    spoke
}

pub fn step(now: Time, local: &mut Portal, remote: &mut Portal) {
    local.endpoint.handle_timeout(now, &mut local.delivered);
    remote.endpoint.handle_timeout(now, &mut remote.delivered);
    while speak(now, local, remote) | speak(now, remote, local) {}
}

pub fn packet(number: u16) -> Vec<u8> {
    let mut packet = vec![0u8; 100];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&100u16.to_be_bytes());
    packet[8] = 64;
    packet[9] = 17;
    packet[12..16].copy_from_slice(&[10, 0, 0, 2]);
    packet[16..20].copy_from_slice(&[10, 0, 0, 1]);
    packet[20..22].copy_from_slice(&1000u16.to_be_bytes());
    packet[22..24].copy_from_slice(&2000u16.to_be_bytes());
    packet[24..26].copy_from_slice(&80u16.to_be_bytes());
    packet[28..30].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Two portals with two links, their session made and its paths validated; and the present.
pub fn connected() -> (Portal, Portal, Time) {
    connected_by(Transport::Udp)
}

/// The same with links of this transport.
pub fn connected_by(transport: Transport) -> (Portal, Portal, Time) {
    let mut local = Portal::new(1, 2, &["198.51.100.1:4920"], "10.0.0.1/32");
    let mut remote = Portal::new(2, 1, &[], "10.0.0.2/32");
    let mut now = Time::from_nanos(1_000_000_000);
    local.endpoint.add_link(now, link(0, transport, true));
    local.endpoint.add_link(now, link(1, transport, true));
    remote.endpoint.add_link(now, link(0, transport, false));
    for _ in 0..200 {
        step(now, &mut local, &mut remote);
        now = now + Duration::from_millis(1);
    }
    (local, remote, now)
}
