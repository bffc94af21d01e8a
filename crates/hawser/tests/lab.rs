//! `hawser lab` from outside: results that agree, runs that go on, and nothing left behind. Needs root.

#[path = "support/nobody.rs"]
mod nobody;
#[path = "support/traces.rs"]
mod traces;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use traces::{Traces, wait};

/// The small experiment takes less.
const LONGEST: Duration = Duration::from_secs(60);
/// How long an interrupted experiment may take to remove everything.
const CLEANUP: Duration = Duration::from_secs(8);

/// Two links, one of which is cut and restored, under TCP on one of them and under Hawser on both.
const SCENARIO: &str = r#"
name = "small"
group = "test"
title = "Small"
source = "this test"
finding = """Two links carry more than one."""

[[network.link]]
name = "a"
rate = "10M"
delay = "5ms"

[[network.link]]
name = "b"
rate = "10M"
delay = "10ms"

[[contender]]
kind = "tcp"
options = { link = "a" }

[[contender]]
kind = "hawser"

[[workload]]
kind = "bulk"
duration = "12s"
options = { direction = "down", congestion = "cubic", ping = true }

[[event]]
name = "loss"
at = "4s"
link = "b"
do = "cut"

[[event]]
name = "return"
at = "6s"
link = "b"
do = "restore"

[repeat]
least = 2
most = 3
cov = "5%"
metric = "goodput_mbps"
quick = "4s"
seed = 1

[[table]]
title = "Throughput"
columns = [{ title = "Goodput", metric = "goodput_mbps" }, { title = "Duplicate ACKs", metric = "duplicate_acks" }, { title = "Added", metric = "added_ms" }]

[[plot]]
title = "By link"
kind = "shares"
metric = "goodput_mbps"
"#;

/// Held by a test: two experiments at once would measure each other.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A folder with the scenario's file and, later, results.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    fs::write(folder.path().join("small.toml"), SCENARIO).expect("it can be written");
    folder
}

