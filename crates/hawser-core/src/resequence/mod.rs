//! Order restored at the far side, per flow bucket; buckets never wait for each other.
//!
//! 1. `on_packet`: the packet that its bucket waits for is delivered from where it lies, and what it held up.
//! 2. One ahead of its turn leaves a gap before it, and is held; an unordered one is delivered at once.
//! 3. A gap ends when it fills, when the sender says GONE, or when it was noticed `hold` ago; all end with
//!    `give_up_all`.
//! 4. What comes after its gap was given up is delivered late, once, until its bucket rests.

mod bucket;
mod deadlines;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod reassembly;
mod recent;
mod shelf;
mod table;
#[cfg(test)]
mod tests;

use crate::packet::{Coalescer, FlowBucket, FlowSequence};
use crate::units::{ByteCount, Time};
use bucket::{SPAN, Standing};
use deadlines::Deadlines;
use recent::Recent;
use shelf::Shelf;
use std::time::Duration;
use table::Table;

pub use reassembly::{PieceError, Reassembler, Whole};

/// Most bytes of buffers that may hold packets: a bond of half a gigabit whose paths lie 300 ms apart.
pub const MAX_HELD: usize = 32 << 20;
/// Most packets that one bucket may hold.
pub const MAX_HELD_PER_BUCKET: usize = 16_384;
/// Most places of all rings together (4 bytes each) before rings stay small: 16 flows may each have
/// lost the longest stretch, and a peer that opens one in every bucket gets no more than 20 MiB.
const MAX_RING_PLACES: usize = 1 << 20;
/// Numbers that a bucket may look ahead while there are too many places.
const SMALL_SPAN: u64 = 1 << 10;
/// A GONE further ahead than this is a lie: no sender has as much in flight.
const FARTHEST: u64 = 1 << 20;

/// Takes packets in their final order.
pub trait Sink {
    /// `partial`: the transport checksum covers the pseudo-header only.
    fn deliver(&mut self, packet: &[u8], partial: bool);
}

impl Sink for Coalescer {
    fn deliver(&mut self, packet: &[u8], partial: bool) {
        self.push(packet, partial);
    }
}

/// What a DATA or SPLIT frame says about its inner packet. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// The flow bucket.
    pub bucket: FlowBucket,
    /// The number within it.
    pub sequence: FlowSequence,
    /// The transport checksum covers the pseudo-header only.
    pub partial: bool,
    /// Deliver at once.
    pub unordered: bool,
}

/// What became of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Delivered in its turn, or at once because it is unordered.
    Delivered,
    /// Kept until its turn.
    Held,
    /// Dropped: it came before, or so long ago that nobody knows.
    Duplicate,
    /// Delivered after it had been given up.
    Late,
}

/// Counters since the start, and what is so now. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets held now.
    pub held_packets: usize,
    /// Their bytes.
    pub held_bytes: ByteCount,
    /// The longest that a packet waited in the last second, one still waiting included.
    pub longest_wait: Duration,
    /// The furthest that a packet came behind a later one in the last second, in sequence numbers.
    pub reordering_extent: u64,
    /// Packets that came behind a later one.
    pub reordered: u64,
    /// Gaps given up because their time was over.
    pub expired_gaps: u64,
    /// Gaps given up because too much was held, or because of a jump.
    pub overrun_gaps: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets so old that nobody knew whether they had come before; dropped.
    pub too_old: u64,
    /// Packets delivered after they had been given up.
    pub late: u64,
}

/// Restores the order of a session's flows. Nothing has arrived at first. One owner.
#[derive(Debug)]
pub struct Resequencer {
    buckets: Table,
    shelf: Shelf,
    deadlines: Deadlines,
    hold: Duration,
    /// Places of all buckets' rings.
    places: usize,
    extents: Recent<u64>,
    stats: Stats,
}

impl Default for Resequencer {
    fn default() -> Resequencer {
        Resequencer::new()
    }
}

impl Resequencer {
    /// Every bucket waits for number zero.
    pub fn new() -> Resequencer {
        Resequencer {
            buckets: Table::new(),
            shelf: Shelf::default(),
            deadlines: Deadlines::new(),
            hold: Duration::ZERO,
            places: 0,
            extents: Recent::default(),
            stats: Stats::default(),
        }
    }

    /// How long a gap is waited for from now on, those that are waited for already too: the time
    /// within which something that was sent can still arrive. Zero at first.
    pub fn set_hold(&mut self, hold: Duration) {
        self.hold = hold;
    }

    /// A packet arrived. `hold` as in `set_hold`.
    pub fn on_packet(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &[u8],
        hold: Duration,
        sink: &mut dyn Sink,
    ) -> Outcome {
        self.hold = hold;
        self.place(now, arrival, Some(packet), sink)
    }

    /// A packet arrived that nobody may have, or not yet: none of its bucket waits for it.
    pub fn on_refused(&mut self, now: Time, arrival: Arrival, hold: Duration, sink: &mut dyn Sink) -> Outcome {
        self.hold = hold;
        self.place(now, arrival, None, sink)
    }

