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
        order: SendOrder((first_sent.as_micros() / 1_000) as u32),
        first_sent,
        treatment: Default::default(),
    }
}

#[test]
fn what_was_first_sent_first_goes_first_whoever_lost_it_when() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    for ms in [5, 9, 1, 7, 7, 3] {
        queue.extend([record(&mut store, at(ms))].into_iter());
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
    queue.extend(all.into_iter());
    assert!(queue.cancel(&all[1]).is_some());
    assert!(queue.cancel(&all[1]).is_none());
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
        queue.extend([SegmentRecord { tries, ..record(&mut store, at(0)) }].into_iter());
        assert_eq!(queue.pop_useless(at(now), useful).is_some(), useless, "{now} ms, {tries} tries");
        assert_eq!(queue.is_empty(), useless);
    }
}

#[test]
fn what_is_not_to_be_sent_again_is_given_up_at_once() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    let refused = Treatment { resend: false, ..Treatment::default() };
    let [second, third] = [2, 3].map(|ms| SegmentRecord { treatment: refused, ..record(&mut store, at(ms)) });
    queue.extend([record(&mut store, at(1)), second, third].into_iter());
    assert_eq!(queue.bytes(), ByteCount(20), "the other one waits");
    // The oldest first: each GONE takes the place of the one before.
    let given_up = [(); 2].map(|()| queue.pop_refused().expect("those that are not retransmitted").first_sent);
    assert_eq!(given_up, [at(2), at(3)]);
    assert!(queue.pop_refused().is_none() && !queue.is_empty());
}

/// What a path handed back after a silence is acknowledged late, in whatever order: the work grows as the number does.
#[test]
fn thousands_that_arrive_after_all_cost_a_search_by_halves_each() {
    const MANY: u64 = 20_000;
    // The n-th to be acknowledged, from a first one on and this many places further each time.
    for (what, first, stride) in [("in order", 0, 1), ("the newest first", MANY - 1, MANY - 1), ("scattered", 0, 7_919)]
    {
        let place = |n: u64| (first + n * stride) % MANY;
        let mut store = TrainStore::new(FlowKey::new(1, 2));
        let mut queue = RetransmitQueue::default();
        let all: Vec<SegmentRecord> = (0..MANY).map(|ms| record(&mut store, at(ms))).collect();
        queue.extend(all.iter().copied());
        for n in 0..MANY {
            let wanted = &all[place(n) as usize];
            assert_eq!(queue.cancel(wanted).map(|record| record.segment), Some(wanted.segment), "{what}");
            assert!(queue.cancel(wanted).is_none());
        }
        assert!(queue.is_empty() && queue.bytes() == ByteCount::ZERO);
        // Fewer than 2^15 places: at most 17 looks for each of two searches, and each place is let go of once.
        let steps = queue.steps.get();
        assert!(steps <= MANY * (2 * 17 + 1), "{what}: {steps} steps");
    }
}

/// Several paths hand back what they had under way at the same time.
#[test]
fn thousands_of_several_paths_are_put_in_order_once() {
    const MANY: u64 = 20_000;
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    let all: Vec<SegmentRecord> = (0..MANY).map(|ms| record(&mut store, at(ms))).collect();
    for path in [3, 1, 0, 2] {
        queue.extend(all.iter().skip(path).step_by(4).copied());
    }
    assert!(queue.steps.get() <= 3 * MANY, "{} steps", queue.steps.get());
    let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|record| record.order.0).collect();
    assert_eq!(order, (0..MANY as u32).collect::<Vec<_>>());
}

#[test]
fn the_order_goes_on_beyond_its_largest_number() {
    let mut store = TrainStore::new(FlowKey::new(1, 2));
    let mut queue = RetransmitQueue::default();
    let of = |store: &mut TrainStore, order| SegmentRecord { order: SendOrder(order), ..record(store, at(1)) };
    queue.extend([of(&mut store, 1), of(&mut store, u32::MAX), of(&mut store, 0)].into_iter());
    let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).map(|record| record.order.0).collect();
    assert_eq!(order, [u32::MAX, 0, 1]);
}
