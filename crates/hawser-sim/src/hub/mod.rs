//! A peer with two links, two members of its hub or more, a router before them and a server beyond, in virtual time.
//!
//! ```text
//!                                 +-- member 0 --+
//!   hosts -- peer ==[ links ]==---|              |-- router -- server
//!                                 +-- member 1 --+
//! ```
//!
//! 1. `run_until` takes the next thing that is due: an arrival, a deadline, an act, a route.
//! 2. `settle` polls the peer and its hosts until they rest, `flush` a member, `serve` the server and the router.
//! 3. After each step the invariants hold: no epoch has two owners; who forwards owns (`member`); no member forwards a
//!    packet twice; nobody refuses what another says.
//!
//! A link is the bottleneck of both members' paths; beyond it the way to each has a delay and holes of its own.

mod act;
pub mod case;
mod fault;
mod member;
mod outcome;
mod router;
mod seen;

pub use act::Act;
pub(crate) use router::GONE_IN;

use crate::events::EventQueue;
use crate::host::{Host, HostId, Hosts, Ingress, Wire};
use crate::net::{Datagram, Due, LinkSpec, Pipe};
use crate::portal::{Clock, Portal, Recipe};
use crate::random::Seeded;
use crate::world::{LOCAL, REMOTE};
use hawser_core::congestion::Kind;
use hawser_core::endpoint::{Event, Link};
use hawser_core::handshake::Identity;
use hawser_core::rules::Rules;
use hawser_core::transport::Transport;
use hawser_core::units::{LinkGroup, LinkId, PeerId, Time};
use hawser_hub::pair::{self, Moved, Pair};
use hawser_hub::units::{Epoch, MemberId};
use member::{Inbox, Member};
use router::{Heard, Router};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// From the server to the router, and to a member; and back.
const BEYOND: Duration = Duration::from_micros(500);
/// The MTU beyond.
const MTU: usize = 1500;
/// The TUN's MTU before the core says otherwise (RFC 8200 section 5).
const TUN_MTU: u16 = 1280;
/// More steps than this without any time passing are a core that asks to be woken in vain.
const SPIN: u32 = 100_000;

enum Happening {
    Depart {
        link: usize,
        up: bool,
        due: Due,
    },
    Arrive {
        link: usize,
        up: bool,
        datagram: Datagram,
    },
    /// A packet of the server's reaches the member that it was routed to.
    Routed {
        member: usize,
        packet: Vec<u8>,
    },
    /// A packet of the peer's reaches the server.
    Served {
        packet: Vec<u8>,
        partial: bool,
    },
    Route(Heard),
    Act(Act),
}

/// A link of the peer's, and what lies beyond it.
struct Line {
    up: Pipe,
    down: Pipe,
    /// By member: the delay beyond, and which ways have holes (up, down).
    beyond: Vec<(Duration, [bool; 2])>,
}

/// What this world is made of. A plain value.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Decides all that is random.
    pub seed: u64,
    /// The peer's links, with the delay beyond each to either member; others are as far away as the second.
    pub links: Vec<(LinkSpec, [Duration; 2])>,
    /// How the peer and its members treat flows.
    pub rules: Rules,
}

/// Everything. Begins at time zero; one owner.
pub struct World {
    /// The present.
    pub now: Time,
    /// The peer, and its hold on the members.
    pub peer: Portal,
    /// See `peer`.
    pub pair: Pair,
    /// What moved, and when.
    pub moved: Vec<(Time, Moved)>,
    /// Datagrams that the peer sent to the member that does not carry its packets.
    pub to_standby: u64,
    /// Datagrams to and from each member.
    pub datagrams: Vec<[u64; 2]>,
    /// Packets of the server's for the peer that no member announced.
    pub unrouted: u64,
    members: Vec<Member>,
    lines: Vec<Line>,
    router: Router,
    hosts: Hosts,
    wire: Wire,
    inbox: Inbox,
    events: EventQueue<Happening>,
    /// When the members, and the peer or its pair, want to be woken: as they said when something last happened to them.
    members_due: Vec<Option<Time>>,
    peer_due: Option<Time>,
    mtus: Vec<u16>,
    /// Which member owned in an epoch.
    owners: BTreeMap<Epoch, usize>,
    seed: u64,
}

