//! Flows that keep a tunnel busy, and what became of every packet of them.
//!
//! 1. A [`Source`] sends packets of one or many flows: as many as keep the portal's queue filled, or
//!    at a pace.
//! 2. Each is written down in the [`Ledger`] that it shares with its [`Sink`].
//! 3. The sink checks every byte and writes down what came, when, and in which order.

use super::packets::{self, Pattern, TCP_HEADERS, UDP_HEADERS};
use super::{Host, Ingress};
use crate::net::spec::mbit_rate;
use hawser_core::packet::{Gso, Offload};
use hawser_core::units::{ByteCount, Rate, Time};
use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

/// TSO super-packets are at most this long, bytes: what Linux makes for IPv4.
const SUPER_PACKET: usize = 65_000;
/// A paced source that was late catches up at most this many packets at once.
const CATCH_UP: u32 = 4;

/// How much a source wants to send.
#[derive(Copy, Clone, Debug)]
pub enum Demand {
    /// As much as keeps this many bytes queued at the portal's ingress.
    Backlog(ByteCount),
    /// At this rate of inner packets.
    Pace(Rate),
}

/// What a source does. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// How much.
    pub demand: Demand,
    /// Flows, in turn.
    pub flows: u16,
    /// From then on.
    pub from: Time,
    /// Until then.
    pub until: Time,
    /// Bytes of an inner packet; zero: what the tunnel takes at most.
    pub size: usize,
    /// Segments of a TCP super-packet; zero: UDP, one means single TCP packets.
    pub train: u16,
}

impl Plan {
    /// One greedy TCP-like flow with this much queued.
    pub fn greedy(bytes: u64) -> Self {
        let demand = Demand::Backlog(ByteCount(bytes));
        Plan { demand, flows: 1, from: Time::ZERO, until: Time::NEVER, size: 0, train: 1 }
    }

    /// UDP packets of `size` bytes at this many Mbit/s.
    pub fn steady(mbit: f64, size: usize) -> Self {
        let demand = Demand::Pace(mbit_rate(mbit));
        Plan { demand, flows: 1, from: Time::ZERO, until: Time::NEVER, size, train: 0 }
    }
}

/// A packet that came. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// How long after it was sent.
    pub delay: Duration,
    /// Its flow.
    pub flow: u16,
    /// Which packet of the flow.
    pub index: u32,
    /// Bytes of the inner packet.
    pub len: u32,
}

#[derive(Copy, Clone)]
struct Sent {
    offset: u64,
    at: Time,
    len: u32,
    came: u8,
}

/// All packets of a source. Empty at first; source and sink share it.
#[derive(Default)]
pub struct Ledger {
    flows: Vec<Vec<Sent>>,
    /// Everything that came and was as it should be, in order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Packets that came and never were sent, or whose bytes are wrong.
    pub corrupt: u64,
    /// Packets that came again.
    pub duplicates: u64,
    pattern: Pattern,
}

impl Ledger {
    fn send(&mut self, flow: u16, sent: Sent) {
        let flow = usize::from(flow);
        if self.flows.len() <= flow {
            self.flows.resize_with(flow + 1, Vec::new);
        }
        self.flows[flow].push(sent);
    }

    /// A packet came: `offset` gives its lower 32 bits, `payload` its bytes.
    fn come(&mut self, now: Time, flow: u16, offset: u32, payload: &[u8], len: usize) {
        let Some(sent) = self.flows.get_mut(usize::from(flow)) else { return self.corrupt += 1 };
        // Offsets below 4 GiB are whole; no simulation sends more in a flow.
        let found = sent.binary_search_by_key(&u64::from(offset), |sent| sent.offset);
        let Ok(index) = found else { return self.corrupt += 1 };
        let packet = &mut sent[index];
        let whole = packet.len as usize == len && self.pattern.bytes(flow, packet.offset, payload.len()) == payload;
        if !whole {
            return self.corrupt += 1;
        }
        packet.came = packet.came.saturating_add(1);
        if packet.came > 1 {
            return self.duplicates += 1;
        }
        let (delay, index) = (now.since(packet.at), index as u32);
        self.arrivals.push(Arrival { at: now, delay, flow, index, len: len as u32 });
    }

    /// Packets sent.
    pub fn sent(&self) -> u64 {
        self.flows.iter().map(|flow| flow.len() as u64).sum()
    }

    /// Bytes of inner packets that came from `from` to `to`.
    pub fn bytes_between(&self, from: Time, to: Time) -> u64 {
        self.between(from, to).map(|arrival| u64::from(arrival.len)).sum()
    }

    /// What came from `from` to `to`.
    pub fn between(&self, from: Time, to: Time) -> impl Iterator<Item = &Arrival> {
        let start = self.arrivals.partition_point(|arrival| arrival.at < from);
        self.arrivals[start..].iter().take_while(move |arrival| arrival.at < to)
    }

    /// The longest time from `from` to `to` in which nothing came.
    pub fn longest_gap(&self, from: Time, to: Time) -> Duration {
        let mut last = from;
        let mut longest = Duration::ZERO;
        for arrival in self.between(from, to) {
            longest = longest.max(arrival.at.since(last));
            last = arrival.at;
        }
        longest.max(to.since(last))
    }

    /// When packets came behind a later one of their flow.
    pub fn out_of_order(&self) -> Vec<Time> {
        let mut newest: Vec<u32> = vec![0; self.flows.len()];
        let late = self.arrivals.iter().filter(|arrival| {
            let newest = &mut newest[usize::from(arrival.flow)];
            *newest = arrival.index.max(*newest);
            arrival.index < *newest
        });
        late.map(|arrival| arrival.at).collect()
    }

