//! A portal of the fuzzer: an endpoint, its links' public addresses, and what came out of it.

use super::ledger::Ledger;
use super::liar;
use super::net::Flight;
use crate::random::Seeded;
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Config, Endpoint, Event, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk};
use hawser_core::packet::Offload;
use hawser_core::policy::Tuning;
use hawser_core::session::{Buffers, Settings, Sink};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkGroup, LinkId, Random, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::net::SocketAddr;

/// Where everybody goes to.
pub const HUB: usize = 0;
/// Portals that go to it: numbers 1 and 2.
pub const HOMES: usize = 2;
/// Links of each portal.
pub const LINKS: usize = 2;
/// A deadline that is not cleared by this many rounds at one moment never is.
const SPINS: u32 = 60;
const PORT: u16 = 4_920;
const FULL: usize = 65_536;

/// The inner address of a portal.
pub fn inner_address(place: usize) -> [u8; 4] {
    [10, 0, 0, 1 + place as u8]
}

/// The key pair of a portal.
pub fn identity(place: usize) -> Identity {
    Identity::new([1 + place as u8; 32])
}

/// What everybody offers.
pub fn offer(instance: u64) -> Offer {
    let ciphers = CipherSet::for_machine(true);
    Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(instance) }
}

#[derive(Default)]
struct Inbox(Vec<Vec<u8>>);

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8], _: bool) {
        self.0.push(packet.to_vec());
    }
}

struct Socket<'a>(&'a mut [u8]);

impl Buffers for Socket<'_> {
    fn spare(&mut self, _: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        Some(self.0)
    }
}

/// A portal. It begins without an endpoint's links; the fuzzer owns it.
pub struct Portal {
    pub place: usize,
    pub endpoint: Endpoint,
    /// The public address of each link, and whether the portal has it.
    pub links: [(SocketAddr, bool); LINKS],
    /// What it sent and nobody took yet.
    pub sent: Vec<Flight>,
    buffer: Vec<u8>,
}

impl Portal {
    pub fn new(place: usize, rng: &mut Seeded) -> Self {
        let address = |link: usize| match place {
            HUB => SocketAddr::from(([198, 51, 100, 1 + link as u8], PORT)),
            home => SocketAddr::from(([192, 0, home as u8, 1 + link as u8], 1_000)),
        };
        let links = std::array::from_fn(|link| (address(link), true));
        Portal { place, endpoint: endpoint(place, rng), links, sent: Vec::new(), buffer: vec![0; FULL] }
    }

    /// Tells the endpoint of its links.
    pub fn start(&mut self, now: Time, rng: &mut Seeded) {
        self.endpoint = endpoint(self.place, rng);
        (0..LINKS).for_each(|link| self.have(now, link));
    }

    /// A link is there, and up.
    pub fn have(&mut self, now: Time, link: usize) {
        self.links[link].1 = true;
        let (id, opens) = (link as u16, self.place != HUB);
        let (id, group, metric) = (LinkId(id), LinkGroup(id), 0);
        self.endpoint.add_link(
            now,
            Link {
                id,
                group,
                preference: 0,
                metric,
                transport: Transport::Udp,
                ipv4: true,
                ipv6: false,
                opens,
                up: true,
            },
        );
    }

    /// The link that a datagram to this address comes by.
    pub fn link_at(&self, address: SocketAddr) -> Option<usize> {
        self.links.iter().position(|(known, there)| *known == address && *there)
    }

    /// An inner packet enters.
    pub fn give(&mut self, now: Time, packet: &[u8]) {
        self.endpoint.read_buffer()[..packet.len()].copy_from_slice(packet);
        self.endpoint.handle_inner(now, packet.len(), Offload::default());
    }

    /// A datagram arrives.
    pub fn receive(&mut self, now: Time, link: usize, source: SocketAddr, mut bytes: Vec<u8>, ledger: &mut Ledger) {
        let mut inbox = Inbox::default();
        self.endpoint.handle_datagram(now, LinkId(link as u16), source, None, Ecn::Ect0, &mut bytes, &mut inbox);
        inbox.0.iter().for_each(|packet| ledger.on_delivered(self.place, packet));
    }

    /// When something is due.
    pub fn due(&mut self, now: Time) -> Option<Time> {
        self.endpoint.poll_timeout(now).map(|(at, _)| at)
    }

    /// Does all that is due, until it rests; tells how many sessions began.
    pub fn wake(&mut self, now: Time, ledger: &mut Ledger) -> u64 {
        let mut sessions = 0;
        for _ in 0..SPINS {
            if self.due(now).is_some_and(|at| at <= now) {
                let mut inbox = Inbox::default();
                self.endpoint.handle_timeout(now, &mut inbox);
                inbox.0.iter().for_each(|packet| ledger.on_delivered(self.place, packet));
            }
            self.speak(now);
            while let Some(event) = self.endpoint.poll_event() {
                sessions += u64::from(matches!(event, Event::Session { new: true, .. }));
            }
            if self.due(now).is_none_or(|at| at > now) {
                return sessions;
            }
        }
        panic!("portal {} spins at {now:?}: {:?}", self.place, self.endpoint.poll_timeout(now));
    }

    fn speak(&mut self, now: Time) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut Socket(&mut buffer)) {
            let link = usize::from(transmit.link.0);
            for bytes in buffer[..transmit.len].chunks(transmit.segment_size) {
                let source = self.links[link].0;
                self.sent.push(Flight { from: self.place, link, source, to: transmit.remote, bytes: bytes.to_vec() });
            }
        }
        self.buffer = buffer;
    }
}

fn endpoint(place: usize, rng: &mut Seeded) -> Endpoint {
    let peer = |other: usize, endpoints: Vec<SocketAddr>| PeerConfig {
        public_key: identity(other).public(),
        psk: Psk::default(),
        endpoints,
        ranks: Vec::new(),
        allowed_ips: vec![format!("10.0.0.{}/32", 1 + other).parse().expect("a prefix")],
    };
    let hub = || (0..LINKS).map(|link| SocketAddr::from(([198, 51, 100, 1 + link as u8], PORT))).collect();
    let peers = match place {
        HUB => (1..=HOMES).chain([liar::PLACE]).map(|other| peer(other, Vec::new())).collect(),
        _ => vec![peer(HUB, hub())],
    };
    let settings = Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() };
    let config = Config { identity: identity(place), offer: offer(rng.next_u64()), settings, peers };
    Endpoint::new(config, Box::new(rng.fork()))
}
