//! BBR's rules that are no arrow: loss, marks, queues, idleness, undo, bounds.

use super::drive::{Drive, FRAMES, MTU, probing_beside_a_queue};
use super::*;

#[test]
fn marks_end_startup_and_up_and_lower_the_short_term() {
    let mut drive = Drive::new();
    drive.rounds(2);
    drive.bbr.on_ecn(drive.now, 0, drive.now);
    assert_eq!(drive.bbr.state, State::Startup);
    drive.bbr.on_ecn(drive.now, 1, drive.now);
    assert_eq!(drive.bbr.state, State::Drain);

    let mut drive = Drive::in_state(State::Up);
    drive.bbr.on_ecn(drive.now, 1, drive.now);
    assert_eq!(drive.bbr.state, State::Down);

    let mut drive = Drive::in_state(State::Cruise);
    drive.rate = 800_000;
    drive.rounds(2);
    drive.bbr.on_ecn(drive.now, 1, drive.now);
    drive.rounds(2);
    assert_eq!(drive.bbr.bandwidth(), Some(Rate(800_000)));
}

#[test]
fn random_loss_in_cruise_changes_nothing_and_is_learned() {
    let mut drive = Drive::in_state(State::Cruise);
    for _ in 0..15 {
        drive.lose(3, 100_000);
        drive.rounds_in(State::Cruise, 1);
    }
    assert_eq!(drive.bbr.state, State::Cruise);
    assert_eq!(drive.bbr.bandwidth(), Some(Rate(1_000_000)));
    let own = drive.bbr.loss.baseline();
    assert!((0.02..0.04).contains(&own), "{own}");
}

#[test]
fn loss_beside_a_queue_in_cruise_lowers_the_short_term_until_refill() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.rate = 750_000;
    drive.rtt = 120;
    drive.rounds_in(State::Cruise, 1);
    for _ in 0..3 {
        drive.lose(10, 100_000);
        drive.rounds_in(State::Cruise, 1);
    }
    assert_eq!(drive.bbr.state, State::Cruise);
    assert_eq!(drive.bbr.bandwidth(), Some(Rate(750_000)));
    assert!(drive.bbr.inflight_short < ByteCount::MAX);
    drive.until(State::Refill);
    drive.rounds_in(State::Refill, 1);
    assert_eq!(drive.bbr.bw, Rate(1_000_000));
}

#[test]
fn a_fall_below_a_growing_queue_shows_in_limited_samples_too() {
    let mut drive = Drive::in_state(State::Cruise);
    let before = drive.now;
    // Each frame waits for longer by half of the time since the last: sent twice as fast as it comes.
    (drive.limited, drive.rate, drive.rtt) = (true, 400_000, 130);
    while drive.bbr.max_bw.get() == Rate(1_000_000) {
        drive.frame();
        drive.rtt += drive.rtt / FRAMES / 2;
        assert!(drive.now.since(before) < Duration::from_secs(1), "within a second");
    }
    assert!((380_000..420_000).contains(&drive.bbr.max_bw.get().0), "{:?}", drive.bbr.max_bw.get());
    assert_eq!(drive.bbr.state, State::Down);
    assert_eq!(drive.bbr.bandwidth(), Some(drive.bbr.max_bw.get()));
}

#[test]
fn the_round_trip_is_probed_for_when_it_was_not_renewed() {
    for state in [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill, State::Up] {
        let mut drive = Drive::in_state(state);
        if state == State::Startup {
            drive.limited = true;
            drive.rounds(1);
        }
        drive.bbr.min_rtt.probed(drive.now);
        drive.now = drive.now + Duration::from_millis(5_001);
        // A tenth above the least: neither a renewal nor a queue.
        drive.rtt = 110;
        drive.frame();
        assert_eq!(drive.bbr.state, State::ProbeRtt, "from {state:?}");
        assert!(drive.bbr.window() <= ByteCount(55_000), "half of the product");
        assert!(drive.bbr.window() >= MTU);
    }
}

