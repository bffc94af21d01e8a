//! What a hub's member acknowledged, and may not have forwarded: a packet behind another of its flow that did not come
//! waits there for its turn, and is lost if the member dies. Its peer keeps it, for the other member.
//!
//! 1. `begin`: from the first CLAIM on; whoever says none pays nothing.
//! 2. `number`: each segment gets a place, in the order that they are first sent in.
//! 3. `on_acked`: one arrived, and is kept while anything that was sent before it did not; `forget`: one is given up.
//! 4. `surrender`: those that are behind another of their own flow go to the other member. The rest was forwarded.

use super::retransmit::{SegmentRecord, SendOrder};
use crate::packet::TrainStore;
use crate::wire::FlowBucket;
use std::collections::{BTreeSet, VecDeque};

/// Places at most: what a resequencer holds of one flow at most (`resequence`, MAX_HELD_PER_BUCKET).
const PLACES_MAX: usize = 16_384;

/// What became of a segment.
enum Place {
    /// It is under way, or waits to be retransmitted.
    Open(FlowBucket),
    /// It arrived. Its part of the train is owned here.
    Arrived(SegmentRecord),
    /// Nobody answers for it any more.
    Over,
}

/// Segments in the order that they were first sent in. Off at first; the session owns it.
#[derive(Default)]
pub(super) struct Kept {
    on: bool,
    /// The order of the first place.
    first: SendOrder,
    /// The first is open.
    places: VecDeque<Place>,
}

impl Kept {
    /// Step 1: `next` is the place of what is sent next.
    pub fn begin(&mut self, next: SendOrder) {
        if !self.on {
            (self.on, self.first) = (true, next);
        }
    }

    /// Step 2: this many segments of a flow got the next places.
    pub fn number(&mut self, bucket: FlowBucket, count: u16, store: &mut TrainStore) {
        if !self.on {
            return;
        }
        self.places.extend((0..count).map(|_| Place::Open(bucket)));
        while self.places.len() > PLACES_MAX {
            self.pop_first(store);
        }
        self.let_go(store);
    }

    /// Step 3: it arrived.
    pub fn on_acked(&mut self, record: SegmentRecord, store: &mut TrainStore) {
        match self.place(record.order) {
            Some(place @ Place::Open(_)) => *place = Place::Arrived(record),
            _ => store.release(record.segment),
        }
        self.let_go(store);
    }

    /// Step 3: it does not arrive, and is nobody's.
    pub fn forget(&mut self, record: &SegmentRecord, store: &mut TrainStore) {
        if let Some(place @ Place::Open(_)) = self.place(record.order) {
            *place = Place::Over;
        }
        self.let_go(store);
    }

    /// Step 4: the caller takes those that are open himself. Nothing is kept afterwards.
    pub fn surrender(&mut self, store: &mut TrainStore) -> Vec<SegmentRecord> {
        let (mut open, mut behind) = (BTreeSet::new(), Vec::new());
        self.first = self.first.after(self.places.len() as u16);
        for place in self.places.drain(..) {
            match place {
                Place::Open(bucket) => drop(open.insert(bucket)),
                Place::Arrived(record) if open.contains(&record.bucket) => behind.push(record),
                Place::Arrived(record) => store.release(record.segment),
                Place::Over => {}
            }
        }
        behind
    }

    fn place(&mut self, order: SendOrder) -> Option<&mut Place> {
        self.places.get_mut(order.behind(self.first) as usize)
    }

    /// What everything before has arrived of was forwarded.
    fn let_go(&mut self, store: &mut TrainStore) {
        while self.places.front().is_some_and(|place| !matches!(place, Place::Open(_))) {
            self.pop_first(store);
        }
    }

