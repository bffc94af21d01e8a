//! Every arrow of BBR's state machine, and its rules, driven by hand-made acknowledgements.

use super::drive::{Drive, FRAMES, MTU, probing_beside_a_queue};
use super::*;

#[test]
fn startup_ends_when_three_rounds_bring_no_more() {
    let mut drive = Drive::new();
    for rate in [250_000, 500_000, 1_000_000] {
        drive.rate = rate;
        drive.in_flight = 2 * rate / 10;
        drive.rounds(1);
        assert_eq!(drive.bbr.state, State::Startup);
    }
    assert_eq!(drive.rounds_in(State::Startup, 2), State::Startup);
    assert_eq!(drive.rounds_in(State::Startup, 2), State::Drain);
    assert_eq!(drive.bbr.max_bw.get(), Rate(1_000_000));
    // 50 % of the model, less the margin of 1 %.
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(495_000)));
}

#[test]
fn startup_paces_at_least_the_initial_window_and_doubles() {
    let mut drive = Drive::new();
    drive.rate = 10_000;
    drive.frame();
    // 10 packets in 100 ms, times 2.77: slower samples do not lower it.
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(277_000)));
    drive.rate = 1_000_000;
    drive.frame();
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(2_742_300)));
}

#[test]
fn startup_hardly_paces_a_sender_that_is_the_limit() {
    let mut drive = Drive::new();
    drive.rate = 1_000_000;
    drive.bbr.on_sent(drive.now, MTU, MTU, true);
    drive.rounds(2);
    // 7 times the model, less the margin of 1 %.
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(6_930_000)));
    drive.rate = 5_000_000;
    drive.rounds(1);
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(13_711_500)), "one that fills the window is paced again");
}

#[test]
fn startup_ends_at_loss_beside_a_queue_but_not_at_random_loss() {
    for (rtt, ends) in [(150, true), (100, false)] {
        let mut drive = Drive::new();
        drive.in_flight = 200_000;
        drive.rounds(1);
        drive.rtt = rtt;
        // One round without growth: two more would end Startup without a loss.
        drive.rounds(1);
        drive.lose(10, 200_000);
        let state = drive.rounds_in(State::Startup, 1);
        assert_eq!(state == State::Drain, ends, "round trip of {rtt} ms");
        assert_eq!(drive.bbr.inflight_long < ByteCount::MAX, ends);
    }
}

#[test]
fn startup_lasts_while_the_sender_has_little_to_send() {
    let mut drive = Drive::new();
    drive.limited = true;
    assert_eq!(drive.rounds_in(State::Startup, 20), State::Startup);
}

#[test]
fn startup_ends_at_a_queue_of_a_sender_that_has_little_to_send_unless_the_rate_grows() {
    let mut drive = Drive::new();
    drive.limited = true;
    drive.rounds(2);
    drive.rtt = 140;
    for _ in 0..3 {
        drive.rate = drive.rate * 13 / 10;
        assert_eq!(drive.rounds_in(State::Startup, 1), State::Startup);
    }
    assert_ne!(drive.rounds_in(State::Startup, 2), State::Startup);
}

#[test]
fn what_was_overtaken_on_its_way_tells_no_round_trip() {
    let mut drive = Drive::new();
    drive.limited = true;
    drive.rounds(2);
    for round in 0..30 {
        drive.rtt = if round % 3 == 0 { 100 } else { 140 };
        drive.overtaken = false;
        drive.frame();
        drive.overtaken = true;
        assert_eq!(drive.rounds_in(State::Startup, 1), State::Startup, "a late packet in every few is no queue");
    }
}

#[test]
fn what_packets_take_that_are_overtaken_is_no_queue() {
    for (spread, ends) in [(0, true), (40, false)] {
        let mut drive = Drive::new();
        drive.limited = true;
        drive.rounds(2);
        drive.spread = Duration::from_millis(spread);
        drive.rtt = 140;
        assert_eq!(drive.rounds_in(State::Startup, 6) != State::Startup, ends, "{spread} ms");
    }
}

#[test]
fn startup_ends_at_heavy_loss_of_a_sender_that_has_little_to_send() {
    for (packets, ends) in [(3, false), (40, true)] {
        let mut drive = Drive::new();
        drive.limited = true;
        drive.in_flight = 200_000;
        drive.rounds(3);
        assert_eq!(drive.bbr.state, State::Startup);
        drive.lose(packets, 200_000);
        assert_eq!(drive.rounds_in(State::Startup, 2) != State::Startup, ends, "{packets} lost");
    }
}

