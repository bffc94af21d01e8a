//! What the tests of experiments share.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_wire::{Access, Backend, Direction};

use super::{Findings, Machine, Outcome, Run, SeriesKey};
use crate::scenario::{
    Case, ContenderPlan, Event, Family, Happening, LinkPlan, Network, Repeat, Scenario, WorkloadPlan,
};

/// The scenario's only link.
const LINK: &str = "wifi";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn link() -> LinkPlan {
    let way = Direction::shaped(10.0, Duration::from_millis(10), Duration::from_millis(100));
    LinkPlan {
        name: LINK.to_owned(),
        profile: None,
        up: way.clone(),
        down: way,
        medium: None,
        access: Access::turns(),
        metric: 0,
    }
}

fn case(name: &str, contenders: &[&str], events: &[&str]) -> Case {
    Case {
        name: name.to_owned(),
        title: String::new(),
        links: vec![link()],
        bystanders: Vec::new(),
        absent: Vec::new(),
        contenders: words(contenders),
        workloads: words(&["down"]),
        events: words(events),
        sysctls: BTreeMap::new(),
        x: None,
        quick: true,
    }
}

fn contender(kind: &str) -> ContenderPlan {
    ContenderPlan { kind: kind.to_owned(), label: kind.to_owned(), options: toml::Table::new() }
}

fn event(name: &str, at: u64, what: Happening) -> Event {
    Event { name: name.to_owned(), at: Duration::from_secs(at), link: LINK.to_owned(), what }
}

/// Two cases: A with hawser, TCP, and events at 3 and 6 of 12 s; B with TCP alone.
pub(super) fn scenario() -> Scenario {
    let network = Network {
        inner: Family::V4,
        outer: Family::V4,
        lan: false,
        server_links: false,
        nat: false,
        routers: true,
        backend: Backend::default(),
        links: vec![link()],
        bystanders: Vec::new(),
    };
    let (duration, options) = (Duration::from_secs(12), toml::Table::new());
    Scenario {
        name: "s".to_owned(),
        group: "g".to_owned(),
        title: "title".to_owned(),
        finding: "finding".to_owned(),
        source: "source".to_owned(),
        network,
        contenders: vec![contender("hawser"), contender("tcp")],
        workloads: vec![WorkloadPlan { kind: "bulk".to_owned(), name: "down".to_owned(), duration, options }],
        events: vec![event("back", 6, Happening::Restore), event("cut", 3, Happening::Cut)],
        cases: vec![case("A", &["tcp", "hawser"], &["cut", "back"]), case("B", &["tcp"], &[])],
        repeat: Repeat {
            least: 3,
            most: 10,
            cov: 0.05,
            metric: "goodput_mbps".to_owned(),
            quick: Duration::from_secs(4),
            seed: 7,
        },
        published: Vec::new(),
        claims: Vec::new(),
        tables: Vec::new(),
        plots: Vec::new(),
        counts: Vec::new(),
        text: "name = \"s\"\n".to_owned(),
        traces: BTreeMap::from([("cell.trace".to_owned(), "1\n2\n".to_owned())]),
        is_recorded: true,
        generated: Vec::new(),
        drawn: None,
    }
}

/// Some machine.
pub(super) fn machine() -> Machine {
    Machine {
        hawser: "0.1.0".to_owned(),
        commit: String::new(),
        command: String::new(),
        builds: ["a".to_owned()].into(),
        kernel: "6.1".to_owned(),
        processor: "Chip".to_owned(),
        processors: 2,
        sysctls: BTreeMap::new(),
        programs: BTreeMap::new(),
        seed: 7,
        recordings: Vec::new(),
        quick: false,
        begun: 0.0,
    }
}

/// A run that found this goodput.
pub(super) fn found(mbps: f64) -> Outcome {
    let metrics = BTreeMap::from([("goodput_mbps".to_owned(), mbps)]);
    Outcome::Found(Findings { metrics, ..Findings::default() })
}

/// A run that failed.
pub(super) fn failed(said: &str) -> Outcome {
    Outcome::Failed(said.to_owned())
}

/// A run with its seed.
pub(super) fn run_of(series: SeriesKey, repetition: u32, outcome: Outcome) -> Run {
    Run { series, repetition, seed: 7 + u64::from(repetition), started: 0.0, outcome }
}
