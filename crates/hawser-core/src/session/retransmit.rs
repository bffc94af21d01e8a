//! What a path lost and another is to carry again.
//!
//! 1. A path declares a segment lost, or dies: the segment comes here, oldest first.
//! 2. The path that delivers it soonest takes it, before anything new.
//! 3. What is of a rule that names links waits apart ([`Retransmits`]): no other flow waits for its paths.
//! 4. What is too old for the far resequencer to use, was tried too often, or is not to be retransmitted by its rule,
//!    is given up; the far side learns it by GONE.

use super::constants::MAX_TRIES;
use crate::packet::SegmentRef;
use crate::rules::{RuleId, Treatment};
use crate::units::{ByteCount, Time};
use crate::wire::{DataFlags, FlowBucket, FlowSequence};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::time::Duration;

/// A numbered segment of an inner train that the session still answers for. It owns its part of
/// the train: whoever drops it must release the segment. Copied only into a path's record of what
/// it sent, which then owns it.
#[derive(Copy, Clone, Debug)]
pub(super) struct SegmentRecord {
    pub segment: SegmentRef,
    pub bucket: FlowBucket,
    pub sequence: FlowSequence,
    pub flags: DataFlags,
    pub len: u16,
    pub tries: u8,
    pub order: SendOrder,
    pub first_sent: Time,
    pub treatment: Treatment,
}

impl SegmentRecord {
    /// The rule that it is of.
    pub fn rule(&self) -> RuleId {
        self.treatment.rule
    }
}

/// Its place among all that the session sent, modulo 2^32. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SendOrder(pub u32);

impl SendOrder {
    /// The place this many behind this one.
    pub fn after(self, count: u16) -> SendOrder {
        SendOrder(self.0.wrapping_add(u32::from(count)))
    }

    /// How many places behind that one, modulo 2^32.
    pub fn behind(self, other: SendOrder) -> u32 {
        self.0.wrapping_sub(other.0)
    }

    /// Of two that lie less than 2^31 apart.
    pub fn compare(self, other: SendOrder) -> Ordering {
        (self.behind(other) as i32).cmp(&0)
    }
}

/// A segment that waits, or one that arrived meanwhile and keeps its place until those before it are gone.
#[derive(Copy, Clone, Debug)]
struct Place {
    record: SegmentRecord,
    arrived: bool,
}

/// Segments to be retransmitted, in the order that they were first sent in. Empty at first; one session owns it.
///
/// After a silence thousands may come here and be acknowledged late, in any order: each costs a search by halves.
#[derive(Default)]
pub(super) struct RetransmitQueue {
    /// In order; neither the first nor the last one has arrived.
    places: VecDeque<Place>,
    bytes: ByteCount,
    /// Lost, and not to be retransmitted.
    refused: VecDeque<SegmentRecord>,
    /// What is to go before others that wait, and those others: empty between calls.
    early: Vec<SegmentRecord>,
    later: Vec<Place>,
    /// Places that were looked at or moved.
    #[cfg(test)]
    steps: std::cell::Cell<u64>,
}

impl RetransmitQueue {
    /// Adds segments at their places; nearly always the end.
    pub fn extend(&mut self, records: impl Iterator<Item = SegmentRecord>) {
        for record in records {
            if !record.treatment.resend {
                self.refused.push_back(record);
                continue;
            }
            self.bytes += ByteCount(u64::from(record.len));
            match self.places.back() {
                Some(last) if last.record.order.compare(record.order).is_gt() => self.early.push(record),
                _ => self.places.push_back(Place { record, arrived: false }),
            }
        }
        if !self.early.is_empty() {
            self.merge();
        }
    }

    /// Gives the early ones their places: those behind the earliest are moved once.
    fn merge(&mut self) {
        self.early.sort_unstable_by(|one, other| one.order.compare(other.order));
        while let Some(record) = self.early.pop() {
            while let Some(last) = self.places.pop_back_if(|last| last.record.order.compare(record.order).is_gt()) {
                self.note_step();
                self.later.push(last);
            }
            self.later.push(Place { record, arrived: false });
        }
        self.places.extend(self.later.drain(..).rev());
    }

    /// The oldest segment.
    pub fn peek(&self) -> Option<&SegmentRecord> {
        self.places.front().map(|place| &place.record)
    }

    /// Takes the oldest segment.
    pub fn pop(&mut self) -> Option<SegmentRecord> {
        let Place { record, .. } = self.places.pop_front()?;
        self.bytes -= ByteCount(u64::from(record.len));
        self.forget_arrived();
        Some(record)
    }

    /// Takes out a segment that arrived after all, if it still waits.
    pub fn cancel(&mut self, wanted: &SegmentRecord) -> Option<SegmentRecord> {
        let looked = self.places.binary_search_by(|place| {
            self.note_step();
            place.record.order.compare(wanted.order)
        });
        let place = &mut self.places[looked.ok()?];
        if place.arrived || place.record.segment != wanted.segment {
            return None;
        }
        place.arrived = true;
        let record = place.record;
        self.bytes -= ByteCount(u64::from(record.len));
        self.forget_arrived();
        Some(record)
    }

    /// Lets go of the places of what arrived, as far as nothing that waits lies beyond them.
    fn forget_arrived(&mut self) {
        while self.places.pop_front_if(|place| place.arrived).is_some() {
            self.note_step();
        }
        while self.places.pop_back_if(|place| place.arrived).is_some() {
            self.note_step();
        }
    }

    /// Takes a segment that is not to be retransmitted.
    fn pop_refused(&mut self) -> Option<SegmentRecord> {
        self.refused.pop_front()
    }

    /// Takes the oldest segment if it is of no use any more: first sent more than `useful` ago, or
    /// tried too often.
    fn pop_useless(&mut self, now: Time, useful: Duration) -> Option<SegmentRecord> {
        let oldest = self.peek()?;
        if oldest.tries >= MAX_TRIES || now.since(oldest.first_sent) > useful { self.pop() } else { None }
    }

    /// Takes any segment: the session ends.
    fn pop_any(&mut self) -> Option<SegmentRecord> {
        self.refused.pop_front().or_else(|| self.pop())
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn note_step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }
}

mod by_rule;
#[cfg(test)]
mod tests;

pub(super) use by_rule::Retransmits;