    fn pop_first(&mut self, store: &mut TrainStore) {
        if let Some(Place::Arrived(record)) = self.places.pop_front() {
            store.release(record.segment);
        }
        self.first = self.first.after(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{FlowKey, Offload, SegmentRef};
    use crate::units::Time;
    use crate::wire::{DataFlags, FlowSequence};

    /// Segments of these flows, numbered as they are sent.
    fn sent(kept: &mut Kept, store: &mut TrainStore, flows: &[u16]) -> Vec<SegmentRecord> {
        let record = |(at, flow): (usize, &u16)| {
            store.read_buffer()[..20].copy_from_slice(&[[0x45, 0, 0, 20].as_slice(), &[0; 16]].concat());
            let train = store.admit(20, Offload::default()).expect("a packet");
            let bucket = FlowBucket::new(*flow).expect("in range");
            kept.number(bucket, 1, store);
            SegmentRecord {
                segment: SegmentRef { train, segment: 0 },
                bucket,
                sequence: FlowSequence::of(at as u64),
                flags: DataFlags::default(),
                len: 20,
                tries: 1,
                order: SendOrder(u32::MAX - 1).after(at as u16),
                first_sent: Time::ZERO,
                treatment: Default::default(),
            }
        };
        flows.iter().enumerate().map(record).collect()
    }

    fn kept() -> (Kept, TrainStore) {
        let mut kept = Kept::default();
        kept.begin(SendOrder(u32::MAX - 1));
        (kept, TrainStore::new(FlowKey::new(1, 2)))
    }

    #[test]
    fn what_arrived_behind_a_missing_one_of_its_flow_goes_to_the_other_member_and_nothing_else() {
        // Flows by place, which of them arrived or were given up, and which the other member gets.
        type Case = (&'static str, &'static [u16], &'static [usize], &'static [usize], &'static [usize]);
        let table: [Case; 6] = [
            ("all arrived", &[1, 1, 1], &[0, 1, 2], &[], &[]),
            ("the first is missing", &[1, 1, 1], &[1, 2], &[], &[1, 2]),
            ("another flow's is missing", &[2, 1, 1], &[1, 2], &[], &[]),
            ("the last is missing", &[1, 1, 1], &[0, 1], &[], &[]),
            ("two flows", &[1, 2, 2, 1, 1], &[2, 3], &[], &[2, 3]),
            ("the missing one was given up", &[1, 1], &[1], &[0], &[]),
        ];
        for (what, flows, arrived, given_up, surrendered) in table {
            let (mut kept, mut store) = kept();
            let records = sent(&mut kept, &mut store, flows);
            arrived.iter().for_each(|at| kept.on_acked(records[*at], &mut store));
            for at in given_up {
                kept.forget(&records[*at], &mut store);
                store.release(records[*at].segment);
            }
            let found = kept.surrender(&mut store);
            let places: Vec<usize> =
                found.iter().map(|record| record.order.behind(records[0].order) as usize).collect();
            assert_eq!(places, surrendered, "{what}");
            let open = (0..flows.len()).filter(|at| !arrived.contains(at) && !given_up.contains(at));
            open.for_each(|at| store.release(records[at].segment));
            found.iter().for_each(|record| store.release(record.segment));
            assert_eq!(store.bytes_held(), 0, "{what}");
        }
    }

    #[test]
    fn no_more_is_kept_than_the_far_side_may_hold_and_nothing_where_no_member_is() {
        let (mut kept, mut store) = kept();
        let first = sent(&mut kept, &mut store, &[1, 1]);
        kept.on_acked(first[1], &mut store);
        kept.number(first[0].bucket, PLACES_MAX as u16 - 1, &mut store);
        assert_eq!((kept.places.len(), kept.first), (PLACES_MAX - 1, SendOrder(0)), "the first two are let go");
        kept.on_acked(first[0], &mut store);
        assert_eq!(store.bytes_held(), 0, "it came late, and is nobody's");
        let mut off = Kept::default();
        let records = sent(&mut off, &mut store, &[1, 1]);
        off.on_acked(records[1], &mut store);
        assert!(off.places.is_empty() && off.surrender(&mut store).is_empty());
    }
}
