//! Flows of several priorities, and what can go nowhere.

use super::*;
use crate::rules::Treatment;
use crate::treatment::RuleId;

/// A train of one segment of the flow with this port, treated with this priority.
fn enqueue_at(bench: &mut Bench, port: u16, priority: i8) -> FlowBucket {
    enqueue_as(bench, port, Treatment { priority, ..Treatment::default() })
}

fn enqueue_as(bench: &mut Bench, port: u16, treatment: Treatment) -> FlowBucket {
    let sample = Sample { ports: (port, 1), payload: 1_000, ..Sample::default() };
    let (packet, offload) = sample.partial();
    let id = admit(&mut bench.store, &packet, offload);
    bench.store.treat(id, treatment);
    let train = bench.store.train(id);
    let (bucket, len) = (bench.queue.place(bench.now, train.flow()), train.segment_len(0) as u64);
    bench.model.entry(bucket).or_default().push_back((SegmentRef { train: id, segment: 0 }, len));
    let mut dropped = Vec::new();
    bench.queue.enqueue(bench.now, id, &mut bench.store, &mut |d| dropped.push(d));
    bench.lose(dropped);
    bucket
}

#[test]
fn flows_of_a_higher_priority_leave_first_and_the_others_are_not_starved() {
    let mut bench = Bench::new(QueueParams::default());
    let mut turns = [0; 3];
    for _ in 0..400 {
        let buckets = [(1, -1), (2, 0), (3, 2)].map(|(port, priority)| enqueue_at(&mut bench, port, priority));
        let pulled = bench.pull(&mut |_| segments(1)).expect("something waits");
        turns[buckets.iter().position(|bucket| *bucket == pulled.bucket).expect("one of them")] += 1;
    }
    // One turn in seventeen is for the two lower ones.
    assert!(turns[2] > 360 && turns[0] > 8 && turns[1] > 8, "{turns:?}");
    // A path that takes nothing of the first has the others, in their order.
    let mut seen = Vec::new();
    bench.pull(&mut |view| {
        seen.push(view.treatment.priority);
        Choice::Skip
    });
    seen.sort_unstable();
    assert_eq!(seen, [-1, 0, 2]);
    bench.drain();
}

#[test]
fn what_waits_at_a_lower_priority_has_its_turn_where_the_last_of_a_higher_one_is_dropped() {
    let mut bench = Bench::new(QueueParams::default());
    let higher = enqueue_at(&mut bench, 1, 1);
    enqueue_at(&mut bench, 1, 1);
    let lower = enqueue_at(&mut bench, 2, 0);
    for _ in 0..3 {
        enqueue_at(&mut bench, 2, 0);
    }
    let mut pull_at = |ms: u32, skips: bool| {
        bench.now = Time::ZERO + MS * ms;
        let choose = &mut |view: &FlowView| if skips && view.bucket == higher { Choice::Skip } else { segments(1) };
        bench.pull(choose).map(|pulled| pulled.bucket)
    };
    assert_eq!(pull_at(10, false), Some(higher));
    assert_eq!(pull_at(60, true), Some(lower), "all are served meanwhile: it is no outage");
    assert_eq!(pull_at(115, false), Some(lower));
    assert_eq!(bench.dropped.iter().map(|dropped| dropped.bucket).collect::<Vec<_>>(), [higher]);
    bench.drain();
}

#[test]
fn a_flow_that_wakes_with_another_priority_changes_its_place() {
    let mut bench = Bench::new(QueueParams::default());
    for (one, other) in [(-3, 3), (3, -3), (0, 0), (1, 2)] {
        let first = enqueue_at(&mut bench, 1, one);
        enqueue_at(&mut bench, 2, 0);
        bench.check();
        // It is empty, and its turn has not come yet.
        while bench.pull(&mut |view| if view.bucket == first { ALL } else { Choice::Skip }).is_some() {}
        enqueue_at(&mut bench, 1, other);
        bench.check();
        bench.drain();
    }
}

#[test]
fn what_can_go_nowhere_is_dropped_and_those_behind_it_have_their_turn() {
    let mut bench = Bench::new(QueueParams::default());
    let lost: Vec<FlowBucket> = (10..40).map(|port| enqueue_at(&mut bench, port, 0)).collect();
    let other = bench.enqueue(1, 3, false);
    let pulled = bench.pull(&mut |view| if lost.contains(&view.bucket) { Choice::Discard } else { ALL });
    assert_eq!(pulled.map(|pulled| pulled.bucket), Some(other), "more of them than flows are looked at");
    assert_eq!(bench.dropped.len(), lost.len());
    assert!(bench.dropped.iter().all(|dropped| dropped.reason == DropReason::Discarded));
    bench.drain();
}

#[test]
fn flows_of_a_rule_that_a_path_declines_hide_none_of_another() {
    let ruled = |rule| Treatment { rule: RuleId(rule), ..Treatment::default() };
    // Of more than eight treatments the others share a count.
    for (rules, each, found) in [(1, 40, true), (7, 40, true), (8, 40, false), (9, 40, false), (9, 1, true)] {
        let mut bench = Bench::new(QueueParams::default());
        for (port, rule) in (1..=each).flat_map(|port| (1..=rules).map(move |rule| (port + rule * 100, rule))) {
            enqueue_as(&mut bench, port, ruled(rule));
        }
        let other = enqueue_at(&mut bench, 1, 0);
        let mut asked = 0;
        let pulled = bench.pull(&mut |view| {
            asked += 1;
            if view.treatment.rule == RuleId::default() { ALL } else { Choice::Skip }
        });
        assert_eq!(pulled.map(|pulled| pulled.bucket), found.then_some(other), "{rules} rules of {each}");
        assert_eq!(asked, each.min(16) * rules.min(if each == 1 { 9 } else { 8 }) + u16::from(found), "{rules} rules");
    }
}
