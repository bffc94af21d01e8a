//! Two portals, the links between them and the hosts behind them, in virtual time.
//!
//! 1. `run_until` takes the next thing that is due: an event, a core's deadline, a host's.
//! 2. `happen` does it: a datagram departs or arrives, an [`Act`] changes the world.
//! 3. `settle` polls the side that was moved until it rests: deliveries to hosts, hosts, batches.
//! 4. `send` gives each datagram of a batch to its link.

mod acts;
pub mod journal;
pub mod link;

pub use crate::host::HostId;
pub use acts::Act;
pub use link::VirtualLink;

use crate::events::EventQueue;
use crate::host::{Host, Hosts, Ingress};
use crate::net::{Datagram, Due, LinkSpec, Parcel, Way};
use crate::portal::{Clock, Portal, Recipe};
use crate::random::Seeded;
use hawser_core::endpoint::Link;
use hawser_core::resequence::Sink;
use hawser_core::session::Transmit;
use hawser_core::transport::Transport;
use hawser_core::units::{LinkGroup, LinkId, Time};
use journal::{Event, Journal};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The side of the portal with several links.
pub const LOCAL: usize = 0;
/// The side of the portal that listens.
pub const REMOTE: usize = 1;
/// Where the remote portal listens.
pub const LISTEN: [([u16; 8], u16); 2] =
    [([0, 0, 0, 0, 0, 0xffff, 0xc633, 0x6407], 4920), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7], 4920)];
/// More steps than this without any time passing are a core that asks to be woken in vain.
const SPIN: u32 = 100_000;

/// The remote portal's address, over IPv6 or IPv4.
pub fn listening(ipv6: bool) -> SocketAddr {
    let (octets, port) = LISTEN[usize::from(ipv6)];
    SocketAddr::new(IpAddr::from(octets).to_canonical(), port)
}

/// What is going to happen.
enum Happening {
    Depart { link: usize, up: bool, due: Due },
    Arrive { link: usize, up: bool, datagram: Datagram },
    Act(Act),
    TooBig { side: usize, link: LinkId, datagram: Datagram, mtu: usize },
}

/// Sees when which side sends what, by which link.
pub type Witness = Box<dyn FnMut(Time, usize, usize, &[u8])>;

/// What a portal sent to an address that is nobody's. Nothing at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Stray {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
}

/// How a world is made. A plain value.
#[derive(Clone)]
pub struct Setup {
    /// Decides all that is random.
    pub seed: u64,
    /// The links that are there from the start.
    pub links: Vec<LinkSpec>,
    /// Both portals.
    pub recipes: [Recipe; 2],
    /// Their clocks; `None`: by the seed.
    pub clocks: Option<[Clock; 2]>,
    /// The remote portal initiates too, at the address of link 0.
    pub both_initiate: bool,
}

/// Inner packets on their way from a core to the hosts.
#[derive(Default)]
struct Deliveries {
    bytes: Vec<u8>,
    packets: Vec<(usize, bool)>,
}

impl Sink for Deliveries {
    fn deliver(&mut self, packet: &[u8], partial: bool) {
        self.bytes.extend_from_slice(packet);
        self.packets.push((self.bytes.len(), partial));
    }
}

/// Everything. Begins at time zero; one owner.
pub struct World {
    /// The present.
    pub now: Time,
    /// What decided all that is random.
    pub seed: u64,
    /// The local portal and the remote one.
    pub portals: [Portal; 2],
    /// The links between them.
    pub links: Vec<VirtualLink>,
    /// What was sent to nobody.
    pub strays: BTreeMap<SocketAddr, Stray>,
    /// Datagrams that arrived at each side, while recorded.
    pub taps: [Option<Vec<Datagram>>; 2],
    /// What is sent and delivered, while recorded.
    pub journal: Option<Journal>,
    /// Is shown every datagram that a side sends.
    pub witness: Option<Witness>,
    /// Inner packets delivered to nobody.
    pub unclaimed: u64,
    /// Handshake messages vanish on their way, and these did.
    pub handshakes_lost: Option<u64>,
    hosts: Hosts,
    events: EventQueue<Happening>,
    deadlines: [Option<Time>; 2],
    deliveries: Deliveries,
    rng: Seeded,
    spins: u32,
}

