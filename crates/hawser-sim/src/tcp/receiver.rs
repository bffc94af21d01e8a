//! The receiver of a stream.
//!
//! 1. `receive` checks a segment's bytes; segments that follow each other within one poll are one (GRO).
//! 2. Each such run is put in its place ([`Arrived`]); what came in order is counted.
//! 3. It is acknowledged as Linux does: every second segment, at once where something is missing or at the start, a few
//!    selective acknowledgements compressed into one, and the last after 40 ms.

use super::arrived::Arrived;
use super::hosts::Line;
use super::segment::{ACK, BLOCKS, Block, DATA_HEADERS, Header, PSH, SYN, TIMESTAMPS_LEN};
use super::{SCALE, SYN_TIMEOUT, Transfer, stamp, unwrap};
use crate::random::Seeded;
use hawser_core::units::Time;
use std::time::Duration;

/// The window on a SYN, bytes, and at first: what Linux offers before it scales.
const FIRST_WINDOW: u16 = 64_240;
/// The largest window, bytes (`tcp_rmem`).
const WINDOW_MAX: u64 = 6 << 20;
/// The window grows by this multiple of what comes.
const WINDOW_GROWTH: u64 = 2;
/// An acknowledgement is delayed by this (Linux's `TCP_DELACK_MIN`).
const DELAY: Duration = Duration::from_millis(40);
/// The number that goes at once at the start, after a pause and after a duplicate (Linux's `TCP_MAX_QUICKACKS`).
const QUICK: u32 = 16;
/// A pause: longer than the sender's timeout.
const PAUSE: Duration = Duration::from_millis(300);
/// Selective acknowledgements: this number at once, then one in this time or a twentieth of a round trip (Linux's
/// `tcp_comp_sack_*`).
const SELECTIVE_AT_ONCE: u32 = 3;
const SELECTIVE_DELAY: Duration = Duration::from_millis(1);
const SELECTIVE_PART: u32 = 20;
const SELECTIVE_MOST: u32 = 44;
/// The longest run, bytes.
const RUN: u64 = 65_000;
/// What came in order is counted in spans of this.
pub const BIN: Duration = Duration::from_millis(10);

/// Where the connection stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// Its SYN, or the answer to one, is out: since when, and how many were sent.
    Opening(Time, u32),
    Open,
}

/// A receiver. Its host owns it.
pub struct Receiver {
    plan: Transfer,
    ports: (u16, u16),
    phase: Phase,
    first: u32,
    peer_first: u32,
    arrived: Arrived,
    run: Option<(u64, u64, u32)>,
    window: u64,
    edge: u64,
    echo: u32,
    segment: u64,
    acknowledged: u64,
    quick: u32,
    last_came: Time,
    rtt: Duration,
    delayed: Option<Time>,
    compressed: (u64, u32, u32),
    compressing: Option<Time>,
    due: Vec<Header>,
    /// Bytes that came in order, in spans of [`BIN`] from time zero.
    pub bins: Vec<u64>,
    /// When the last byte of a transfer had come.
    pub done: Option<Time>,
    /// Segments whose bytes were not what had been sent.
    pub corrupt: u64,
    /// Acknowledgements sent.
    pub acks: u64,
}

impl Receiver {
    /// A receiver with these ports (its own and the sender's); `seed` decides its sequence numbers.
    pub fn new(plan: Transfer, ports: (u16, u16), seed: u64) -> Self {
        Receiver {
            plan,
            ports,
            phase: Phase::Idle,
            first: Seeded::new(seed).below(1 << 32) as u32,
            peer_first: 0,
            arrived: Arrived::default(),
            run: None,
            window: u64::from(FIRST_WINDOW),
            edge: u64::from(FIRST_WINDOW),
            echo: 0,
            segment: 0,
            acknowledged: 0,
            quick: 0,
            last_came: Time::ZERO,
            rtt: Duration::ZERO,
            delayed: None,
            compressed: (0, 0, 0),
            compressing: None,
            due: Vec::new(),
            bins: Vec::new(),
            done: None,
            corrupt: 0,
            acks: 0,
        }
    }

    /// Bytes that came in order.
    pub fn bytes(&self) -> u64 {
        self.arrived.next
    }

    /// Bytes that came in order between two moments (whole spans of [`BIN`]).
    pub fn bytes_between(&self, from: Time, to: Time) -> u64 {
        let bin = |at: Time| ((at.as_nanos() / BIN.as_nanos() as u64) as usize).min(self.bins.len());
        self.bins[bin(from)..bin(to)].iter().sum()
    }

    /// The longest time between two moments in which nothing came in order (whole spans of [`BIN`]).
    pub fn longest_gap(&self, from: Time, to: Time) -> Duration {
        let bin = |at: Time| ((at.as_nanos() / BIN.as_nanos() as u64) as usize).min(self.bins.len());
        let empty = self.bins[bin(from)..bin(to)].split(|bytes| *bytes > 0).map(<[u64]>::len).max().unwrap_or(0);
        BIN * empty as u32
    }

    /// Step 1. `check` says whether bytes are those of the stream at that position.
    pub fn receive(&mut self, now: Time, header: &Header, data: &[u8], check: impl FnOnce(u64, &[u8]) -> bool) {
        if header.has(SYN) {
            return self.on_syn(now, header);
        }
        if let Phase::Opening(since, times) = self.phase {
            self.open(now, since, times);
        }
        let start = unwrap(header.sequence, self.peer_first, self.arrived.next);
        if data.is_empty() || start < 0 || self.phase != Phase::Open {
            return;
        }
        let (start, end) = (start as u64, start as u64 + data.len() as u64);
        if !check(start, data) {
            self.corrupt += 1;
            return;
        }
        self.segment = self.segment.max(data.len() as u64);
        match &mut self.run {
            Some((from, to, _)) if *to == start && end - *from <= RUN => *to = end,
            _ => {
                self.flush(now);
                self.run = Some((start, end, header.timestamps.0));
            }
        }
        if header.has(PSH) {
            self.flush(now);
        }
    }