fn lab(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.arg("lab").args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const RUN: [&str; 5] = ["run", "./small.toml", "--quick", "--out", "results"];

/// Runs it to its end: exit status, and all that it said.
fn done(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = lab(folder, arguments).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

/// What it said, where it should not have ended yet.
fn last_words(mut child: Child) -> String {
    // It may have ended already.
    let _ = child.kill();
    let output = child.wait_with_output().expect("it can be waited for");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The runs that are kept, a JSON object each.
fn runs(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("results/runs.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

/// The figures of each contender's only run that was measured.
fn figures(folder: &Path) -> BTreeMap<String, BTreeMap<String, f64>> {
    let figures = |run: &Value| {
        let metrics = run["outcome"]["found"]["metrics"].as_object()?;
        let metrics = metrics.iter().map(|(name, value)| (name.clone(), value.as_f64().expect("a number")));
        Some((run["contender"].as_str()?.to_owned(), metrics.collect()))
    };
    runs(folder).iter().filter_map(figures).collect()
}

#[test]
fn a_small_experiment_gives_results_that_agree_and_leaves_nothing() {
    let _turn = turn();
    let folder = folder();
    let folder = folder.path();
    let begun = Instant::now();
    let child = lab(folder, &RUN).spawn().expect("it starts");
    let pid = child.id();
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{status} (needs root): {said}");
    assert!(begun.elapsed() < LONGEST, "{:?}", begun.elapsed());
    assert_eq!(Traces::of(pid), Traces::default());
    assert!(said.contains("all, hawser, bulk, run 1: goodput_mbps"), "plain lines, where it is no terminal: {said}");
    assert_eq!(String::from_utf8_lossy(&stdout), "report: results/report.html\n");

    let figures = figures(folder);
    let figure = |contender: &str, metric: &str| {
        let value = figures.get(contender).and_then(|figures| figures.get(metric));
        *value.unwrap_or_else(|| panic!("{contender} has no {metric}: {figures:?}"))
    };
    let (tcp, hawser) = (figure("tcp", "goodput_mbps"), figure("hawser", "goodput_mbps"));
    assert!((7.0..10.0).contains(&tcp) && (tcp * 1.15..20.0).contains(&hawser), "{tcp}, {hawser}");
    assert!(figure("tcp", "share_a") > 0.99 && figure("hawser", "share_b") > 0.15, "{figures:?}");
    assert!(figure("hawser", "overhead_percent") > figure("tcp", "overhead_percent"), "{figures:?}");
    for metric in ["recovery_ms", "longest_gap_ms", "rtt_ms", "added_ms", "duplicate_acks", "link_a_mbps"] {
        assert!(figure("tcp", metric).is_finite() && figure("hawser", metric).is_finite());
    }
    assert!(figure("hawser", "cpu_local_s_per_gb") > 0.0 && !figures["tcp"].contains_key("cpu_local_s_per_gb"));
    let csv = fs::read_to_string(folder.join("results/runs.csv")).expect("it is there");
    assert_eq!(csv.lines().count(), 1 + figures.values().map(BTreeMap::len).sum::<usize>());
    assert_eq!(fs::read_to_string(folder.join("results/scenario.toml")).expect("it is there"), SCENARIO);
    for file in ["machine.json", "report.html", "report.md", "results.csv"] {
        assert!(folder.join("results").join(file).is_file(), "{file}");
    }

    let (status, said) = done(folder, &RUN);
    assert_eq!((status, runs(folder).len()), (Some(0), 2), "nothing is run again: {said}");
    let (status, said) = done(folder, &["compare", "results", "results"]);
    assert_eq!(status, Some(0), "nothing is worse than itself: {said}");
    let (status, said) = done(folder, &["run", "./small.toml", "--out", "results"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("--quick") && said.contains("hint: name another folder: --out DIR"), "{said}");
    let (status, said) = done(folder, &["report", "results"]);
    assert_eq!((status, said.as_str()), (Some(0), "report: results/report.html\n"));
}

/// The experiment while Hawser's run is under way.
fn under_way(folder: &Path) -> Child {
    let child = lab(folder, &["run", "./small.toml", "--quick", "--reps", "2", "--out", "results"]).spawn();
    let child = child.expect("it starts");
    let pid = child.id();
    // Two ends and a router for each link; a folder for two portals.
    let full = |traces: &Traces| traces.namespaces.len() >= 4 && traces.folders.len() == 1 && traces.portals.len() == 2;
    let there = wait(LONGEST, || full(&Traces::of(pid)));
    assert!(there, "{:?} (needs root): {}", Traces::of(pid), last_words(child));
    child
}

#[test]
fn an_interrupted_experiment_leaves_nothing_and_goes_on_where_it_stopped() {
    let _turn = turn();
    let folder = folder();
    let folder = folder.path();

    let mut killed = under_way(folder);
    let pid = killed.id();
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    assert!(wait(CLEANUP, || Traces::of(pid).portals.is_empty()), "portals notice: {:?}", Traces::of(pid));
    let left = Traces::of(pid);
    let namespace = left.namespaces.first().expect("a kill -9 gives no time to remove them");
    // As a contender's program would that does not notice.
    let stray = Command::new("ip").args(["netns", "exec", namespace, "sleep", "300"]).spawn();
    let mut stray = stray.expect("ip is a command");

    let mut interrupted = under_way(folder);
    let swept = wait(CLEANUP, || Traces::of(pid) == Traces::default());
    let ended = wait(CLEANUP, || matches!(stray.try_wait(), Ok(Some(_))));
    // It may have ended already.
    let _ = stray.kill();
    stray.wait().expect("it ends");
    assert!(swept, "{:?}: {}", Traces::of(pid), last_words(interrupted));
    assert!(ended, "a process lived on in a dead run's namespace");
    let before = runs(folder).len();
    let pid = interrupted.id();
    kill_process(Pid::from_child(&interrupted), Signal::INT).expect("it runs");
    let ended = wait(CLEANUP, || matches!(interrupted.try_wait(), Ok(Some(_))));
    assert!(ended, "Ctrl-C: {}", last_words(interrupted));
    assert_eq!(interrupted.wait().expect("it has ended").code(), Some(128 + 2));
    assert_eq!(Traces::of(pid), Traces::default());

    assert!(before < 4, "it was interrupted before its end");
    let (status, said) = done(folder, &["run", "./small.toml", "--quick", "--reps", "2", "--out", "results"]);
    assert_eq!(status, Some(0), "{said}");
    let runs = runs(folder);
    let mut keys: Vec<(&str, u64)> = runs
        .iter()
        .filter(|run| run["outcome"]["found"].is_object())
        .map(|run| (run["contender"].as_str().expect("a name"), run["repetition"].as_u64().expect("a number")))
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, [("hawser", 0), ("hawser", 1), ("tcp", 0), ("tcp", 1)], "each once: {said}");
}

#[test]
fn without_root_the_lab_says_what_to_do() {
    let output = nobody::run(&["lab", "run", "proxy-two-equal"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let expected =
        "error: make namespaces: this needs root\nhint: run it with sudo: sudo hawser lab run proxy-two-equal\n";
    assert_eq!(said, expected);
}