impl World {
    /// A world at time zero, in which nothing has been sent yet.
    pub fn new(setup: Setup) -> Self {
        let Setup { seed, links, recipes, clocks, both_initiate } = setup;
        let mut rng = Seeded::new(seed);
        let mut any_clock = || Clock { offset: Duration::from_nanos(rng.below(1 << 50)), ppm: 0 };
        let drawn = [any_clock(), any_clock()];
        let clocks = clocks.unwrap_or(drawn);
        let [mut local, mut remote] = recipes;
        let family = |ipv6| links.iter().any(|link: &LinkSpec| link.ipv6 == ipv6);
        local.endpoints = [false, true].into_iter().filter(|ipv6| family(*ipv6)).map(listening).collect();
        if both_initiate {
            remote.endpoints = vec![link::inside(0, links[0].ipv6, 0)];
        }
        let portals = [Portal::new(local, clocks[LOCAL], rng.fork()), Portal::new(remote, clocks[REMOTE], rng.fork())];
        let mut world = World {
            now: Time::ZERO,
            seed,
            portals,
            links: Vec::new(),
            strays: BTreeMap::new(),
            taps: [None, None],
            journal: None,
            witness: None,
            unclaimed: 0,
            handshakes_lost: None,
            hosts: Hosts::default(),
            events: EventQueue::default(),
            deadlines: [None, None],
            deliveries: Deliveries::default(),
            rng,
            spins: 0,
        };
        let listener = Link {
            id: LinkId(0),
            group: LinkGroup(0),
            preference: 0,
            metric: 0,
            transport: Transport::Udp,
            ipv4: true,
            ipv6: true,
            opens: both_initiate,
            up: true,
        };
        world.portals[REMOTE].add_link(world.now, listener);
        links.into_iter().for_each(|link| world.add_link(link));
        world.settle(REMOTE);
        world
    }

    /// One more link, of the local portal.
    pub fn add_link(&mut self, spec: LinkSpec) {
        let number = self.links.len();
        let link = VirtualLink::new(number, &spec, &mut self.rng);
        self.links.push(link);
        let id = LinkId(number as u16);
        let link = Link {
            id,
            group: LinkGroup(spec.socket_of.map_or(id.0, |first| first as u16)),
            preference: 0,
            metric: spec.metric,
            transport: Transport::Udp,
            ipv4: !spec.ipv6,
            ipv6: spec.ipv6,
            opens: true,
            up: true,
        };
        self.portals[LOCAL].add_link(self.now, link);
        self.settle(LOCAL);
    }

    /// Puts a host behind the portal of `side`.
    pub fn add_host(&mut self, side: usize, address: Ipv4Addr, host: impl Host) -> HostId {
        self.hosts.put(side, address, host)
    }

    /// A host that was put there. Panics if it is another kind of host.
    pub fn host<H: Host>(&self, id: HostId) -> &H {
        self.hosts.get(id)
    }

    /// Something happens to the world then.
    pub fn at(&mut self, at: Time, act: Act) {
        self.events.push(at, Happening::Act(act));
    }

    /// Step 1.
    pub fn run_until(&mut self, end: Time) {
        while let Some(at) = self.next_at().filter(|at| *at <= end) {
            self.spins = if at > self.now { 0 } else { self.spins + 1 };
            if self.spins > SPIN {
                let why = [LOCAL, REMOTE].map(|side| {
                    let portal = &mut self.portals[side];
                    portal.endpoint.poll_timeout(portal.clock.show(self.now))
                });
                panic!("seed {}: time stands still at {:?}: {why:?}", self.seed, self.now);
            }
            self.now = self.now.max(at);
            if let Some(happening) = self.events.pop_due(self.now) {
                self.happen(happening);
                continue;
            }
            for side in [LOCAL, REMOTE] {
                self.wake(side);
            }
        }
        self.now = end;
    }

    fn next_at(&self) -> Option<Time> {
        let cores = self.deadlines.iter().copied().flatten();
        self.events.next_at().into_iter().chain(cores).chain(self.hosts.deadline()).min()
    }

    fn wake(&mut self, side: usize) {
        let core = self.deadlines[side].is_some_and(|at| at <= self.now);
        if core {
            let portal = &mut self.portals[side];
            portal.endpoint.handle_timeout(portal.clock.show(self.now), &mut self.deliveries);
        }
        if core || self.hosts.is_due(side, self.now) {
            self.settle(side);
        }
    }

