//! Segments of a known flow allocate nothing: counted by the global allocator, per thread.

#[path = "../../hawser-core/tests/support/allocations.rs"]
mod allocations;

use std::sync::Arc;

use etherparse::PacketBuilder;
use hawser_core::units::Time;
use hawser_scion::conn::WayBack;
use hawser_scion::select::Criterion;
use hawser_scion::{EndpointAddr, IsdAs, Path};
use hawser_shim::compress::{Compression, Datagrams, Expanded, Offload};
use hawser_shim::engine::{
    By, ConnId, Control, Engine, EngineOpts, NotOpened, Notice, Outside, OwnAddresses, Sent, Via,
};
use hawser_shim::flow::{Direction, FlowTable, Limits, State};
use hawser_shim::mptcp::Segment;
use hawser_shim::route::{Addresses, InterfaceIndex};
use hawser_shim::translate::{Layer4, OuterPort};

use allocations::allocations_of;

fn segment(sequence: u32, payload: usize, is_back: bool) -> Vec<u8> {
    let (from, to) = if is_back { ([10, 2, 0, 1], [10, 1, 0, 1]) } else { ([10, 1, 0, 1], [10, 2, 0, 1]) };
    let ports = if is_back { (80, 4000) } else { (4000, 80) };
    let tcp = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, sequence, 500).ack(1);
    let mut packet = Vec::new();
    tcp.write(&mut packet, &vec![7; payload]).unwrap();
    packet
}

#[test]
fn a_known_flow_is_looked_up_and_counted_without_allocation() {
    let mut table = FlowTable::new(Limits { flows: 16, half_open: 4 }, Limits { flows: 1, half_open: 1 });
    let packets: Vec<_> = (0..1000).map(|at| segment(1 + at * 1000, 1000, false)).collect();
    let mut show = |packet: &[u8]| {
        let observed = table.observe(Time::ZERO, Direction::Out, &Segment::parse(packet).unwrap()).unwrap();
        assert_eq!(observed.state, State::Established);
    };
    show(&packets[0]);
    assert_eq!(allocations_of(|| packets.iter().for_each(|packet| show(packet))), 0);
}

#[test]
fn a_known_flow_is_compressed_and_expanded_without_allocation() {
    let (mut near, mut far) = (Compression::new(16), Compression::new(16));
    let (mut datagrams, mut packet) = (Datagrams::default(), Vec::new());
    let mut random = 0;
    let mut cross = |from: &mut Compression, to: &mut Compression, segment: &[u8]| {
        datagrams.clear();
        let mut draw = || {
            random += 1;
            random << 32
        };
        from.shrink(Time::ZERO, segment, Offload::default(), 1360, &mut draw, &mut datagrams).unwrap();
        for datagram in datagrams.iter() {
            let taken = to.expand(Time::ZERO, datagram, |_, _, _| true, &mut packet);
            assert_eq!(taken, Ok(Expanded::Packet { partial: false }));
        }
    };
    let packets: Vec<_> = (0..1000).map(|at| segment(1 + at * 1000, 1000, false)).collect();
    cross(&mut near, &mut far, &packets[0]);
    cross(&mut far, &mut near, &segment(1, 0, true));
    let counted = allocations_of(|| packets[1..].iter().for_each(|packet| cross(&mut near, &mut far, packet)));
    assert_eq!(counted, 0);
    assert_eq!((near.counters().whole, near.counters().compact), (1, 999));
}

/// The client's port where TCP is SCION's layer 4.
const OUTER: OuterPort = OuterPort(31_007);

/// Counts what goes out and comes in, and keeps nothing but the last datagrams.
#[derive(Default)]
struct Wire {
    sent: Vec<(Via, Vec<u8>)>,
    used: usize,
    delivered: usize,
    control: Option<Control>,
}

impl Wire {
    /// Copies datagrams to memory that is used again.
    fn keep(&mut self, via: Via, bytes: &[u8]) {
        if self.sent.len() == self.used {
            self.sent.push((via, Vec::with_capacity(2048)));
        }
        let (kept, room) = &mut self.sent[self.used];
        *kept = via;
        room.clear();
        room.extend(bytes);
        self.used += 1;
    }
}

