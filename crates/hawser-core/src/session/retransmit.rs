//! What a path lost and another is to carry again.
//!
//! 1. A path declares a segment lost, or dies: the segment comes here, oldest first.
//! 2. The path that delivers it soonest takes it, before anything new.
//! 3. What is too old for the far resequencer to use, was tried too often, or is not to be retransmitted by its rule, is
//!    given up; the far side learns it by GONE.

use super::constants::MAX_TRIES;
use crate::packet::SegmentRef;
use crate::rules::Treatment;
use crate::units::{ByteCount, Time};
use crate::wire::{DataFlags, FlowBucket, FlowSequence};
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
    pub first_sent: Time,
    pub treatment: Treatment,
}

/// Segments to be retransmitted, ordered by when they were first sent. Empty at first; one session owns it.
#[derive(Default)]
pub(super) struct RetransmitQueue {
    segments: VecDeque<SegmentRecord>,
    bytes: ByteCount,
    /// Lost, and not to be retransmitted.
    refused: Vec<SegmentRecord>,
}

impl RetransmitQueue {
    /// Adds a segment at its place; nearly always the end.
    pub fn push(&mut self, segment: SegmentRecord) {
        if !segment.treatment.resend {
            return self.refused.push(segment);
        }
        self.bytes += ByteCount(u64::from(segment.len));
        let place = self.segments.iter().rposition(|other| other.first_sent <= segment.first_sent);
        self.segments.insert(place.map_or(0, |at| at + 1), segment);
    }

    /// The oldest segment.
    pub fn peek(&self) -> Option<&SegmentRecord> {
        self.segments.front()
    }

    /// Takes the oldest segment.
    pub fn pop(&mut self) -> Option<SegmentRecord> {
        let segment = self.segments.pop_front()?;
        self.bytes -= ByteCount(u64::from(segment.len));
        Some(segment)
    }

    /// Takes out a segment that arrived after all, if it still waits. What is acknowledged late comes
    /// in the order of sending, so it stands near the front.
    pub fn cancel(&mut self, segment: SegmentRef) -> Option<SegmentRecord> {
        let at = self.segments.iter().position(|record| record.segment == segment)?;
        let record = self.segments.remove(at)?;
        self.bytes -= ByteCount(u64::from(record.len));
        Some(record)
    }

    /// Takes a segment that is not to be retransmitted.
    pub fn pop_refused(&mut self) -> Option<SegmentRecord> {
        self.refused.pop()
    }

    /// Takes the oldest segment if it is of no use any more: first sent more than `useful` ago, or
    /// tried too often.
    pub fn pop_useless(&mut self, now: Time, useful: Duration) -> Option<SegmentRecord> {
        let oldest = self.segments.front()?;
        if oldest.tries >= MAX_TRIES || now.since(oldest.first_sent) > useful { self.pop() } else { None }
    }

    /// Takes any segment: the session ends.
    pub fn pop_any(&mut self) -> Option<SegmentRecord> {
        self.refused.pop().or_else(|| self.pop())
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> ByteCount {
        self.bytes
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

#[cfg(test)]
mod tests;
