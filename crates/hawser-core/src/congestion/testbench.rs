//! A tiny deterministic network under virtual time, for controllers alone: senders with window,
//! pacer and sampler share one bottleneck with a drop-tail queue.
//!
//! 1. `Sender::pump` sends while window and pacer allow; the packet joins the link's queue, or is
//!    dropped (random loss, full queue).
//! 2. The link serves one packet at a time at its present rate; then delay and jitter, in order.
//! 3. The receiver acknowledges every fourth packet, or after a quarter of the round trip.
//! 4. The sender takes the round trip, declares losses (RFC 9002 section 6.1), and tells its controller.

use super::pacer::{Pacer, initial_rate};
use super::sampler::{DeliverySampler, Stamp};
use super::{AckEvent, Controller, LossEvent, RttSnapshot};
use crate::units::{ByteCount, Rate, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

pub(super) const MTU: ByteCount = ByteCount(1_400);
const ACK_EVERY: usize = 4;
const LEAST_BUFFER_PACKETS: u64 = 6;
/// RFC 9002 section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;

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
        Link {
            mbits,
            rtt,
            buffer,
            loss: 0.0,
            jitter: 0.0,
        }
    }

    pub(super) const fn loss(self, percent: f64) -> Self {
        Link {
            loss: percent / 100.0,
            ..self
        }
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

/// splitmix64: deterministic noise for the link, apart from the controller's own.
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
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

#[derive(Clone, Copy)]
struct Sent {
    at: Time,
    stamp: Stamp,
    limited: bool,
    open: bool,
}

/// A flow: how much it wants, and what it got.
pub(super) struct Sender {
    pub(super) control: Box<dyn Controller>,
    pacer: Pacer,
    sampler: DeliverySampler,
    sent: VecDeque<Sent>,
    base: u64,
    largest_acked: Option<u64>,
    in_flight: ByteCount,
    rtt: Option<RttSnapshot>,
    pump_at: Time,
    probe_at: Time,
    probe_armed: bool,
    /// When it may send and how much it offers, as a rate (none: all it can) from a time on.
    offers: Vec<(Time, Option<Rate>)>,
    offered: f64,
    offered_at: Time,
    received: Vec<u64>,
    ack_timer: bool,
    pub(super) delivered: u64,
    /// Bytes delivered in each tenth of a second.
    pub(super) tenths: Vec<u64>,
}

pub(super) struct Bench {
    link: Link,
    rate: Rate,
    buffer: u64,
    queue: VecDeque<(usize, u64, Time)>,
    serving: bool,
    last_arrival: Time,
    noise: Noise,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    frames: Vec<Vec<u64>>,
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
            noise: Noise(seed),
            events: BinaryHeap::new(),
            frames: Vec::new(),
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
        self.flows.push(Sender {
            control,
            pacer: Pacer::new(MTU),
            sampler: DeliverySampler::new(),
            sent: VecDeque::new(),
            base: 0,
            largest_acked: None,
            in_flight: ByteCount::ZERO,
            rtt: None,
            pump_at: at,
            probe_at: Time::NEVER,
            probe_armed: false,
            offers: vec![(at, None)],
            offered: 0.0,
            offered_at: at,
            received: Vec::new(),
            ack_timer: false,
            delivered: 0,
            tenths: Vec::new(),
        });
        let flow = self.flows.len() - 1;
        self.push(at, Event::Pump { flow });
        self
    }

    /// From now on `flow` offers this rate (none: all it can send).
    pub(super) fn offer(&mut self, flow: usize, rate: Option<Rate>) {
        let sender = &mut self.flows[flow];
        sender.offers.push((self.now, rate));
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
        self.flows
            .iter()
            .map(|f| self.share_of(f, self.measure_from, self.now))
            .sum()
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
    pub(super) fn run_while(
        &mut self,
        seconds: f64,
        mut go: impl FnMut(&mut Bench) -> bool,
    ) -> bool {
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
        let sender = &mut self.flows[flow];
        let stamp = sender.sampler.on_sent(now, MTU, sender.in_flight, limited);
        let filled = sender.in_flight + MTU + MTU > sender.control.window();
        sender.in_flight += MTU;
        sender.pacer.on_sent(now, MTU);
        sender.control.on_sent(now, MTU, sender.in_flight, limited);
        sender.sent.push_back(Sent {
            at: now,
            stamp,
            limited: limited && !filled,
            open: true,
        });
        let number = sender.base + sender.sent.len() as u64 - 1;
        self.arm_probe(flow);
        if self.noise.unit() < self.link.loss {
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
        let jitter = millis(self.link.jitter * self.noise.unit());
        let arrival = (self.now + millis(self.link.rtt / 2.0) + jitter).max(self.last_arrival);
        self.last_arrival = arrival;
        self.push(arrival, Event::Arrive { flow, number });
        self.serve();
    }

    fn on_arrive(&mut self, flow: usize, number: u64) {
        let tenth = (self.now.as_nanos() / 100_000_000) as usize;
        let quarter = millis(self.link.rtt / 4.0);
        let sender = &mut self.flows[flow];
        sender.delivered += MTU.0;
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
        self.push(
            self.now + millis(self.link.rtt / 2.0),
            Event::Ack { flow, frame },
        );
    }

    fn on_frame(&mut self, flow: usize, numbers: &[u64]) {
        let now = self.now;
        let sender = &mut self.flows[flow];
        let prior_in_flight = sender.in_flight;
        let mut acked = ByteCount::ZERO;
        let mut newest: Option<Sent> = None;
        for &number in numbers {
            let Some(index) = number.checked_sub(sender.base) else {
                continue;
            };
            let packet = &mut sender.sent[index as usize];
            if !std::mem::take(&mut packet.open) {
                continue;
            }
            newest = Some(*packet);
            sender
                .sampler
                .on_packet_acked(packet.stamp, packet.at, MTU, now);
            acked += MTU;
            sender.in_flight -= MTU;
            sender.largest_acked = sender.largest_acked.max(Some(number));
        }
        let Some(newest) = newest else { return };
        sender.update_rtt(now.since(newest.at));
        let rtt = sender.rtt.expect("just updated");
        sender.detect_losses(now);
        let rate = sender.sampler.take_sample(now, rtt.min);
        sender.control.on_ack(
            &AckEvent {
                now,
                acked,
                largest_sent_at: newest.at,
                prior_in_flight,
                in_flight: sender.in_flight,
                delivered: sender.sampler.delivered(),
                rtt,
                rate,
                app_limited: newest.limited,
            },
            &[],
        );
        let rate = sender.control.pacing_rate();
        sender
            .pacer
            .set_rate(rate.unwrap_or_else(|| initial_rate(sender.control.window(), rtt.smoothed)));
        self.arm_probe(flow);
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
        let wait = sender
            .rtt
            .map_or(fallback, |r| r.smoothed + r.variance * 4 + millis(25.0));
        sender.probe_at = now + wait;
        if !std::mem::replace(&mut sender.probe_armed, true) {
            self.push(now + wait, Event::Probe { flow });
        }
    }
}

impl Sender {
    /// When the next packet is there to be sent.
    fn wanted_at(&self, now: Time) -> Time {
        match self.offers.last().expect("one at least").1 {
            None => now,
            Some(Rate::ZERO) => Time::NEVER,
            Some(rate) => {
                let credit =
                    self.offered + rate.0 as f64 * now.since(self.offered_at).as_secs_f64();
                let missing = (MTU.0 as f64 - credit).max(0.0);
                now + Duration::from_nanos((missing * 1e9 / rate.0 as f64).ceil() as u64)
            }
        }
    }

    /// Takes a packet of what is offered; whether nothing is left.
    fn take_one(&mut self, now: Time) -> bool {
        let Some(rate) = self.offers.last().expect("one at least").1 else {
            return false;
        };
        let grown = self.offered + rate.0 as f64 * now.since(self.offered_at).as_secs_f64();
        self.offered = (grown - MTU.0 as f64).min(MTU.0 as f64 * 64.0);
        self.offered_at = now;
        self.offered < MTU.0 as f64
    }

    /// RFC 9002 section 5.
    fn update_rtt(&mut self, latest: Duration) {
        let rtt = self.rtt.get_or_insert(RttSnapshot {
            latest,
            smoothed: latest,
            variance: latest / 2,
            min: latest,
        });
        rtt.latest = latest;
        rtt.min = rtt.min.min(latest);
        rtt.variance = (rtt.variance * 3 + rtt.smoothed.abs_diff(latest)) / 4;
        rtt.smoothed = (rtt.smoothed * 7 + latest) / 8;
    }

    fn detect_losses(&mut self, now: Time) {
        let (Some(largest), Some(rtt)) = (self.largest_acked, self.rtt) else {
            return;
        };
        let patience = rtt.latest.max(rtt.smoothed) * 9 / 8;
        let mut lost = ByteCount::ZERO;
        let mut newest: Option<Sent> = None;
        for index in 0..largest.saturating_sub(self.base) {
            let packet = &mut self.sent[index as usize];
            let gone =
                self.base + index + PACKET_THRESHOLD <= largest || packet.at + patience <= now;
            if packet.open && gone {
                packet.open = false;
                lost += MTU;
                newest = Some(*packet);
            }
        }
        while self.sent.front().is_some_and(|packet| !packet.open) {
            self.sent.pop_front();
            self.base += 1;
        }
        let Some(newest) = newest else { return };
        self.in_flight -= lost;
        self.sampler.on_lost(lost);
        self.control.on_loss(&LossEvent {
            now,
            lost,
            largest_sent_at: newest.at,
            in_flight: self.in_flight,
            tx_in_flight: newest.stamp.tx_in_flight(),
            total_lost: self.sampler.lost(),
            persistent: false,
        });
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

pub(super) fn trace(link: Link, seconds: f64, mut act: impl FnMut(&mut Bench, u32)) {
    let mut bench = Bench::new(link, 7).flow(Box::new(super::Bbr::new(MTU, 42)), 0.0);
    let mut last = String::new();
    let mut step = 0;
    while f64::from(step) * 0.1 < seconds {
        act(&mut bench, step);
        step += 1;
        bench.measure();
        let end = bench.now + millis(100.0);
        bench.run_while(0.1, |b| {
            let d = b.flows[0].control.debug();
            let head = d.split(' ').next().unwrap_or("").to_string();
            if head != last {
                println!(
                    "{:.3} {} queue {:.1}ms infl {}",
                    b.now.as_nanos() as f64 / 1e9 - 1.0,
                    d,
                    b.queue.len() as f64 * MTU.0 as f64 * 1e3 / b.rate.0 as f64,
                    b.flows[0].in_flight.0
                );
                last = head;
            }
            true
        });
        let _ = end;
        println!(
            "   t {:.1} share {:.3} wait {:?}",
            f64::from(step) * 0.1,
            bench.share(),
            bench.mean_wait()
        );
    }
}
