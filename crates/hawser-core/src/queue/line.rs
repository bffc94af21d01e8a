//! What waits: trains in arrival order over all flows, and in order within each flow.

use super::{DropReason, Dropped};
use crate::packet::{FlowBucket, SegmentRef, Train, TrainId, TrainStore};
use crate::treatment::Treatment;
use crate::units::{ByteCount, Time};

/// No item.
pub(super) const NONE: u32 = u32::MAX;

/// The rest of a train that waits.
#[derive(Copy, Clone, Debug)]
pub(super) struct Item {
    pub(super) train: TrainId,
    pub(super) bucket: FlowBucket,
    pub(super) enqueued: Time,
    /// What its flow had sent of its burst by then.
    pub(super) sent_before: ByteCount,
    /// The first segment that still waits.
    pub(super) first: u16,
    segments: u16,
    /// Bytes of every segment but the last.
    full: u32,
    last: u32,
    pub(super) ect: bool,
    pub(super) treatment: Treatment,
    /// Neighbours in arrival order.
    older: u32,
    newer: u32,
    /// The next of the same flow.
    pub(super) behind: u32,
}

impl Item {
    pub(super) fn new(now: Time, id: TrainId, bucket: FlowBucket, train: &Train) -> Item {
        let segments = train.segments();
        Item {
            train: id,
            bucket,
            enqueued: now,
            sent_before: ByteCount::ZERO,
            first: 0,
            segments,
            full: train.segment_len(0) as u32,
            last: train.segment_len(segments - 1) as u32,
            ect: train.ect(),
            treatment: train.treatment(),
            older: NONE,
            newer: NONE,
            behind: NONE,
        }
    }

    /// Segments that wait.
    pub(super) fn count(&self) -> u16 {
        self.segments - self.first
    }

    /// Bytes of the segment at the head.
    pub(super) fn head_len(&self) -> ByteCount {
        self.len_of(1)
    }

    /// Bytes of the first `count` segments that wait.
    pub(super) fn len_of(&self, count: u16) -> ByteCount {
        debug_assert!(count <= self.count());
        let whole = u64::from(self.full) * u64::from(count);
        if count == self.count() && count > 0 {
            ByteCount(whole - u64::from(self.full) + u64::from(self.last))
        } else {
            ByteCount(whole)
        }
    }

    /// How many segments, from the head on, make up at most `bytes`.
    pub(super) fn fitting(&self, bytes: ByteCount) -> u16 {
        if self.len_of(self.count()) <= bytes {
            return self.count();
        }
        // Only the last one can be shorter, and with it all would fit.
        (bytes.0 / u64::from(self.full)).min(u64::from(self.count() - 1)) as u16
    }

    /// Drops all that waits of it; it is in no flow, or in none any more.
    pub(super) fn drop_whole(mut self, reason: DropReason, store: &mut TrainStore, dropped: &mut dyn FnMut(Dropped)) {
        while self.count() > 0 {
            let (segment, bytes) = (self.head(), self.head_len());
            store.release(segment);
            dropped(Dropped { segment, bucket: self.bucket, bytes, reason });
            self.first += 1;
        }
    }

    /// The segment at the head.
    pub(super) fn head(&self) -> SegmentRef {
        SegmentRef { train: self.train, segment: self.first }
    }
}

/// A slab of items, linked in arrival order. Empty at first. One owner; its memory is used again.
#[derive(Debug)]
pub(super) struct Line {
    items: Vec<Item>,
    /// The first free item; the others by `behind`.
    free: u32,
    oldest: u32,
    newest: u32,
}

impl Line {
    pub(super) fn new() -> Line {
        Line { items: Vec::new(), free: NONE, oldest: NONE, newest: NONE }
    }

    pub(super) fn get(&self, index: u32) -> &Item {
        &self.items[index as usize]
    }

    pub(super) fn get_mut(&mut self, index: u32) -> &mut Item {
        &mut self.items[index as usize]
    }

    /// The item that has waited longest.
    pub(super) fn oldest(&self) -> Option<&Item> {
        self.items.get(self.oldest as usize)
    }

    /// Adds an item behind all others.
    pub(super) fn push(&mut self, mut item: Item) -> u32 {
        item.older = self.newest;
        let index = if self.free == NONE {
            self.items.push(item);
            (self.items.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.get(index).behind;
            *self.get_mut(index) = item;
            index
        };
        match self.newest {
            NONE => self.oldest = index,
            newest => self.get_mut(newest).newer = index,
        }
        self.newest = index;
        index
    }

    /// Takes an item out; its flow's link is the caller's.
    pub(super) fn remove(&mut self, index: u32) {
        let Item { older, newer, .. } = *self.get(index);
        match older {
            NONE => self.oldest = newer,
            older => self.get_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.get_mut(newer).older = older,
        }
        self.get_mut(index).behind = self.free;
        self.free = index;
    }
}
