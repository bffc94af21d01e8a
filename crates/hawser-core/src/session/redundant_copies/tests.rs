use super::*;
use crate::packet::{FlowKey, Offload, SegmentRef, TrainStore};
use crate::units::Time;
use crate::wire::{DataFlags, FlowBucket, FlowSequence};

/// A segment tried this often.
fn tried(store: &mut TrainStore, tries: u8) -> SegmentRecord {
    let packet = [[0x45, 0, 0, 20].as_slice(), &[0; 16]].concat();
    store.read_buffer()[..20].copy_from_slice(&packet);
    let train = store.admit(20, Offload::default()).expect("a packet");
    SegmentRecord {
        segment: SegmentRef { train, segment: 0 },
        bucket: FlowBucket::default(),
        sequence: FlowSequence::of(u64::from(tries)),
        flags: DataFlags::default(),
        len: 20,
        tries,
        order: Default::default(),
        first_sent: Time::ZERO,
        treatment: Default::default(),
    }
}

#[test]
fn what_is_in_doubt_goes_by_a_second_path_once() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut copies = RedundantCopies::new(&Hedge::default());
    let (first, second) = (PathId(0), PathId(2));
    copies.note_retransmitted(&tried(&mut store, 3), first);
    assert!(copies.next_reinjection(first, |_| true).is_none(), "the path that tries it again");
    assert_eq!(copies.next_reinjection(second, |_| true).map(|record| record.tries), Some(3));
    assert!(copies.next_reinjection(second, |_| true).is_none() && !copies.reinjections_wait());
}

#[test]
fn a_path_that_is_probed_gets_each_segment_once_the_oldest_first() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut copies = RedundantCopies::new(&Hedge::default());
    copies.note(&tried(&mut store, 1));
    assert!(copies.next(|_| true).is_none(), "nobody wants copies");
    copies.want(true);
    (1..=3).for_each(|tries| copies.note(&tried(&mut store, tries)));
    let order: Vec<u8> = std::iter::from_fn(|| copies.next(|_| true)).map(|record| record.tries).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn what_does_not_fit_now_waits() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut copies = RedundantCopies::new(&Hedge::default());
    copies.want(true);
    copies.note(&tried(&mut store, 1));
    copies.note_retransmitted(&tried(&mut store, 3), PathId(0));
    copies.note_retransmitted(&SegmentRecord { len: 8, ..tried(&mut store, 4) }, PathId(0));
    assert!(copies.next(|_| false).is_none());
    let small = copies.next_reinjection(PathId(1), |record| record.len < 10);
    assert_eq!(small.map(|record| record.tries), Some(4), "what is behind it may fit");
    assert_eq!(copies.next_reinjection(PathId(1), |_| true).map(|record| record.tries), Some(3));
    assert!(copies.next(|_| true).is_some());
}