    /// Gives a number its place in its bucket's order, and delivers what comes with it.
    fn place(&mut self, now: Time, arrival: Arrival, packet: Option<&[u8]>, sink: &mut dyn Sink) -> Outcome {
        let bucket = self.buckets.get(now, arrival.bucket);
        let number = arrival.sequence.expand(bucket.next);
        let span = if self.places > MAX_RING_PLACES { SMALL_SPAN } else { SPAN };
        if number >= bucket.next + span {
            self.stats.overrun_gaps += bucket.make_room(now, number, span, &mut self.shelf, sink);
        }
        let places = bucket.places();
        let standing = bucket.standing(number);
        let came = matches!(standing, Standing::Duplicate | Standing::TooOld);
        if number + 1 < bucket.end && !came {
            self.stats.reordered += 1;
            self.extents.see(now, bucket.end - 1 - number);
        }
        let deliver = |sink: &mut dyn Sink| packet.iter().for_each(|packet| sink.deliver(packet, arrival.partial));
        let outcome = match standing {
            Standing::Next => {
                deliver(sink);
                bucket.on_next(now, &mut self.shelf, sink);
                Outcome::Delivered
            }
            Standing::Ahead => match packet.filter(|_| !arrival.unordered) {
                Some(packet) => {
                    let place = self.shelf.keep(now, packet, arrival.partial);
                    bucket.on_ahead(now, number, Some(place));
                    Outcome::Held
                }
                None => {
                    deliver(sink);
                    bucket.on_ahead(now, number, None);
                    Outcome::Delivered
                }
            },
            Standing::Late => {
                deliver(sink);
                bucket.on_late(number);
                self.stats.late += 1;
                return Outcome::Late;
            }
            Standing::Duplicate => {
                self.stats.duplicates += 1;
                return Outcome::Duplicate;
            }
            Standing::TooOld => {
                self.stats.too_old += 1;
                return Outcome::Duplicate;
            }
        };
        self.places += bucket.places() - places;
        self.keep_bounds(now, arrival.bucket, sink);
        outcome
    }

    /// Gives up the oldest gaps when too much is held, and notes the bucket's deadline.
    fn keep_bounds(&mut self, now: Time, bucket: FlowBucket, sink: &mut dyn Sink) {
        let state = self.buckets.get(now, bucket);
        while state.held > MAX_HELD_PER_BUCKET && state.give_up_gap(now, &mut self.shelf, sink) {
            self.stats.overrun_gaps += 1;
        }
        self.deadlines.set(bucket, state.waiting_since());
        while self.shelf.capacity > MAX_HELD {
            let Some((_, oldest)) = self.deadlines.first() else {
                break;
            };
            self.stats.overrun_gaps += 1;
            self.give_up_gap(now, oldest, sink);
        }
    }

    fn give_up_gap(&mut self, now: Time, bucket: FlowBucket, sink: &mut dyn Sink) {
        let state = self.buckets.get(now, bucket);
        state.give_up_gap(now, &mut self.shelf, sink);
        self.deadlines.set(bucket, state.waiting_since());
    }

    /// The sender will not send again what is missing up to and with `upto`.
    pub fn on_gone(&mut self, now: Time, bucket: FlowBucket, upto: FlowSequence, sink: &mut dyn Sink) {
        let state = self.buckets.get(now, bucket);
        let number = upto.expand(state.next);
        if number < state.next || number - state.next > FARTHEST {
            return;
        }
        state.give_up_below(now, number + 1, &mut self.shelf, sink);
        self.deadlines.set(bucket, state.waiting_since());
    }

    /// When `handle_timeout` is due; `None` while nothing is missing.
    pub fn poll_timeout(&self) -> Option<Time> {
        let (noticed, _) = self.deadlines.first()?;
        Some(noticed + self.hold)
    }

    /// Gives up every gap whose time is over.
    pub fn handle_timeout(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some((noticed, bucket)) = self.deadlines.first()
            && noticed + self.hold <= now
        {
            self.stats.expired_gaps += 1;
            self.give_up_gap(now, bucket, sink);
        }
    }

    /// Gives up every gap, though its time is not over: nobody is to have what it held up.
    pub fn give_up_all(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some((_, bucket)) = self.deadlines.first() {
            self.give_up_gap(now, bucket, sink);
        }
    }

    /// Counters and the present state.
    pub fn stats(&self, now: Time) -> Stats {
        let waiting = match self.deadlines.first() {
            Some((noticed, _)) if self.shelf.packets() > 0 => now.since(noticed),
            _ => Duration::ZERO,
        };
        Stats {
            held_packets: self.shelf.packets(),
            held_bytes: ByteCount(self.shelf.bytes as u64),
            longest_wait: self.shelf.waits.largest(now).max(waiting),
            reordering_extent: self.extents.largest(now),
            ..self.stats
        }
    }

    /// Frees memory that was idle since the last call. Call it every few seconds; it looks at buckets in use alone.
    pub fn shrink_idle(&mut self, now: Time) {
        self.places = self.buckets.shrink_idle(now);
        self.shelf.trim();
    }
}