fn listening(member: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1 + member as u8], 4_920))
}

fn socket(link: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + link as u8], 5_000))
}

fn link(id: usize, metric: u16, opens: bool) -> Link {
    Link {
        id: LinkId(id as u16),
        group: LinkGroup(id as u16),
        preference: 0,
        metric,
        transport: Transport::Udp,
        ipv4: true,
        ipv6: false,
        opens,
        up: true,
    }
}

impl World {
    /// Nothing was sent yet; there are two members.
    pub fn new(setup: Setup) -> Self {
        World::with_members(2, setup)
    }

    /// The same with this many, two at least.
    pub fn with_members(count: usize, setup: Setup) -> Self {
        let Setup { seed, links, rules } = setup;
        let mut rng = Seeded::new(seed);
        let keys: Vec<Identity> = (0..count).map(|member| Identity::new([2 + member as u8; 32])).collect();
        let ids: Vec<MemberId> = keys.iter().map(|key| MemberId::of(&key.public())).collect();
        let mut clock = || Clock { offset: Duration::from_nanos(rng.below(1 << 50)), ppm: 0 };
        let (clocks, own): (Vec<Clock>, Clock) = ((0..count).map(|_| clock()).collect(), clock());
        let mut member = |member: usize| {
            let (identity, rules) = (keys[member].clone(), rules.clone());
            let recipe = Recipe { identity, rules, in_hub: true, ..Recipe::of(REMOTE, Kind::Bbr) };
            let mut portal = Portal::new(recipe, clocks[member], rng.fork());
            portal.add_link(Time::ZERO, link(0, 0, false));
            Member::new(portal, ids[member])
        };
        let members: Vec<Member> = (0..count).map(&mut member).collect();
        let recipe = Recipe {
            peer: keys[0].public(),
            endpoints: vec![listening(0)],
            twins: (1..count).map(|member| (keys[member].public(), listening(member))).collect(),
            in_hub: true,
            rules,
            ..Recipe::of(LOCAL, Kind::Bbr)
        };
        let mut peer = Portal::new(recipe, own, rng.fork());
        let list: Vec<_> = (0..count).map(|at| pair::Member { id: ids[at], peer: PeerId(at as u32) }).collect();
        let pair = Pair::new(&mut peer.endpoint, Epoch::FIRST, &list, seed).expect("two members");
        let lines = links.iter().map(|(spec, delays)| Line {
            up: Pipe::new(spec.up.clone(), rng.fork()),
            down: Pipe::new(spec.down.clone(), rng.fork()),
            beyond: (0..count).map(|member| (delays[member.min(1)], [false; 2])).collect(),
        });
        let lines: Vec<Line> = lines.collect();
        let metrics = links.iter().map(|(spec, _)| spec.metric);
        metrics.enumerate().for_each(|(at, metric)| peer.add_link(Time::ZERO, link(at, metric, true)));
        let router = Router::new(count, rng.fork());
        let mut world = World {
            now: Time::ZERO,
            peer,
            pair,
            moved: Vec::new(),
            to_standby: 0,
            datagrams: vec![[0; 2]; count],
            unrouted: 0,
            members,
            lines,
            router,
            hosts: Hosts::default(),
            wire: Wire::new(MTU),
            inbox: Inbox::default(),
            events: EventQueue::default(),
            members_due: vec![None; count],
            peer_due: None,
            mtus: vec![TUN_MTU; count],
            owners: BTreeMap::new(),
            seed,
        };
        world.settle();
        world
    }

    /// Puts a host behind the peer (`LOCAL`) or the router (`REMOTE`).
    pub fn add_host(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.hosts.put(side, address, host)
    }

