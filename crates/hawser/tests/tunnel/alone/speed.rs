//! `hawser speed` between two portals over two links of known rates: what it says, what it costs, and that it stops.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_portal::api::{PathState, Status};
use hawser_wire::Direction;
use serde_json::Value;

use crate::lab::{Lab, Portal, REMOTE, ms, paths};
use crate::measured::measured;

/// The rates of the two links, in Mbit/s.
const RATES: [f64; 2] = [20.0, 8.0];
/// What of a link's rate must be found: BBR drains and probes within the few seconds that are counted.
const FOUND: std::ops::Range<f64> = 0.8..1.05;
/// Once nobody waits for it a run ends within this time: the lease, a tick, and what is under way.
const STOPS_WITHIN: Duration = Duration::from_secs(4);

fn speed(lab: &Lab, arguments: &[&str]) -> Command {
    let socket = lab.path("local.sock").display().to_string();
    let mut command = lab.local.command(env!("CARGO_BIN_EXE_hawser"));
    command.arg("speed").args(arguments).args(["--socket", &socket]);
    command
}

fn reported(lab: &Lab, arguments: &[&str]) -> Value {
    let output = speed(lab, arguments).arg("--json").output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What came to a portal, and what it sent and was acknowledged.
fn filler(portal: &Portal) -> (u64, u64) {
    let sum = |status: &Status| {
        let loads = paths(status).iter().map(|path| path.load);
        loads.fold((0, 0), |(came, went), load| (came + load.filler_received_bytes, went + load.filler_delivered_bytes))
    };
    sum(&portal.wait_for("a status", |status| !status.peers.is_empty()))
}

fn assert_rate(found: &Value, rate: f64, what: &str) {
    let share = found["rate_mbps"].as_f64().expect("a rate") / rate;
    assert!(FOUND.contains(&share), "{what}: {found:#}");
}

/// Whether each direction is said to be as fast as its links.
fn are_the_limit(report: &Value) -> bool {
    let named = |found: &Value| found["limit"].as_str().is_some_and(|text| text.starts_with("the links: "));
    report["directions"].as_array().expect("two").iter().all(named)
}

#[test]
fn each_link_and_the_bond_are_measured_both_ways_and_what_limits_is_named() {
    // Where builds have the processors, both emulated links halt at once: their queues move as those of one line do.
    measured(both_ways);
}

fn both_ways() {
    let lab = Lab::new("speed", "");
    let names = ["one", "two"];
    let _links = [0, 1].map(|at| lab.emulate(names[at], &Direction::shaped(RATES[at], ms(10), ms(60))));
    let (local, remote) = lab.start_both();
    let report = reported(&lab, &["--seconds", "4"]);
    assert!(are_the_limit(&report), "{report:#}");
    for (found, direction) in report["directions"].as_array().expect("two").iter().zip(["down", "up"]) {
        assert_eq!(found["direction"], direction);
        assert_rate(found, RATES.iter().sum(), direction);
        for (link, at) in found["links"].as_array().expect("two").iter().zip([0, 1]) {
            assert_eq!(link["link"], names[at]);
            assert_rate(link, RATES[at], direction);
            let (idle, loaded) = (link["rtt_idle_ms"].as_f64(), link["rtt_loaded_ms"].as_f64());
            assert!(idle.is_some_and(|ms| (19.0..30.0).contains(&ms)) && loaded >= idle, "{found:#}");
        }
    }
    let ((came, went), (there, back)) = (filler(&local), filler(&remote));
    assert!(came > 0 && went > 0 && there >= went && back <= came, "{came} {went} {there} {back}");
    // What filled the links was nobody's packet.
    let sent = local.wait_for("a status", |_| true).peers[0].tx_bytes;
    assert!(sent < 100_000, "{sent}");
}

#[test]
fn one_link_alone_is_loaded_within_its_budget() {
    let lab = Lab::new("speed", "");
    let _links = ["one", "two"].map(|link| lab.emulate(link, &Direction::shaped(RATES[0], ms(5), ms(60))));
    let (local, _remote) = lab.start_both();
    let report = reported(&lab, &["--seconds", "5", "--link", "two", "--budget", "4M"]);
    for found in report["directions"].as_array().expect("two") {
        let used = found["bytes"].as_u64().expect("a number");
        assert!((1_800_000..2_100_000).contains(&used), "{found:#}");
        assert_eq!(found["links"].as_array().map(Vec::len), Some(1));
    }
    let status = local.wait_for("a status", |_| true);
    let first = &paths(&status)[0].load;
    assert_eq!((first.filler_delivered_bytes, first.filler_received_bytes), (0, 0));
}

#[test]
fn users_packets_go_first_and_a_test_that_is_killed_ends_on_both_sides() {
    let lab = Lab::new("speed", "");
    let _links = ["one", "two"].map(|link| lab.emulate(link, &Direction::shaped(10.0, ms(5), ms(60))));
    let (local, remote) = lab.start_both();
    let mut running =
        speed(&lab, &["--seconds", "30"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    sleep(ms(1_500));
    let report = lab.ping(REMOTE, ms(20), ms(1_500)).run().expect("a ping");
    running.kill().expect("it can be killed");
    running.wait().expect("it ends");
    lab.assert_none_lost(&report);
    let start = Instant::now();
    let mut last = (filler(&local), filler(&remote));
    assert!(last.0.0 > 0, "it was on");
    loop {
        sleep(ms(600));
        let now = (filler(&local), filler(&remote));
        if now == last {
            break;
        }
        assert!(start.elapsed() < STOPS_WITHIN, "{now:?}");
        last = now;
    }
    assert!(paths(&local.wait_for("a status", |_| true)).iter().all(|path| path.state == PathState::Active));
}

#[test]
fn what_cannot_be_measured_is_said() {
    let lab = Lab::new("speed", "");
    let (_local, remote) = lab.start_both();
    let said = |arguments: &[&str]| {
        let output = speed(&lab, arguments).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&["--link", "three"]).contains("no link three to hub"));
    assert!(said(&["--peer", "nobody"]).contains("there is no peer nobody"));
    drop(remote);
    sleep(ms(1_000));
    assert!(said(&[]).contains("no path to hub works"));
}
