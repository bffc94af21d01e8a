//! `hawser scion bench` from outside: its line of figures, and that it leaves nothing behind. Needs root.
//!
//! Only Hawser's own candidates are measured here: they need neither Go nor the network.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::traces::{Traces, wait};

/// What is measured; the first one by UDP GSO.
const CANDIDATES: [&str; 2] = ["hawser", "hawser-sendmmsg"];
/// How long namespaces may take to go.
const CLEANUP: Duration = Duration::from_secs(5);
/// What each candidate has in the line.
const FIGURES: [&str; 4] = ["mbps", "kpps", "loss_pct", "cpu_us_per_packet"];

fn bench(out: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(["scion", "bench", "--quick", "--json"]).args(words).arg("--out").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn two_candidates_are_measured_and_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = bench(folder.path(), &["--only", &CANDIDATES.join(",")]);
    let pid = child.id();
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    assert!(status.success(), "this test needs root; {}", text(&stderr));
    let said = text(&stdout);
    assert_eq!(said.lines().count(), 1, "{said}");

    let line: Value = serde_json::from_str(&said).expect("JSON");
    let names: Vec<&String> = line.as_object().expect("an object").keys().collect();
    assert_eq!(names, CANDIDATES, "{line}");
    for candidate in CANDIDATES {
        let of = |figure: &str| line[candidate][figure].as_f64().unwrap_or_else(|| panic!("no {figure} in {line}"));
        let [mbps, kpps, loss, cpu] = FIGURES.map(of);
        // Payloads of 1200 bytes: the one figure follows from the other.
        assert!((mbps - kpps * 9.6).abs() < mbps * 1e-6, "{line}");
        assert!(kpps > 0.1 && (0.0..100.0).contains(&loss) && cpu > 0.0, "{line}");
        assert_eq!(line[candidate].as_object().map(serde_json::Map::len), Some(FIGURES.len()), "{line}");
    }
    let report = std::fs::read_to_string(folder.path().join("scion.md")).expect("a report");
    assert!(report.contains("paced to 90 %"), "{report}");
    let is_clean = wait(CLEANUP, || Traces::of(pid) == Traces::default());
    assert!(is_clean, "it left {:?}", Traces::of(pid));
}

#[test]
fn who_is_not_known_is_not_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let Output { status, stderr, .. } = bench(folder.path(), &["--only", "hawsr"]).wait_with_output().expect("it ends");
    assert!(!status.success());
    assert!(text(&stderr).contains("there is no such experiment or candidate"), "{}", text(&stderr));
}
