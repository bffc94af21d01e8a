//! Results of an experiment that never ran: seeded figures of a realistic spread, for tests of reports.

use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

use hawser_lab::experiment::{Choice, Findings, Line, Mark, Outcome, Run, Series};
use hawser_lab::report::{self, Written};
use hawser_lab::scenario::{Case, Plot, PlotKind, Scenario};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use tempfile::TempDir;

/// A scenario with every kind of table and plot.
const SCENARIO: &str = include_str!("scenario.toml");
/// Where it ran.
pub const KERNEL: &str = "6.18.5";
/// Why one contender has no figures.
pub const SKIPPED: &str = "engarde is not installed";
/// Why one run failed.
pub const FAILED: &str = "mptcp did not come up\nno subflow on <wifi>";
/// Contenders, and what share of both links each carries; others carry [`OTHERS`].
const CONTENDERS: [(&str, f64); 3] = [("tcp", 0.45), ("mptcp", 0.8), ("hawser", 0.93)];
const OTHERS: f64 = 0.6;
/// What all links carry, Mbit/s.
const CAPACITY: f64 = 100.0;
/// Seconds of a run, of a step, of the cut of the first link, of its return.
const TIMES: [f64; 4] = [12.0, 0.5, 4.0, 8.0];

/// [`SCENARIO`].
pub fn scenario() -> Scenario {
    Scenario::parse(SCENARIO, "scenario.toml", None).unwrap_or_else(|error| panic!("{error:#?}"))
}

/// A folder as `hawser lab run` leaves it.
pub fn keep(folder: &Path, scenario: &Scenario, runs: &[Run]) {
    fs::create_dir_all(folder).expect("make a folder");
    let lines: Vec<String> = runs.iter().map(|run| serde_json::to_string(run).expect("plain data")).collect();
    let machine = serde_json::json!({"hawser": "0.1.0", "kernel": KERNEL, "sysctls": {"net/ipv4/tcp_sack": "1"}});
    let files = [
        ("scenario.toml", scenario.text.clone()),
        ("runs.jsonl", lines.join("\n") + "\n"),
        ("machine.json", machine.to_string()),
    ];
    files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("write results"));
}

/// A folder with results of this many runs of each series, and their report.
pub fn reported(scenario: &Scenario, repetitions: u32, seed: u64) -> (TempDir, Written) {
    let folder = tempfile::tempdir().expect("a folder");
    keep(folder.path(), scenario, &runs(scenario, repetitions, seed, 1.0));
    let written = report::write(folder.path()).expect("a report");
    (folder, written)
}

/// This many runs of each series; `goodput` scales that of hawser.
pub fn runs(scenario: &Scenario, repetitions: u32, seed: u64, goodput: f64) -> Vec<Run> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut runs = Vec::new();
    for Series { key, case, .. } in Series::all(scenario, Choice::default()) {
        for repetition in 0..repetitions {
            let run = |outcome| Run { series: key.clone(), repetition, seed, started: 1.8e9, outcome };
            if key.contender == "engarde" {
                runs.push(run(Outcome::Skipped(SKIPPED.to_owned())));
                continue;
            }
            if (key.contender.as_str(), key.case.as_str(), repetition) == ("mptcp", "A.2", 0) {
                runs.push(run(Outcome::Failed(FAILED.to_owned())));
            }
            let share =
                CONTENDERS.iter().find(|(label, _)| *label == key.contender).map_or(OTHERS, |(_, share)| *share);
            let scale = if key.contender == "hawser" { goodput } else { 1.0 };
            let mean = CAPACITY * share * (1.0 - case.x.unwrap_or(0.0).min(300.0) / 600.0) * scale;
            runs.push(run(Outcome::Found(findings(&mut chance, scenario, case, mean))));
        }
    }
    runs
}

fn findings(chance: &mut ChaCha8Rng, scenario: &Scenario, case: &Case, mean: f64) -> Findings {
    let goodput = around(chance, mean, 0.02);
    let rtt = around(chance, 20.0 + case.x.unwrap_or(0.0), 0.03);
    let gap = around(chance, 90.0, 0.3);
    let mut found = Findings::default();
    let columns = scenario.tables.iter().flat_map(|table| table.columns.iter().map(|column| &column.metric));
    let plots = scenario.plots.iter().filter(|plot| matches!(plot.kind, PlotKind::Lines | PlotKind::Bars));
    for metric in columns.chain(plots.map(|plot| &plot.metric)) {
        found.metrics.entry(metric.clone()).or_insert_with(|| around(chance, 40.0, 0.05));
    }
    let known = [("goodput_mbps", goodput), ("rtt_ms", rtt), ("longest_gap_ms", gap), ("subflows", 2.0)];
    found.metrics.extend(known.map(|(name, value)| (name.to_owned(), value)));
    found.lines = lines(chance, case, goodput);
    for Plot { kind, metric, .. } in &scenario.plots {
        let is_new = || !found.lines.iter().any(|line| line.name == *metric);
        match kind {
            PlotKind::Cdf if metric != "page_ms" => {
                found.samples.insert(metric.clone(), (0..200).map(|_| around(chance, rtt, 0.2)).collect());
            }
            PlotKind::Time if is_new() => {
                let values = (0..24).map(|_| around(chance, 20.0, 0.1)).collect();
                found.lines.push(Line { name: metric.clone(), link: None, step_s: 0.5, values });
            }
            _ => {}
        }
    }
    let mark = |at_s, what: &str| Mark { at_s, what: format!("{} {what}", case.links[0].name) };
    found.marks = vec![mark(TIMES[2], "cut"), mark(TIMES[3], "back")];
    found
}

/// What each link carried: the first is cut meanwhile; and what the application got.
fn lines(chance: &mut ChaCha8Rng, case: &Case, goodput: f64) -> Vec<Line> {
    let [duration, step_s, cut, back] = TIMES;
    let steps = (duration / step_s) as usize;
    let is_cut = |step: usize| (cut..back).contains(&((step as f64 + 0.5) * step_s));
    let part = goodput / case.links.len() as f64;
    let mut lines: Vec<Line> = Vec::new();
    for (place, link) in case.links.iter().enumerate() {
        let carried = |step| match (place, is_cut(step)) {
            (0, true) => 0.0,
            (_, true) => part * 1.15,
            (_, false) => part,
        };
        let values = (0..steps).map(|step| around(chance, carried(step), 0.05)).collect();
        lines.push(Line { name: "link_down_mbps".to_owned(), link: Some(link.name.clone()), step_s, values });
    }
    let values = (0..steps).map(|step| 0.96 * lines.iter().map(|line| line.values[step]).sum::<f64>()).collect();
    lines.push(Line { name: "goodput_mbps".to_owned(), link: None, step_s, values });
    lines
}

/// Normal around the mean (Box and Muller 1958), with that share of it as standard deviation.
fn around(chance: &mut ChaCha8Rng, mean: f64, share: f64) -> f64 {
    let [one, other] = [(); 2].map(|()| (f64::from(chance.next_u32()) + 0.5) / (f64::from(u32::MAX) + 1.0));
    let normal = (-2.0 * one.ln()).sqrt() * (TAU * other).cos();
    mean * (1.0 + share * normal)
}
