//! The sequence of one flow bucket.
//!
//! ```text
//!        past: a bit for each, delivered or not     gap      held or passed     gap    held
//!     ------------------------------------------|- - - - - -|===============|- - - - -|====|
//!                                              next                                       end
//! ```
//!
//! `next` is always the start of the first gap; without a gap, `next` and `end` are the same.

use super::Sink;
use super::shelf::Shelf;
use crate::packet::flow::{FLOW_SEQUENCES, GAP_MAX};
use crate::packet::{FlowBucket, FlowSequence};
use crate::units::Time;
use std::collections::VecDeque;

/// Numbers behind `next` of which is known whether they were delivered: at 1 Gbit/s of full
/// packets 100 ms, longer than a repair takes.
pub(super) const PAST: u64 = 8_192;
/// Numbers between `next` and `end` at most: the held packets and gaps as long as a path's outage.
pub(super) const SPAN: u64 = 1 << 16;
/// The full number of sequence zero when a bucket comes into use: one wrap up, so that there are numbers before it.
const FIRST: u64 = FLOW_SEQUENCES as u64;
/// Slots of the smallest ring.
const SMALLEST_RING: usize = 64;
/// A slot whose packet has not arrived.
const ABSENT: u32 = u32::MAX;
/// A slot whose packet was delivered ahead of its turn.
const PASSED: u32 = u32::MAX - 1;

/// Numbers that are missing. `noticed` when the first packet behind it arrived.
#[derive(Copy, Clone, Debug)]
struct Gap {
    start: u64,
    end: u64,
    noticed: Time,
}

/// What a number is to a bucket.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// The one waited for.
    Next,
    /// Ahead of it.
    Ahead,
    /// Given up before; not delivered yet.
    Late,
    /// Delivered or held already.
    Duplicate,
    /// Nobody knows any more.
    TooOld,
}

/// The state drawn above. At first nothing is missing. One owner.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) name: FlowBucket,
    pub(super) next: u64,
    pub(super) end: u64,
    /// None until something is given up: all was delivered. It takes 1 KiB, and most flows lose nothing for good.
    past: Option<Box<[u64; (PAST / 64) as usize]>>,
    /// For each number from `next` to `end`, by its low bits: a place on the shelf, or ABSENT, or PASSED.
    ring: Vec<u32>,
    gaps: VecDeque<Gap>,
    pub(super) held: usize,
    /// The ring was needed since the last `shrink_idle`.
    busy: bool,
    /// When something of it last came or was given up.
    pub(super) used: Time,
}

impl Bucket {
    /// It waits for `next`. What was never sent, or came before a rest, counts as delivered.
    pub(super) fn new(name: FlowBucket, next: FlowSequence) -> Bucket {
        let next = FIRST + u64::from(next.get());
        Bucket {
            name,
            next,
            end: next,
            past: None,
            ring: Vec::new(),
            gaps: VecDeque::new(),
            held: 0,
            busy: false,
            used: Time::ZERO,
        }
    }

    /// What it waits for, as it is sent.
    pub(super) fn sequence(&self) -> FlowSequence {
        FlowSequence::of(self.next)
    }

    /// When the first gap was noticed.
    pub(super) fn waiting_since(&self) -> Option<Time> {
        self.gaps.front().map(|gap| gap.noticed)
    }

    /// What `number` is.
    pub(super) fn standing(&self, number: u64) -> Standing {
        if number > self.next {
            let known = number < self.end && self.slot(number) != ABSENT;
            if known { Standing::Duplicate } else { Standing::Ahead }
        } else if number == self.next {
            Standing::Next
        } else if self.next - number > PAST {
            Standing::TooOld
        } else if self.past.as_ref().is_some_and(|past| past[word(number)] & bit(number) == 0) {
            Standing::Late
        } else {
            Standing::Duplicate
        }
    }

    /// A late packet was delivered.
    pub(super) fn on_late(&mut self, number: u64) {
        self.note_delivered(number);
    }

    /// The packet waited for was delivered: what follows it goes too.
    pub(super) fn on_next(&mut self, now: Time, shelf: &mut Shelf, sink: &mut dyn Sink) {
        self.note_delivered(self.next);
        self.next += 1;
        if let Some(gap) = self.gaps.front_mut() {
            gap.start += 1;
            if gap.start == gap.end {
                self.gaps.pop_front();
                self.run(now, shelf, sink);
            }
        } else {
            self.end = self.next;
        }
    }

    /// A packet ahead of its turn: `place` on the shelf, or `None` when it was delivered. `number`
    /// is less than SPAN ahead.
    pub(super) fn on_ahead(&mut self, now: Time, number: u64, place: Option<u32>) {
        self.busy = true;
        self.reserve(number);
        let slot = self.index(number);
        self.ring[slot] = place.unwrap_or(PASSED);
        self.held += usize::from(place.is_some());
        if number < self.end {
            self.split_gap(number);
            return;
        }
        if number > self.end {
            self.gaps.push_back(Gap { start: self.end, end: number, noticed: now });
        }
        self.end = number + 1;
    }

