use super::*;
use crate::wire::FlowBucket;

/// A path in words: Mbit/s, one-way delay in ms.
pub(super) fn path(mbit: u64, delay_ms: i64) -> PathView {
    PathView {
        id: crate::units::PathId(0),
        weight: Weight::default(),
        usable: true,
        delay_us: delay_ms * 1_000,
        floor_us: delay_ms * 1_000,
        jitter_us: 0,
        rtt: Duration::from_millis(2 * delay_ms.unsigned_abs()),
        least_rtt: Duration::from_millis(2 * delay_ms.unsigned_abs()),
        spread: Duration::ZERO,
        rate: Some(Rate::from_bits(mbit * 1_000_000)),
        window: ByteCount(14_000),
        loss: 0.0,
        ready_in: Duration::from_micros(100),
        exploring: false,
    }
}

pub(super) fn flow(backlog: u64, busy_ms: u64) -> FlowView {
    FlowView {
        bucket: FlowBucket::of_hash(7),
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

#[test]
fn jitter_beyond_an_eighth_of_the_round_trip_is_the_paths_own_where_packets_overtake_each_other() {
    let own = |spread_ms| {
        let spread = Duration::from_millis(spread_ms);
        PathView { jitter_us: 30_000, spread, ..path(50, 40) }.own_jitter()
    };
    assert_eq!([0, 10, 50, 90].map(own), [10, 10, 25, 30].map(Duration::from_millis));
}

const START: Time = Time::from_nanos(1_000_000_000);
pub(super) const ROOM: Room = Room { bytes: ByteCount(64_000), segments: 44 };

fn takes(paths: &[PathView], path: usize, flow: &FlowView) -> bool {
    let mut scheduler = Scheduler::default();
    let now = Time::from_nanos(1_000_000_000);
    scheduler.refresh(now, paths);
    matches!(scheduler.choose(now, path, paths, flow, ROOM), Choice::Take { .. })
}

fn chosen(paths: &[PathView], path: usize) -> bool {
    let mut scheduler = Scheduler::default();
    scheduler.refresh(Time::from_nanos(1_000_000_000), paths);
    scheduler.is_chosen(path)
}

#[test]
fn thin_flows_go_by_the_fastest_path() {
    let paths = [path(40, 10), path(10, 40)];
    assert!(takes(&paths, 0, &flow(100, 0)));
    assert!(!takes(&paths, 1, &flow(100, 0)));
}

#[test]
fn a_slow_path_takes_what_it_brings_home_sooner() {
    let paths = [path(40, 10), path(10, 40)];
    // 30 ms of the fast path's rate are 150 kB: behind more than that, the slow path is sooner; a
    // chosen path starts at a tenth of it.
    assert!(!takes(&paths, 1, &flow(14_000, 0)));
    assert!(takes(&paths, 1, &flow(16_000, 0)));
    let left_out = [path(100, 10), path(5, 75)];
    assert!(!takes(&left_out, 1, &flow(800_000, 0)));
    assert!(takes(&left_out, 1, &flow(820_000, 0)));
}

#[test]
fn every_path_that_is_worth_its_delay_to_a_bulk_flow_is_chosen() {
    struct Case(&'static str, Vec<PathView>, &'static [bool]);
    let with_jitter = |mut p: PathView, ms: i64| {
        p.jitter_us = ms * 1_000;
        p
    };
    let with_loss = |mut p: PathView, loss: f64| {
        p.loss = loss;
        p
    };
    let cases = [
        Case("equal", vec![path(50, 10), path(50, 10)], &[true, true]),
        Case("a quarter of the rate at four times the delay", vec![path(40, 10), path(10, 40)], &[true, true]),
        Case("a slow, far and nervous one", vec![path(100, 10), with_jitter(path(5, 75), 10)], &[true, false]),
        Case("a far one that carries more", vec![path(10, 10), path(20, 150)], &[true, true]),
        Case("a near one that carries little", vec![path(1, 1), path(500, 100)], &[true, true]),
        Case("four alike", vec![path(20, 10); 4], &[true; 4]),
        Case("equal and lossy", vec![with_loss(path(50, 10), 0.01), with_loss(path(50, 10), 0.01)], &[true, true]),
        Case("a hundred to one", vec![path(500, 10), path(5, 100)], &[true, false]),
    ];
    for Case(name, paths, expected) in cases {
        for (index, &expected) in expected.iter().enumerate() {
            assert_eq!(chosen(&paths, index), expected, "{name}: path {index}");
        }
    }
}

#[test]
fn a_path_that_is_still_exploring_is_chosen_if_it_costs_little() {
    let exploring = |mbit, delay_ms| PathView { exploring: true, ..path(mbit, delay_ms) };
    assert!(chosen(&[path(100, 10), exploring(1, 12)], 1));
    assert!(!chosen(&[path(100, 10), exploring(5, 75)], 1), "copies explore this one");
}

#[test]
fn while_the_rate_of_the_fastest_path_is_sought_what_costs_much_is_not_chosen() {
    let exploring = |mbit, delay_ms| PathView { exploring: true, ..path(mbit, delay_ms) };
    assert!(!chosen(&[exploring(1, 20), exploring(1, 40)], 1), "a rate of what little was sent says nothing");
    assert!(!chosen(&[exploring(1, 20), path(50, 40)], 1));
    assert!(chosen(&[exploring(1, 20), path(50, 22)], 1));
    assert!(chosen(&[path(50, 20), exploring(50, 40)], 1), "it carries at least that");
}

#[test]
fn a_path_whose_rate_is_sought_promises_a_window_that_doubles() {
    let fastest = PathView { exploring: true, rate: Some(Rate(1_000)), ..path(50, 20) };
    let takes = |slow_ms, backlog| takes(&[fastest, path(50, slow_ms)], 1, &flow(backlog, 0));
    // On top of its delay and 0.1 ms until it is ready.
    assert!(!takes(60, 13_900), "within one round trip of 40 ms");
    assert!(takes(60, 14_100));
    assert!(!takes(320, 14_000 * 176), "within seven and a half");
    assert!(takes(320, 14_000 * 182));
}

#[test]
fn what_spills_over_to_a_path_that_is_not_chosen_pays_for_its_losses() {
    let takes = |loss, backlog| takes(&[path(300, 8), PathView { loss, ..path(30, 40) }], 1, &flow(backlog, 0));
    // 32 ms at 300 Mbit/s; half the packets wait for a repair of 100 ms.
    assert!(!takes(0.0, 1_190_000) && takes(0.0, 1_210_000));
    assert!(!takes(0.005, 3_000_000) && takes(0.005, 3_100_000));
    // Where the fastest loses as much, nothing is gained by waiting.
    let both = [PathView { loss: 0.005, ..path(300, 40) }, PathView { loss: 0.005, ..path(30, 72) }];
    assert!(self::takes(&both, 1, &flow(4_000_000, 0)));
}

#[test]
fn the_fastest_path_keeps_its_place_against_small_differences() {
    let mut scheduler = Scheduler::default();
    let mut paths = [path(50, 10), path(50, 10)];
    scheduler.refresh(Time::ZERO, &paths);
    let first = scheduler.fastest();
    paths[first].delay_us += 900;
    scheduler.refresh(Time::ZERO, &paths);
    assert_eq!(scheduler.fastest(), first);
    paths[first].delay_us += 5_000;
    scheduler.refresh(Time::ZERO, &paths);
    assert_ne!(scheduler.fastest(), first);
}

#[test]
fn the_spill_comes_earlier_while_the_fastest_path_is_busy_and_later_when_it_runs_dry() {
    let paths = [path(40, 10), path(10, 40)];
    let mut scheduler = Scheduler::default();
    scheduler.refresh(Time::from_nanos(1_000_000_000), &paths);
    let takes =
        |s: &mut Scheduler, backlog| matches!(s.choose(START, 1, &paths, &flow(backlog, 0), ROOM), Choice::Take { .. });
    (0..20).for_each(|_| scheduler.on_dry(0.0, false));
    assert!(takes(&mut scheduler, 16_000), "a tenth of 150 kB");
    (0..4).for_each(|_| scheduler.on_dry(0.2, true));
    assert!(!takes(&mut scheduler, 140_000));
    assert!(takes(&mut scheduler, 160_000));
}

#[test]
fn a_path_that_is_not_chosen_waits_longer_after_the_fastest_ran_dry() {
    let paths = [path(300, 8), path(30, 40)];
    let mut scheduler = Scheduler::default();
    scheduler.refresh(Time::from_nanos(1_000_000_000), &paths);
    let takes =
        |s: &mut Scheduler, backlog| matches!(s.choose(START, 1, &paths, &flow(backlog, 0), ROOM), Choice::Take { .. });
    assert!(!takes(&mut scheduler, 1_190_000) && takes(&mut scheduler, 1_210_000), "32 ms at 300 Mbit/s");
    (0..2).for_each(|_| scheduler.on_dry(0.2, true));
    assert!(!takes(&mut scheduler, 2_390_000) && takes(&mut scheduler, 2_410_000), "twice as long");
    (0..50).for_each(|_| scheduler.on_dry(0.0, false));
    assert!(!takes(&mut scheduler, 1_790_000) && takes(&mut scheduler, 1_810_000), "and less again with the time");
    (0..100).for_each(|_| scheduler.on_dry(0.2, true));
    assert!(takes(&mut scheduler, 4_810_000), "but at most four times");
}

#[test]
fn a_queue_of_the_slow_path_counts_whole() {
    let slow = PathView { delay_us: 60_000, ..path(10, 40) };
    let mut scheduler = Scheduler::default();
    let paths = [path(40, 10), slow];
    scheduler.refresh(Time::from_nanos(1_000_000_000), &paths);
    (0..20).for_each(|_| scheduler.on_dry(0.0, false));
    let mut takes =
        |backlog| matches!(scheduler.choose(START, 1, &paths, &flow(backlog, 0), ROOM), Choice::Take { .. });
    assert!(!takes(110_000), "20 ms of queue and a tenth of 30 ms are 115 kB");
    assert!(takes(120_000));
}

#[test]
fn what_a_path_lost_goes_by_another_that_is_hardly_slower() {
    let resent_by = |paths: &[PathView], lost_on| {
        let takes = |&path: &usize| Scheduler::default().takes_resend(path, paths, ByteCount(1_400), lost_on);
        (0..paths.len()).filter(takes).collect::<Vec<_>>()
    };
    let losing = |mbit, delay_ms, loss| PathView { loss, ..path(mbit, delay_ms) };
    let alike = [losing(50, 10, 0.1), path(50, 12)];
    assert_eq!(resent_by(&alike, None), [0]);
    assert_eq!(resent_by(&alike, Some(0)), [1]);
    assert_eq!(resent_by(&alike, Some(1)), [0]);
    // A second loss is too seldom, or costs less than 30 ms more.
    assert_eq!(resent_by(&[losing(50, 10, 0.01), path(50, 12)], Some(0)), [0]);
    assert_eq!(resent_by(&[losing(40, 10, 0.3), path(10, 40)], Some(0)), [0]);
    assert_eq!(resent_by(&[losing(40, 10, 0.3)], Some(0)), [0], "there is no other");
}