impl Outside for Wire {
    fn random(&mut self) -> u64 {
        (self.delivered as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn open(&mut self, _: ConnId, _: EndpointAddr, _: &Path) -> Result<u16, NotOpened> {
        Ok(1360)
    }
    fn follow(&mut self, _: ConnId, _: &Path) -> Option<u16> {
        Some(1360)
    }
    fn close(&mut self, _: ConnId) {}
    fn room_back(&mut self, _: WayBack) -> Option<u16> {
        Some(1360)
    }
    fn send(&mut self, via: Via, datagrams: &Datagrams) -> Sent {
        datagrams.iter().for_each(|datagram| self.keep(via, datagram));
        Sent::All
    }
    fn send_segments(&mut self, via: Via, segments: &Datagrams, _: u8) -> Sent {
        self.send(via, segments)
    }
    fn open_port(&mut self) -> Option<OuterPort> {
        Some(OUTER)
    }
    fn close_port(&mut self, _: OuterPort) {}
    fn send_control(&mut self, _: Via, control: &Control) -> Sent {
        self.control = Some(*control);
        Sent::All
    }
    fn deliver(&mut self, _: InterfaceIndex, packet: &[u8], _: bool) {
        self.delivered += packet.len();
    }
    fn ask(&mut self, _: IsdAs) {}
    fn forget(&mut self, _: IsdAs) {}
    fn tell(&mut self, _: Notice) {}
}

/// By the only path that there is.
fn back(end: EndpointAddr) -> By {
    By::Port(WayBack::new(end, 0))
}

/// Two engines inside one AS; the client's connection has this end.
struct Two {
    engines: [Engine; 2],
    wires: [Wire; 2],
    ends: [EndpointAddr; 2],
    conn: EndpointAddr,
    layer4: Layer4,
}

impl Two {
    fn new(layer4: Layer4) -> Self {
        let ends: [EndpointAddr; 2] =
            ["1-ff00:0:110,10.0.0.1:31000", "1-ff00:0:110,10.0.0.2:31000"].map(|end| end.parse().unwrap());
        let engine = |local: EndpointAddr| {
            let interfaces = [InterfaceIndex::INGRESS].into_iter().chain(InterfaceIndex::egresses(1));
            let own = interfaces.fold(OwnAddresses::default(), |own, interface| {
                own.with_interface(interface, Addresses::of(local, None, interface).unwrap())
            });
            Engine::new(EngineOpts { local, select: Criterion::Length, egress: 1, layer4 }, own, Arc::default())
        };
        let conn = "1-ff00:0:110,10.0.0.1:40001".parse().unwrap();
        Self { engines: ends.map(engine), wires: Default::default(), ends, conn, layer4 }
    }

    fn address(&self, host: usize, interface: u8) -> std::net::SocketAddr {
        let interface = InterfaceIndex::new(interface).unwrap();
        let ip = Addresses::of(self.ends[host], None, interface).unwrap().ipv6.unwrap();
        std::net::SocketAddr::new(ip.into(), 80)
    }

    /// The client answers the probe by which the server asks who it is; what waited for that is thrown away.
    fn prove(&mut self) {
        let probe = self.wires[1].control.take().expect("it asks");
        let near = &mut self.engines[0];
        let heard =
            near.handle_datagram(Time::ZERO, By::Conn(ConnId(0)), self.ends[1], probe.bytes(), &mut self.wires[0]);
        let answer = heard.echo.expect("the client has a flow there");
        self.engines[1].handle_datagram(Time::ZERO, back(self.conn), self.conn, answer.bytes(), &mut self.wires[1]);
        self.wires[1].used = 0;
    }

    /// A segment of a host's, all the way to the other.
    fn cross(&mut self, host: usize, packet: &mut [u8]) {
        let interface = InterfaceIndex::new(u8::from(host == 0)).unwrap();
        let [near, far] = &mut self.engines;
        let [out, into] = &mut self.wires;
        let (near, far, out, into) = if host == 0 { (near, far, out, into) } else { (far, near, into, out) };
        near.handle_packet(Time::ZERO, interface, packet, Offload::default(), out);
        for (via, datagram) in &out.sent[..out.used] {
            if self.layer4 == Layer4::Tcp {
                let mut from = self.ends[host];
                from.host.set_port(if host == 0 { OUTER.0 } else { 80 });
                let goes_back = far.handle_segment(Time::ZERO, WayBack::new(from, 0), datagram, 0, into);
                assert_eq!(goes_back, host == 0, "the client's host chooses the way");
                continue;
            }
            let (by, from) = match via {
                Via::Conn(_) => (back(self.conn), self.conn),
                Via::Back(way) => {
                    assert_eq!(way.end, self.conn);
                    (By::Conn(ConnId(0)), self.ends[1])
                }
            };
            far.handle_datagram(Time::ZERO, by, from, datagram, into);
        }
        out.used = 0;
    }
}

#[test]
fn a_known_flow_crosses_two_engines_without_allocation() {
    cross_without_allocation(Layer4::Udp);
}

#[test]
fn so_it_does_where_tcp_is_layer_4() {
    cross_without_allocation(Layer4::Tcp);
}

fn cross_without_allocation(layer4: Layer4) {
    let mut two = Two::new(layer4);
    let (client, server) = (two.address(0, 1), two.address(1, 0));
    let v6 = |from: std::net::SocketAddr, to: std::net::SocketAddr| match (from.ip(), to.ip()) {
        (std::net::IpAddr::V6(from), std::net::IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 64),
        _ => unreachable!("both are surrogates"),
    };
    // Where TCP is layer 4, the server sees the port that SCION sees.
    let seen = std::net::SocketAddr::new(client.ip(), if layer4 == Layer4::Tcp { OUTER.0 } else { client.port() });
    let packet = |from: std::net::SocketAddr,
                  to: std::net::SocketAddr,
                  sequence: u32,
                  acknowledgment: u32,
                  is_syn: bool,
                  payload: usize| {
        let tcp = v6(from, to).tcp(from.port(), to.port(), sequence, 500);
        let tcp = if is_syn { tcp.syn() } else { tcp };
        let tcp = if acknowledgment > 0 { tcp.ack(acknowledgment) } else { tcp };
        let mut packet = Vec::new();
        tcp.write(&mut packet, &vec![7; payload]).unwrap();
        packet
    };
    two.cross(0, &mut packet(client, server, 1, 0, true, 0));
    two.cross(1, &mut packet(server, seen, 1, 2, true, 0));
    two.cross(0, &mut packet(client, server, 2, 2, false, 0));
    let mut there: Vec<_> = (0..1000).map(|at| packet(client, server, 2 + at * 1000, 2, false, 1000)).collect();
    let mut back: Vec<_> = (0..1000).map(|at| packet(server, seen, 2, 2 + at * 1000, false, 0)).collect();
    for at in 0..2 {
        two.cross(0, &mut there[at]);
        two.cross(1, &mut back[at]);
    }
    let before = two.wires[1].delivered;
    let counted = allocations_of(|| {
        for at in 2..1000 {
            two.cross(0, &mut there[at]);
            two.cross(1, &mut back[at]);
        }
    });
    assert_eq!(two.wires[1].delivered - before, 998 * 1060, "all arrived");
    assert_eq!(counted, 0);
}

#[test]
fn datagrams_of_a_known_flow_cross_two_engines_without_allocation() {
    let mut two = Two::new(Layer4::Udp);
    let (client, server) = (two.address(0, 1), two.address(1, 0));
    let packet = |from: std::net::SocketAddr, to: std::net::SocketAddr| {
        let (std::net::IpAddr::V6(source), std::net::IpAddr::V6(destination)) = (from.ip(), to.ip()) else {
            unreachable!("both are surrogates")
        };
        let mut packet = Vec::new();
        let udp = PacketBuilder::ipv6(source.octets(), destination.octets(), 64).udp(from.port(), to.port());
        udp.write(&mut packet, &[7; 1000]).unwrap();
        packet
    };
    let mut there: Vec<_> = (0..1000).map(|_| packet(client, server)).collect();
    let mut back: Vec<_> = (0..1000).map(|_| packet(server, client)).collect();
    two.cross(0, &mut there[0]);
    two.cross(1, &mut back[0]);
    two.prove();
    for at in 1..4 {
        two.cross(0, &mut there[at]);
        two.cross(1, &mut back[at]);
    }
    let before = two.wires[1].delivered;
    let counted = allocations_of(|| {
        for at in 4..1000 {
            two.cross(0, &mut there[at]);
            two.cross(1, &mut back[at]);
        }
    });
    assert_eq!(two.wires[1].delivered - before, 996 * 1048, "all arrived");
    assert_eq!(counted, 0);
}