#[test]
fn probe_rtt_keeps_half_a_product_in_flight_for_200_ms_and_returns() {
    for full in [true, false] {
        let mut drive = Drive::in_state(if full { State::Cruise } else { State::Startup });
        drive.limited = !full;
        drive.rounds(2);
        let window = drive.bbr.window();
        drive.now = drive.now + Duration::from_secs(6);
        drive.rtt = 110;
        drive.in_flight = 90_000;
        drive.rounds(3);
        assert_eq!(drive.bbr.state, State::ProbeRtt, "still more in flight than half a product");
        assert_eq!(drive.bbr.window(), ByteCount(50_000));
        drive.in_flight = 50_000;
        let entered = drive.now;
        let after = drive.rounds_in(State::ProbeRtt, 6);
        assert!(drive.now.since(entered) > Duration::from_millis(200));
        assert_eq!(after, if full { State::Cruise } else { State::Startup });
        assert!(drive.bbr.window() >= window, "the window is given back");
        assert_eq!(drive.bbr.max_bw.get(), Rate(1_000_000));
    }
}

#[test]
fn a_round_trip_near_the_least_renews_it() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.rtt = 105;
    for _ in 0..100 {
        drive.rounds(1);
        assert_ne!(drive.bbr.state, State::ProbeRtt);
    }
    assert_eq!(drive.bbr.min_rtt.get(), Some(Duration::from_millis(100)));
}

#[test]
fn an_idle_sender_resumes_at_its_rate_without_probe_rtt() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.now = drive.now + Duration::from_secs(6);
    drive.bbr.on_sent(drive.now, MTU, MTU, true);
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(990_000)));
    drive.rtt = 110;
    drive.frame();
    assert_ne!(drive.bbr.state, State::ProbeRtt);
}

#[test]
fn a_path_that_was_only_asked_after_resumes_without_probe_rtt() {
    // What was seen of its round trip is old soon after it takes over, was so before, or was about to be renewed.
    for old_ms in [4_900, 6_000, 6_100] {
        let mut drive = Drive::in_state(State::Cruise);
        drive.now = drive.now + Duration::from_millis(old_ms);
        if old_ms == 6_100 {
            (drive.rtt, drive.in_flight) = (110, 40_000);
            drive.frame();
            assert_eq!(drive.bbr.state, State::ProbeRtt);
        }
        drive.bbr.on_takeover(drive.now);
        (drive.rtt, drive.in_flight) = (150, 150_000);
        for _ in 0..20 {
            drive.frame();
            assert_ne!(drive.bbr.state, State::ProbeRtt);
        }
    }
}

#[test]
fn a_sender_idle_in_probe_rtt_leaves_it_when_it_resumes() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.now = drive.now + Duration::from_secs(6);
    (drive.rtt, drive.in_flight) = (110, 40_000);
    drive.rounds(1);
    assert_eq!(drive.bbr.state, State::ProbeRtt);
    drive.now = drive.now + Duration::from_secs(1);
    drive.bbr.on_sent(drive.now, MTU, MTU, false);
    assert_eq!(drive.bbr.state, State::Cruise);
}

#[test]
fn a_spurious_loss_returns_to_startup_and_to_probing() {
    let mut drive = Drive::new();
    drive.in_flight = 200_000;
    drive.rounds(1);
    drive.rtt = 120;
    drive.rounds(1);
    drive.lose(10, 200_000);
    assert_eq!(drive.rounds_in(State::Startup, 2), State::Drain);
    drive.bbr.on_spurious_loss(drive.now);
    assert_eq!(drive.bbr.state, State::Startup);
    assert_eq!(drive.bbr.inflight_long, ByteCount::MAX);

    let mut drive = probing_beside_a_queue();
    drive.lose(5, 150_000);
    drive.bbr.on_spurious_loss(drive.now);
    assert_eq!(drive.bbr.state, State::Refill);
    assert_eq!(drive.bbr.inflight_long, ByteCount::MAX);
    drive.bbr.on_spurious_loss(drive.now);
    assert_eq!(drive.bbr.state, State::Refill, "there is one undo a loss");
}

#[test]
fn the_window_never_falls_below_four_packets() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.bbr.inflight_long = ByteCount(1);
    drive.bbr.inflight_short = ByteCount(1);
    drive.frame();
    assert_eq!(drive.bbr.window(), ByteCount(4_000));
    drive.bbr.on_mtu(ByteCount(1_400));
    assert_eq!(drive.bbr.window(), ByteCount(5_600));
}

#[test]
fn persistent_congestion_leaves_what_is_in_flight_and_grows_again() {
    let mut drive = Drive::in_state(State::Cruise);
    let event = LossEvent {
        now: drive.now,
        lost: ByteCount(90_000),
        largest_sent_at: drive.now,
        in_flight: ByteCount::ZERO,
        tx_in_flight: ByteCount(90_000),
        total_lost: ByteCount(90_000),
        persistent: true,
    };
    drive.bbr.on_loss(&event);
    assert_eq!(drive.bbr.window(), ByteCount(4_000));
    drive.frame();
    assert!(drive.bbr.window() > ByteCount(4_000));
}

