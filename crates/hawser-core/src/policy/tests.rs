use super::*;

/// A path in words: Mbit/s, one-way delay in ms.
pub(crate) fn path(mbit: u64, delay_ms: i64) -> PathView {
    PathView {
        id: PathId(0),
        weight: Weight::default(),
        usable: true,
        delay_us: delay_ms * 1_000,
        floor_us: delay_ms * 1_000,
        jitter_us: 0,
        least_rtt: Duration::from_millis(2 * delay_ms.unsigned_abs()),
        spread: Duration::ZERO,
        rate: Some(Rate::from_bits(mbit * 1_000_000)),
        variation: Some(0.0),
        loss: 0.0,
        ready_in: Duration::from_micros(100),
        probing: false,
        idle_for: Duration::ZERO,
        last_given: Time::ZERO,
        known_since: Time::ZERO,
    }
}

const FLOWS: FlowsView = FlowsView { adaptive: true, overflows: 0 };

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(10_000 + ms)
}

fn policy() -> Policy {
    Policy::new(at(0), Tuning::default())
}

/// Paths with these names in their order.
fn named(paths: &[PathView]) -> Vec<PathView> {
    (0..).zip(paths).map(|(id, view)| PathView { id: PathId(id), ..*view }).collect()
}

#[test]
fn what_a_batch_waits_for_is_decided_at_once_and_the_rest_ten_times_a_second() {
    let mut policy = policy();
    let mut paths = named(&[path(100, 10), path(5, 100)]);
    let first = policy.update(at(0), &paths, &FLOWS);
    assert_eq!((first.fastest, first.active_set), (0, PathSet::NONE.with(0)));
    (paths[0].delay_us, paths[0].floor_us) = (300_000, 300_000);
    paths[1].probing = true;
    let soon = policy.update(at(99), &paths, &FLOWS);
    assert_eq!((soon.fastest, soon.active_set, soon.aqm), (1, first.active_set, first.aqm));
    assert_eq!((soon.probes.by_copies, soon.probes.copies_kept), (PathSet::NONE.with(1), false));
    paths[1].probing = false;
    let later = policy.update(at(100), &paths, &FLOWS);
    assert!(later.active_set.contains(1) && later.aqm != first.aqm);
    assert_eq!(*policy.decisions(), later);
}

#[test]
fn whatever_was_decided_on_paths_is_decided_anew_when_one_comes_or_goes() {
    let mut policy = policy();
    let paths = named(&[path(100, 10), path(5, 100)]);
    let all = PathSet::ALL;
    assert!(!policy.update(at(0), &paths, &FLOWS).anew);
    policy.reconsider();
    assert_eq!(policy.decisions().active_set, all);
    let next = policy.update(at(1), &paths, &FLOWS);
    assert!(next.anew && next.active_set != all);
    assert!(!policy.update(at(2), &paths, &FLOWS).anew);
}

#[test]
fn where_no_flow_is_adaptive_every_path_is_active_and_none_is_probed_with_copies() {
    let paths = named(&[path(100, 10), PathView { probing: true, ..path(5, 100) }]);
    let decide = |adaptive| policy().update(at(0), &paths, &FlowsView { adaptive, ..FLOWS });
    let (with, without) = (decide(true), decide(false));
    assert!(!with.active_set.contains(1) && with.probes.by_copies.contains(1) && with.probes.copies_kept);
    assert!(without.active_set.contains(1) && without.probes == Probes::default());
}

#[test]
fn a_path_left_out_is_restarted_after_five_seconds_unless_another_scheduler_used_it_or_it_began_anew() {
    let restarted = |change: &dyn Fn(u64, &mut PathView)| {
        let mut policy = policy();
        let mut paths = named(&[path(100, 10), path(5, 100)]);
        let restarts = |tenth: u64| {
            change(tenth, &mut paths[1]);
            let restart = policy.update(at(tenth * 100), &paths, &FLOWS).probes.restart;
            restart.iter().next().map(|index| (tenth, index))
        };
        (0..120).filter_map(restarts).collect::<Vec<_>>()
    };
    assert_eq!(restarted(&|_, _| ()), [(50, 1)]);
    assert_eq!(restarted(&|tenth, view| view.last_given = at(tenth * 100)), []);
    assert_eq!(restarted(&|_, view| view.usable = false), []);
    let moved = |tenth, view: &mut PathView| view.known_since = if tenth < 30 { Time::ZERO } else { at(3_000) };
    assert_eq!(restarted(&moved), [(80, 1)]);
}

#[test]
fn idleness_counts_since_it_was_last_judged_and_only_with_what_others_took() {
    let mut policy = policy();
    let mut paths = named(&[path(40, 10), path(10, 40)]);
    let mut threshold = |tenth: u64, idle_ms: u64, overflows: u64| {
        paths[0].idle_for = Duration::from_millis(idle_ms);
        policy.update(at(tenth * 100), &paths, &FlowsView { overflows, ..FLOWS }).overflow.threshold
    };
    // Tenth of a second, idle altogether in ms, batches of others altogether, threshold.
    for (tenth, idle_ms, overflows, expected) in
        [(1, 0, 0, 0.1), (2, 50, 1, 0.35), (3, 50, 2, 0.3), (4, 100, 2, 0.3), (5, 150, 3, 0.55)]
    {
        let found = threshold(tenth, idle_ms, overflows);
        assert!((found - expected).abs() < 1e-9, "after {tenth} tenths: {found}");
    }
}

#[test]
fn a_path_that_becomes_the_fastest_is_not_judged_by_what_it_idled_before() {
    let mut policy = policy();
    let mut paths = named(&[path(40, 10), path(40, 20)]);
    paths[1].idle_for = Duration::from_secs(5);
    for (tenth, fastest) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
        paths[0].delay_us = if fastest == 0 { 10_000 } else { 30_000 };
        paths[0].floor_us = paths[0].delay_us;
        let decisions = policy.update(at(tenth * 100), &paths, &FlowsView { overflows: tenth, ..FLOWS });
        assert_eq!(decisions.fastest, fastest);
        // Each new path's first look is at all that it ever idled.
        if tenth > 1 {
            assert!(decisions.overflow.threshold < 0.2, "after {tenth} tenths: {}", decisions.overflow.threshold);
        }
    }
}

#[test]
fn while_no_rate_is_known_the_queue_stays_as_it_is() {
    let mut policy = policy();
    let mut paths = named(&[PathView { rate: None, ..path(40, 10) }]);
    assert_eq!(policy.update(at(0), &paths, &FLOWS).aqm, None);
    paths[0].rate = Some(Rate::from_bits(40_000_000));
    let known = policy.update(at(100), &paths, &FLOWS).aqm;
    assert_eq!(known.map(|aqm| aqm.target), Some(Duration::from_millis(100)));
    paths[0].rate = None;
    assert_eq!(policy.update(at(200), &paths, &FLOWS).aqm, known);
    assert_eq!(policy.update(at(300), &[], &FLOWS).aqm, known, "nor without any path");
}
