use super::*;
use crate::packet::TrainId;
use crate::packet::{FlowKey, Offload, TrainStore};

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A segment of a train of its own, first sent at that time.
fn record(store: &mut TrainStore, first_sent: Time) -> SegmentRecord {
    let packet = [[0x45, 0, 0, 20].as_slice(), &[0; 16]].concat();
    store.read_buffer()[..20].copy_from_slice(&packet);
    let train: TrainId = store.admit(20, Offload::default()).expect("a packet");
    SegmentRecord {
        segment: SegmentRef { train, segment: 0 },
        bucket: FlowBucket::default(),
        sequence: FlowSequence::of(first_sent.as_micros()),
        flags: DataFlags::default(),
        len: 20,
        tries: 1,
        first_sent,
        treatment: Default::default(),
    }
}

#[test]
fn what_was_first_sent_first_goes_first_whoever_lost_it_when() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    for ms in [5, 9, 1, 7, 7, 3] {
        queue.push(record(&mut store, at(ms)));
    }
    assert_eq!(queue.bytes(), ByteCount(120));
    let order: Vec<Time> = std::iter::from_fn(|| queue.pop()).map(|record| record.first_sent).collect();
    assert_eq!(order, [1, 3, 5, 7, 7, 9].map(at));
    assert!(queue.is_empty() && queue.bytes() == ByteCount::ZERO);
}

#[test]
fn what_arrived_after_all_is_taken_out_once() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    let all = [1, 2, 3].map(|ms| record(&mut store, at(ms)));
    all.iter().for_each(|record| queue.push(*record));
    assert!(queue.cancel(all[1].segment).is_some());
    assert!(queue.cancel(all[1].segment).is_none());
    assert_eq!(queue.bytes(), ByteCount(40));
    assert_eq!(queue.pop().map(|record| record.segment), Some(all[0].segment));
}

#[test]
fn what_is_too_old_or_was_tried_too_often_is_of_no_use() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let useful = Duration::from_millis(100);
    let cases = [(100, 1, false), (101, 1, true), (50, MAX_TRIES - 1, false), (50, MAX_TRIES, true)];
    for (now, tries, useless) in cases {
        let mut queue = RetransmitQueue::default();
        queue.push(SegmentRecord { tries, ..record(&mut store, at(0)) });
        assert_eq!(queue.pop_useless(at(now), useful).is_some(), useless, "{now} ms, {tries} tries");
        assert_eq!(queue.is_empty(), useless);
    }
}

#[test]
fn what_is_not_to_be_sent_again_is_given_up_at_once() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    queue.push(record(&mut store, at(1)));
    queue.push(SegmentRecord {
        treatment: Treatment { resend: false, ..Treatment::default() },
        ..record(&mut store, at(2))
    });
    assert_eq!(queue.bytes(), ByteCount(20), "the other one waits");
    let given_up = queue.pop_refused().expect("the one that is not retransmitted");
    assert_eq!(given_up.first_sent, at(2));
    assert!(queue.pop_refused().is_none() && !queue.is_empty());
}