    fn split_gap(&mut self, number: u64) {
        let at = self.gaps.partition_point(|gap| gap.end <= number);
        let gap = self.gaps[at];
        debug_assert!(gap.start <= number && number < gap.end);
        let (before, after) = (number > gap.start, number + 1 < gap.end);
        match (before, after) {
            (true, _) => self.gaps[at].end = number,
            (false, true) => self.gaps[at].start = number + 1,
            (false, false) => drop(self.gaps.remove(at)),
        }
        if before && after {
            let start = number + 1;
            self.gaps.insert(at + 1, Gap { start, ..gap });
        }
    }

    /// Gives up the first gap: what is behind it goes, up to the next. False when there is none.
    pub(super) fn give_up_gap(&mut self, now: Time, shelf: &mut Shelf, sink: &mut dyn Sink) -> bool {
        let Some(gap) = self.gaps.pop_front() else {
            return false;
        };
        self.skip_to(gap.end);
        self.run(now, shelf, sink);
        true
    }

    /// Gives up gaps, the first first, until `number` is less than `span` ahead, and at last the one
    /// before `number` itself; how many.
    pub(super) fn make_room(
        &mut self,
        now: Time,
        number: u64,
        span: u64,
        shelf: &mut Shelf,
        sink: &mut dyn Sink,
    ) -> u64 {
        let mut gaps = 0;
        while number >= self.next + span {
            gaps += 1;
            if !self.give_up_gap(now, shelf, sink) {
                self.skip_to(number);
                self.end = number;
            }
        }
        gaps
    }

    /// Gives up everything missing below `number`.
    pub(super) fn give_up_below(&mut self, now: Time, number: u64, shelf: &mut Shelf, sink: &mut dyn Sink) {
        while let Some(gap) = self.gaps.front_mut() {
            if gap.end > number {
                if gap.start < number {
                    gap.start = number;
                    self.skip_to(number);
                }
                return;
            }
            self.give_up_gap(now, shelf, sink);
        }
        if self.next < number {
            self.skip_to(number);
            self.end = number;
        }
    }

    /// Moves `next` over numbers that did not arrive.
    fn skip_to(&mut self, number: u64) {
        let past = self.past.get_or_insert_with(|| Box::new([u64::MAX; (PAST / 64) as usize]));
        if number - self.next >= PAST {
            past.fill(0);
        } else {
            for skipped in self.next..number {
                past[word(skipped)] &= !bit(skipped);
            }
        }
        self.next = number;
    }

    fn note_delivered(&mut self, number: u64) {
        if let Some(past) = &mut self.past {
            past[word(number)] |= bit(number);
        }
    }

    /// Delivers from `next` up to the next gap.
    fn run(&mut self, now: Time, shelf: &mut Shelf, sink: &mut dyn Sink) {
        let stop = self.gaps.front().map_or(self.end, |gap| gap.start);
        while self.next < stop {
            let slot = self.index(self.next);
            let place = std::mem::replace(&mut self.ring[slot], ABSENT);
            if place != PASSED {
                shelf.deliver(now, place, sink);
                self.held -= 1;
            }
            self.note_delivered(self.next);
            self.next += 1;
        }
    }

    /// Frees the ring when nothing waits and nothing did since the last call.
    pub(super) fn shrink_idle(&mut self) {
        if self.gaps.is_empty() && !self.busy {
            self.ring = Vec::new();
            self.gaps = VecDeque::new();
        }
        self.busy = !self.gaps.is_empty();
    }

    /// Nothing is missing, and nothing came or was given up for longer than a gap is waited for. What was given up
    /// before is of no use to its flow any more.
    pub(super) fn may_rest(&self, now: Time) -> bool {
        self.gaps.is_empty() && now.since(self.used) > GAP_MAX
    }

    /// Places of the ring.
    pub(super) fn places(&self) -> usize {
        self.ring.len()
    }

    fn slot(&self, number: u64) -> u32 {
        self.ring[self.index(number)]
    }

    fn index(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// Makes the ring long enough for `number`.
    fn reserve(&mut self, number: u64) {
        let needed = (number - self.next + 1) as usize;
        debug_assert!(needed <= SPAN as usize);
        if needed <= self.ring.len() {
            return;
        }
        let len = needed.next_power_of_two().max(SMALLEST_RING);
        let old = std::mem::replace(&mut self.ring, vec![ABSENT; len]);
        for moved in self.next..self.end {
            let slot = self.index(moved);
            self.ring[slot] = old[moved as usize & (old.len() - 1)];
        }
    }
}

fn word(number: u64) -> usize {
    (number % PAST / 64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}
