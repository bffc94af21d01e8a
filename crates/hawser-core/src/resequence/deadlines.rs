//! Which bucket's first gap was noticed first: a heap that knows where each bucket is.

use crate::packet::FlowBucket;
use crate::packet::flow::FLOW_BUCKETS;
use crate::units::Time;

/// A bucket that is not in the heap.
const OUT: u16 = u16::MAX;

/// A binary heap of buckets by time, earliest first; each bucket at most once. Empty at first. One owner.
#[derive(Debug)]
pub(super) struct Deadlines {
    heap: Vec<(Time, FlowBucket)>,
    /// Where each bucket is in the heap.
    place: Vec<u16>,
}

impl Deadlines {
    pub(super) fn new() -> Deadlines {
        Deadlines { heap: Vec::new(), place: vec![OUT; FLOW_BUCKETS] }
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<(Time, FlowBucket)> {
        self.heap.first().copied()
    }

    /// Sets or removes the time of a bucket. O(log n); O(1) when nothing changes.
    pub(super) fn set(&mut self, bucket: FlowBucket, time: Option<Time>) {
        let at = self.place[bucket.index()];
        match (at, time) {
            (OUT, None) => {}
            (OUT, Some(time)) => {
                self.heap.push((time, bucket));
                self.sift(self.heap.len() - 1);
            }
            (at, Some(time)) => {
                let at = usize::from(at);
                if self.heap[at].0 != time {
                    self.heap[at].0 = time;
                    self.sift(at);
                }
            }
            (at, None) => {
                let at = usize::from(at);
                self.place[bucket.index()] = OUT;
                self.heap.swap_remove(at);
                if at < self.heap.len() {
                    self.sift(at);
                }
            }
        }
    }

    /// Moves the entry at `at` to where it belongs.
    fn sift(&mut self, mut at: usize) {
        while at > 0 && self.heap[at].0 < self.heap[(at - 1) / 2].0 {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.heap.len());
            match children.min_by_key(|&child| self.heap[child].0) {
                Some(child) if self.heap[child].0 < self.heap[at].0 => {
                    self.swap(at, child);
                    at = child;
                }
                _ => break,
            }
        }
        self.place[self.heap[at].1.index()] = at as u16;
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place[self.heap[a].1.index()] = a as u16;
        self.place[self.heap[b].1.index()] = b as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_is_always_the_earliest(
            steps in proptest::collection::vec((0..20u16, proptest::option::of(0..50u64)), 1..200)
        ) {
            let mut deadlines = Deadlines::new();
            let mut model = BTreeMap::new();
            for (bucket, time) in steps {
                let time = time.map(Time::from_nanos);
                deadlines.set(FlowBucket(bucket), time);
                match time {
                    Some(time) => model.insert(bucket, time),
                    None => model.remove(&bucket),
                };
                prop_assert_eq!(deadlines.first().map(|f| f.0), model.values().min().copied());
                if let Some((time, bucket)) = deadlines.first() {
                    prop_assert_eq!(model[&bucket.0], time);
                }
            }
        }
    }
}
