//! CoDel drops or marks what stands, and what is behind it is asked for.

use super::*;

/// A flow that always has 20 ms waiting, pulled every millisecond for two seconds.
fn standing_queue(ect: bool) -> (Bench, usize) {
    let mut bench = Bench::new(QueueParams::default());
    let mut marked = 0;
    for ms in 0..2_000 {
        bench.enqueue(1, 2, ect);
        if ms >= 20 {
            let mut room = 2;
            while room > 0 {
                let pulled = bench.pull(&mut |_| segments(room)).unwrap();
                room -= pulled.count;
                marked += usize::from(pulled.marked);
            }
        }
        bench.now = bench.now + MS;
    }
    (bench, marked)
}

#[test]
fn codel_drops_single_segments_of_a_standing_queue() {
    let (bench, marked) = standing_queue(false);
    let drops = bench.dropped.iter().filter(|d| d.reason == DropReason::Codel).count();
    assert!((20..200).contains(&drops), "{drops}");
    assert_eq!(marked, 0);
    let wait = bench.queue.head_wait(bench.now);
    assert!(wait < MS * 20, "shorter than without: {wait:?}");
}

#[test]
fn what_is_behind_a_dropped_packet_is_asked_for_by_its_own_size() {
    let mut bench = Bench::new(QueueParams::default());
    for round in 0..2_000 {
        for payload in [400, 900] {
            bench.enqueue_bytes(1, payload, false);
        }
        // Of two datagrams in a batch neither is longer than the first: `Bench::pull` looks at what it gets.
        if round >= 20 {
            bench.pull(&mut |_| segments(1)).expect("a queue stands");
            bench.pull(&mut |_| segments(1)).expect("a queue stands");
        }
        bench.now = bench.now + MS;
    }
    let dropped = bench.dropped.iter().filter(|dropped| dropped.reason == DropReason::Codel).count();
    assert!(dropped >= 20, "{dropped}");
}

#[test]
fn codel_marks_where_ecn_allows() {
    let (bench, marked) = standing_queue(true);
    assert!((20..200).contains(&marked), "{marked}");
    assert_eq!(bench.dropped, []);
}