    /// Step 2.
    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Depart { link, up, due } => {
                let departure = self.links[link].pipe(up).depart(self.now, due);
                if let Some(hole) = self.links[link].hole.as_mut().filter(|_| up) {
                    hole.extend(departure.vanished);
                }
                for (at, datagram) in departure.arrivals.into_iter().flatten() {
                    self.events.push(at, Happening::Arrive { link, up, datagram });
                }
                self.departs(link, up, departure.next);
            }
            Happening::Arrive { link, up: true, datagram } => {
                let _ = link;
                self.receive(REMOTE, LinkId(0), datagram);
            }
            Happening::Arrive { link, up: false, datagram } => {
                // Those that share the pipe are told apart by their addresses.
                let (now, to) = (self.now, datagram.to);
                let mut links = self.links.iter_mut();
                if let Some(link) = links.position(|other| other.through == link && other.takes_in(now, to)) {
                    self.receive(LOCAL, LinkId(link as u16), datagram);
                }
            }
            Happening::TooBig { side, link, datagram, mtu } => self.report(side, link, datagram, mtu),
            Happening::Act(act) => {
                self.act(act);
                self.settle(LOCAL);
                self.settle(REMOTE);
            }
        }
    }

    /// A datagram reaches the socket of a portal's link.
    pub fn receive(&mut self, side: usize, link: LinkId, mut datagram: Datagram) {
        if let Some(tap) = &mut self.taps[side] {
            tap.push(datagram.clone());
        }
        let portal = &mut self.portals[side];
        if !portal.is_up(link) || portal.keeps(link, &datagram) || portal.stopped {
            return;
        }
        let (now, local) = (portal.clock.show(self.now), (side == REMOTE).then_some(datagram.to.ip()));
        let Datagram { from, ecn, ref mut bytes, .. } = datagram;
        portal.endpoint.handle_datagram(now, link, from, local, ecn, bytes, &mut self.deliveries);
        self.settle(side);
    }

    /// Step 3.
    pub fn settle(&mut self, side: usize) {
        loop {
            self.deliver(side);
            for host in self.hosts.on(side) {
                host.poll(self.now, &mut Ingress::new(&mut self.portals[side], self.now));
            }
            self.portals[side].take_events(self.now);
            if !self.transmit(side) && self.deliveries.packets.is_empty() {
                break;
            }
        }
        self.deadlines[side] = self.portals[side].deadline(self.now);
    }

    fn deliver(&mut self, side: usize) {
        let mut start = 0;
        let Deliveries { bytes, packets } = &mut self.deliveries;
        for (end, partial) in packets.drain(..) {
            let packet = &bytes[start..end];
            start = end;
            if let Some(journal) = &mut self.journal {
                journal.note(self.now, Event::Delivered { side, bytes: packet });
            }
            let claimed = self.hosts.receive(side, self.now, packet, partial);
            self.unclaimed += u64::from(!claimed);
        }
        bytes.clear();
    }

    /// Step 4. Tells whether anything was sent.
    fn transmit(&mut self, side: usize) -> bool {
        let mut sent = false;
        while let Some((transmit, bytes)) = self.portals[side].poll_transmit(self.now) {
            let chunks = bytes.chunks(transmit.segment_size.max(1));
            let datagrams: Vec<Vec<u8>> = chunks.map(<[u8]>::to_vec).collect();
            self.send(side, &transmit, datagrams);
            sent = true;
        }
        sent
    }

    fn send(&mut self, side: usize, transmit: &Transmit, datagrams: Vec<Vec<u8>>) {
        let to = transmit.remote;
        let link = match side {
            LOCAL => Some(usize::from(transmit.link.0)),
            _ => self.links.iter().position(|link| link.public() == Some(to)),
        };
        let known = side == REMOTE || to == listening(to.is_ipv6());
        let Some(link) = link.filter(|_| known) else {
            let stray = self.strays.entry(to).or_default();
            stray.datagrams += datagrams.len() as u64;
            stray.bytes += datagrams.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
            return;
        };
        let up = side == LOCAL;
        let from = if up { self.links[link].outward(self.now) } else { listening(to.is_ipv6()) };
        for bytes in datagrams {
            if let Some(journal) = &mut self.journal {
                journal.note(self.now, Event::Sent { side, link, bytes: &bytes });
            }
            if let Some(witness) = &mut self.witness {
                witness(self.now, side, link, &bytes);
            }
            let datagram = Datagram { from, to, ecn: transmit.ecn, bytes };
            if let Some(lost) = self.handshakes_lost.as_mut().filter(|_| !datagram.is_data()) {
                *lost += 1;
                continue;
            }
            if self.links[link].refuses(up, &datagram) {
                let size = u16::try_from(datagram.bytes.len()).unwrap_or(u16::MAX);
                self.portals[side].endpoint.handle_too_big(transmit.link, to, size);
                continue;
            }
            let link = self.links[link].through;
            let way = &self.links[link].pipe(up).way;
            if way.reports && datagram.wire_len() > way.mtu {
                let (at, mtu) = (self.now + way.delay, way.mtu);
                let told = Happening::TooBig { side, link: transmit.link, datagram: datagram.clone(), mtu };
                self.events.push(at, told);
            }
            let due = self.links[link].pipe(up).offer(self.now, datagram);
            self.departs(link, up, due);
        }
    }

    /// A router tells a portal that a datagram was too large for what comes next.
    fn report(&mut self, side: usize, link: LinkId, datagram: Datagram, mtu: usize) {
        let headers = datagram.wire_len() - datagram.bytes.len();
        let size = u16::try_from(mtu + 1 - headers).unwrap_or(u16::MAX);
        if !self.portals[side].stopped {
            self.portals[side].endpoint.handle_hint(link, datagram.to, size, Some(&datagram.bytes));
            self.settle(side);
        }
    }

    /// Changes a way of a link from now on.
    pub fn change_way(&mut self, link: usize, up: bool, change: impl FnOnce(&mut Way)) {
        let due = self.links[link].pipe(up).change(self.now, change);
        self.departs(link, up, due);
    }

    fn departs(&mut self, link: usize, up: bool, due: Option<Due>) {
        if let Some(due) = due {
            self.events.push(due.at, Happening::Depart { link, up, due });
        }
    }
}