    /// The delay that `share` (0 to 1) of the packets that came from `from` to `to` stayed below.
    pub fn delay_quantile(&self, from: Time, to: Time, share: f64) -> Duration {
        let mut delays: Vec<Duration> = self.between(from, to).map(|arrival| arrival.delay).collect();
        delays.sort_unstable();
        let at = (delays.len() as f64 * share) as usize;
        delays.get(at.min(delays.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// The share of packets sent that came.
    pub fn delivered(&self) -> f64 {
        self.arrivals.len() as f64 / (self.sent() as f64).max(1.0)
    }
}

/// Sends flows. Nothing is sent at first; its world owns it.
pub struct Source {
    plan: Plan,
    from: Ipv4Addr,
    to: Ipv4Addr,
    ledger: Rc<RefCell<Ledger>>,
    offsets: Vec<u64>,
    turn: u16,
    next: Time,
}

impl Source {
    /// A source at `from` that writes to `ledger`.
    pub fn new(plan: Plan, from: Ipv4Addr, to: Ipv4Addr, ledger: Rc<RefCell<Ledger>>) -> Self {
        let offsets = vec![0; usize::from(plan.flows)];
        Source { plan, from, to, ledger, offsets, turn: 0, next: plan.from }
    }

    /// One packet or super-packet of the flow whose turn it is. Tells its bytes.
    fn send(&mut self, now: Time, ingress: &mut Ingress<'_>) -> usize {
        let size = if self.plan.size == 0 { ingress.mtu() } else { self.plan.size };
        let flow = self.turn;
        self.turn = (self.turn + 1) % self.plan.flows;
        let headers = if self.plan.train == 0 { UDP_HEADERS + 4 } else { TCP_HEADERS };
        let piece = size - headers;
        let most = ((SUPER_PACKET - headers) / piece).max(1);
        let pieces = usize::from(self.plan.train.max(1)).min(most);
        let offset = self.offsets[usize::from(flow)];
        self.offsets[usize::from(flow)] += (piece * pieces) as u64;
        let mut ledger = self.ledger.borrow_mut();
        for at in 0..pieces {
            let offset = offset + (at * piece) as u64;
            ledger.send(flow, Sent { offset, at: now, len: size as u32, came: 0 });
        }
        let payload = piece * pieces;
        let bytes = ledger.pattern.bytes(flow, offset, payload);
        let (from, to) = (self.from, self.to);
        if self.plan.train == 0 {
            ingress.send(Offload::default(), |out| {
                packets::ipv4(out, from, to, packets::UDP, 12 + payload);
                packets::udp(out, flow, 4 + payload);
                out[UDP_HEADERS..UDP_HEADERS + 4].copy_from_slice(&(offset as u32).to_be_bytes());
                out[headers..headers + payload].copy_from_slice(bytes);
                headers + payload
            });
        } else {
            let gso = if pieces > 1 { Gso::TcpV4 } else { Gso::None };
            let offload = Offload { needs_csum: true, csum_start: 20, csum_offset: 16, gso, gso_size: piece as u16 };
            ingress.send(offload, |out| {
                packets::ipv4(out, from, to, packets::TCP, 20 + payload);
                packets::tcp(out, flow, offset as u32);
                out[headers..headers + payload].copy_from_slice(bytes);
                headers + payload
            });
        }
        headers + payload
    }
}

impl Host for Source {
    fn receive(&mut self, _: Time, _: &[u8], _: bool) {}

    fn poll(&mut self, now: Time, ingress: &mut Ingress<'_>) {
        if now < self.plan.from || now >= self.plan.until {
            return;
        }
        let open = ingress.is_open();
        match self.plan.demand {
            Demand::Backlog(ByteCount(backlog)) => {
                // Whatever empties the queue polls it.
                self.next = Time::NEVER;
                while open && ingress.queued() < backlog {
                    self.send(now, ingress);
                }
            }
            Demand::Pace(rate) => {
                let interval = rate.time_for(ByteCount(self.plan.size as u64));
                self.next = self.next.max(now - interval * CATCH_UP);
                while self.next <= now {
                    if open {
                        self.send(now, ingress);
                    }
                    self.next = self.next + interval;
                }
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        (self.next < self.plan.until).then_some(self.next)
    }
}

/// Takes what a [`Source`] sends. Its world owns it.
pub struct Sink(pub Rc<RefCell<Ledger>>);

impl Host for Sink {
    fn receive(&mut self, now: Time, packet: &[u8], _: bool) {
        let mut ledger = self.0.borrow_mut();
        match packet.get(9) {
            Some(&packets::TCP) if packet.len() > TCP_HEADERS => {
                let (flow, offset) = (packets::flow_of(packet), packets::sequence_of(packet));
                ledger.come(now, flow, offset, &packet[TCP_HEADERS..], packet.len());
            }
            Some(&packets::UDP) if packet.len() > UDP_HEADERS + 4 => {
                let at = &packet[UDP_HEADERS..UDP_HEADERS + 4];
                let offset = u32::from_be_bytes([at[0], at[1], at[2], at[3]]);
                ledger.come(now, packets::flow_of(packet), offset, &packet[UDP_HEADERS + 4..], packet.len());
            }
            _ => ledger.corrupt += 1,
        }
    }

    fn poll(&mut self, _: Time, _: &mut Ingress<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}