#[test]
fn drain_ends_when_the_queue_is_gone_or_after_three_rounds() {
    let mut drive = Drive::in_state(State::Drain);
    drive.in_flight = 100_000;
    // In flight what Down waits for too: the same frame goes on to Cruise.
    assert_eq!(drive.rounds_in(State::Drain, 1), State::Cruise);

    let mut drive = Drive::in_state(State::Drain);
    drive.in_flight = 150_000;
    assert_eq!(drive.rounds_in(State::Drain, 3), State::Drain);
    assert_eq!(drive.rounds_in(State::Drain, 2), State::Down);
}

#[test]
fn down_ends_in_cruise_once_there_is_room() {
    let mut drive = Drive::in_state(State::Down);
    drive.in_flight = 105_000;
    assert_eq!(drive.rounds_in(State::Down, 3), State::Down);
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(891_000)));
    drive.in_flight = 120_000;
    drive.frame();
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(742_499)), "much is queued");
    drive.in_flight = 100_000;
    assert_eq!(drive.rounds_in(State::Down, 1), State::Cruise);
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(990_000)));
}

#[test]
fn down_leaves_headroom_below_the_long_term_bound() {
    let mut drive = Drive::in_state(State::Down);
    drive.bbr.inflight_long = ByteCount(100_000);
    drive.in_flight = 90_000;
    assert_eq!(drive.rounds_in(State::Down, 2), State::Down);
    drive.in_flight = 85_000;
    assert_eq!(drive.rounds_in(State::Down, 1), State::Cruise);
    assert_eq!(drive.bbr.window(), ByteCount(100_000), "the product itself is not cut");
    drive.bbr.inflight_long = ByteCount(200_000);
    drive.rounds_in(State::Cruise, 8);
    assert_eq!(drive.bbr.window(), ByteCount(170_000));
}

#[test]
fn down_goes_to_refill_when_it_is_time_even_with_a_queue() {
    let mut drive = Drive::in_state(State::Down);
    drive.in_flight = 105_000;
    assert_eq!(drive.rounds_in(State::Down, 19), State::Down);
    assert_eq!(drive.rounds_in(State::Down, 12), State::Refill);
}

#[test]
fn cruise_probes_after_two_to_three_seconds_or_63_rounds() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.in_flight = 95_000;
    assert_eq!(drive.rounds_in(State::Cruise, 18), State::Cruise);
    assert_eq!(drive.rounds_in(State::Cruise, 13), State::Refill);

    let mut short = Drive::in_state(State::Cruise);
    // A product of 20 packets: after as many rounds.
    short.rtt = 20;
    short.in_flight = 19_000;
    short.rounds(1);
    assert_eq!(short.rounds_in(State::Cruise, 16), State::Cruise);
    assert_eq!(short.rounds_in(State::Cruise, 5), State::Refill);
}

#[test]
fn the_wait_between_probes_comes_from_the_seed() {
    let waits: Vec<Duration> = (0..8)
        .map(|seed| {
            let mut drive = Drive::new();
            drive.bbr = Bbr::new(MTU, seed, Departures::default());
            drive.until(State::Cruise);
            drive.bbr.cycle.wait
        })
        .collect();
    assert!(waits.iter().all(|wait| (2.0..3.0).contains(&wait.as_secs_f64())));
    assert!(waits.windows(2).all(|pair| pair[0] != pair[1]));
    let mut again = Drive::new();
    again.bbr = Bbr::new(MTU, 3, Departures::default());
    again.until(State::Cruise);
    assert_eq!(again.bbr.cycle.wait, waits[3]);
}

#[test]
fn refill_lasts_a_round_and_forgets_the_short_term() {
    let mut drive = Drive::in_state(State::Cruise);
    drive.bbr.bw_short = Rate(500_000);
    drive.bbr.inflight_short = ByteCount(50_000);
    drive.until(State::Refill);
    assert_eq!(drive.bbr.bw_short, UNBOUNDED);
    assert_eq!(drive.bbr.inflight_short, ByteCount::MAX);
    assert_eq!(drive.rounds_in(State::Refill, 2), State::Up);
    assert_eq!(drive.bbr.pacing_rate(), Some(Rate(1_237_500)));
}

