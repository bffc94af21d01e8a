//! The coupled laws against their papers' formulas, worked out by hand; and shares of a bottleneck on the test bench.

use super::super::balia::Balia;
use super::super::lia::Lia;
use super::super::newreno::NewReno;
use super::super::olia::Olia;
use super::super::testbench::{Bench, Link, MTU};
use super::super::tests::{ack, loss, secs};
use super::super::{Kind, build};
use super::*;

/// A path: window in kB, round trip in ms, kB delivered between losses.
const fn path(window: u64, rtt: u64, delivered: u64) -> PathSnapshot {
    PathSnapshot {
        window: ByteCount(window * 1_000),
        usual: ByteCount(window * 1_000),
        rtt: Duration::from_millis(rtt),
        between_losses: ByteCount(delivered * 1_000),
    }
}

/// How many packets a window grows by for each window acknowledged, and what a loss leaves of it.
fn judged(mut law: impl Law, own: PathSnapshot, siblings: &[PathSnapshot]) -> [f64; 2] {
    law.observe(&own, siblings);
    [law.gain(), law.leaves()]
}

fn holds(name: &str, got: [f64; 2], want: [f64; 2]) {
    assert!((got[0] - want[0]).abs() < 1e-4 && (got[1] - want[1]).abs() < 1e-4, "{name}: {got:?}, not {want:?}");
}

#[test]
fn a_path_alone_is_newreno_under_every_law() {
    for own in [path(10, 20, 0), path(700, 300, 9)] {
        holds("newreno", judged(NewReno, own, &[]), [1.0, 0.5]);
        holds("lia", judged(Lia::new(), own, &[]), [1.0, 0.5]);
        holds("olia", judged(Olia::new(), own, &[]), [1.0, 0.5]);
        holds("balia", judged(Balia::new(), own, &[]), [1.0, 0.5]);
    }
}

#[test]
fn newreno_does_not_look_beside() {
    holds("newreno", judged(NewReno, path(10, 20, 0), &[path(90, 20, 0)]), [1.0, 0.5]);
}

/// Own path, the other: x = w / rtt in kB a ms; the formula by hand; packets a window.
const LIA: [(&str, PathSnapshot, PathSnapshot, f64); 4] = [
    // alpha = 20 · (10 / 40²) / (20 / 40)² = 0.5;  10 · 0.5 / 20
    ("two alike", path(10, 40, 0), path(10, 40, 0), 0.25),
    // max w / rtt² = 90 / 40², (100 / 40)²;  10 · 90 / 100²
    ("a small one", path(10, 40, 0), path(90, 40, 0), 0.09),
    // 90 · 90 / 100²
    ("a large one", path(90, 40, 0), path(10, 40, 0), 0.81),
    // x: 1 and 0.1; max w / rtt²: 20 / 20² = 0.05;  40 · 0.05 / 1.1² = 1.653, not more than NewReno's
    ("the cap", path(40, 400, 0), path(20, 20, 0), 1.0),
];

#[test]
fn lia_grows_as_rfc_6356_has_it() {
    for (name, own, other, gain) in LIA {
        holds(name, judged(Lia::new(), own, &[other]), [gain, 0.5]);
    }
}

/// Own path, the others, packets a window.
const OLIA: [(&str, PathSnapshot, &[PathSnapshot], f64); 6] = [
    // (x / Σ x)² = 0.25; both are best and largest: nobody is collected
    ("two alike", path(10, 40, 50), &[path(10, 40, 50)], 0.25),
    // 0.1² ; the best is the larger
    ("small and worse", path(10, 40, 50), &[path(90, 40, 60)], 0.01),
    // 0.1² + 1 / (2 · 1)
    ("small but better", path(10, 40, 60), &[path(90, 40, 50)], 0.51),
    // 0.9² - 1 / (2 · 1)
    ("large but worse", path(90, 40, 50), &[path(10, 40, 60)], 0.31),
    // 0.25² + 1 / (4 · 2): two of four are collected; x: 10, 10, 10, 10 of 40
    ("one of two collected", path(10, 40, 60), &[path(10, 40, 60), path(20, 80, 50), path(20, 80, 50)], 0.1875),
    // l² / rtt: 50² / 40 = 62.5, 60² / 80 = 45: the shorter is best and smaller; x: 10 / 40, 20 / 80
    ("a longer round trip", path(20, 80, 60), &[path(10, 40, 50)], -0.25),
];

#[test]
fn olia_moves_windows_to_better_paths_as_its_draft_has_it() {
    for (name, own, others, gain) in OLIA {
        holds(name, judged(Olia::new(), own, others), [gain, 0.5]);
    }
}

