//! Long queues are shortened.

use super::*;

/// A flow that sends a train of two segments every 5 ms for 800 ms, of which one leaves; and the pull at which CoDel acts.
fn long_queue(kept: Duration, ect: bool) -> (Bench, Pulled) {
    let mut bench = Bench::new(QueueParams::default());
    bench.queue.set_kept(kept);
    bench.queue.set_codel(MS * 380, MS * 40);
    for ms in (0..795).step_by(5) {
        bench.now = Time::ZERO + MS * ms;
        bench.enqueue(1, 2, ect);
        assert!(!bench.pull(&mut |_| segments(1)).expect("much waits").marked);
    }
    assert_eq!(bench.dropped, []);
    bench.now = Time::ZERO + MS * 800;
    let pulled = bench.pull(&mut |_| segments(1)).expect("much waits");
    (bench, pulled)
}

fn waiting(bench: &Bench) -> Vec<SegmentRef> {
    bench.model.values().flatten().map(|(segment, _)| *segment).collect()
}

#[test]
fn a_drop_from_a_long_queue_leaves_what_lasts_so_long_and_the_newest_train_behind_one_hole() {
    let (all, _) = long_queue(Duration::MAX, true);
    let expected = waiting(&all);
    for (kept, left) in [(50, 10), (100, 20), (195, 38)] {
        let (mut bench, pulled) = long_queue(MS * kept, false);
        let waiting = waiting(&bench);
        let (ahead, newest) = waiting.split_at(waiting.len() - 2);
        assert_eq!((pulled.count, ahead.len()), (1, left), "{kept} ms of 800 ms with 159 segments, one every 5 ms");
        assert_eq!((ahead, newest), (&expected[..left], &expected[expected.len() - 2..]));
        assert!(bench.dropped.iter().all(|d| d.reason == DropReason::Codel));
        bench.check();
        bench.drain();
    }
}

#[test]
fn one_segment_goes_where_less_than_three_quarters_of_the_queue_would() {
    for kept in [MS * 205, Duration::MAX] {
        let (mut bench, _) = long_queue(kept, false);
        assert_eq!(bench.dropped.len(), 1, "{kept:?} of 800 ms");
        bench.drain();
    }
}

#[test]
fn a_long_queue_is_marked_and_not_shortened_where_ecn_allows() {
    let (mut bench, pulled) = long_queue(MS * 100, true);
    assert!(pulled.marked);
    assert_eq!(bench.dropped, []);
    bench.drain();
}

#[test]
fn a_long_queue_of_one_or_two_trains_loses_its_head() {
    for trains in [1, 2] {
        let mut bench = Bench::new(QueueParams::default());
        bench.queue.set_kept(MS * 100);
        (0..trains).for_each(|_| _ = bench.enqueue(1, 20, false));
        for ms in [50, 100, 150] {
            bench.now = Time::ZERO + MS * ms;
            bench.pull(&mut |_| segments(1)).expect("much waits");
        }
        assert_eq!(bench.dropped.len(), 1, "{trains} trains");
        bench.drain();
    }
}

/// An outage of 3 s, in which trains of two segments come every 10 ms for 1.2 s; then one segment leaves a millisecond.
/// Gives when CoDel drops first, where after the outage a train of two comes every `every` milliseconds.
fn first_drop_after_an_outage(every: u32) -> Option<u32> {
    let mut bench = Bench::new(QueueParams::default());
    bench.queue.set_kept(MS * 50);
    bench.queue.set_codel(MS * 100, MS * 100);
    for ms in (0..1_200).step_by(10) {
        bench.now = Time::ZERO + MS * ms;
        bench.enqueue(1, 2, false);
    }
    for ms in 0..1_000 {
        bench.now = Time::ZERO + MS * (3_000 + ms);
        bench.pull(&mut |_| segments(1));
        if !bench.dropped.is_empty() {
            return Some(ms);
        }
        if ms % every == 0 {
            bench.enqueue(1, 2, false);
        }
    }
    bench.drain();
    None
}

#[test]
fn what_waited_for_the_links_in_an_outage_is_kept_and_what_comes_then_is_judged_as_ever() {
    // 240 ms of queue, which a sender of a quarter of the rate lets go, and one of all of it keeps for ever: the first
    // segment after the outage has waited for 240 ms, and an interval later it is a standing queue.
    assert_eq!(first_drop_after_an_outage(8), None);
    assert_eq!(first_drop_after_an_outage(2), Some(340));
}
