//! Two portals and the wires between their links, under virtual time.
//!
//! Every link has a public address that may change (a NAT that rebinds); a datagram finds the
//! other portal by it. A rule sees each datagram and may drop or delay it. `run` fails when a
//! deadline is not cleared by what is due: a driver would spin.

use super::{Seeded, packet};
use hawser_core::congestion::Kind;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::{Config, Endpoint, Event, Link, PeerConfig};
use hawser_core::handshake::{Identity, Psk};
use hawser_core::packet::Offload;
use hawser_core::path::health::HealthState;
use hawser_core::policy::Tuning;
use hawser_core::session::{Buffers, PathSnapshot, Settings, Sink};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkGroup, LinkId, PeerId, Time};
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// Rounds at one moment after which a deadline counts as never cleared.
const SPINS: u32 = 50;

pub const LOCAL: usize = 0;
pub const REMOTE: usize = 1;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A datagram under way.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The portal that sent it, and by which of its links.
    pub from: usize,
    pub link: u16,
    pub source: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    /// It left together with others, as one train.
    pub in_train: bool,
}

impl Flight {
    pub fn is_data(&self) -> bool {
        self.bytes[0] >> 4 == 4
    }
}

/// What a rule makes of a datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    Pass,
    Drop,
    /// On top of the wire's own delay.
    Delay(Duration),
}

/// Judges every datagram as it leaves.
pub type Rule = Box<dyn FnMut(Time, &Flight) -> Fate>;

#[derive(Default)]
pub struct Inbox(pub Vec<Vec<u8>>);

impl Sink for Inbox {
    fn deliver(&mut self, packet: &[u8], _: bool) {
        self.0.push(packet.to_vec());
    }
}

struct Sockets<'a> {
    buffer: &'a mut [u8],
    blocked: &'a BTreeSet<u16>,
}

impl Buffers for Sockets<'_> {
    fn spare(&mut self, link: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        if self.blocked.contains(&link.0) { None } else { Some(self.buffer) }
    }
}

pub struct Portal {
    pub endpoint: Endpoint,
    pub inbox: Inbox,
    pub events: Vec<Event>,
    /// The public address of each link; its index is the link's name.
    pub links: Vec<SocketAddr>,
    /// Links whose socket is full.
    pub blocked: BTreeSet<u16>,
    /// Datagrams sent, and their bytes.
    pub sent: (u64, u64),
    key: u8,
    theirs: u8,
    endpoints: Vec<SocketAddr>,
    metrics: Vec<u16>,
    /// All its links are sockets of one configured link.
    one_group: bool,
    /// How little each of its links is preferred.
    preferences: Vec<u8>,
}

/// The other portal, as one of them knows it.
pub fn peer(theirs: u8, endpoints: &[SocketAddr]) -> PeerConfig {
    let allowed = if theirs == 2 { "10.0.0.1/32" } else { "10.0.0.2/32" };
    PeerConfig {
        public_key: Identity::new([theirs; 32]).public(),
        psk: Psk::default(),
        endpoints: endpoints.to_vec(),
        ranks: Vec::new(),
        allowed_ips: vec![allowed.parse().expect("a prefix")],
    }
}

fn endpoint(key: u8, theirs: u8, instance: u64, endpoints: &[SocketAddr]) -> Endpoint {
    let config = Config {
        identity: Identity::new([key; 32]),
        offer: Offer {
            protection: Protection::Encrypt,
            ciphers: CipherSet::for_machine(true),
            instance: InstanceId(instance),
        },
        settings: Settings { congestion: Kind::Bbr, max_link_mtu: 1500, tuning: Tuning::default() },
        peers: vec![peer(theirs, endpoints)],
    };
    Endpoint::new(config, Box::new(Seeded(instance)))
}

impl Portal {
    fn new(key: u8, links: &[&str], endpoints: &[&str], metrics: &[u16]) -> Portal {
        let parse = |texts: &[&str]| texts.iter().map(|t| t.parse().expect("an address")).collect::<Vec<SocketAddr>>();
        let (theirs, endpoints) = (3 - key, parse(endpoints));
        Portal {
            endpoint: endpoint(key, theirs, u64::from(key), &endpoints),
            inbox: Inbox::default(),
            events: Vec::new(),
            links: parse(links),
            blocked: BTreeSet::new(),
            sent: (0, 0),
            key,
            theirs,
            endpoints,
            metrics: metrics.to_vec(),
            one_group: false,
            preferences: Vec::new(),
        }
    }

    /// Tells the core of all links, also of those that it knows.
    pub fn add_links(&mut self, now: Time) {
        for id in 0..self.links.len() {
            let metric = self.metrics.get(id).copied().unwrap_or(0);
            let opens = !self.endpoints.is_empty();
            let preference = self.preferences.get(id).copied().unwrap_or(0);
            let (id, ipv4) = (id as u16, self.links[id].is_ipv4());
            let group = LinkGroup(if self.one_group { 0 } else { id });
            let link = Link {
                id: LinkId(id),
                group,
                preference,
                metric,
                transport: Transport::Udp,
                ipv4,
                ipv6: !ipv4,
                opens,
                up: true,
            };
            self.endpoint.add_link(now, link);
        }
    }
}