    fn on_syn(&mut self, now: Time, header: &Header) {
        self.peer_first = header.sequence.wrapping_add(1);
        self.echo = header.timestamps.0;
        match self.phase {
            Phase::Idle => self.phase = Phase::Opening(now, 0),
            Phase::Opening(since, times) if header.has(ACK) => {
                self.open(now, since, times);
                self.acknowledge(now, None);
            }
            // Its answer was lost.
            Phase::Open if header.has(ACK) => self.acknowledge(now, None),
            _ => {}
        }
    }

    fn open(&mut self, now: Time, since: Time, times: u32) {
        if times == 1 {
            self.rtt = now.since(since);
        }
        self.phase = Phase::Open;
    }

    /// Step 2.
    fn flush(&mut self, now: Time) {
        let Some((start, end, stamp)) = self.run.take() else { return };
        let (before, gaps) = (self.arrived.next, !self.arrived.ahead.is_empty());
        let twice = self.arrived.put(start, end);
        let next = self.arrived.next;
        if start <= self.acknowledged && next > before {
            self.echo = stamp;
        }
        if before == 0 && next > 0 || now.since(self.last_came) > PAUSE {
            self.quick = QUICK;
        }
        self.last_came = now;
        self.window = (self.window + (end - start) * WINDOW_GROWTH).min(WINDOW_MAX);
        self.edge = self.edge.max(next + self.window);
        self.count(now, next - before);
        if twice.is_some() {
            self.quick = QUICK;
        }
        let filled = gaps && self.arrived.ahead.is_empty();
        self.decide(now, twice, filled);
    }

    fn count(&mut self, now: Time, bytes: u64) {
        let bin = (now.as_nanos() / BIN.as_nanos() as u64) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
        if self.plan.bytes == Some(self.arrived.next) && self.done.is_none() {
            self.done = Some(now);
        }
    }

    /// Step 3.
    fn decide(&mut self, now: Time, twice: Option<(u64, u64)>, filled: bool) {
        let next = self.arrived.next;
        if next - self.acknowledged > self.segment || self.quick > 0 || filled {
            return self.acknowledge(now, twice);
        }
        if self.arrived.ahead.is_empty() {
            self.delayed.get_or_insert(now + DELAY);
            return;
        }
        let (at, at_once, compressed) = &mut self.compressed;
        if *at != next {
            (*at, *at_once) = (next, 0);
        }
        if *at_once < SELECTIVE_AT_ONCE {
            *at_once += 1;
            return self.acknowledge(now, twice);
        }
        *compressed += 1;
        if *compressed >= SELECTIVE_MOST {
            return self.acknowledge(now, twice);
        }
        self.compressing.get_or_insert(now + SELECTIVE_DELAY.min(self.rtt / SELECTIVE_PART));
    }

    fn acknowledge(&mut self, now: Time, twice: Option<(u64, u64)>) {
        let wire = |position: u64| self.peer_first.wrapping_add(position as u32);
        let mut blocks = [Block::default(); BLOCKS];
        let all = twice.iter().chain(&self.arrived.recent);
        for (block, (start, end)) in blocks.iter_mut().zip(all) {
            *block = (wire(*start), wire(*end));
        }
        let window = ((self.edge - self.arrived.next) >> SCALE) as u16;
        self.due.push(Header { window, blocks, ..self.header(now) });
        self.acknowledged = self.arrived.next;
        self.quick = self.quick.saturating_sub(1);
        (self.delayed, self.compressing, self.compressed.2) = (None, None, 0);
    }

    fn header(&self, now: Time) -> Header {
        Header {
            ports: self.ports,
            sequence: self.first,
            ack: self.peer_first.wrapping_add(self.arrived.next as u32),
            flags: ACK,
            timestamps: (stamp(now), self.echo),
            ..Header::default()
        }
    }

    /// Sends what is due.
    pub fn poll(&mut self, now: Time, line: &mut Line<'_, '_>) {
        self.open_if_due(now, line);
        self.flush(now);
        let late = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if late(self.delayed) || late(self.compressing) {
            self.acknowledge(now, None);
        }
        self.acks += self.due.len() as u64;
        self.due.drain(..).for_each(|header| line.send(&header, 0, 0, 0));
    }

    fn open_if_due(&mut self, now: Time, line: &mut Line<'_, '_>) {
        let times = match self.phase {
            Phase::Idle if self.plan.asked && self.plan.from <= now => 1,
            Phase::Opening(_, 0) => 1,
            Phase::Opening(since, times) if since + SYN_TIMEOUT * (1 << (times - 1)) <= now => times + 1,
            _ => return,
        };
        self.phase = Phase::Opening(now, times);
        let mss = (line.mtu() - DATA_HEADERS + TIMESTAMPS_LEN) as u16;
        let header = Header {
            flags: if self.plan.asked { SYN } else { SYN | ACK },
            sequence: self.first.wrapping_sub(1),
            window: FIRST_WINDOW,
            opening: Some((mss, SCALE)),
            ..self.header(now)
        };
        line.send(&header, 0, 0, 0);
    }

    /// When it has something to do by itself.
    pub fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle => self.plan.asked.then_some(self.plan.from),
            Phase::Opening(since, 0) => Some(since),
            Phase::Opening(since, times) => Some(since + SYN_TIMEOUT * (1 << (times - 1))),
            Phase::Open => self.delayed.into_iter().chain(self.compressing).min(),
        }
    }
}
