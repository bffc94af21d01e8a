//! A tiny deterministic network under virtual time, for controllers alone: senders with window,
//! pacer and sampler share one bottleneck with a drop-tail queue.
//!
//! 1. `Sender::pump` sends while window and pacer allow; the packet joins the link's queue, or is
//!    dropped (random loss, full queue).
//! 2. The link serves one packet at a time at its present rate; then delay and jitter, in order.
//! 3. The receiver acknowledges every fourth packet, or after a quarter of the round trip.
//! 4. The sender takes the round trip, declares losses (RFC 9002 section 6.1), and tells its controller.

mod sender;

use self::sender::Sender;
use super::{Controller, PathSnapshot};
use crate::units::{ByteCount, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

pub(super) const MTU: ByteCount = ByteCount(1_400);
const ACK_EVERY: usize = 4;
const LEAST_BUFFER_PACKETS: u64 = 6;

/// One bottleneck. Rate in Mbit/s, times in ms, buffer in bandwidth-delay products, loss as a share.
#[derive(Copy, Clone, Debug)]
pub(super) struct Link {
    pub(super) mbits: f64,
    pub(super) rtt: f64,
    pub(super) buffer: f64,
    pub(super) loss: f64,
    pub(super) jitter: f64,
}

impl Link {
    pub(super) const fn new(mbits: f64, rtt: f64, buffer: f64) -> Self {
        Link { mbits, rtt, buffer, loss: 0.0, jitter: 0.0 }
    }

    pub(super) const fn loss(self, percent: f64) -> Self {
        Link { loss: percent / 100.0, ..self }
    }

    pub(super) const fn jitter(self, jitter: f64) -> Self {
        Link { jitter, ..self }
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_bits((self.mbits * 1e6) as u64)
    }

    pub(super) fn bdp(&self) -> ByteCount {
        self.rate().bytes_in(millis(self.rtt))
    }
}

pub(super) fn millis(ms: f64) -> Duration {
    Duration::from_nanos((ms * 1e6) as u64)
}

/// The next number in [0, 1) of a SplitMix64 sequence: the link's noise, apart from the controller's.
pub(super) fn noise(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Served,
    Arrive { flow: usize, number: u64 },
    AckTimer { flow: usize },
    Ack { flow: usize, frame: usize },
    Pump { flow: usize },
    Probe { flow: usize },
}

pub(super) struct Bench {
    link: Link,
    rate: Rate,
    buffer: u64,
    queue: VecDeque<(usize, u64, Time)>,
    serving: bool,
    last_arrival: Time,
    noise: u64,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    frames: Vec<Vec<u64>>,
    coupled: Vec<usize>,
    serial: u64,
    pub(super) now: Time,
    pub(super) flows: Vec<Sender>,
    /// Waiting times of the packets served, for mean and worst, since `measure_from`.
    pub(super) measure_from: Time,
    waited: f64,
    served: u64,
    pub(super) worst_wait: Duration,
}

impl Bench {
    pub(super) fn new(link: Link, seed: u64) -> Self {
        let rate = link.rate();
        let buffer = link.bdp().scale(link.buffer).0;
        Bench {
            link,
            rate,
            buffer: buffer.max(MTU.0 * LEAST_BUFFER_PACKETS),
            queue: VecDeque::new(),
            serving: false,
            last_arrival: Time::ZERO,
            noise: seed,
            events: BinaryHeap::new(),
            frames: Vec::new(),
            coupled: Vec::new(),
            serial: 0,
            now: Time::from_nanos(1_000_000_000),
            flows: Vec::new(),
            measure_from: Time::ZERO,
            waited: 0.0,
            served: 0,
            worst_wait: Duration::ZERO,
        }
    }

    /// Adds a flow that starts after `start`, with everything to send.
    pub(super) fn flow(mut self, control: Box<dyn Controller>, start: f64) -> Self {
        let at = self.now + millis(start);
        self.flows.push(Sender::new(control, at));
        let flow = self.flows.len() - 1;
        self.push(at, Event::Pump { flow });
        self
    }

    /// Flows that know each other, as the paths of a session do.
    pub(super) fn coupled(mut self, flows: &[usize]) -> Self {
        self.coupled = flows.to_vec();
        self
    }

    /// From now on `flow` offers this rate (none: all it can send).
    pub(super) fn offer(&mut self, flow: usize, rate: Option<Rate>) {
        let sender = &mut self.flows[flow];
        sender.offer = rate;
        sender.offered = 0.0;
        sender.offered_at = self.now;
        sender.pump_at = self.now;
        self.push(self.now, Event::Pump { flow });
    }

    /// The link's rate changes now, to this part of what it was built with.
    pub(super) fn scale_rate(&mut self, factor: f64) {
        self.rate = self.link.rate().scale(factor);
    }

    pub(super) fn set_loss(&mut self, percent: f64) {
        self.link.loss = percent / 100.0;
    }

    /// Mean time in the queue since `measure_from`.
    pub(super) fn mean_wait(&self) -> Duration {
        millis(self.waited / self.served.max(1) as f64)
    }

    /// The share of the link's built rate that all flows got since `measure_from`, until now.
    pub(super) fn share(&self) -> f64 {
        self.flows.iter().map(|f| self.share_of(f, self.measure_from, self.now)).sum()
    }

    pub(super) fn share_of(&self, flow: &Sender, from: Time, to: Time) -> f64 {
        let tenth = |t: Time| (t.as_nanos() / 100_000_000) as usize;
        let bytes: u64 = flow.tenths.iter().take(tenth(to)).skip(tenth(from)).sum();
        bytes as f64 / self.link.rate().bytes_in(to.since(from)).0 as f64
    }

    /// Starts measuring now.
    pub(super) fn measure(&mut self) {
        self.measure_from = self.now;
        (self.waited, self.served, self.worst_wait) = (0.0, 0, Duration::ZERO);
    }

    pub(super) fn run(&mut self, seconds: f64) {
        self.run_while(seconds, |_| true);
    }

    /// Runs for `seconds`, or until `go` says no after some event; whether it said no.
    pub(super) fn run_while(&mut self, seconds: f64, mut go: impl FnMut(&mut Bench) -> bool) -> bool {
        let end = self.now + millis(seconds * 1e3);
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            self.step(event);
            if !go(self) {
                return true;
            }
        }
        self.now = end;
        false
    }

    fn push(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Served => self.on_served(),
            Event::Arrive { flow, number } => self.on_arrive(flow, number),
            Event::AckTimer { flow } => {
                self.flows[flow].ack_timer = false;
                self.acknowledge(flow);
            }
            Event::Ack { flow, frame } => {
                let numbers = std::mem::take(&mut self.frames[frame]);
                self.on_frame(flow, &numbers);
                self.pump(flow);
            }
            Event::Pump { flow } if self.flows[flow].pump_at <= self.now => self.pump(flow),
            Event::Pump { .. } => {}
            Event::Probe { flow } => self.on_probe(flow),
        }
    }

    fn pump(&mut self, flow: usize) {
        loop {
            let sender = &mut self.flows[flow];
            sender.pump_at = Time::NEVER;
            if sender.in_flight + MTU > sender.control.window() {
                return;
            }
            let ready = sender.pacer.ready_at(self.now, MTU);
            let wanted = sender.wanted_at(self.now);
            if ready > self.now || wanted > self.now {
                if ready <= self.now {
                    sender.sampler.mark_app_limited(sender.in_flight);
                }
                let at = ready.max(wanted);
                if at < Time::NEVER {
                    sender.pump_at = at;
                    self.push(at, Event::Pump { flow });
                }
                return;
            }
            let limited = sender.take_one(self.now);
            self.transmit(flow, limited);
        }
    }

    fn transmit(&mut self, flow: usize, limited: bool) {
        let now = self.now;
        let number = self.flows[flow].transmit(now, limited);
        self.arm_probe(flow);
        if noise(&mut self.noise) < self.link.loss {
            return;
        }
        if (self.queue.len() as u64) * MTU.0 < self.buffer + MTU.0 {
            self.queue.push_back((flow, number, now));
            self.serve();
        }
    }

    fn serve(&mut self) {
        if !self.serving && !self.queue.is_empty() {
            self.serving = true;
            self.push(self.now + self.rate.time_for(MTU), Event::Served);
        }
    }

    fn on_served(&mut self) {
        self.serving = false;
        let Some((flow, number, since)) = self.queue.pop_front() else {
            return;
        };
        let waited = self.now.since(since);
        self.waited += waited.as_secs_f64() * 1e3;
        self.served += 1;
        self.worst_wait = self.worst_wait.max(waited);
        let jitter = millis(self.link.jitter * noise(&mut self.noise));
        let arrival = (self.now + millis(self.link.rtt / 2.0) + jitter).max(self.last_arrival);
        self.last_arrival = arrival;
        self.push(arrival, Event::Arrive { flow, number });
        self.serve();
    }

    fn on_arrive(&mut self, flow: usize, number: u64) {
        let tenth = (self.now.as_nanos() / 100_000_000) as usize;
        let quarter = millis(self.link.rtt / 4.0);
        let sender = &mut self.flows[flow];
        if sender.tenths.len() <= tenth {
            sender.tenths.resize(tenth + 1, 0);
        }
        sender.tenths[tenth] += MTU.0;
        sender.received.push(number);
        if sender.received.len() >= ACK_EVERY {
            self.acknowledge(flow);
        } else if !sender.ack_timer {
            sender.ack_timer = true;
            self.push(self.now + quarter, Event::AckTimer { flow });
        }
    }

    fn acknowledge(&mut self, flow: usize) {
        let numbers = std::mem::take(&mut self.flows[flow].received);
        if numbers.is_empty() {
            return;
        }
        self.frames.push(numbers);
        let frame = self.frames.len() - 1;
        self.push(self.now + millis(self.link.rtt / 2.0), Event::Ack { flow, frame });
    }

    fn on_frame(&mut self, flow: usize, numbers: &[u64]) {
        let beside = self.coupled.iter().filter(|other| self.coupled.contains(&flow) && **other != flow);
        let siblings: Vec<PathSnapshot> = beside.filter_map(|other| self.flows[*other].control.coupling()).collect();
        if self.flows[flow].on_frame(self.now, numbers, &siblings) {
            self.arm_probe(flow);
        }
    }

    fn on_probe(&mut self, flow: usize) {
        let sender = &mut self.flows[flow];
        sender.probe_armed = false;
        let due = sender.probe_at;
        if due <= self.now {
            self.transmit(flow, false);
            self.pump(flow);
        } else if due < Time::NEVER {
            sender.probe_armed = true;
            self.push(due, Event::Probe { flow });
        }
    }

    fn arm_probe(&mut self, flow: usize) {
        let now = self.now;
        let fallback = millis(self.link.rtt * 3.0 + 100.0);
        let sender = &mut self.flows[flow];
        if sender.in_flight == ByteCount::ZERO {
            sender.probe_at = Time::NEVER;
            return;
        }
        let wait = sender.rtt.map_or(fallback, |r| r.smoothed + r.variance * 4 + millis(25.0));
        sender.probe_at = now + wait;
        if !std::mem::replace(&mut sender.probe_armed, true) {
            self.push(now + wait, Event::Probe { flow });
        }
    }
}

/// Runs one controller on `link` for `seconds` after `warmup`; its share of the rate and mean wait.
pub(super) fn alone(link: Link, control: Box<dyn Controller>, warmup: f64, seconds: f64) -> Bench {
    let mut bench = Bench::new(link, 7).flow(control, 0.0);
    bench.run(warmup);
    bench.measure();
    bench.run(seconds);
    bench
}
