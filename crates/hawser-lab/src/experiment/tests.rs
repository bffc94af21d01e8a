//! What the tests of experiments share.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{Findings, Machine, Outcome, Run, SeriesKey, Store};
use crate::scenario::{Event, Happening, Scenario};

/// Two cases: A with hawser, TCP, and events at 3 and 6 of 12 s; B with TCP alone.
const SCENARIO: &str = r#"
name = "s"
group = "g"
title = "title"
finding = "finding"
source = "source"
network.link = [{ name = "wifi", rate = "10M", delay = "10ms", queue = "100ms" }]
contender = [{ kind = "hawser" }, { kind = "tcp" }]
workload = [{ kind = "bulk", name = "down", duration = "12s" }]
event = [
    { name = "back", at = "6s", link = "wifi", do = "restore" },
    { name = "cut", at = "3s", link = "wifi", do = "cut" },
]
case = [
    { name = "A", contenders = ["tcp", "hawser"], events = ["cut", "back"] },
    { name = "B", contenders = ["tcp"], events = [] },
]
repeat = { least = 3, most = 10, cov = "5%", quick = "4s", seed = 7 }
"#;

/// That, with a recorded link.
pub(super) fn scenario() -> Scenario {
    let parsed = Scenario::parse(SCENARIO, "s.toml", None).unwrap_or_else(|error| panic!("{error:#?}"));
    let traces = BTreeMap::from([("cell.trace".to_owned(), "1\n2\n".to_owned())]);
    Scenario { text: "name = \"s\"\n".to_owned(), traces, ..parsed }
}

/// Some machine.
pub(super) fn machine() -> Machine {
    let [hawser, kernel] = ["0.1.0", "6.1"].map(str::to_owned);
    Machine { hawser, kernel, builds: ["a".to_owned()].into(), seed: 7, ..Machine::default() }
}

/// A folder of that scenario's results.
pub(super) fn store(dir: &Path) -> Store {
    Store::open(dir, &scenario(), &machine()).expect("it opens")
}

/// What happens to wifi.
pub(super) fn event(ms: u64, what: Happening) -> Event {
    Event { name: String::new(), at: Duration::from_millis(ms), link: "wifi".to_owned(), what }
}

/// A run that found this goodput.
pub(super) fn found(mbps: f64) -> Outcome {
    Outcome::Found(Findings::named([("goodput_mbps", mbps)]))
}

/// A run that failed.
pub(super) fn failed(said: &str) -> Outcome {
    Outcome::Failed(said.to_owned())
}

/// A run with its seed.
pub(super) fn run_of(series: SeriesKey, repetition: u32, outcome: Outcome) -> Run {
    Run { series, repetition, seed: 7 + u64::from(repetition), started: 0.0, outcome }
}
