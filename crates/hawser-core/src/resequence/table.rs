//! A session's buckets: those in use, and of each that rests the next number.
//!
//! ```text
//!              something of it comes
//!    resting ------------------------> in use
//!       ^                                |
//!       +--------------------------------+
//!         no gap, and quiet for GAP_MAX
//! ```
//!
//! The sender counts on for the session's life, and new flows get buckets that were not used for long (`queue::ways`):
//! in time all of them had packets. One that rests takes 8 bytes.

use super::bucket::Bucket;
use crate::packet::flow::FLOW_BUCKETS;
use crate::packet::{FlowBucket, FlowSequence};
use crate::units::Time;

/// Where a bucket is in the picture above.
#[derive(Copy, Clone, Debug)]
enum Slot {
    /// It waits for this number; all before it were delivered, or are too old.
    Resting(FlowSequence),
    /// Its place among those in use.
    InUse(u16),
}

// Memory of a session: what it always has; with all buckets in use, and neither lost nor reordered packets, half a MiB.
const _: () = assert!(FLOW_BUCKETS * size_of::<Slot>() <= 32 << 10);
const _: () = assert!(FLOW_BUCKETS * (size_of::<Slot>() + size_of::<Bucket>()) <= 512 << 10);

/// All buckets. Each rests at first, and waits for number zero. One owner.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    in_use: Vec<Bucket>,
}

impl Table {
    pub(super) fn new() -> Table {
        Table { slots: vec![Slot::Resting(FlowSequence(0)); FLOW_BUCKETS], in_use: Vec::new() }
    }

    /// A bucket that something came of, or is given up of.
    pub(super) fn get(&mut self, now: Time, name: FlowBucket) -> &mut Bucket {
        let place = match self.slots[name.index()] {
            Slot::InUse(place) => usize::from(place),
            Slot::Resting(next) => {
                let place = self.in_use.len();
                self.in_use.push(Bucket::new(name, next));
                self.slots[name.index()] = Slot::InUse(place as u16);
                place
            }
        };
        let bucket = &mut self.in_use[place];
        bucket.used = now;
        bucket
    }

    /// Frees what was idle since the last call, and lets buckets rest. Places of the rings that are left.
    pub(super) fn shrink_idle(&mut self, now: Time) -> usize {
        // From the last to the first: the one that takes a resting one's place was looked at.
        for place in (0..self.in_use.len()).rev() {
            self.in_use[place].shrink_idle();
            if self.in_use[place].may_rest(now) {
                self.let_rest(place);
            }
        }
        if self.in_use.len() <= self.in_use.capacity() / 4 {
            self.in_use.shrink_to(2 * self.in_use.len());
        }
        self.in_use.iter().map(Bucket::places).sum()
    }

    fn let_rest(&mut self, place: usize) {
        let bucket = self.in_use.swap_remove(place);
        self.slots[bucket.name.index()] = Slot::Resting(bucket.sequence());
        if let Some(moved) = self.in_use.get(place) {
            self.slots[moved.name.index()] = Slot::InUse(place as u16);
        }
    }

    /// Buckets in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.in_use.len()
    }
}
