//! Controllers by hand-made events, and on the test bench: every controller on the same table of links.

use super::testbench::{Bench, Link, MTU, alone, millis};
use super::*;

const ALL: [Kind; 6] = [Kind::NewReno, Kind::Cubic, Kind::Bbr, Kind::Lia, Kind::Olia, Kind::Balia];

/// A time in seconds.
pub(super) fn secs(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9).round() as u64)
}

/// `bytes` acknowledged at `now`, sent at `sent`, with a round trip of `rtt`; all in seconds.
pub(super) fn ack(now: f64, sent: f64, bytes: u64, rtt: f64) -> AckEvent {
    let rtt = Duration::from_secs_f64(rtt);
    AckEvent {
        now: secs(now),
        acked: ByteCount(bytes),
        largest_sent_at: secs(sent),
        prior_in_flight: ByteCount(bytes),
        in_flight: ByteCount::ZERO,
        delivered: ByteCount(bytes),
        rtt: RttSnapshot { latest: rtt, smoothed: rtt, variance: Duration::ZERO, min: rtt, spread: Duration::ZERO },
        round_trip: Some(rtt),
        received_at: secs(now),
        rate: None,
        app_limited: false,
    }
}

/// A packet sent at `sent` was declared lost at `now`; in seconds.
pub(super) fn loss(now: f64, sent: f64) -> LossEvent {
    LossEvent {
        now: secs(now),
        lost: ByteCount(1_000),
        largest_sent_at: secs(sent),
        in_flight: ByteCount(50_000),
        tx_in_flight: ByteCount(60_000),
        total_lost: ByteCount(1_000),
        persistent: false,
    }
}

fn make(kind: Kind) -> Box<dyn Controller> {
    build(kind, MTU, 42, Departures::default())
}

#[test]
fn the_initial_window_is_rfc_9002s() {
    for (mtu, window) in [(1_200, 12_000), (1_400, 14_000), (1_500, 14_720), (9_000, 18_000)] {
        assert_eq!(initial_window(ByteCount(mtu)), ByteCount(window));
    }
}

#[test]
fn every_kind_starts_with_the_initial_window_and_its_name() {
    for (kind, name) in ALL.into_iter().zip(["newreno", "cubic", "bbr", "lia", "olia", "balia"]) {
        let control = make(kind);
        assert_eq!(control.name(), name);
        assert_eq!(control.window(), initial_window(MTU));
        assert_eq!(control.pacing_rate(), None);
        assert_eq!(control.bandwidth(), None);
    }
}

#[test]
fn newreno_doubles_halves_and_adds_a_packet_a_window() {
    let mut reno = Aimd::new(NewReno, ByteCount(1_000));
    reno.on_ack(&ack(1.0, 0.9, 10_000, 0.1), &[]);
    assert_eq!(reno.window(), ByteCount(20_000));
    reno.on_loss(&loss(1.1, 1.0));
    assert_eq!(reno.window(), ByteCount(10_000));
    reno.on_loss(&loss(1.15, 1.05));
    assert_eq!(reno.window(), ByteCount(10_000), "one reduction a round trip");
    reno.on_ack(&ack(1.18, 1.08, 10_000, 0.1), &[]);
    assert_eq!(reno.window(), ByteCount(10_000), "no growth from before the reduction");
    reno.on_ack(&ack(1.3, 1.2, 10_000, 0.1), &[]);
    assert_eq!(reno.window(), ByteCount(11_000));
    let mut limited = ack(1.4, 1.3, 11_000, 0.1);
    limited.app_limited = true;
    reno.on_ack(&limited, &[]);
    assert_eq!(reno.window(), ByteCount(11_000), "a window not used does not grow");
}

#[test]
fn newreno_undoes_a_spurious_loss_but_not_a_mark() {
    let mut reno = Aimd::new(NewReno, ByteCount(1_000));
    reno.on_loss(&loss(1.0, 0.9));
    reno.on_spurious_loss(secs(1.05));
    assert_eq!(reno.window(), ByteCount(10_000));
    reno.on_ecn(secs(1.1), 1, secs(1.05));
    assert_eq!(reno.window(), ByteCount(5_000));
    reno.on_spurious_loss(secs(1.2));
    assert_eq!(reno.window(), ByteCount(5_000));
}

#[test]
fn newreno_falls_to_two_packets_in_persistent_congestion() {
    let mut reno = Aimd::new(NewReno, ByteCount(1_000));
    let mut event = loss(1.0, 0.9);
    event.persistent = true;
    reno.on_loss(&event);
    assert_eq!(reno.window(), ByteCount(2_000));
}

