//! The sender's part: which symbols there are, and what a repair says of them.
//!
//! 1. `protect`: a packet that leaves becomes a symbol, which is kept while it is in the window.
//! 2. `is_due`: as many packets left as one repair is for, or a flow fell silent behind its last ones.
//! 3. `repair`: the sum of all symbols of the window, each times a coefficient of its own.

use super::gf256::{HALF, add_scaled, coefficient};
use super::symbol::{self, MAX_SYMBOL, SymbolHead};
use crate::treatment::RuleId;
use crate::units::Time;
use crate::wire::{RepairFrame, SymbolNumber};
use std::time::Duration;

/// Symbols of one repair at most.
pub(crate) const WINDOW: usize = RepairFrame::MAX_COUNT as usize;
/// A repair covers what left in this time before it: the 60 ms within which a repair shall have come, less the
/// hosts' and the path's own jitter.
const REACH: Duration = Duration::from_millis(50);
/// Yet at least this many intervals: a flow too thin for two repairs in that time is repaired later.
const LEAST_INTERVALS: usize = 2;
/// But nothing older: no real-time flow has a use for it.
const REACH_MAX: Duration = Duration::from_millis(400);
/// When nothing left for this many of the usual gaps, what left last gets repairs.
const SILENCE_GAPS: u32 = 2;
/// And for this long at least: half of what a repair may take.
const SILENCE_MIN: Duration = Duration::from_millis(25);
/// A longer gap is a pause, and says nothing of the usual one.
const PAUSE: Duration = Duration::from_millis(200);
/// Weight of a new gap in the usual one: 1/8, as of a round trip (RFC 6298 section 2).
const GAP_WEIGHT: u32 = 8;
/// Repairs after a flow's last packet, so that it is as safe as others.
const FLUSHES: u8 = 2;
/// Repairs that may be due at once, after a train.
const DUE_MAX: usize = 8;

/// The window and its repairs. Empty at first, with symbol and repair zero next; one session owns it.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// The symbols, by the low bits of their numbers; made with the first.
    ring: Vec<Kept>,
    next: u64,
    /// Symbols in the ring.
    kept: u64,
    row: u8,
    /// Packets that left and that no repair was sent for.
    owed: usize,
    /// Repairs since the flow fell silent.
    flushes: u8,
    last_sent: Time,
    /// The usual time between two packets.
    gap: Duration,
    /// Something was protected since the last `trim`.
    busy: bool,
}

#[derive(Debug, Default)]
struct Kept {
    sent: Time,
    rule: RuleId,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Step 1: a packet, in two parts, leaves now. Tells the number that its frame carries.
    pub fn protect(
        &mut self,
        now: Time,
        rule: RuleId,
        head: &SymbolHead,
        packet: (&[u8], &[u8]),
        interval: usize,
    ) -> SymbolNumber {
        if self.ring.is_empty() {
            self.ring.resize_with(WINDOW, Kept::default);
        }
        self.note_gap(now);
        let kept = &mut self.ring[place(self.next)];
        (kept.sent, kept.rule) = (now, rule);
        symbol::write(&mut kept.bytes, head, packet.0, packet.1);
        debug_assert!(kept.bytes.len() <= MAX_SYMBOL, "a packet too long to be protected");
        self.owed = (self.owed + 1).min(interval * DUE_MAX);
        (self.flushes, self.busy) = (0, true);
        (self.next, self.kept) = (self.next + 1, (self.kept + 1).min(WINDOW as u64));
        SymbolNumber::of(self.next - 1)
    }

    fn note_gap(&mut self, now: Time) {
        let gap = now.since(self.last_sent);
        self.last_sent = now;
        if gap < PAUSE {
            self.gap = (self.gap * (GAP_WEIGHT - 1) + gap) / GAP_WEIGHT;
        }
    }

    /// Step 2: whether a repair is to be sent now, if there is one for every `interval` packets.
    pub fn is_due(&self, now: Time, interval: usize) -> bool {
        self.owed >= interval || self.silence_ends().is_some_and(|at| at <= now)
    }

    /// When silence calls for a repair.
    pub fn silence_ends(&self) -> Option<Time> {
        let waits = self.flushes < FLUSHES && self.next > 0;
        let silence = (self.gap * SILENCE_GAPS).max(SILENCE_MIN);
        waits.then(|| self.last_sent + silence * (u32::from(self.flushes) + 1))
    }

    /// The numbers of the first symbol that a repair covers now, and of the one behind the last.
    fn window(&self, now: Time, interval: usize) -> (u64, u64) {
        let least = (interval * LEAST_INTERVALS) as u64;
        let belongs = |back: &u64| {
            let age = now.since(self.ring[place(self.next - back)].sent);
            age <= REACH || *back <= least && age <= REACH_MAX
        };
        let count = (1..=self.kept).take_while(belongs).count() as u64;
        (self.next - count, self.next)
    }

    /// The rules of the packets that `repair` would be of now.
    pub fn rules(&self, now: Time, interval: usize) -> impl Iterator<Item = RuleId> + '_ {
        let (first, end) = self.window(now, interval);
        (first..end).map(|number| self.ring[place(number)].rule)
    }

    /// Bytes of the symbol that `repair` would write now; zero when there is nothing to repair.
    pub fn repair_len(&self, now: Time, interval: usize) -> usize {
        let (first, end) = self.window(now, interval);
        (first..end).map(|number| self.ring[place(number)].bytes.len()).max().unwrap_or(0)
    }

    /// Step 3: writes a repair's frame over `out`, which is as long as the frame's head and `repair_len`.
    pub fn repair(&mut self, now: Time, interval: usize, out: &mut [u8]) {
        let (first, end) = self.window(now, interval);
        let count = u8::try_from(end - first).unwrap_or(RepairFrame::MAX_COUNT);
        let (head, sum) = out.split_at_mut(RepairFrame::HEAD_LEN);
        head.copy_from_slice(&RepairFrame::head(SymbolNumber::of(first), count, self.row));
        sum.fill(0);
        for number in first..end {
            add_scaled(sum, coefficient(self.row, number), &self.ring[place(number)].bytes);
        }
        self.row = (self.row + 1) % HALF as u8;
        self.settle(interval);
    }

    /// A repair that was due is sent, or cannot be.
    pub fn settle(&mut self, interval: usize) {
        if self.owed < interval {
            self.flushes = (self.flushes + 1).min(FLUSHES);
        }
        self.owed = self.owed.saturating_sub(interval);
    }

    /// Whether anything was protected lately.
    pub fn is_used(&self) -> bool {
        self.kept > 0
    }

    /// Gives back the buffers if nothing was protected since the last call.
    pub fn trim(&mut self) {
        if !std::mem::take(&mut self.busy) {
            (self.ring, self.kept) = (Vec::new(), 0);
        }
    }

    /// Nothing is protected for now: no repair is due.
    pub fn rest(&mut self) {
        (self.owed, self.flushes) = (0, FLUSHES);
    }
}

fn place(number: u64) -> usize {
    number as usize % WINDOW
}

#[cfg(test)]
mod tests;
