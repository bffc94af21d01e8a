//! Results of an experiment that never ran: seeded figures of a realistic spread, for tests of reports.

use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::time::Duration;

use hawser_lab::experiment::{Findings, Line, Mark, Outcome, Run, SeriesKey};
use hawser_lab::scenario::{
    Case, Column, ContenderPlan, Family, LinkPlan, Network, Plot, PlotKind, Published, Repeat, Scenario, Table,
    WorkloadPlan,
};
use hawser_wire::Direction;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

/// What is in the texts, to see that it becomes no markup.
pub const MARKUP: &str = "<b>half</b> & more";
/// Why one contender has no figures.
pub const SKIPPED: &str = "engarde is not installed";
/// Why one run failed.
pub const FAILED: &str = "mptcp did not come up\nno subflow on <wifi>";
/// Contenders, and what share of both links each carries.
const CONTENDERS: [(&str, f64); 4] = [("tcp", 0.45), ("mptcp", 0.8), ("hawser", 0.93), ("engarde", 0.0)];
/// Links, and their share of what is carried.
const LINKS: [(&str, f64); 2] = [("wifi", 0.4), ("eth", 0.6)];
/// What both links carry, Mbit/s.
const CAPACITY: f64 = 100.0;
/// Seconds of a run, of a step, of the cut, of the return.
const TIMES: [f64; 4] = [12.0, 0.5, 4.0, 8.0];

/// Figures around a mean. Begins from a seed; one owner.
pub struct Chance(ChaCha8Rng);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        (f64::from(self.0.next_u32()) + 0.5) / (f64::from(u32::MAX) + 1.0)
    }

    /// Normal around the mean (Box and Muller 1958), with that share of it as standard deviation.
    pub fn around(&mut self, mean: f64, share: f64) -> f64 {
        let normal = (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos();
        mean * (1.0 + share * normal)
    }
}

/// A scenario with every kind of table and plot.
pub fn scenario() -> Scenario {
    let plot = |kind, metric: &str, cases: &[&str]| Plot {
        title: format!("{kind:?} of {metric}"),
        kind,
        cases: cases.iter().map(|&case| case.to_owned()).collect(),
        contenders: Vec::new(),
        metric: metric.to_owned(),
        axis: Some("Added delay (ms)".to_owned()),
    };
    let column = |contender: Option<&str>, metric: &str, published| Column {
        title: metric.to_owned(),
        contender: contender.map(str::to_owned),
        workload: None,
        metric: metric.to_owned(),
        published,
    };
    let table = |title: &str, columns| Table { title: title.to_owned(), cases: Vec::new(), columns };
    Scenario {
        name: "synthetic".to_owned(),
        group: "proxy".to_owned(),
        title: "Two links that never were".to_owned(),
        finding: format!("Both carry {MARKUP}."),
        source: "nowhere, section 4.2".to_owned(),
        network: Network {
            inner: Family::V4,
            outer: Family::V4,
            lan: false,
            server_links: false,
            nat: false,
            links: links(),
        },
        contenders: CONTENDERS.iter().map(|(label, _)| contender(label)).collect(),
        workloads: vec![workload()],
        events: Vec::new(),
        cases: [0.0, 50.0, 100.0, 200.0].iter().enumerate().map(|(place, x)| case(place + 1, *x)).collect(),
        repeat: Repeat {
            least: 3,
            most: 5,
            cov: 0.05,
            metric: "goodput_mbps".to_owned(),
            quick: Duration::from_secs(4),
            seed: 1,
        },
        published: vec![published("A.1", "mptcp", 84.0, Some(1.5)), published("A.2", "mptcp", 60.0, None)],
        tables: vec![
            table("Table 1: goodput", vec![column(None, "goodput_mbps", true)]),
            table(
                "Table 2: latency",
                vec![column(Some("tcp"), "rtt_ms", false), column(Some("hawser"), "rtt_ms", false)],
            ),
        ],
        plots: vec![
            plot(PlotKind::Lines, "goodput_mbps", &[]),
            plot(PlotKind::Bars, "goodput_mbps", &[]),
            plot(PlotKind::Time, "goodput_mbps", &["A.1", "A.4"]),
            plot(PlotKind::Shares, "goodput_mbps", &["A.1"]),
            plot(PlotKind::Cdf, "round_trip_ms", &["A.1"]),
            plot(PlotKind::Cdf, "page_ms", &[]),
        ],
        text: String::new(),
    }
}