/// Clean links: (link, least share of the rate for NewReno and CUBIC, for BBR).
const CLEAN: [(Link, f64, f64); 14] = [
    (Link::new(1.0, 50.0, 1.0), 0.90, 0.90),
    (Link::new(2.0, 20.0, 4.0), 0.95, 0.90),
    (Link::new(5.0, 150.0, 1.0), 0.85, 0.90),
    (Link::new(10.0, 80.0, 0.5), 0.85, 0.90),
    (Link::new(20.0, 10.0, 2.0), 0.95, 0.93),
    (Link::new(50.0, 20.0, 0.2), 0.75, 0.90),
    (Link::new(50.0, 20.0, 1.0), 0.90, 0.93),
    (Link::new(50.0, 20.0, 4.0), 0.95, 0.93),
    (Link::new(100.0, 2.0, 1.0), 0.85, 0.90),
    (Link::new(100.0, 40.0, 1.0), 0.90, 0.93),
    (Link::new(200.0, 10.0, 0.5), 0.80, 0.90),
    (Link::new(100.0, 300.0, 1.0), 0.60, 0.90),
    (Link::new(500.0, 5.0, 1.0), 0.85, 0.90),
    (Link::new(500.0, 30.0, 0.2), 0.70, 0.90),
];

fn report(kind: Kind, link: Link, bench: &Bench) -> String {
    format!(
        "{kind:?} on {link:?}: share {:.3}, waited {:?}, at worst {:?}",
        bench.share(),
        bench.mean_wait(),
        bench.worst_wait
    )
}

