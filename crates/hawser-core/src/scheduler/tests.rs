use super::*;
use crate::policy::overflow::Overflow;
use crate::policy::tests::path;
use crate::policy::{FlowsView, PathSet, Policy};
use crate::wire::FlowBucket;
use std::time::Duration;

pub(super) fn flow(backlog: u64, busy_ms: u64) -> FlowView {
    FlowView {
        bucket: FlowBucket::of_hash(7),
        tag: None,
        backlog: ByteCount(backlog),
        queue_backlog: ByteCount(backlog),
        sparse: busy_ms == 0,
        head_wait: Duration::from_millis(busy_ms),
        head_len: ByteCount(1400),
        backlogged_for: Duration::from_millis(busy_ms),
        sent_in_burst: ByteCount(0),
        flows: 1,
        treatment: crate::rules::Treatment::default(),
    }
}

const START: Time = Time::from_nanos(1_000_000_000);
pub(super) const ROOM: Room = Room { bytes: ByteCount(64_000), segments: 44 };

/// What the policy decides on these paths.
fn decided(tuning: Tuning, paths: &[PathView]) -> Decisions {
    Policy::new(START, tuning).update(START, paths, &FlowsView { adaptive: true, overflows: 0 })
}

/// Where no rule names links.
fn usable(paths: &[PathView]) -> Allowed {
    let mut allowed = Allowed::default();
    let link = crate::units::LinkTag::default();
    allowed.refresh(paths.iter().map(|view| Candidate { link, works: view.usable, hoped_for: view.usable, tier: 0 }));
    allowed
}

/// Whether `path` takes from a flow with these bytes in the queue.
fn takes_as(tuning: &Tuning, decisions: &Decisions, paths: &[PathView], path: usize, backlog: u64) -> bool {
    let allowed = usable(paths);
    let round = Round { now: START, paths, allowed: &allowed, decisions, tuning };
    Scheduler::default().choose(&round, path, &flow(backlog, 0), ROOM) != Choice::Skip
}

fn takes(paths: &[PathView], path: usize, backlog: u64) -> bool {
    let tuning = Tuning::default();
    takes_as(&tuning, &decided(tuning, paths), paths, path, backlog)
}

#[test]
fn sparse_flows_go_by_the_fastest_path() {
    let paths = [path(40, 10), path(10, 40)];
    assert!(takes(&paths, 0, 100));
    assert!(!takes(&paths, 1, 100));
}

#[test]
fn a_slow_path_takes_what_it_brings_home_sooner() {
    let paths = [path(40, 10), path(10, 40)];
    // 30 ms of the fast path's rate are 150 kB: behind more than that, the slow path is sooner; an
    // active path starts at a tenth of it.
    assert!(!takes(&paths, 1, 14_000));
    assert!(takes(&paths, 1, 16_000));
    let left_out = [path(100, 10), path(5, 75)];
    assert!(!takes(&left_out, 1, 800_000));
    assert!(takes(&left_out, 1, 820_000));
}

#[test]
fn a_flow_goes_by_the_fastest_of_its_rules_paths_and_never_by_another() {
    let links = [crate::units::LinkTag(1), crate::units::LinkTag(2)];
    let treatment = crate::rules::Treatment::default();
    let rule = |links: &[_]| crate::rules::Rule { via: crate::rules::Via::in_order(links, true), ..Default::default() };
    let rules = crate::rules::Rules::new(vec![rule(&links[1..]), rule(&links[..1])], treatment);
    let mut allowed = Allowed::default();
    allowed.follow(&rules);
    allowed.refresh(links.map(|link| Candidate { link, works: true, hoped_for: true, tier: 0 }).into_iter());
    let (paths, tuning) = ([path(40, 10), path(10, 40)], Tuning::default());
    let decisions = decided(tuning, &paths);
    let round = Round { now: START, paths: &paths, allowed: &allowed, decisions: &decisions, tuning: &tuning };
    for (at, rule) in [(1, 1), (0, 2)] {
        let treatment = crate::rules::Treatment { rule: crate::rules::RuleId(rule), ..treatment };
        for backlog in [100, 10_000_000] {
            let flow = FlowView { treatment, ..flow(backlog, 0) };
            let takes = [0, 1].map(|path| Scheduler::default().choose(&round, path, &flow, ROOM));
            assert!(matches!(takes[at], Choice::Take { .. }), "rule {rule}, {backlog} bytes: {takes:?}");
            assert_eq!(takes[1 - at], Choice::Foreign, "rule {rule}, {backlog} bytes");
        }
    }
}

#[test]
fn a_path_takes_at_its_threshold_by_whether_it_is_active() {
    let (active, outside) = ([path(40, 10), path(10, 40)], [path(300, 8), path(3, 40)]);
    // 30 ms at 40 Mbit/s are 150 kB, 32 ms at 300 Mbit/s are 1.2 MB.
    let table = [(&active, 0.1, 15_000), (&active, 1.0, 150_000), (&outside, 0.1, 1_200_000)];
    for (paths, threshold, from) in table {
        let tuning = Tuning::default();
        let decisions = Decisions { overflow: Overflow { threshold }, ..decided(tuning, paths) };
        let takes = |backlog| takes_as(&tuning, &decisions, paths, 1, backlog);
        assert!(!takes(from / 100 * 99) && takes(from / 100 * 101), "from {from} bytes on");
    }
}

#[test]
fn a_queue_of_the_slow_path_counts_whole() {
    let paths = [path(40, 10), PathView { delay_us: 60_000, ..path(10, 40) }];
    assert!(!takes(&paths, 1, 110_000), "20 ms of queue and a tenth of 30 ms are 115 kB");
    assert!(takes(&paths, 1, 120_000));
}

#[test]
fn what_was_lost_goes_by_the_path_that_delivers_it_first() {
    let retransmitted_by = |paths: &[PathView], ahead| {
        let (tuning, decisions) = (Tuning::default(), decided(Tuning::default(), paths));
        let allowed = usable(paths);
        let round = Round { now: START, paths, allowed: &allowed, decisions: &decisions, tuning: &tuning };
        let takes = |&path: &usize| takes_retransmit(&round, path, PathSet::ALL, ByteCount(ahead));
        (0..paths.len()).filter(takes).collect::<Vec<_>>()
    };
    let apart = [path(40, 10), path(10, 40)];
    assert_eq!(retransmitted_by(&apart, 1_400), [0]);
    assert_eq!(retransmitted_by(&apart, 140_000), [0], "30 ms of the first path are 150 kB");
    assert_eq!(retransmitted_by(&apart, 160_000), [0, 1]);
}
