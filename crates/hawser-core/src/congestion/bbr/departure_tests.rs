//! Without a departure the draft's rule holds.

use super::drive::{Drive, FRAMES, MTU};
use super::machine::EARLY_WAIT;
use super::*;

/// A path in `state`, with some departures switched off.
fn without(state: State, switch_off: fn(&mut Departures)) -> Drive {
    let mut drive = Drive::without(switch_off);
    drive.until(state);
    drive
}

/// The same with all departures and without one; the test says what they come to.
fn both<T>(state: State, switch_off: fn(&mut Departures), run: impl Fn(Drive) -> T) -> [T; 2] {
    [run(Drive::in_state(state)), run(without(state, switch_off))]
}

#[test]
fn all_departures_hold_by_default_and_none_in_the_draft() {
    assert_eq!(Bbr::new(MTU, 1, Departures::default()).departures, Departures::default());
    let departures = Departures { trim: false, ..Departures::default() };
    assert_ne!(departures, Departures::default());
    assert_ne!(departures, Departures::NONE);
}

#[test]
fn the_draft_alone_goes_through_its_states_and_fills_the_path() {
    for state in [State::Drain, State::Down, State::Cruise, State::Refill, State::Up] {
        let drive = without(state, |departures| *departures = Departures::NONE);
        assert_eq!(drive.bbr.max_bw.get(), Rate(1_000_000));
    }
}

#[test]
fn random_loss_lowers_the_draft_and_what_is_learned_of_it_counts_as_loss() {
    let lossy = |mut drive: Drive| {
        drive.rate = 900_000;
        for _ in 0..5 {
            drive.lose(1, 100_000);
            drive.rounds_in(State::Cruise, 1);
        }
        drive.bbr.bw_short < UNBOUNDED
    };
    assert_eq!(both(State::Cruise, |departures| departures.loss_beside_queue = false, lossy), [false, true]);

    // 4 % while cruising is the path's own; 8 % later are within 5 % of that.
    let learned = |mut drive: Drive| {
        for packets in [4, 4, 4, 4, 8] {
            drive.lose(packets, 100_000);
            drive.rounds_in(State::Cruise, 1);
        }
        drive.bbr.bw_short < UNBOUNDED
    };
    assert_eq!(both(State::Cruise, |departures| departures.own_loss = false, learned), [false, true]);
}

#[test]
fn the_drafts_startup_ends_at_loss_while_its_rate_grows() {
    let grows = |mut drive: Drive| {
        drive.rounds(1);
        drive.rtt = 150;
        for _ in 0..2 {
            drive.rate = drive.rate * 13 / 10;
            drive.in_flight = 2 * drive.rate / 10;
            drive.lose(20, 200_000);
            drive.rounds(1);
        }
        drive.bbr.state == State::Startup
    };
    assert_eq!(both(State::Startup, |departures| departures.startup_loss = false, grows), [true, false]);
}

#[test]
fn the_first_probe_after_a_startup_that_loss_ended_comes_early_and_not_in_the_draft() {
    let waits = |mut drive: Drive| {
        drive.bbr.inflight_long = ByteCount(200_000);
        drive.until(State::Down);
        drive.bbr.cycle.wait
    };
    let [early, draft] = both(State::Drain, |departures| departures.early_probe = false, waits);
    assert_eq!(early, EARLY_WAIT);
    assert!(draft >= Duration::from_secs(2), "{draft:?}");
}

#[test]
fn loss_lowers_the_drafts_rate_although_the_sender_did_not_fill_it() {
    let limited = |mut drive: Drive| {
        (drive.limited, drive.rate) = (true, 500_000);
        drive.rounds_in(State::Cruise, 1);
        for _ in 0..2 {
            drive.lose(12, 100_000);
            drive.rounds_in(State::Cruise, 1);
        }
        assert!(drive.bbr.inflight_short < ByteCount::MAX);
        drive.bbr.bw_short < UNBOUNDED
    };
    assert_eq!(both(State::Cruise, |departures| departures.limited_loss = false, limited), [false, true]);
}

#[test]
fn without_loss_the_draft_keeps_a_rate_that_fell() {
    let fallen = |mut drive: Drive| {
        (drive.limited, drive.rate, drive.rtt) = (true, 400_000, 130);
        for _ in 0..6 * FRAMES {
            drive.frame();
            drive.rtt += drive.rtt / FRAMES / 2;
        }
        drive.bbr.max_bw.get() < Rate(1_000_000)
    };
    assert_eq!(both(State::Cruise, |departures| departures.fall = false, fallen), [true, false]);
}

