//! More than may wait: who has his part of the room finds no more.
//!
//! RFC 8290 section 4.1 drops from the head of the fattest flow, so that its sender hears of it soonest. That is right
//! where the limit is some packets. Here it is most of a second, which CoDel does not let stand: what overflows it is
//! a burst, after an outage or a sleep. Without its head, a stream's receiver has nothing in order until what it misses
//! is sent anew, behind all that; where that is lost as well, it waits for a timeout, made of round trips as long as
//! the outage was. So what a flow has stays, and what comes is refused. Only what comes of a flow that has less than
//! its part costs the fattest one its head.

use super::line::Item;
use super::{DropReason, Dropped, Queue};
use crate::packet::TrainStore;
use crate::units::ByteCount;

/// Segments dropped from the fattest flow at once, so that finding it is paid for (RFC 8290 section
/// 4.1 allows 64; fewer hurt a single flow less).
const BATCH: usize = 16;

impl Queue {
    /// Whether a train that comes finds no room: its flow has all that is due to one.
    pub(super) fn refuses(&self, item: &Item) -> bool {
        let share = self.bytes.0 / self.backlogged.max(1) as u64;
        self.bytes + item.len_of(item.count()) > self.limit && self.flows.get(item.bucket).backlog.0 >= share.max(1)
    }

    /// Drops from the head of the fattest flow.
    pub(super) fn shorten_fattest(&mut self, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        let bucket = self.flows.fattest().expect("bytes wait, so a flow has them");
        let half = ByteCount(self.flows.get(bucket).backlog.0 / 2);
        for _ in 0..BATCH {
            self.drop_head(bucket, DropReason::Overflow, store, dropped);
            if self.flows.get(bucket).backlog <= half {
                break;
            }
        }
    }
}