pub struct World {
    pub now: Time,
    pub portals: [Portal; 2],
    pub delay: Duration,
    /// A driver asks for the next deadline so much later than it last asked for datagrams.
    pub later: Duration,
    pub flights: Vec<(Time, u64, Flight)>,
    pub rule: Rule,
    /// Links of the local portal on which nothing passes, either way.
    pub cut: BTreeSet<u16>,
    order: u64,
}

/// Where the local portal's links appear.
pub const LOCALS: [&str; 2] = ["192.0.2.1:1000", "192.0.2.2:1000"];
/// Where the remote portal listens.
pub const REMOTES: [&str; 2] = ["198.51.100.1:4920", "198.51.100.2:4920"];

/// Where the two sockets of one link appear: IPv4 first.
pub const DUAL_LOCALS: [&str; 2] = ["192.0.2.1:1000", "[2001:db8:1::1]:1000"];
/// Where the remote portal listens for them.
pub const DUAL_REMOTES: [&str; 2] = ["198.51.100.1:4920", "[2001:db8:2::1]:4920"];

impl World {
    /// A local portal with `links` links of these metrics, a remote one with as many addresses as `endpoints`.
    pub fn new(metrics: &[u16], endpoints: usize) -> World {
        let local = Portal::new(1, &LOCALS[..metrics.len()], &REMOTES[..endpoints], metrics);
        let remote = Portal::new(2, &REMOTES[..endpoints], &[], &[]);
        World::of(local, remote)
    }

    /// Two portals that both know where the other is.
    pub fn mutual() -> World {
        let local = Portal::new(1, &LOCALS[..1], &REMOTES[..1], &[]);
        let remote = Portal::new(2, &REMOTES[..1], &LOCALS[..1], &[]);
        World::of(local, remote)
    }

    /// A local portal with one configured link, of a socket for each IP version, and a remote one that listens on both.
    pub fn dual_stack() -> World {
        let mut local = Portal::new(1, &DUAL_LOCALS, &DUAL_REMOTES, &[]);
        local.one_group = true;
        World::of(local, Portal::new(2, &DUAL_REMOTES, &[], &[]))
    }

    /// The same, whose first socket is preferred.
    pub fn preferring() -> World {
        let mut local = Portal::new(1, &DUAL_LOCALS, &DUAL_REMOTES, &[]);
        (local.one_group, local.preferences) = (true, vec![0, 1]);
        World::of(local, Portal::new(2, &DUAL_REMOTES, &[], &[]))
    }

    fn of(local: Portal, remote: Portal) -> World {
        let mut world = World {
            now: Time::from_nanos(1_000_000_000),
            portals: [local, remote],
            delay: ms(10),
            later: Duration::from_micros(60),
            flights: Vec::new(),
            rule: Box::new(|_, _| Fate::Pass),
            cut: BTreeSet::new(),
            order: 0,
        };
        let now = world.now;
        world.portals.iter_mut().for_each(|portal| portal.add_links(now));
        world
    }

    /// The same, a second later.
    pub fn settled(mut self) -> World {
        self.run(ms(1_000));
        self
    }

