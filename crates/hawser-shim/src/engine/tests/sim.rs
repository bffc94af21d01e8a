//! Two engines under virtual time, with links between them that have a delay, a rate and a switch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hawser_core::units::Time;
use hawser_scion::conn::WayBack;
use hawser_scion::packet::UDP_LEN;
use hawser_scion::select::Criterion;
use hawser_scion::{Dataplane, EndpointAddr, Fingerprint, InterfaceId, IsdAs, Path, PathInterface};

use crate::compress::{Datagrams, Offload};
use crate::engine::{
    By, ConnId, Control, Engine, EngineOpts, Found, Heard, NotOpened, Notice, Outside, OwnAddresses, Sent, Snapshot,
    Via,
};
use crate::mptcp::samples::Draft;
use crate::route::{Addresses, DEFAULT_RANGE, InterfaceIndex, RouteTable};
use crate::translate::{Layer4, OuterPort};

pub const CLIENT: &str = "1-ff00:0:110,10.0.0.1:31000";
pub const SERVER: &str = "2-ff00:0:220,10.0.0.2:31000";
/// Bytes of a datagram that links take if nothing else is said.
pub const ROOM: u16 = 1360;
const EGRESS: u8 = 4;
/// The number of the path by which what is forged comes.
const FORGERS: u64 = 99;

/// A path between the two, and how it is now.
#[derive(Clone, Debug)]
pub struct Link {
    pub delay: Duration,
    /// Bits a second; none: any.
    pub rate: Option<u64>,
    pub is_cut: bool,
    pub room: u16,
    /// Until when it is busy, each way.
    busy: [Time; 2],
}

impl Default for Link {
    fn default() -> Self {
        Self { delay: Duration::from_millis(10), rate: None, is_cut: false, room: ROOM, busy: [Time::ZERO; 2] }
    }
}

/// Something on its way to one of the two.
#[derive(Debug)]
struct OnWay {
    to: usize,
    link: usize,
    /// The client's end of it.
    conn: EndpointAddr,
    by_conn: bool,
    /// A segment with this traffic class, and no datagram.
    segment: Option<u8>,
    bytes: Vec<u8>,
}

/// What one of the two has done, and what was done to it.
#[derive(Debug, Default)]
pub struct Outer {
    conns: BTreeMap<ConnId, (EndpointAddr, Fingerprint)>,
    /// Ways back, and when they were learned.
    learned: BTreeMap<WayBack, (usize, Time)>,
    sent: Vec<(Via, Option<u8>, Vec<u8>)>,
    pub tcp_ports: BTreeSet<OuterPort>,
    pub delivered: Vec<(InterfaceIndex, Vec<u8>)>,
    pub asked: Vec<IsdAs>,
    pub forgotten: Vec<IsdAs>,
    pub followed: usize,
    pub notices: Vec<Notice>,
    /// No path can be used; nor is there a port for segments.
    pub refuses_to_open: bool,
    /// How many connections can be open; none: any number.
    pub most_conns: Option<usize>,
    pub says: Option<Sent>,
    rooms: BTreeMap<Fingerprint, u16>,
    ports: u16,
    random: u64,
    /// Whose these are.
    host: usize,
}

impl Outer {
    /// The link of a way back.
    fn link_back(&self, way: WayBack) -> Option<usize> {
        self.learned.get(&way).map(|(link, _)| *link)
    }
}

