//! Long queues are shortened.

use super::*;

/// A flow with a train of two segments every 10 ms for 800 ms, once CoDel has seen that it waits too long, and the next
/// pull.
fn long_queue(kept: Duration, ect: bool) -> (Bench, Pulled) {
    let mut bench = Bench::new(QueueParams::default());
    bench.queue.set_kept(kept);
    for ms in (0..800).step_by(10) {
        bench.now = Time::ZERO + MS * ms;
        bench.enqueue(1, 2, ect);
        if ms == 600 {
            bench.pull(&mut |_| segments(1)).expect("much waits");
        }
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
        assert_eq!((pulled.count, ahead.len()), (1, left), "{kept} ms of 800 ms with 159 segments");
        assert_eq!((ahead, newest), (&expected[..left], &expected[expected.len() - 2..]));
        assert!(bench.dropped.iter().all(|d| d.reason == DropReason::Codel));
        bench.check();
        bench.drain();
    }
}

#[test]
fn one_segment_goes_where_less_than_three_quarters_of_the_queue_would() {
    for kept in [MS * 201, Duration::MAX] {
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
        for ms in [600, 800] {
            bench.now = Time::ZERO + MS * ms;
            bench.pull(&mut |_| segments(1)).expect("much waits");
        }
        assert_eq!(bench.dropped.len(), 1, "{trains} trains");
        bench.drain();
    }
}