fn links() -> Vec<LinkPlan> {
    let link = |(name, _): &(&str, f64)| LinkPlan {
        name: (*name).to_owned(),
        profile: None,
        up: Direction::default(),
        down: Direction::default(),
        medium: None,
        metric: 0,
    };
    LINKS.iter().map(link).collect()
}

fn contender(label: &str) -> ContenderPlan {
    ContenderPlan { kind: label.to_owned(), label: label.to_owned(), options: toml::Table::new() }
}

fn workload() -> WorkloadPlan {
    let duration = Duration::from_secs_f64(TIMES[0]);
    WorkloadPlan { kind: "bulk".to_owned(), name: "down".to_owned(), duration, options: toml::Table::new() }
}

fn case(number: usize, x: f64) -> Case {
    Case {
        name: format!("A.{number}"),
        title: format!("Wi-Fi and Ethernet, {x} ms apart"),
        links: links(),
        absent: Vec::new(),
        contenders: CONTENDERS.iter().map(|(label, _)| (*label).to_owned()).collect(),
        workloads: vec!["down".to_owned()],
        events: Vec::new(),
        sysctls: BTreeMap::new(),
        x: Some(x),
    }
}

fn published(case: &str, contender: &str, value: f64, spread: Option<f64>) -> Published {
    let (case, contender, metric) = (case.to_owned(), contender.to_owned(), "goodput_mbps".to_owned());
    Published { case, contender, workload: None, metric, value, spread }
}

/// So many runs of each series; `goodput` scales that of hawser.
pub fn runs(scenario: &Scenario, repetitions: u32, seed: u64, goodput: f64) -> Vec<Run> {
    let mut chance = Chance::new(seed);
    let mut runs = Vec::new();
    for case in &scenario.cases {
        for (label, share) in CONTENDERS {
            for repetition in 0..repetitions {
                let series = SeriesKey {
                    scenario: scenario.name.clone(),
                    case: case.name.clone(),
                    contender: label.to_owned(),
                    workload: "down".to_owned(),
                };
                let scale = if label == "hawser" { goodput } else { 1.0 };
                let run = |outcome| Run { series: series.clone(), repetition, seed, started: 1.8e9, outcome };
                if share == 0.0 {
                    runs.push(run(Outcome::Skipped(SKIPPED.to_owned())));
                    continue;
                }
                if (label, case.name.as_str(), repetition) == ("mptcp", "A.2", 0) {
                    runs.push(run(Outcome::Failed(FAILED.to_owned())));
                }
                let x = case.x.unwrap_or(0.0);
                let mean = CAPACITY * share * (1.0 - x / 600.0) * scale;
                runs.push(run(Outcome::Found(findings(&mut chance, mean, x))));
            }
        }
    }
    runs
}

fn findings(chance: &mut Chance, mean: f64, x: f64) -> Findings {
    let goodput = chance.around(mean, 0.02);
    let rtt = chance.around(20.0 + x, 0.03);
    let gap = chance.around(90.0, 0.3);
    let metrics = [("goodput_mbps", goodput), ("rtt_ms", rtt), ("longest_gap_ms", gap), ("subflows", 2.0)];
    let [duration, step_s, cut, back] = TIMES;
    let steps = (duration / step_s) as usize;
    let is_cut = |step: usize| (cut..back).contains(&((step as f64 + 0.5) * step_s));
    let mut lines = Vec::new();
    for (place, (link, share)) in LINKS.into_iter().enumerate() {
        let value = |step: usize, chance: &mut Chance| {
            let carried = match (place, is_cut(step)) {
                (0, true) => 0.0,
                (_, true) => goodput * share * 1.15,
                (_, false) => goodput * share,
            };
            chance.around(carried, 0.05)
        };
        let values = (0..steps).map(|step| value(step, chance)).collect();
        lines.push(Line { name: "link_down_mbps".to_owned(), link: Some(link.to_owned()), step_s, values });
    }
    let sums = (0..steps).map(|step| 0.96 * lines.iter().map(|line| line.values[step]).sum::<f64>()).collect();
    lines.push(Line { name: "goodput_mbps".to_owned(), link: None, step_s, values: sums });
    let samples = (0..200).map(|_| chance.around(rtt, 0.2)).collect();
    let mark = |at_s, what: &str| Mark { at_s, what: what.to_owned() };
    Findings {
        metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
        lines,
        samples: [("round_trip_ms".to_owned(), samples)].into(),
        marks: vec![mark(cut, "wifi cut"), mark(back, "wifi back")],
    }
}