impl Outside for Outer {
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random
    }

    fn open(&mut self, conn: ConnId, _: EndpointAddr, path: &Path) -> Result<u16, NotOpened> {
        if self.refuses_to_open {
            return Err(NotOpened::Refused);
        }
        if self.most_conns.is_some_and(|most| self.conns.len() >= most) {
            return Err(NotOpened::NoRoom);
        }
        self.ports += 1;
        let mut end: EndpointAddr = [CLIENT, SERVER][self.host].parse().unwrap();
        end.host.set_port(40_000 + self.ports);
        self.conns.insert(conn, (end, path.interfaces.clone()));
        Ok(self.rooms.get(&path.interfaces).copied().unwrap_or(ROOM))
    }

    fn follow(&mut self, _: ConnId, path: &Path) -> Option<u16> {
        self.followed += 1;
        Some(self.rooms.get(&path.interfaces).copied().unwrap_or(ROOM))
    }

    fn close(&mut self, conn: ConnId) {
        self.conns.remove(&conn);
    }

    fn room_back(&mut self, way: WayBack) -> Option<u16> {
        self.link_back(way).map(|_| ROOM)
    }

    fn send(&mut self, via: Via, datagrams: &Datagrams) -> Sent {
        if let Some(sent) = self.says {
            return sent;
        }
        self.sent.extend(datagrams.iter().map(|datagram| (via, None, datagram.to_vec())));
        Sent::All
    }

    fn send_segments(&mut self, via: Via, segments: &Datagrams, class: u8) -> Sent {
        if let Some(sent) = self.says {
            return sent;
        }
        self.sent.extend(segments.iter().map(|segment| (via, Some(class), segment.to_vec())));
        Sent::All
    }

    fn open_port(&mut self) -> Option<OuterPort> {
        self.ports += 1;
        let port = OuterPort(31_500 + self.ports);
        self.tcp_ports.insert(port);
        (!self.refuses_to_open).then_some(port)
    }

    fn close_port(&mut self, port: OuterPort) {
        assert!(self.tcp_ports.remove(&port), "it was open");
    }

    fn send_control(&mut self, via: Via, control: &Control) -> Sent {
        self.sent.push((via, None, control.bytes().to_vec()));
        Sent::All
    }

    fn deliver(&mut self, interface: InterfaceIndex, packet: &[u8], _: bool) {
        self.delivered.push((interface, packet.to_vec()));
    }

    fn ask(&mut self, isd_as: IsdAs) {
        self.asked.push(isd_as);
    }

    fn forget(&mut self, isd_as: IsdAs) {
        self.forgotten.push(isd_as);
    }

    fn tell(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// A client (0), a server (1), and links between them.
pub struct Sim {
    pub now: Time,
    pub engines: [Engine; 2],
    pub outer: [Outer; 2],
    pub links: Vec<Link>,
    pub paths: Vec<Path>,
    on_way: BTreeMap<(Time, u64), OnWay>,
    /// Bytes that each of the two has put on its way.
    pub said: [usize; 2],
    count: u64,
}

/// The interfaces of path `k`, of which those in `through` are shared with others.
pub fn path(k: usize, through: &[u16]) -> Path {
    let [from, to] = [CLIENT, SERVER].map(|end| end.parse::<EndpointAddr>().unwrap().isd_as);
    let own = u16::try_from(100 + k).unwrap();
    let interface = |isd_as, id| PathInterface { isd_as, id: InterfaceId(id) };
    let middle: IsdAs = "1-ff00:0:100".parse().unwrap();
    let between = through.iter().flat_map(|id| [interface(middle, *id), interface(middle, *id + 1)]);
    let interfaces = [interface(from, own)].into_iter().chain(between).chain([interface(to, own)]);
    let interfaces = Fingerprint::new(interfaces);
    let hops = interfaces.interfaces().len() - 1;
    Path {
        source: from,
        destination: to,
        dataplane: Dataplane::Scion(Arc::from([0_u8; 4])),
        next_hop: None,
        mtu: 1472,
        interfaces,
        latency: vec![None; hops],
        bandwidth: vec![None; hops],
        expiry: UNIX_EPOCH + Duration::from_secs(6 * 3600),
    }
}

impl Sim {
    /// With this many disjoint paths, which the client knows already.
    pub fn new(paths: usize) -> Self {
        Self::with((0..paths).map(|k| path(k, &[])).collect(), Criterion::Length)
    }

    pub fn with(paths: Vec<Path>, select: Criterion) -> Self {
        let mut sim = Self::unknowing(paths, select);
        let [client, server]: [EndpointAddr; 2] = [CLIENT, SERVER].map(|end| end.parse().unwrap());
        let ranked = crate::engine::ranked(&sim.paths, select, EGRESS.into());
        // Whoever is asked ahead of the first packet answers it.
        sim.engines[0].ases.entry(server.isd_as).or_default();
        sim.engines[1].ases.entry(client.isd_as).or_default();
        sim.tell_paths(ranked);
        sim
    }

    /// The same, where each of the two has this for its layer 4.
    pub fn over(paths: usize, layer4: [Layer4; 2]) -> Self {
        let mut sim = Self::new(paths);
        sim.engines.iter_mut().zip(layer4).for_each(|(engine, layer4)| engine.opts.layer4 = layer4);
        sim
    }

    /// The same, where nobody knows paths yet.
    pub fn unknowing(paths: Vec<Path>, select: Criterion) -> Self {
        let [client, server]: [EndpointAddr; 2] = [CLIENT, SERVER].map(|end| end.parse().unwrap());
        let engine = |local: EndpointAddr, other: EndpointAddr| {
            let interfaces = std::iter::once(InterfaceIndex::INGRESS).chain(InterfaceIndex::egresses(EGRESS));
            let own = interfaces.fold(OwnAddresses::default(), |own, interface| {
                own.with_interface(interface, Addresses::of(local, Some(DEFAULT_RANGE), interface).unwrap())
            });
            let routes = Arc::new(RouteTable::new(Some(DEFAULT_RANGE), []).with_end(other));
            Engine::new(EngineOpts { local, select, egress: EGRESS, layer4: Layer4::Udp }, own, routes)
        };
        let links = vec![Link::default(); paths.len()];
        Self {
            now: Time::from_nanos(1_000_000_000),
            engines: [engine(client, server), engine(server, client)],
            outer: [Outer { random: 1, ..Outer::default() }, Outer { random: 2, host: 1, ..Outer::default() }],
            links,
            paths,
            on_way: BTreeMap::new(),
            said: [0; 2],
            count: 0,
        }
    }

    /// Paths take datagrams of this many bytes, from now on.
    pub fn set_room(&mut self, link: usize, room: u16) {
        self.links[link].room = room;
        self.outer[0].rooms.insert(self.paths[link].interfaces.clone(), room);
    }

    pub fn tell_paths(&mut self, paths: Vec<Path>) {
        let isd_as = SERVER.parse::<EndpointAddr>().unwrap().isd_as;
        self.engines[0].handle_paths(self.now, isd_as, Found::Paths(paths), &mut self.outer[0]);
        self.carry(0);
    }

    /// A host is told of all paths, to the other's AS.
    pub fn tell_paths_to(&mut self, host: usize, isd_as: IsdAs) {
        let found = Found::Paths(self.paths.clone());
        self.engines[host].handle_paths(self.now, isd_as, found, &mut self.outer[host]);
        self.carry(host);
    }

    /// One of the two hosts sends a packet into an interface.
    pub fn send(&mut self, host: usize, interface: u8, draft: &Draft) {
        self.send_packet(host, interface, &mut draft.packet(), Offload::default());
    }

    pub fn send_packet(&mut self, host: usize, interface: u8, packet: &mut [u8], offload: Offload) {
        let interface = InterfaceIndex::new(interface).unwrap();
        self.engines[host].handle_packet(self.now, interface, packet, offload, &mut self.outer[host]);
        self.carry(host);
    }

    /// A datagram of somebody else's comes to a host's port.
    pub fn forge(&mut self, host: usize, from: EndpointAddr, datagram: &[u8]) -> Heard {
        let by = By::Port(WayBack::new(from, FORGERS));
        let heard = self.engines[host].handle_datagram(self.now, by, from, datagram, &mut self.outer[host]);
        self.carry(host);
        heard
    }

    /// A host knows a way back to somebody who forges, by this link.
    pub fn know_way(&mut self, host: usize, to: EndpointAddr, link: usize) {
        self.outer[host].learned.insert(WayBack::new(to, FORGERS), (link, self.now));
    }

    /// The hop fields expire by which a host knows ways back, of those that it learned before.
    pub fn expire_ways(&mut self, host: usize, before: Time) {
        self.outer[host].learned.retain(|_, (_, since)| *since >= before);
    }

    /// What a host sent last goes on its way; what was put on it, by datagram.
    pub fn overhear(&mut self, host: usize) -> Vec<Vec<u8>> {
        self.on_way.values().filter(|one| one.to != host).map(|one| one.bytes.clone()).collect()
    }

    /// Puts what a host sends on its way.
    fn carry(&mut self, host: usize) {
        for (via, segment, bytes) in std::mem::take(&mut self.outer[host].sent) {
            self.said[host] += bytes.len();
            let (conn, link) = match via {
                Via::Conn(id) => {
                    let Some((end, path)) = self.outer[host].conns.get(&id).cloned() else { continue };
                    (end, self.link_of(&path))
                }
                Via::Back(way) => {
                    let Some(link) = self.outer[host].link_back(way) else { continue };
                    (way.end, link)
                }
            };
            self.put(1 - host, link, conn, matches!(via, Via::Back(_)), segment, bytes);
        }
    }

    fn link_of(&self, path: &Fingerprint) -> usize {
        self.paths.iter().position(|one| one.interfaces == *path).unwrap()
    }

    fn put(&mut self, to: usize, link: usize, conn: EndpointAddr, by_conn: bool, segment: Option<u8>, bytes: Vec<u8>) {
        let way = &mut self.links[link];
        let room = usize::from(way.room) + if segment.is_some() { UDP_LEN } else { 0 };
        assert!(bytes.len() <= room, "a datagram of {} bytes", bytes.len());
        let takes = way
            .rate
            .map_or(Duration::ZERO, |rate| Duration::from_nanos((bytes.len() as u64 + 140) * 8 * 1_000_000_000 / rate));
        way.busy[to] = way.busy[to].max(self.now) + takes;
        let at = way.busy[to] + way.delay;
        if !way.is_cut {
            self.count += 1;
            self.on_way.insert((at, self.count), OnWay { to, link, conn, by_conn, segment, bytes });
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = self.engines.iter().filter_map(Engine::next_deadline).min().unwrap_or(Time::NEVER);
            let arrives = self.on_way.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = due.max(self.now).min(arrives);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if arrives <= next {
                self.arrive();
                continue;
            }
            for host in 0..2 {
                if self.engines[host].next_deadline().is_some_and(|due| due <= self.now) {
                    self.engines[host].handle_timeout(self.now, &mut self.outer[host]);
                    self.carry(host);
                }
            }
        }
    }

    fn arrive(&mut self) {
        let Some((_, one)) = self.on_way.pop_first() else { return };
        if self.links[one.link].is_cut {
            return;
        }
        let host = one.to;
        if let Some(class) = one.segment {
            return self.arrive_segment(host, one.link, class, &one.bytes);
        }
        let (by, from) = if one.by_conn {
            let open = self.outer[host].conns.iter().find(|(_, (end, _))| *end == one.conn);
            let Some((id, _)) = open else { return };
            (By::Conn(*id), [CLIENT, SERVER][1 - host].parse().unwrap())
        } else {
            (By::Port(WayBack::new(one.conn, one.link as u64)), one.conn)
        };
        let heard = self.engines[host].handle_datagram(self.now, by, from, &one.bytes, &mut self.outer[host]);
        if let By::Port(back) = by
            && heard.keep
        {
            self.outer[host].learned.insert(back, (one.link, self.now));
        }
        self.carry(host);
        if let Some(echo) = heard.echo {
            self.put(1 - host, one.link, one.conn, !one.by_conn, None, echo.bytes().to_vec());
        }
    }

    fn arrive_segment(&mut self, host: usize, link: usize, class: u8, segment: &[u8]) {
        let mut from: EndpointAddr = [CLIENT, SERVER][1 - host].parse().unwrap();
        from.host.set_port(u16::from_be_bytes([segment[0], segment[1]]));
        let back = WayBack::new(from, link as u64);
        if self.engines[host].handle_segment(self.now, back, segment, class, &mut self.outer[host]) {
            self.outer[host].learned.insert(back, (link, self.now));
        }
        self.carry(host);
    }

    /// A segment of somebody else's comes to a host.
    pub fn forge_segment(&mut self, host: usize, from: EndpointAddr, segment: &[u8]) -> bool {
        let back = WayBack::new(from, FORGERS);
        let taken = self.engines[host].handle_segment(self.now, back, segment, 0, &mut self.outer[host]);
        self.carry(host);
        taken
    }

    pub fn snapshot(&self, host: usize) -> Snapshot {
        self.engines[host].snapshot(self.now)
    }

    /// A host's shim begins anew, and knows nothing.
    pub fn restart(&mut self, host: usize) {
        let fresh = Self::with(self.paths.clone(), Criterion::Length);
        let [client, server] = fresh.engines;
        self.engines[host] = if host == 0 { client } else { server };
        let outer = std::mem::take(&mut self.outer[host]);
        self.outer[host] = Outer { random: outer.random + 99, ports: outer.ports, host, ..Outer::default() };
    }

    /// The notices of the client since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.outer[0].notices)
    }

    /// Which link the client's flows use, by their port.
    pub fn uses(&self) -> BTreeMap<u16, usize> {
        let flows = self.snapshot(0).connections.into_iter().flat_map(|connection| connection.flows);
        flows.filter_map(|flow| Some((flow.key.local.port(), self.link_of(&flow.path?)))).collect()
    }
}