#[test]
fn acknowledgements_in_clumps_widen_the_window() {
    let mut steady = Drive::in_state(State::Cruise);
    steady.rounds(12);
    let mut clumped = Drive::in_state(State::Cruise);
    clumped.bbr.extra.restart(clumped.now);
    for _ in 0..12 {
        // Half a round trip of silence, then four frames at once.
        clumped.now = clumped.now + Duration::from_millis(50);
        for _ in 0..4 {
            let now = clumped.now;
            clumped.frame();
            clumped.now = now;
        }
    }
    assert!(clumped.bbr.extra.get() >= steady.bbr.extra.get() + ByteCount(30_000));
    assert!(clumped.bbr.window() > steady.bbr.window());
}

/// What rounds of these states and round trips (ms) show of a queue, ms, over a least round trip of 20; `deviation` in
/// ms.
fn queues(deviation: u64, rounds: &[(State, u64)]) -> Vec<u128> {
    let mut gauge = DelayGauge::default();
    let mut round = |&(state, rtt): &(State, u64)| {
        gauge.add(Duration::from_millis(rtt), Duration::from_millis(deviation));
        gauge.end_round(Duration::from_millis(20), state).as_millis()
    };
    rounds.iter().map(&mut round).collect()
}

#[test]
fn what_jitter_adds_to_every_round_trip_while_the_path_is_not_full_is_no_queue() {
    use State::{Cruise, ProbeRtt};
    // The first round of PROBE_RTT has what the rounds before it left.
    let probed = [(Cruise, 40), (ProbeRtt, 60), (ProbeRtt, 35), (ProbeRtt, 38), (Cruise, 40)];
    assert_eq!(queues(20, &probed), [20, 0, 0, 3, 5]);
    // Round trips that hardly deviate wait in a queue that others keep.
    assert_eq!(queues(1, &probed), [20, 36, 11, 14, 16]);
}

#[test]
fn a_probe_that_the_long_term_bound_holds_back_ends_only_beside_a_queue_that_stands() {
    let bound = |rtt, in_flight_is_full: bool| {
        let mut drive = Drive::in_state(State::Up);
        (drive.rtt, drive.in_flight) = (rtt, 80_000);
        for _ in 0..2 * FRAMES {
            let window = drive.bbr.window();
            drive.bbr.inflight_long = ByteCount(90_000);
            let in_flight = if in_flight_is_full { window } else { ByteCount::ZERO };
            drive.bbr.on_sent(drive.now, MTU, in_flight, false);
            drive.frame();
        }
        drive.bbr.state
    };
    assert_eq!(bound(118, true), State::Up);
    assert_eq!(bound(118, false), State::Down);
    assert_eq!(bound(130, true), State::Down);
}

#[test]
fn a_link_that_little_fills_goes_on_at_its_rate_if_it_was_filled() {
    let mut drive = Drive::new();
    assert!(drive.bbr.resume(drive.now, Rate(100_000), Duration::from_millis(100), true), "ten packets a round trip");
    assert_eq!((drive.bbr.state, drive.bbr.pacing_rate()), (State::Cruise, Some(Rate(100_000))));
}

#[test]
fn a_known_rate_is_cruised_at_until_a_probe_is_due() {
    for mut drive in [Drive::new(), Drive::in_state(State::Cruise)] {
        drive.rate = 600_000;
        drive.in_flight = 60_000;
        let before = (drive.bbr.state, drive.bbr.pacing_rate());
        let round_trip = Duration::from_millis(100);
        assert!(!drive.bbr.resume(drive.now, Rate(100_000), round_trip, false), "ten packets a round trip");
        assert_eq!((drive.bbr.state, drive.bbr.pacing_rate()), before);
        assert!(drive.bbr.resume(drive.now, Rate(600_000), round_trip, false));
        assert_eq!((drive.bbr.state, drive.bbr.bandwidth()), (State::Cruise, Some(Rate(600_000))));
        assert_eq!((drive.bbr.pacing_rate(), drive.bbr.window()), (Some(Rate(600_000)), ByteCount(120_000)));
        assert!(!drive.bbr.is_ramping());
        let from = drive.now;
        drive.until(State::Refill);
        let waited = drive.now.since(from).as_secs_f64();
        assert!((2.0..3.2).contains(&waited), "{waited} s");
    }
}
