//! `hawser demo` from outside: its figures, and that it leaves nothing behind. Needs root.

#[path = "support/nobody.rs"]
mod nobody;
#[path = "support/traces.rs"]
mod traces;

use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use traces::{Traces, wait};

/// The demo takes less.
const LONGEST: Duration = Duration::from_secs(45);
/// How long an interrupted demo may take to remove everything.
const CLEANUP: Duration = Duration::from_secs(5);

/// Held by a test: two demos at once would measure each other.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn demo() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(["demo", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Namespaces, folders and portals are all there.
fn full(traces: &Traces) -> bool {
    traces.namespaces.len() >= 6 && traces.folders.len() == 1 && traces.portals.len() == 2
}

/// What it said, where it should not have ended yet.
fn last_words(mut child: Child) -> String {
    // It may have ended already.
    let _ = child.kill();
    let output = child.wait_with_output().expect("it can be waited for");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {figures}"))
}

#[test]
fn the_demo_shows_what_bonding_does_and_leaves_nothing() {
    let _turn = turn();
    let begun = Instant::now();
    let child = demo().spawn().expect("it starts");
    let pid = child.id();
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let took = begun.elapsed();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{status} (needs root): {said}");
    assert!(took < LONGEST, "{took:?}");
    assert_eq!(Traces::of(pid), Traces::default());

    let figures: Value = serde_json::from_slice(&stdout).expect("one JSON object, and nothing else");
    let names: Vec<&String> = figures.as_object().expect("an object").keys().collect();
    let expected =
        ["bonded_mbps", "capacity_mbps", "gap_ms", "ping_idle_ms", "ping_loaded_ms", "recovered_s", "single_mbps"];
    assert_eq!(names, expected);
    let figure = |name| number(&figures, name);
    assert_eq!(figure("capacity_mbps"), 80.0);
    assert!((40.0..50.0).contains(&figure("single_mbps")), "{figures}");
    assert!(figure("bonded_mbps") > 1.15 * figure("single_mbps") && figure("bonded_mbps") < 80.0, "{figures}");
    assert!((1.0..1000.0).contains(&figure("gap_ms")), "{figures}");
    assert!((20.0..60.0).contains(&figure("ping_idle_ms")), "{figures}");
    assert!(figure("ping_loaded_ms") < figure("ping_idle_ms") + 100.0, "{figures}");
    assert!(figures["recovered_s"].is_null() || (0.0..7.0).contains(&figure("recovered_s")), "{figures}");
}

#[test]
fn the_demo_of_a_hub_kills_a_member_and_the_flow_goes_on_with_its_address() {
    let _turn = turn();
    let begun = Instant::now();
    let mut command = demo();
    let child = command.arg("hub").spawn().expect("it starts");
    let pid = child.id();
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    assert!(status.success(), "{status} (needs root): {}", String::from_utf8_lossy(&stderr));
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
    assert_eq!(Traces::of(pid), Traces::default());
    let figures: Value = serde_json::from_slice(&stdout).expect("one JSON object, and nothing else");
    assert_eq!((&figures["killed"], &figures["owner"]), (&"zurich".into(), &"geneva".into()), "{figures}");
    let client = figures["client_before"].as_str().expect("an address");
    assert!(client.starts_with("203.0.113.8:") && figures["client_after"] == client, "{figures}");
    // Both links carry 40 Mbit/s, and a machine that builds beside it less.
    assert!((50.0..3_000.0).contains(&number(&figures, "gap_ms")), "{figures}");
    assert!(number(&figures, "before_mbps") > 3.0 && number(&figures, "after_mbps") > 3.0, "{figures}");
    assert!(number(&figures, "pings_lost") < 0.2 * number(&figures, "pings"), "{figures}");
}

#[test]
fn an_interrupted_demo_leaves_nothing() {
    let _turn = turn();
    let begun: fn(&Traces) -> bool = |traces| !traces.namespaces.is_empty();
    for (signal, number, stage) in [(Signal::INT, 2, full as fn(&_) -> _), (Signal::TERM, 15, begun)] {
        let mut child = demo().spawn().expect("it starts");
        let pid = child.id();
        let there = wait(LONGEST, || stage(&Traces::of(pid)));
        assert!(there, "{:?} (needs root): {}", Traces::of(pid), last_words(child));
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = wait(CLEANUP, || matches!(child.try_wait(), Ok(Some(_))));
        assert!(ended, "signal {number}: {}", last_words(child));
        assert_eq!(child.wait().expect("it has ended").code(), Some(128 + number));
        assert_eq!(Traces::of(pid), Traces::default(), "signal {number}");
    }
}

#[test]
fn what_a_killed_demo_left_goes_with_the_next_one() {
    let _turn = turn();
    let mut first = demo().spawn().expect("it starts");
    let pid = first.id();
    let there = wait(LONGEST, || full(&Traces::of(pid)));
    assert!(there, "{:?} (needs root): {}", Traces::of(pid), last_words(first));
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    // The portals notice by themselves.
    assert!(wait(CLEANUP, || Traces::of(pid).portals.is_empty()), "{:?}", Traces::of(pid));
    assert!(!Traces::of(pid).namespaces.is_empty(), "a kill -9 gives no time to remove them");

    let mut next = demo().spawn().expect("it starts");
    let swept = wait(LONGEST, || Traces::of(pid) == Traces::default());
    kill_process(Pid::from_child(&next), Signal::TERM).expect("it runs");
    next.wait().expect("it ends");
    assert!(swept, "{:?}", Traces::of(pid));
    assert_eq!(Traces::of(next.id()), Traces::default());
}

#[test]
fn without_root_the_demo_says_what_to_do() {
    let output = nobody::run(&["demo"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said, "error: make namespaces: this needs root\nhint: run it with sudo: sudo hawser demo\n");
    assert!(output.stdout.is_empty());
}
