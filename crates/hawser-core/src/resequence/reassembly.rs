//! Pieces of a packet that was too large for the path it was retransmitted on (SPLIT, docs/wire.md).
//!
//! 1. The first piece opens a place; a full house costs the oldest packet its own.
//! 2. Each piece is copied to its offset; what overlaps is refused.
//! 3. The last missing piece hands the whole packet out, and its place is free.

#[cfg(test)]
mod tests;

use super::Arrival;
use crate::packet::pool::{LARGEST, Pool};
use crate::units::Time;
use std::time::Duration;
use thiserror::Error;

/// Packets in progress at most: 4 MiB of the largest.
const MAX_PARTIAL: usize = 64;
/// Separate stretches of one packet that may have arrived.
const MAX_STRETCHES: usize = 64;

/// Why a piece was refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum PieceError {
    /// It has no bytes.
    #[error("reassemble: empty piece")]
    Empty,
    /// It would end behind the longest packet.
    #[error("reassemble: piece ends at byte {0}")]
    TooLong(usize),
    /// Some of its bytes are there already.
    #[error("reassemble: piece overlaps another")]
    Overlap,
    /// It says another flow, sequence or flag than the pieces before, or another end.
    #[error("reassemble: piece contradicts another")]
    Contradiction,
    /// The packet is in too many stretches.
    #[error("reassemble: more than {MAX_STRETCHES} stretches")]
    Scattered,
}

/// A packet put together.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Whole<'a> {
    /// What all its pieces said.
    pub arrival: Arrival,
    /// The inner packet.
    pub packet: &'a [u8],
}

/// One packet in progress.
#[derive(Debug, Default)]
struct Partial {
    id: u16,
    arrival: Arrival,
    started: Time,
    /// The packet's length, once its last piece is here.
    len: Option<usize>,
    /// Bytes that are here: start and end, ascending, never touching.
    stretches: Vec<(usize, usize)>,
    buffer: Vec<u8>,
}

/// Puts pieces together. Empty at first. One owner; its memory is used again.
#[derive(Debug, Default)]
pub struct Reassembler {
    /// Oldest first.
    partial: Vec<Partial>,
    spare: Vec<Partial>,
    pool: Pool,
    /// The packet handed out last.
    whole: Vec<u8>,
    expired: u64,
}

impl Reassembler {
    /// Nothing in progress.
    pub fn new() -> Reassembler {
        Reassembler::default()
    }

    /// A piece arrived: `bytes` at `offset`; `more` unless it is the last. Packets in progress for
    /// longer than `hold` are forgotten.
    ///
    /// # Errors
    /// [`PieceError`]; the piece is dropped, what arrived before stays.
    #[allow(clippy::too_many_arguments, reason = "the fields of one frame")]
    pub fn on_piece(
        &mut self,
        now: Time,
        id: u16,
        offset: u16,
        more: bool,
        arrival: Arrival,
        bytes: &[u8],
        hold: Duration,
    ) -> Result<Option<Whole<'_>>, PieceError> {
        self.expire(now, hold);
        let start = usize::from(offset);
        let end = start + bytes.len();
        if bytes.is_empty() {
            return Err(PieceError::Empty);
        }
        if end > LARGEST {
            return Err(PieceError::TooLong(end));
        }
        let at = match self.partial.iter().position(|p| p.id == id) {
            Some(at) => at,
            None => self.open(now, id, arrival),
        };
        let partial = &mut self.partial[at];
        partial.admit(arrival, start, end, more)?;
        partial.reserve(end, &mut self.pool);
        partial.buffer[start..end].copy_from_slice(bytes);
        let Some(len) = partial.complete() else {
            return Ok(None);
        };
        let arrival = partial.arrival;
        let buffer = self.close(at);
        let before = std::mem::replace(&mut self.whole, buffer);
        if !before.is_empty() {
            self.pool.put(before);
        }
        Ok(Some(Whole { arrival, packet: &self.whole[..len] }))
    }

    fn open(&mut self, now: Time, id: u16, arrival: Arrival) -> usize {
        if self.partial.len() == MAX_PARTIAL {
            self.expired += 1;
            self.forget(0);
        }
        let mut partial = self.spare.pop().unwrap_or_default();
        partial.stretches.clear();
        (partial.id, partial.arrival, partial.started, partial.len) = (id, arrival, now, None);
        self.partial.push(partial);
        self.partial.len() - 1
    }

    /// Takes a packet's buffer and frees its place.
    fn close(&mut self, at: usize) -> Vec<u8> {
        let mut partial = self.partial.remove(at);
        let buffer = std::mem::take(&mut partial.buffer);
        self.spare.push(partial);
        buffer
    }

    fn forget(&mut self, at: usize) {
        let buffer = self.close(at);
        if !buffer.is_empty() {
            self.pool.put(buffer);
        }
    }

    /// Forgets packets in progress for longer than `hold`.
    pub fn expire(&mut self, now: Time, hold: Duration) {
        while let Some(oldest) = self.partial.first()
            && now.since(oldest.started) > hold
        {
            self.expired += 1;
            self.forget(0);
        }
    }

    /// Packets in progress.
    pub fn in_progress(&self) -> usize {
        self.partial.len()
    }

    /// Packets that were forgotten before they were whole.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Frees buffers that were idle since the last call.
    pub fn trim(&mut self) {
        self.pool.trim();
    }
}

impl Partial {
    /// Notes the stretch from `start` to `end`, or refuses it.
    fn admit(&mut self, arrival: Arrival, start: usize, end: usize, more: bool) -> Result<(), PieceError> {
        let after = self.stretches.partition_point(|s| s.1 <= start);
        if self.stretches.get(after).is_some_and(|s| s.0 < end) {
            return Err(PieceError::Overlap);
        }
        let reaches = self.stretches.last().map_or(0, |s| s.1);
        let contradicts = match (self.len, more) {
            (Some(len), true) => end > len,
            (Some(_), false) => true,
            (None, true) => false,
            (None, false) => end < reaches,
        };
        if contradicts || arrival != self.arrival {
            return Err(PieceError::Contradiction);
        }
        let joins_before = after > 0 && self.stretches[after - 1].1 == start;
        let joins_after = self.stretches.get(after).is_some_and(|s| s.0 == end);
        match (joins_before, joins_after) {
            (true, true) => {
                self.stretches[after - 1].1 = self.stretches[after].1;
                self.stretches.remove(after);
            }
            (true, false) => self.stretches[after - 1].1 = end,
            (false, true) => self.stretches[after].0 = start,
            (false, false) if self.stretches.len() == MAX_STRETCHES => {
                return Err(PieceError::Scattered);
            }
            (false, false) => self.stretches.insert(after, (start, end)),
        }
        if !more {
            self.len = Some(end);
        }
        Ok(())
    }

    /// Makes the buffer long enough for `end` bytes.
    fn reserve(&mut self, end: usize, pool: &mut Pool) {
        if end <= self.buffer.len() {
            return;
        }
        let mut larger = pool.take(end);
        larger[..self.buffer.len()].copy_from_slice(&self.buffer);
        let smaller = std::mem::replace(&mut self.buffer, larger);
        if !smaller.is_empty() {
            pool.put(smaller);
        }
    }

    fn complete(&self) -> Option<usize> {
        let len = self.len?;
        (self.stretches[..] == [(0, len)]).then_some(len)
    }
}