#[test]
fn every_controller_fills_clean_links() {
    let mut failed = Vec::new();
    for kind in ALL {
        for (link, window_share, bbr_share) in CLEAN {
            let bench = alone(link, make(kind), 6.0, 8.0);
            let least = if kind == Kind::Bbr { bbr_share } else { window_share };
            let line = report(kind, link, &bench);
            if bench.share() < least || bench.share() > 1.001 {
                failed.push(format!("{line}, not {least}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn two_equal_flows_share_fairly() {
    for kind in ALL {
        for link in [Link::new(50.0, 20.0, 1.0), Link::new(20.0, 60.0, 2.0)] {
            let mut bench = Bench::new(link, 3)
                .flow(build(kind, MTU, 1, Departures::default()), 0.0)
                .flow(build(kind, MTU, 2, Departures::default()), 3_000.0);
            bench.run(20.0);
            bench.measure();
            bench.run(40.0);
            let shares: Vec<f64> =
                bench.flows.iter().map(|flow| bench.share_of(flow, bench.measure_from, bench.now)).collect();
            let sum: f64 = shares.iter().sum();
            let squares: f64 = shares.iter().map(|share| share * share).sum();
            let jain = sum * sum / (2.0 * squares);
            assert!(jain >= 0.9 && sum > 0.88, "{kind:?} on {link:?}: {shares:?}, Jain {jain:.3}");
        }
    }
}

#[test]
fn every_controller_follows_a_rate_that_falls_and_returns() {
    for kind in ALL {
        let link = Link::new(50.0, 20.0, 2.0);
        let mut bench = Bench::new(link, 5).flow(make(kind), 0.0);
        bench.run(6.0);
        bench.scale_rate(0.25);
        bench.run(4.0);
        bench.measure();
        bench.run(4.0);
        let low = bench.share();
        bench.scale_rate(1.0);
        bench.run(8.0);
        bench.measure();
        bench.run(4.0);
        let back = bench.share();
        assert!((0.22..0.2501).contains(&low), "{kind:?}: {low} of a quarter");
        assert!(back > 0.88, "{kind:?}: {back} after the return");
    }
}

#[test]
fn an_application_limited_phase_costs_nothing_afterwards() {
    for kind in ALL {
        let link = Link::new(50.0, 20.0, 1.0);
        let mut bench = Bench::new(link, 9).flow(make(kind), 0.0);
        bench.run(5.0);
        bench.offer(0, Some(Rate::from_bits(3_000_000)));
        bench.run(8.0);
        bench.offer(0, None);
        bench.run(0.3);
        bench.measure();
        bench.run(3.0);
        assert!(bench.share() > 0.85, "{kind:?}: {}", bench.share());
        assert!(bench.worst_wait <= millis(25.0));
    }
}

/// Lossy and jittery links that BBR must fill: (link, least share of what is not lost, most mean wait in ms).
const HARD: [(Link, f64, f64); 15] = [
    (Link::new(50.0, 20.0, 5.0).loss(1.0), 0.90, 5.0),
    (Link::new(50.0, 20.0, 5.0).loss(3.0), 0.85, 5.0),
    (Link::new(50.0, 20.0, 0.2).loss(1.0), 0.85, 5.0),
    (Link::new(50.0, 20.0, 0.5).loss(3.0), 0.85, 5.0),
    (Link::new(10.0, 80.0, 1.0).loss(1.0), 0.88, 10.0),
    (Link::new(5.0, 150.0, 2.0).loss(2.0), 0.85, 20.0),
    (Link::new(100.0, 10.0, 1.0).loss(3.0), 0.85, 5.0),
    (Link::new(20.0, 300.0, 0.5).loss(1.0), 0.85, 40.0),
    (Link::new(500.0, 2.0, 4.0).loss(1.0), 0.85, 5.0),
    (Link::new(5.0, 150.0, 1.0).jitter(20.0), 0.88, 45.0),
    (Link::new(50.0, 20.0, 5.0).jitter(5.0), 0.90, 8.0),
    (Link::new(50.0, 20.0, 5.0).jitter(20.0), 0.85, 20.0),
    (Link::new(50.0, 20.0, 1.0).jitter(10.0).loss(3.0), 0.80, 20.0),
    // The limit: as much jitter as round trip looks like a queue that stands, beside which random loss is congestion.
    (Link::new(50.0, 20.0, 1.0).jitter(20.0).loss(3.0), 0.25, 20.0),
    (Link::new(100.0, 40.0, 1.0).jitter(10.0).loss(1.0), 0.85, 15.0),
];

#[test]
fn bbr_fills_lossy_and_jittery_links_without_a_queue() {
    let mut failed = Vec::new();
    for (link, least, most_wait) in HARD {
        let bench = alone(link, make(Kind::Bbr), 6.0, 8.0);
        let line = report(Kind::Bbr, link, &bench);
        let share = bench.share() / (1.0 - link.loss);
        if share < least || bench.mean_wait() > millis(most_wait) {
            failed.push(format!("{line}, not {least} and {most_wait} ms"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What the bond promises: both links carry what they can at 1 % random loss, and 3 % is no collapse.
#[test]
fn each_link_of_a_lossy_bond_is_filled() {
    for (percent, least) in [(1.0, 0.95), (3.0, 0.90)] {
        for seed in 1..=2 {
            let link = Link::new(50.0, 20.0, 5.0).loss(percent);
            let bench = alone(link, build(Kind::Bbr, MTU, seed, Departures::default()), 3.0, 10.0);
            assert!(bench.share() > least, "{}", report(Kind::Bbr, link, &bench));
        }
    }
}

#[test]
fn a_ping_beside_a_full_load_waits_little() {
    let link = Link::new(50.0, 20.0, 5.0);
    let bench = alone(link, make(Kind::Bbr), 1.0, 20.0);
    let line = report(Kind::Bbr, link, &bench);
    assert!(bench.mean_wait() <= millis(2.0), "{line}");
    assert!(bench.worst_wait <= millis(15.0), "{line}");
    assert!(bench.share() > 0.98, "{line}");
}

#[test]
fn loss_that_comes_and_goes_leaves_no_scar() {
    let link = Link::new(50.0, 20.0, 1.0);
    let mut bench = Bench::new(link, 11).flow(make(Kind::Bbr), 0.0);
    for (percent, least) in [(0.0, 0.95), (3.0, 0.88), (0.0, 0.95)] {
        bench.set_loss(percent);
        bench.run(2.0);
        bench.measure();
        bench.run(5.0);
        assert!(bench.share() > least, "{percent} %: {}", bench.share());
    }
}

/// Against tuning to a table: links drawn at random, within what the paths may be.
#[test]
fn bbr_fills_random_links() {
    let mut seed = 12_345;
    let mut unit = move || super::testbench::noise(&mut seed);
    let mut failed = Vec::new();
    for round in 0..80 {
        let rtt = 2.0 * 150f64.powf(unit());
        let link = Link::new(500f64.powf(unit()), rtt, 0.2 * 20f64.powf(unit()))
            .loss(3.0 * unit())
            .jitter((20.0 * unit()).min(rtt / 4.0));
        let bench = alone(link, build(Kind::Bbr, MTU, round, Departures::default()), 4.0 + rtt / 50.0, 6.0);
        if bench.share() / (1.0 - link.loss) < 0.90 {
            failed.push(format!("{round}: {}", report(Kind::Bbr, link, &bench)));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Flows beside each other: how many, the link, Jain's index at least. 200 paths of as many portals meet in one uplink.
const BESIDE_EACH_OTHER: [(u64, Link, f64); 5] = [
    (3, Link::new(100.0, 40.0, 1.0), 0.95),
    (10, Link::new(20.0, 40.0, 1.0), 0.95),
    (10, Link::new(100.0, 40.0, 1.0), 0.90),
    (50, Link::new(100.0, 40.0, 0.5), 0.85),
    (50, Link::new(100.0, 40.0, 2.0), 0.85),
];

#[test]
fn bbr_leaves_others_of_its_kind_their_share_however_many_there_are() {
    for (count, link, least) in BESIDE_EACH_OTHER {
        let mut bench = Bench::new(link, 3);
        for flow in 0..count {
            bench = bench.flow(build(Kind::Bbr, MTU, flow, Departures::default()), 50.0 * flow as f64);
        }
        bench.run(30.0);
        bench.measure();
        bench.run(30.0);
        let shares: Vec<f64> =
            bench.flows.iter().map(|flow| bench.share_of(flow, bench.measure_from, bench.now)).collect();
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let jain = sum * sum / (count as f64 * squares);
        assert!(jain >= least && sum > 0.95, "{count} on {link:?}: Jain's index {jain:.3}, {sum:.2} of the link");
    }
}
