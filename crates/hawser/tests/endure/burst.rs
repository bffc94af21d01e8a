//! A stream whose window is far more than what it has to send, and portals that are stopped under it.
//!
//! 1. The remote host's routes to the tunnel have an initial window of thousands of segments, and BBR never leaves its
//!    start-up where an application limits it: after hours of faults the soak's stream down had come to as much.
//! 2. Each portal is stopped ten times, for 2 to 4 s. What the sender's application wrote meanwhile comes at once.
//! 3. Each flow must be back as in the soak, and not be silent again while the burst is worked off.

use hawser_portal::api::PathState;
use hawser_wire::Moment;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde_json::json;

use crate::census::{Tally, grown};
use crate::faults::{Fault, Field, Kind};
use crate::figures;
use crate::flows::Flows;
use crate::lab::{ms, states};
use crate::soak::STREAM_MBPS;

/// The soak's stream had 24,595 segments.
const WINDOW: u32 = 20_000;
const STOPS: usize = 10;
/// A timeout that is made of such an outage's round trips passes in it.
const WATCHED_MS: u64 = 10_000;

#[test]
fn a_stream_with_a_window_that_nothing_bounds_goes_on_after_each_stop() {
    let seed = figures::given("HAWSER_SEED", 1);
    let on = figures::on();
    let mut field = Field::new("burst", "");
    field.portals[0].wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    widen(&field);
    let flows = Flows::start(&field.lab, STREAM_MBPS);
    std::thread::sleep(ms(3_000));
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let mut tally = Tally::default();
    let mut counted = tally.take(&field.portals[1], field.namespace(1));
    let (mut stops, mut misses) = (Vec::new(), Vec::new());
    for which in [0, 1].repeat(STOPS) {
        let fault = Fault { kind: Kind::Stopped, which, length_ms: u64::from(2_000 + dice.next_u32() % 2_000) };
        let begin = Moment::now();
        let took = field.suffer(&fault, &mut dice) - begin;
        std::thread::sleep(ms(WATCHED_MS));
        let gaps = flows.heard().map(|heard| heard.longest(begin, Moment::now()));
        let before = std::mem::replace(&mut counted, tally.take(&field.portals[1], field.namespace(1)));
        let late = gaps.iter().enumerate().filter(|(flow, gap)| **gap > fault.bound(took, *flow >= 2));
        misses.extend(late.map(|(flow, gap)| format!("{fault:?}: {} silent for {gap:?}", Flows::NAMES[flow])));
        stops.push(json!({
            "fault": fault, "gaps_ms": gaps.map(|gap| gap.as_millis() as u64), "drops": grown(&before, &counted),
        }));
        eprintln!("{}", stops[stops.len() - 1]);
    }
    let wrong: Vec<String> = flows.heard().iter().filter_map(|heard| heard.wrong.clone()).collect();
    let command = format!("make endure CASE=burst SEED={seed}");
    figures::write(
        "burst",
        &command,
        &json!({ "began_on": on, "seed": seed, "stops": stops, "misses": misses, "wrong": wrong }),
    );
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(misses.is_empty(), "seed {seed}: {misses:#?}");
}

/// Step 1.
fn widen(field: &Field) {
    let remote = field.namespace(1);
    let said = |words: &[&str]| {
        let out = remote.command("ip").args(words).output().expect("run ip (iproute2)");
        assert!(out.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("ip speaks ASCII")
    };
    let (window, mut routes) = (WINDOW.to_string(), 0);
    for route in said(&["route", "show", "dev", "hawser0"]).lines() {
        let whole: Vec<&str> = route.split_whitespace().chain(["dev", "hawser0", "initcwnd", &window]).collect();
        said(&[&["route", "change"], &whole[..]].concat());
        routes += 1;
    }
    assert!(routes > 0, "the remote host has no route to the tunnel");
}
