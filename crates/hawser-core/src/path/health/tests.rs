//! Every arrow of the drawing, and what flapping costs.

use super::Others::Work;
use super::*;
use DownReason::{Closed, LinkLost, NoRoute, PeerSaidDown, Timeout};
use HealthState::{Active, Down, New, Suspect, Validating};

const PTO: Duration = Duration::from_millis(30);

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A path brought into a state at 0 ms by the events that lead there.
fn path(state: HealthState) -> Health {
    let mut health = Health::new(FlapHold::default());
    if state == New {
        return health;
    }
    health.on_probe();
    if state == Validating {
        return health;
    }
    assert!(health.on_validated(at(0)));
    match state {
        Suspect => assert_eq!(health.on_pto(at(0), PTO, Work), HealthAction::BecameSuspect),
        Down(reason) => assert_eq!(health.on_down(at(0), reason), HealthAction::BecameDown),
        _ => {}
    }
    assert_eq!(health.state(), state);
    health
}

type Event = fn(&mut Health);

/// What each event does to one state.
type Row = [(&'static str, Event, HealthState); 7];

const PROBE: Event = |h| h.on_probe();
const VALIDATED: Event = |h| {
    h.on_validated(at(10));
};
const ACK: Event = |h| {
    h.on_ack(at(5));
};
const ONE_PTO: Event = |h| {
    let _ = h.on_pto(at(10), PTO, Work);
};
const DOUBT: Event = |h| {
    h.on_doubt(at(10), PTO);
};
const LOST: Event = |h| {
    let _ = h.on_down(at(10), LinkLost);
};
const CLOSE: Event = |h| {
    let _ = h.on_down(at(10), Closed);
};

#[test]
fn every_arrow_and_every_event_that_is_none() {
    let table: [(HealthState, Row); 7] = [
        (New, row([Validating, Active, New, New, New, Down(LinkLost), Down(Closed)])),
        (Validating, row([Validating, Active, Validating, Validating, Validating, Down(LinkLost), Down(Closed)])),
        (Active, row([Active, Active, Active, Suspect, Suspect, Down(LinkLost), Down(Closed)])),
        (Suspect, row([Suspect, Active, Active, Suspect, Suspect, Down(LinkLost), Down(Closed)])),
        (
            Down(Timeout),
            row([Down(Timeout), Active, Down(Timeout), Down(Timeout), Down(Timeout), Down(LinkLost), Down(Closed)]),
        ),
        (
            Down(NoRoute),
            row([Down(NoRoute), Active, Down(NoRoute), Down(NoRoute), Down(NoRoute), Down(LinkLost), Down(Closed)]),
        ),
        (Down(Closed), row([Down(Closed); 7])),
    ];
    for (from, events) in table {
        for (what, event, to) in events {
            let mut health = path(from);
            event(&mut health);
            assert_eq!(health.state(), to, "{from:?} on {what}");
        }
    }
}

fn row(to: [HealthState; 7]) -> Row {
    let [probe, validated, ack, pto, doubt, lost, close] = to;
    [
        ("probe", PROBE, probe),
        ("validated", VALIDATED, validated),
        ("ack", ACK, ack),
        ("pto", ONE_PTO, pto),
        ("doubt", DOUBT, doubt),
        ("link lost", LOST, lost),
        ("close", CLOSE, close),
    ]
}

#[test]
fn a_suspect_path_is_down_after_three_further_probe_timeouts() {
    let mut health = path(Suspect);
    assert_eq!(health.on_pto(at(30), PTO, Work), HealthAction::None);
    assert_eq!(health.on_pto(at(60), PTO, Work), HealthAction::None);
    assert_eq!(health.on_pto(at(90), PTO, Work), HealthAction::BecameDown);
    assert_eq!(health.state(), Down(Timeout));
}

#[test]
fn a_suspect_path_is_down_after_300_ms_but_never_before_a_probe_timeout() {
    for (pto_ms, over_ms) in [(30, 300), (700, 700)] {
        let mut health = path(Active);
        assert_eq!(health.on_pto(at(0), Duration::from_millis(pto_ms), Work), HealthAction::BecameSuspect);
        assert_eq!(health.poll_timeout(), Some((at(over_ms), HealthTimer::SuspectOver)));
        assert_eq!(health.handle_timeout(at(over_ms - 1), Work, DOWN_PROBE_INTERVAL), HealthAction::None);
        assert_eq!(health.handle_timeout(at(over_ms), Work, DOWN_PROBE_INTERVAL), HealthAction::BecameDown);
        assert_eq!(health.state(), Down(Timeout));
    }
}

#[test]
fn an_acknowledgement_clears_the_count_of_probe_timeouts() {
    let mut health = path(Suspect);
    let _ = health.on_pto(at(30), PTO, Work);
    let _ = health.on_pto(at(60), PTO, Work);
    assert!(health.on_ack(at(70)));
    assert_eq!(health.poll_timeout(), None);
    assert_eq!(health.on_pto(at(100), PTO, Work), HealthAction::BecameSuspect);
    assert_eq!(health.on_pto(at(130), PTO, Work), HealthAction::None);
}

#[test]
fn only_what_was_sent_since_the_suspicion_is_a_sign_of_life() {
    let mut health = path(Active);
    let _ = health.on_pto(at(50), PTO, Work);
    assert!(!health.on_ack(at(49)), "sent before");
    assert_eq!(health.state(), Suspect);
    assert!(health.on_ack(at(50)), "the probe");
    let _ = health.on_pto(at(200), PTO, Work);
    assert_eq!(health.handle_timeout(at(500), Work, DOWN_PROBE_INTERVAL), HealthAction::BecameDown);
    assert!(!health.on_ack(at(199)));
    assert!(!health.on_ack(at(520)), "a challenge came: its response says so itself");
    assert_eq!(health.poll_timeout(), Some((at(1_000), HealthTimer::Probe)), "acknowledgements do not hasten probes");
}

#[test]
fn a_down_path_is_probed_every_500_ms_and_a_closed_one_never() {
    for reason in [Timeout, LinkLost, NoRoute, PeerSaidDown] {
        let mut health = path(Down(reason));
        for ms in [500, 1_000, 1_500] {
            assert_eq!(health.poll_timeout(), Some((at(ms), HealthTimer::Probe)), "{reason:?}");
            assert_eq!(health.handle_timeout(at(ms), Work, DOWN_PROBE_INTERVAL), HealthAction::Probe);
        }
    }
    let mut closed = path(Down(Closed));
    closed.probe_now(at(1));
    assert_eq!(closed.poll_timeout(), None);
}

#[test]
fn what_speaks_for_a_down_path_has_it_probed_at_once() {
    for reason in [Timeout, LinkLost, NoRoute, PeerSaidDown] {
        let mut health = path(Down(reason));
        health.on_ack(at(100));
        assert_eq!(health.poll_timeout(), Some((at(500), HealthTimer::Probe)), "an acknowledgement is no word for it");
        health.probe_now(at(120));
        assert_eq!(health.handle_timeout(at(120), Work, DOWN_PROBE_INTERVAL), HealthAction::Probe);
    }
}

#[test]
fn a_second_word_about_a_down_path_changes_the_reason_and_not_the_probes() {
    let mut health = path(Down(Timeout));
    assert_eq!(health.on_down(at(400), LinkLost), HealthAction::None);
    assert_eq!(health.state(), Down(LinkLost));
    assert_eq!(health.poll_timeout(), Some((at(500), HealthTimer::Probe)));
}

/// Drops an active path at `ms`, and gives how long it was then held back, in ms.
fn drop_and_return(health: &mut Health, ms: u64) -> u64 {
    assert_eq!(health.on_down(at(ms), LinkLost), HealthAction::BecameDown);
    let held = health.held_until(at(ms)).map_or(0, |until| until.since(at(ms)).as_millis() as u64);
    if held > 0 {
        assert!(!health.on_validated(at(ms + held - 1)), "held back");
    }
    assert!(health.on_validated(at(ms + held)), "free again");
    held
}

#[test]
fn two_returns_are_immediate_and_then_the_hold_doubles_to_16_s() {
    let mut health = path(Active);
    let mut now = 0;
    let mut holds = Vec::new();
    for _ in 0..9 {
        now += 1_000;
        let held = drop_and_return(&mut health, now);
        holds.push(held);
        now += held;
    }
    assert_eq!(holds, [0, 0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000]);
}

#[test]
fn no_path_is_held_back_where_the_first_hold_is_none() {
    let mut health = Health::new(FlapHold { first: Duration::ZERO });
    assert!(health.on_validated(at(0)));
    for drop in 1..50 {
        assert_eq!(drop_and_return(&mut health, drop * 10), 0, "drop {drop}");
    }
}

#[test]
fn rare_drops_are_never_held_back() {
    let mut health = path(Active);
    for drop in 1..50 {
        assert_eq!(drop_and_return(&mut health, drop * 5_001), 0, "drop {drop}");
    }
}

#[test]
fn each_30_s_of_good_conduct_take_one_doubling_back() {
    let mut health = path(Active);
    for ms in [0, 10, 20] {
        drop_and_return(&mut health, ms);
    }
    assert_eq!(drop_and_return(&mut health, 600), 1_000);
    assert_eq!(drop_and_return(&mut health, 40_000), 0, "it was well for long, and one is taken");
    assert_eq!(drop_and_return(&mut health, 49_000), 1_000, "the next one soon after adds to what is left");
    assert_eq!(drop_and_return(&mut health, 200_000), 0, "forgiven");
}

#[test]
fn a_path_that_flapped_once_is_not_held_back_for_a_drop_each_15_s() {
    let mut health = path(Active);
    for ms in [0, 10, 20, 600] {
        drop_and_return(&mut health, ms);
    }
    for drop in 1..50 {
        assert_eq!(drop_and_return(&mut health, 2_000 + drop * 15_000), 0, "drop {drop}");
    }
}

#[test]
fn a_held_path_is_probed_when_the_hold_ends() {
    let mut health = path(Active);
    drop_and_return(&mut health, 0);
    drop_and_return(&mut health, 10);
    assert_eq!(health.on_down(at(20), LinkLost), HealthAction::BecameDown);
    health.probe_now(at(100));
    assert_eq!(health.handle_timeout(at(100), Work, DOWN_PROBE_INTERVAL), HealthAction::Probe);
    assert!(!health.on_validated(at(110)));
    assert_eq!(health.poll_timeout(), Some((at(520), HealthTimer::Probe)));
    assert_eq!(health.handle_timeout(at(520), Work, DOWN_PROBE_INTERVAL), HealthAction::Probe);
    assert!(health.on_validated(at(530)));
}

#[test]
fn a_closing_is_no_flap() {
    let mut health = path(Active);
    drop_and_return(&mut health, 0);
    drop_and_return(&mut health, 10);
    assert_eq!(health.on_down(at(20), Closed), HealthAction::BecameDown);
    assert_eq!(health.held_until(at(20)), None);
}

#[test]
fn a_path_without_another_returns_at_once_however_it_flaps() {
    let mut health = path(Active);
    for round in 0..9 {
        let _ = health.on_down(at(round * 100), LinkLost);
        health.forgive_flaps();
        assert!(health.on_validated(at(round * 100 + 1)), "round {round}");
    }
}

#[test]
fn a_path_without_others_is_asked_until_it_answers_and_given_up_after_a_while() {
    let suspect = || {
        let mut alone = path(Active);
        assert_eq!(alone.on_pto(at(0), PTO, Others::None), HealthAction::BecameSuspect);
        for ms in (300..1_500).step_by(300) {
            assert_eq!(alone.on_pto(at(ms - 10), PTO, Others::None), HealthAction::None);
            assert_eq!(alone.handle_timeout(at(ms), Others::None, DOWN_PROBE_INTERVAL), HealthAction::Ping);
        }
        alone
    };
    let mut answers = suspect();
    assert!(answers.on_ack(at(10)), "whatever was sent since the suspicion");
    assert_eq!(answers.state(), Active);
    assert_eq!(suspect().handle_timeout(at(1_500), Others::None, DOWN_PROBE_INTERVAL), HealthAction::BecameDown);
    assert_eq!(suspect().handle_timeout(at(1_499), Work, DOWN_PROBE_INTERVAL), HealthAction::None, "not due");
    assert_eq!(suspect().on_pto(at(1_490), PTO, Work), HealthAction::BecameDown, "another path works now");
}
