//! TCP, just big enough: connections that begin, talk and end, as segments that the kernel would send.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;

use super::sim::{CLIENT, SERVER, Sim};
use crate::mptcp::samples::Draft;
use crate::mptcp::{Flags, Key, Segment};
use crate::route::{Addresses, DEFAULT_RANGE, InterfaceIndex};

/// How often a talking end says something, and how much.
const PACE: Duration = Duration::from_millis(5);
pub const PAYLOAD: usize = 1200;
pub const SYN_ACK: Flags = Flags(0x12);
pub const FIN_ACK: Flags = Flags(0x11);
/// The port of the server.
pub const PORT: u16 = 80;

/// An address of one of the two.
pub fn address(host: usize, interface: u8) -> IpAddr {
    let end: EndpointAddr = [CLIENT, SERVER][host].parse().unwrap();
    let interface = InterfaceIndex::new(interface).unwrap();
    Addresses::of(end, Some(DEFAULT_RANGE), interface).unwrap().ipv6.unwrap().into()
}

/// One flow, from the client's egress `interface` and `port`.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub interface: u8,
    pub port: u16,
    /// Next bytes of client and server.
    pub next: [u32; 2],
    /// The client as the server sees it: where TCP is SCION's layer 4, by another address and port.
    pub seen: SocketAddr,
}

impl Flow {
    pub fn new(interface: u8, port: u16) -> Self {
        Self { interface, port, next: [1000, 9000], seen: SocketAddr::new(address(0, interface), port) }
    }

    /// A segment of one of its ends.
    pub fn says(&self, host: usize, flags: Flags) -> Draft {
        let client = if host == 0 { SocketAddr::new(address(0, self.interface), self.port) } else { self.seen };
        let server = SocketAddr::new(address(1, 0), PORT);
        let (from, to) = if host == 0 { (client, server) } else { (server, client) };
        let (sequence, acknowledgment) = (self.next[host], self.next[1 - host]);
        Draft { from, to, sequence, acknowledgment, flags, ..Draft::default() }
    }

    fn interface(&self, host: usize) -> u8 {
        if host == 0 { self.interface } else { 0 }
    }

    /// One end sends a segment.
    pub fn send(&mut self, sim: &mut Sim, host: usize, draft: &Draft) {
        let flags = u32::from(draft.flags.has(Flags::SYN)) + u32::from(draft.flags.has(Flags::FIN));
        self.next[host] += u32::try_from(draft.payload.len()).unwrap() + flags;
        sim.send(host, self.interface(host), draft);
    }

    /// SYN, SYN/ACK, ACK, each when the one before has arrived; `options` of MPTCP for each.
    pub fn open(&mut self, sim: &mut Sim, options: [&[u8]; 3]) -> bool {
        for (at, (host, flags)) in [(0, Flags::SYN), (1, SYN_ACK), (0, Flags::ACK)].into_iter().enumerate() {
            let mut draft = self.says(host, flags);
            draft.options = if flags.has(Flags::SYN) { vec![2, 4, 5, 180] } else { Vec::new() };
            if !options[at].is_empty() {
                draft = draft.says(options[at]);
            }
            let before = sim.outer[1 - host].delivered.len();
            self.send(sim, host, &draft);
            sim.run(Duration::from_millis(120));
            let Some((_, arrived)) = sim.outer[1 - host].delivered.get(before) else { return false };
            if at == 0 {
                self.seen = Segment::parse(arrived).unwrap().source;
            }
        }
        true
    }

    /// As a main flow of MPTCP.
    pub fn open_main(&mut self, sim: &mut Sim, keys: [Key; 2]) -> bool {
        let answer = [&[0x01, 0x01][..], &keys[1].0].concat();
        let last = [&[0x01, 0x01][..], &keys[0].0, &keys[1].0].concat();
        self.open(sim, [&[0x01, 0x01], &answer, &last])
    }

    /// As a subflow of the connection whose server has this key.
    pub fn open_join(&mut self, sim: &mut Sim, server: Key) -> bool {
        let syn = [&[0x10, self.interface][..], &server.token().0.to_be_bytes(), &[1, 2, 3, 4]].concat();
        let answer = [&[0x10, 0][..], &[7; 8], &[5, 6, 7, 8]].concat();
        let last = [&[0x10, 0][..], &[9; 20]].concat();
        self.open(sim, [&syn, &answer, &last])
    }

    pub fn data(&self, host: usize) -> Draft {
        Draft { payload: vec![7; PAYLOAD], ..self.says(host, Flags::ACK) }
    }

    /// Both ends end it.
    pub fn close(&mut self, sim: &mut Sim) {
        for host in [0, 1] {
            let fin = self.says(host, FIN_ACK);
            self.send(sim, host, &fin);
            sim.run(Duration::from_millis(30));
        }
        let last = self.says(0, Flags::ACK);
        self.send(sim, 0, &last);
        sim.run(Duration::from_millis(30));
    }
}

/// A connection with a main flow and as many subflows.
pub fn connect(sim: &mut Sim, subflows: u8, keys: [Key; 2]) -> Vec<Flow> {
    let mut flows = vec![Flow::new(1, 5001)];
    assert!(flows[0].open_main(sim, keys), "the main flow is there");
    for interface in 2..2 + subflows {
        let mut flow = Flow::new(interface, 5000 + u16::from(interface));
        assert!(flow.open_join(sim, keys[1]), "subflow {interface} is there");
        flows.push(flow);
    }
    flows
}

/// Talks for so long: each flow's end `host` sends data at a pace, whatever comes back; the other end acknowledges what
/// arrives. Says when data arrived, by flow.
pub fn talk(sim: &mut Sim, flows: &mut [Flow], host: usize, time: Duration) -> Vec<Vec<Time>> {
    let end = sim.now + time;
    let mut arrived = vec![Vec::new(); flows.len()];
    let mut looked = sim.outer[1 - host].delivered.len();
    while sim.now < end {
        for flow in flows.iter_mut() {
            let data = flow.data(host);
            flow.send(sim, host, &data);
        }
        sim.run(PACE);
        let new: Vec<Vec<u8>> =
            sim.outer[1 - host].delivered[looked..].iter().map(|(_, packet)| packet.clone()).collect();
        looked += new.len();
        for packet in new {
            let segment = Segment::parse(&packet).unwrap();
            let client = if host == 0 { segment.source } else { segment.destination };
            let is_it = |flow: &Flow| flow.says(1 - host, Flags::ACK).is_between(client);
            let Some(at) = flows.iter().position(is_it) else { continue };
            if segment.payload > 0 {
                arrived[at].push(sim.now);
                let mut answer = flows[at].says(1 - host, Flags::ACK);
                answer.acknowledgment = segment.end().0;
                sim.send(1 - host, flows[at].interface(1 - host), &answer);
            }
        }
    }
    arrived
}

/// The longest time without an arrival, from `from` on.
pub fn longest_gap(arrived: &[Time], from: Time, to: Time) -> Duration {
    let inside = arrived.iter().copied().filter(|at| *at >= from && *at <= to);
    let times: Vec<Time> = std::iter::once(from).chain(inside).chain([to]).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
}