/// Own path, the other, packets a window, what a loss leaves.
const BALIA: [(&str, PathSnapshot, PathSnapshot, f64, f64); 4] = [
    // share 1/2, alpha 1
    ("two alike", path(10, 40, 0), path(10, 40, 0), 0.25, 0.5),
    // share 1/3, alpha 2:  1/9 · 1.5 · 1.2;  1 - 1.5 / 2
    ("half as fast", path(10, 40, 0), path(20, 40, 0), 0.2, 0.25),
    // share 4/9, alpha 1.25:  16/81 · 1.125 · 1.05;  1 - 1.25 / 2
    ("a little slower", path(8, 40, 0), path(10, 40, 0), 0.233_333, 0.375),
    // share 0.1, alpha 9:  0.01 · 5 · 2.6
    ("by its round trip", path(10, 360, 0), path(10, 40, 0), 0.13, 0.25),
];

#[test]
fn balia_grows_and_shrinks_as_its_draft_has_it() {
    for (name, own, other, gain, leaves) in BALIA {
        holds(name, judged(Balia::new(), own, &[other]), [gain, leaves]);
    }
}

#[test]
fn a_window_grows_by_whole_packets_and_shrinks_likewise_but_not_to_nothing() {
    let mut olia = Aimd::new(Olia::new(), ByteCount(1_000));
    olia.on_loss(&loss(1.0, 0.9));
    assert_eq!(olia.window(), ByteCount(5_000));
    // A sibling of about the same rate with a smaller window and fewer losses.
    let better = PathSnapshot { between_losses: ByteCount(1 << 40), ..path(1, 20, 0) };
    let mut now = 2.0;
    let mut windows = Vec::new();
    for _ in 0..40 {
        olia.on_ack(&ack(now, now - 0.1, 5_000, 0.1), &[better]);
        windows.push(olia.window().0);
        now += 0.1;
    }
    assert!(windows.windows(2).all(|pair| pair[1] <= pair[0] && pair[0] - pair[1] <= 1_000), "{windows:?}");
    assert_eq!(olia.window(), ByteCount(2_000));
    assert!(!olia.in_slow_start(), "it makes room; it does not begin anew");
}

#[test]
fn what_came_between_losses_is_told_to_siblings() {
    let mut lia = Aimd::new(Lia::new(), ByteCount(1_000));
    assert_eq!(lia.coupling(), None, "nothing is known of its round trip");
    let told = |lia: &Aimd<Lia>| lia.coupling().map(|own| own.between_losses.0);
    lia.on_ack(&ack(1.0, 0.9, 7_000, 0.1), &[]);
    assert_eq!(told(&lia), Some(7_000));
    lia.on_loss(&loss(1.1, 1.0));
    lia.on_ack(&ack(1.3, 1.2, 3_000, 0.1), &[]);
    assert_eq!(told(&lia), Some(7_000), "more came before the loss");
    lia.on_loss(&loss(1.5, 1.4));
    assert_eq!(told(&lia), Some(3_000), "only the last two losses count");
    lia.on_spurious_loss(secs(1.6));
    assert_eq!(told(&lia), Some(7_000), "a loss that was none divides nothing");
    assert_eq!(Aimd::new(NewReno, ByteCount(1_000)).coupling(), None);
}

/// Shares of a bottleneck in units of what one NewReno flow gets: two coupled paths, beside `plain` NewReno flows.
fn taken(kind: Kind, link: Link, plain: u64) -> f64 {
    let mut bench = Bench::new(link, 3).coupled(&[0, 1]);
    for flow in 0..2 + plain {
        let kind = if flow < 2 { kind } else { Kind::NewReno };
        bench = bench.flow(build(kind, MTU, flow, crate::congestion::Departures::default()), 300.0 * flow as f64);
    }
    bench.run(20.0);
    bench.measure();
    bench.run(100.0);
    let shares: Vec<f64> = bench.flows.iter().map(|flow| bench.share_of(flow, bench.measure_from, bench.now)).collect();
    let (bond, others) = shares.split_at(2);
    bond.iter().sum::<f64>() / (others.iter().sum::<f64>() / plain as f64)
}

#[test]
fn two_coupled_paths_take_one_share_of_a_bottleneck_and_uncoupled_ones_two() {
    let mut failed = Vec::new();
    for kind in [Kind::NewReno, Kind::Lia, Kind::Olia, Kind::Balia] {
        for (link, plain) in [
            (Link::new(20.0, 40.0, 1.0), 1),
            (Link::new(20.0, 40.0, 1.0), 2),
            (Link::new(20.0, 40.0, 1.0), 4),
            (Link::new(20.0, 40.0, 2.0), 2),
            (Link::new(50.0, 30.0, 1.0), 3),
        ] {
            let share = taken(kind, link, plain);
            let range = if kind == Kind::NewReno { 1.6..2.4 } else { 0.7..1.15 };
            if !range.contains(&share) {
                failed.push(format!("{kind:?} beside {plain} on {link:?}: {share:.2}, not {range:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