#[test]
fn where_the_rate_varies_the_drafts_window_stays_two_products() {
    let varies = |mut drive: Drive| {
        let (mut high, mut on) = (false, false);
        // A queue of 10 ms: what comes out of it comes at the link's rate.
        drive.rtt = 110;
        for _ in 0..60 {
            high = !high;
            drive.rate = if high { 1_300_000 } else { 700_000 };
            drive.rounds(5);
            on |= drive.bbr.follow.was_on();
        }
        on
    };
    assert_eq!(both(State::Cruise, |departures| departures.follow = false, varies), [true, false]);
}

#[test]
fn the_drafts_probe_goes_on_for_three_rounds_beside_a_queue() {
    let queueing = |mut drive: Drive| {
        (drive.in_flight, drive.rtt) = (125_000, 125);
        drive.rounds_in(State::Up, 2)
    };
    let states = both(State::Up, |departures| departures.probe_queue = false, queueing);
    assert_eq!(states, [State::Down, State::Up]);
}

#[test]
fn the_drafts_down_paces_at_nine_tenths_however_much_is_queued() {
    let queued = |mut drive: Drive| {
        drive.in_flight = 120_000;
        drive.frame();
        drive.bbr.pacing_rate()
    };
    let rates = both(State::Down, |departures| departures.deep_down = false, queued);
    assert_eq!(rates, [Some(Rate(742_499)), Some(Rate(891_000))]);
}

#[test]
fn the_draft_probes_for_the_round_trip_unless_a_shorter_one_came() {
    let near = |mut drive: Drive| {
        drive.rtt = 105;
        (0..80).any(|_| {
            drive.rounds(1);
            drive.bbr.state == State::ProbeRtt
        })
    };
    assert_eq!(both(State::Cruise, |departures| departures.renewal = false, near), [false, true]);
}

#[test]
fn the_drafts_startup_paces_everybody_and_stops_at_no_queue() {
    let emptied = |mut drive: Drive| {
        drive.bbr.on_sent(drive.now, MTU, MTU, true);
        drive.rounds(2);
        drive.bbr.pacing_rate()
    };
    let rates = both(State::Startup, |departures| departures.startup_pace = false, emptied);
    assert_eq!(rates, [Some(Rate(6_930_000)), Some(Rate(2_742_300))]);

    let queueing = |mut drive: Drive| {
        drive.limited = true;
        drive.rounds(2);
        drive.rtt = 140;
        drive.rounds_in(State::Startup, 6) == State::Startup
    };
    assert_eq!(both(State::Startup, |departures| departures.startup_queue = false, queueing), [false, true]);
}

#[test]
fn the_drafts_cruise_keeps_its_rate_beside_a_queue_and_leaves_headroom_below_its_product() {
    let queued = |mut drive: Drive| {
        drive.rtt = 110;
        drive.rounds_in(State::Cruise, 8);
        drive.bbr.trim < 1.0
    };
    assert_eq!(both(State::Cruise, |departures| departures.trim = false, queued), [true, false]);

    let bounded = |mut drive: Drive| {
        drive.bbr.inflight_long = ByteCount(100_000);
        drive.in_flight = 85_000;
        drive.rounds_in(State::Cruise, 1);
        drive.bbr.window()
    };
    let windows = both(State::Cruise, |departures| departures.headroom = false, bounded);
    assert_eq!(windows, [ByteCount(100_000), ByteCount(85_000)]);
}

#[test]
fn the_drafts_window_covers_no_rest_of_the_host_and_no_spread() {
    let near = |mut drive: Drive| {
        drive.bbr.pacing = Rate(100_000_000);
        drive.bbr.quantized(ByteCount::ZERO)
    };
    let volumes = both(State::Cruise, |departures| departures.host_time = false, near);
    assert_eq!(volumes, [ByteCount(200_000), ByteCount(65_536)]);

    let spread = |mut drive: Drive| {
        drive.spread = Duration::from_millis(50);
        drive.frame();
        drive.bbr.bdp(1.0)
    };
    let products = both(State::Cruise, |departures| departures.spread = false, spread);
    assert_eq!(products, [ByteCount(150_000), ByteCount(100_000)]);
}