    /// A host that was put there. Panics if it is another kind of host.
    pub fn host<H: Host>(&self, id: HostId) -> &H {
        self.hosts.get(id)
    }

    /// Something happens then.
    pub fn at(&mut self, at: Time, act: Act) {
        self.events.push(at, Happening::Act(act));
    }

    /// Step 1.
    pub fn run_until(&mut self, end: Time) {
        let mut spins = 0;
        // Who holds the world may have changed the peer meanwhile.
        self.settle();
        (0..self.members.len()).for_each(|member| self.flush(member));
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            spins = if at > self.now { 0 } else { spins + 1 };
            assert!(spins < SPIN, "seed {}: time stands still at {:?}", self.seed, self.now);
            self.now = self.now.max(at);
            match self.events.pop_due(self.now) {
                Some(happening) => self.happen(happening),
                None => self.wake(),
            }
            self.check();
        }
        self.now = end;
        self.check_refused();
    }

    fn next_at(&self) -> Option<Time> {
        let members = self.members_due.iter().copied().flatten();
        self.events.next_at().into_iter().chain(members).chain(self.peer_due).chain(self.hosts.deadline()).min()
    }

    fn wake(&mut self) {
        let now = self.now;
        for member in 0..self.members.len() {
            if self.members_due[member].is_some_and(|at| at <= now) {
                self.members[member].wake(now, &mut self.inbox);
                self.flush(member);
            }
        }
        if self.peer.deadline(now).is_some_and(|at| at <= now) {
            let shown = self.peer.clock.show(now);
            let mut inbox = Inbox::default();
            self.peer.endpoint.handle_timeout(shown, &mut inbox);
            self.give_hosts(inbox);
        }
        self.settle();
        self.serve();
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Depart { link, up, due } => {
                let pipe = if up { &mut self.lines[link].up } else { &mut self.lines[link].down };
                let departure = pipe.depart(self.now, due);
                for (at, datagram) in departure.arrivals.into_iter().flatten() {
                    let member = self.member_at(if up { datagram.to } else { datagram.from });
                    let (delay, holes) = self.lines[link].beyond[member];
                    if !holes[usize::from(!up)] {
                        self.events.push(at + delay, Happening::Arrive { link, up, datagram });
                    }
                }
                self.departs(link, up, departure.next);
            }
            Happening::Arrive { up: true, datagram, .. } => {
                let member = self.member_at(datagram.to);
                self.members[member].receive(self.now, LinkId(0), datagram, &mut self.inbox);
                self.flush(member);
            }
            Happening::Arrive { link, datagram, .. } => {
                let Datagram { from, ecn, mut bytes, .. } = datagram;
                let (now, id, mut inbox) = (self.peer.clock.show(self.now), LinkId(link as u16), Inbox::default());
                self.peer.endpoint.handle_datagram(now, id, from, None, ecn, &mut bytes, &mut inbox);
                self.give_hosts(inbox);
                self.settle();
            }
            Happening::Routed { member, packet } => {
                self.members[member].take_inner(self.now, &packet, &mut self.inbox);
                self.flush(member);
            }
            Happening::Served { packet, partial } => {
                self.hosts.receive(REMOTE, self.now, &packet, partial);
                self.serve();
            }
            Happening::Route(heard) => self.router.hear(heard),
            Happening::Act(act) => self.act(act),
        }
    }

    /// Step 2: the peer and its hosts rest.
    fn settle(&mut self) {
        loop {
            for host in self.hosts.on(LOCAL) {
                host.poll(self.now, &mut Ingress::new(&mut self.peer, self.now));
            }
            let shown = self.peer.clock.show(self.now);
            while let Some(event) = self.peer.endpoint.poll_event() {
                if let Event::PeerMtu { peer, mtu } = event {
                    self.mtus[peer.0 as usize] = mtu;
                    self.peer.mtu = self.mtus.iter().copied().min().unwrap_or(TUN_MTU);
                }
                self.pair.handle_event(shown, &event);
            }
            self.pair.handle_round(shown, &mut self.peer.endpoint);
            self.moved.extend(std::iter::from_fn(|| self.pair.poll_event()).map(|moved| (self.now, moved)));
            let mut sent = Vec::new();
            while let Some((transmit, bytes)) = self.peer.poll_transmit(self.now) {
                let (link, ecn) = (usize::from(transmit.link.0), transmit.ecn);
                let cut = bytes.chunks(transmit.segment_size.max(1));
                sent.extend(cut.map(|bytes| {
                    (link, Datagram { from: socket(link), to: transmit.remote, ecn, bytes: bytes.to_vec() })
                }));
            }
            if sent.is_empty() {
                break;
            }
            let active = listening(self.pair.status().active.peer.0 as usize);
            for (link, datagram) in sent {
                self.to_standby += u64::from(datagram.to != active);
                let to = (0..self.members.len()).find(|member| datagram.to == listening(*member));
                to.into_iter().for_each(|member| self.datagrams[member][0] += 1);
                let due = self.lines[link].up.offer(self.now, datagram);
                self.departs(link, true, due);
            }
        }
        let pair = self.peer.clock.when(self.pair.poll_timeout());
        self.peer_due = Some(self.peer.deadline(self.now).map_or(pair, |core| core.min(pair)));
    }

    /// Step 2: what a member forwards, says and announces.
    fn flush(&mut self, member: usize) {
        for (packet, partial) in std::mem::take(&mut self.inbox).packets {
            self.events.push(self.now + BEYOND, Happening::Served { packet, partial });
        }
        let mut sent = Vec::new();
        while let Some((transmit, bytes)) = self.members[member].poll_transmit(self.now) {
            let Some(link) = (0..self.lines.len()).find(|link| socket(*link) == transmit.remote) else { continue };
            let (from, to, ecn) = (listening(member), transmit.remote, transmit.ecn);
            let cut = bytes.chunks(transmit.segment_size.max(1));
            sent.extend(cut.map(|bytes| (link, Datagram { from, to, ecn, bytes: bytes.to_vec() })));
        }
        self.datagrams[member][1] += sent.len() as u64;
        for (link, datagram) in sent {
            let due = self.lines[link].down.offer(self.now, datagram);
            self.departs(link, false, due);
        }
        while let Some(announced) = self.members[member].poll_announced() {
            let (at, heard) = self.router.on_announced(self.now, member, &announced);
            self.events.push(at, Happening::Route(heard));
        }
        self.members_due[member] = self.members[member].deadline(self.now);
    }

    /// Step 2: the server's packets go where the router has a route.
    fn serve(&mut self) {
        for host in self.hosts.on(REMOTE) {
            host.poll(self.now, &mut Ingress::onto(&mut self.wire, self.now));
        }
        for packet in std::mem::take(&mut self.wire.packets) {
            match self.router.next_hop() {
                Some(member) => self.events.push(self.now + BEYOND, Happening::Routed { member, packet }),
                None => self.unrouted += 1,
            }
        }
    }

    fn give_hosts(&mut self, inbox: Inbox) {
        for (packet, partial) in inbox.packets {
            self.hosts.receive(LOCAL, self.now, &packet, partial);
        }
    }

    fn member_at(&self, address: SocketAddr) -> usize {
        (0..self.members.len()).find(|member| listening(*member) == address).expect("members alone listen")
    }

    fn departs(&mut self, link: usize, up: bool, due: Option<Due>) {
        if let Some(due) = due {
            self.events.push(due.at, Happening::Depart { link, up, due });
        }
    }

    /// Step 3.
    fn check(&mut self) {
        for (at, member) in self.members.iter().enumerate() {
            if let Some(epoch) = member.owns(self.now) {
                let owner = *self.owners.entry(epoch).or_insert(at);
                assert_eq!(owner, at, "seed {}: {epoch:?} has two owners at {:?}", self.seed, self.now);
            }
        }
    }
}