#[test]
fn up_ends_when_the_pipe_is_full() {
    let mut drive = Drive::in_state(State::Up);
    drive.in_flight = 100_000;
    assert_eq!(drive.rounds_in(State::Up, 2), State::Up);
    assert_eq!(drive.rounds_in(State::Up, 3), State::Down);
}

#[test]
fn up_ends_early_at_a_queue_but_not_while_the_rate_grows() {
    let mut drive = Drive::in_state(State::Up);
    drive.in_flight = 125_000;
    drive.rtt = 125;
    assert_eq!(drive.rounds_in(State::Up, 2), State::Down);

    let mut drive = Drive::in_state(State::Up);
    drive.rtt = 125;
    for _ in 0..4 {
        drive.rate = drive.rate * 13 / 10;
        drive.in_flight = drive.rate / 10;
        assert_eq!(drive.rounds_in(State::Up, 1), State::Up);
    }
    assert_eq!(drive.bbr.max_bw.get(), Rate(drive.rate));
}

#[test]
fn up_lasts_while_the_sender_has_little_to_send() {
    let mut drive = Drive::in_state(State::Up);
    drive.limited = true;
    drive.rate = 100_000;
    assert_eq!(drive.rounds_in(State::Up, 20), State::Up);
    assert_eq!(drive.bbr.max_bw.get(), Rate(1_000_000), "limited samples do not lower it");
}

#[test]
fn up_ends_at_loss_beside_a_queue_and_sets_the_long_term_bound() {
    let mut drive = probing_beside_a_queue();
    drive.lose(5, 150_000);
    assert_eq!(drive.bbr.state, State::Down);
    // 2 % of the 145 packets before the five is 2.9 packets, over 0.98: 2.96.
    assert_eq!(drive.bbr.inflight_long, ByteCount(147_959));
    assert!(drive.bbr.cycle.prev_too_high);
}

#[test]
fn up_goes_on_at_random_loss() {
    let mut drive = Drive::in_state(State::Up);
    drive.in_flight = 120_000;
    drive.rounds_in(State::Up, 1);
    drive.lose(4, 120_000);
    assert_eq!(drive.bbr.state, State::Up, "3 %, but no queue");
    drive.lose(10, 120_000);
    assert_eq!(drive.bbr.state, State::Down, "more than 10 % is too much in flight in any case");
}

#[test]
fn a_probe_after_a_failed_one_is_cut_short_and_then_repeated_at_once() {
    let mut drive = probing_beside_a_queue();
    drive.lose(5, 150_000);
    drive.rate = 1_000_000;
    drive.until(State::Up);
    drive.in_flight = 148_000;
    drive.frame();
    assert_eq!(drive.bbr.state, State::Down);
    assert!(drive.bbr.cycle.prev_precautionary);
    drive.in_flight = 140_000;
    assert_eq!(drive.rounds_in(State::Down, 2), State::Refill);
}

#[test]
fn the_long_term_bound_grows_while_the_window_holds_a_probe_back() {
    let mut drive = Drive::in_state(State::Refill);
    drive.bbr.inflight_long = ByteCount(110_000);
    drive.until(State::Up);
    let mut grown = Vec::new();
    for _ in 0..4 {
        let before = drive.bbr.inflight_long.0;
        drive.in_flight = 109_000;
        for _ in 0..FRAMES {
            let window = drive.bbr.window();
            drive.bbr.on_sent(drive.now, MTU, window, false);
            drive.frame();
        }
        grown.push((drive.bbr.inflight_long.0 - before) / MTU.0);
    }
    assert_eq!(drive.bbr.state, State::Up);
    assert!(grown.windows(2).all(|pair| pair[1] > pair[0]), "{grown:?}");
}

#[test]
fn a_fall_leads_from_any_part_of_the_cycle_to_down_and_from_elsewhere_nowhere() {
    for state in [State::Drain, State::Down, State::Cruise, State::Refill, State::Up] {
        let mut drive = Drive::in_state(state);
        drive.bbr.bw_short = Rate(300_000);
        drive.bbr.fall_to(Rate(400_000), drive.now);
        assert_eq!(drive.bbr.state, if state == State::Drain { state } else { State::Down }, "from {state:?}");
        assert_eq!((drive.bbr.max_bw.get(), drive.bbr.bw_short), (Rate(400_000), UNBOUNDED));
    }
}