    /// The portal is killed and started again.
    pub fn restart(&mut self, portal: usize) {
        let now = self.now;
        let portal = &mut self.portals[portal];
        portal.endpoint = endpoint(portal.key, portal.theirs, now.as_nanos(), &portal.endpoints);
        portal.add_links(now);
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.arrive();
            (0..2).for_each(|portal| self.act(portal));
            let later = self.now + self.later;
            let timers = self.portals.iter_mut().filter_map(|p| p.endpoint.poll_timeout(later).map(|(at, _)| at));
            let next = timers.chain(self.flights.iter().map(|(at, ..)| *at)).min();
            match next {
                Some(at) if at <= end => self.now = at.max(self.now),
                _ => break,
            }
        }
        self.now = end;
    }

    /// All that is due of one portal, until it sleeps.
    fn act(&mut self, portal: usize) {
        for _ in 0..SPINS {
            let now = self.now;
            if self.portals[portal].endpoint.poll_timeout(now).is_some_and(|(at, _)| at <= now) {
                let Portal { endpoint, inbox, .. } = &mut self.portals[portal];
                endpoint.handle_timeout(now, inbox);
            }
            self.speak(portal);
            let Portal { endpoint, events, .. } = &mut self.portals[portal];
            events.extend(std::iter::from_fn(|| endpoint.poll_event()));
            if endpoint.poll_timeout(now).is_none_or(|(at, _)| at > now) {
                return;
            }
        }
        let due = self.portals[portal].endpoint.poll_timeout(self.now);
        panic!("portal {portal} spins at {:?}: {due:?}", self.now);
    }

    fn speak(&mut self, from: usize) {
        let mut buffer = vec![0; 65_536];
        loop {
            let Portal { endpoint, blocked, links, sent, .. } = &mut self.portals[from];
            let mut sockets = Sockets { buffer: &mut buffer, blocked };
            let Some(transmit) = endpoint.poll_transmit(self.now, &mut sockets) else { return };
            let source = links[usize::from(transmit.link.0)];
            let in_train = transmit.len > transmit.segment_size && !transmit.apart;
            for bytes in buffer[..transmit.len].chunks(transmit.segment_size) {
                sent.0 += 1;
                sent.1 += bytes.len() as u64;
                let (link, to, bytes) = (transmit.link.0, transmit.remote, bytes.to_vec());
                let flight = Flight { from, link, source, to, bytes, in_train };
                self.flights.push((self.now, self.order, flight));
                self.order += 1;
            }
            self.judge();
        }
    }

    /// Decides what becomes of the flights that just left.
    fn judge(&mut self) {
        let (now, delay) = (self.now, self.delay);
        let mut kept = Vec::new();
        for (at, order, flight) in self.flights.drain(..) {
            if at > now {
                kept.push((at, order, flight));
                continue;
            }
            let address = if flight.from == LOCAL { flight.source } else { flight.to };
            let link = self.portals[LOCAL].links.iter().position(|known| *known == address);
            let cut = link.is_some_and(|link| self.cut.contains(&(link as u16)));
            match (self.rule)(now, &flight) {
                _ if cut => {}
                Fate::Drop => {}
                Fate::Pass => kept.push((now + delay, order, flight)),
                Fate::Delay(more) => kept.push((now + delay + more, order, flight)),
            }
        }
        self.flights = kept;
    }

    fn arrive(&mut self) {
        let now = self.now;
        self.flights.sort_by_key(|(at, order, _)| (*at, *order));
        while self.flights.first().is_some_and(|(at, ..)| *at <= now) {
            let (_, _, flight) = self.flights.remove(0);
            self.inject(flight);
        }
    }

    /// Hands a datagram to whoever has its destination.
    pub fn inject(&mut self, flight: Flight) {
        let portal = &mut self.portals[1 - flight.from];
        let Some(link) = portal.links.iter().position(|address| *address == flight.to) else { return };
        let mut bytes = flight.bytes;
        let Portal { endpoint, inbox, .. } = portal;
        endpoint.handle_datagram(self.now, LinkId(link as u16), flight.source, None, Ecn::Ect0, &mut bytes, inbox);
    }

    /// An inner packet of `len` bytes with `number` in it enters at `portal`.
    pub fn inner(&mut self, portal: usize, number: u16, len: usize) {
        let mut packet = packet(number);
        packet.resize(len, number as u8);
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[24..26].copy_from_slice(&((len - 20) as u16).to_be_bytes());
        if portal == REMOTE {
            packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
            packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        }
        self.enter(portal, &packet);
    }

    /// Nothing but an acknowledgement of TCP enters at the local portal.
    pub fn acknowledge(&mut self, number: u32) {
        const BARE: u8 = 5 << 4;
        const ACK: u8 = 0x10;
        let mut packet = packet(0);
        packet.truncate(40);
        packet[2..4].copy_from_slice(&40u16.to_be_bytes());
        packet[9] = 6;
        packet[24..].fill(0);
        packet[28..32].copy_from_slice(&number.to_be_bytes());
        packet[32..34].copy_from_slice(&[BARE, ACK]);
        self.enter(LOCAL, &packet);
    }

    fn enter(&mut self, portal: usize, packet: &[u8]) {
        let (now, endpoint) = (self.now, &mut self.portals[portal].endpoint);
        endpoint.read_buffer()[..packet.len()].copy_from_slice(packet);
        endpoint.handle_inner(now, packet.len(), Offload::default());
    }

    /// Sends `count` packets from one portal to the other, one a millisecond; tells how many of them came
    /// or were dropped by the ingress queue's CoDel, which is no loss of the bond's.
    pub fn stream(&mut self, from: usize, count: u16) -> usize {
        self.portals[1 - from].inbox.0.clear();
        let shortened = self.dropped(from, DropReason::Codel);
        for number in 0..count {
            self.inner(from, number, 400);
            self.run(ms(1));
        }
        self.run(ms(500));
        let mut came: Vec<u16> = self.portals[1 - from].inbox.0.iter().map(|p| number(p)).collect();
        came.sort_unstable();
        came.dedup();
        came.len() + (self.dropped(from, DropReason::Codel) - shortened) as usize
    }

    pub fn paths(&self, portal: usize) -> Vec<PathSnapshot> {
        let snapshot = self.portals[portal].endpoint.snapshot(self.now);
        snapshot.peers.into_iter().flatten().flat_map(|session| session.paths).collect()
    }

    pub fn active(&self, portal: usize) -> usize {
        self.paths(portal).iter().filter(|path| path.state == HealthState::Active).count()
    }

    pub fn dropped(&self, portal: usize, reason: DropReason) -> u64 {
        self.portals[portal].endpoint.snapshot(self.now).drops.of(reason)
    }

    pub fn sessions(&self, portal: usize) -> usize {
        let new = Event::Session { peer: PeerId(0), new: true };
        self.portals[portal].events.iter().filter(|event| **event == new).count()
    }
}

/// The number that a test put into a packet.
pub fn number(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[28], packet[29]])
}
