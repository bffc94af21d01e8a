//! What one connection within an AS carries, in short: a line for programs that read it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::{Findings, Outcome, Run};
use crate::report::statistics::Summary;

/// Of one connection: which scenarios may say it, which case, and which workload.
const ONE: [&str; 2] = ["scion-one", "scion-within"];
const WORKLOAD: &str = "packets";
const CASE: &str = "1";

/// A candidate's figures for one connection within an AS: a part of the last line of `--json`. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Brief {
    /// Goodput that arrived.
    pub mbps: f64,
    /// Thousand packets a second that arrived.
    pub kpps: f64,
    /// What did not, in percent.
    pub loss_pct: f64,
    /// Processor time of both ends for a packet that arrived.
    pub cpu_us_per_packet: f64,
}

/// Runs of one connection that were measured.
fn found<'r>(runs: &'r [Run], scenario: &str) -> impl Iterator<Item = (&'r Run, &'r Findings)> {
    let is_asked =
        move |run: &&Run| run.series.scenario == scenario && run.series.workload == WORKLOAD && run.series.case == CASE;
    runs.iter().filter(is_asked).filter_map(|run| match &run.outcome {
        Outcome::Found(findings) => Some((run, findings)),
        Outcome::Skipped(_) | Outcome::Failed(_) => None,
    })
}

/// Medians of every candidate that was measured with one connection within an AS.
#[must_use]
pub fn brief(runs: &[Run]) -> BTreeMap<String, Brief> {
    let mut all: BTreeMap<String, Vec<&Findings>> = BTreeMap::new();
    for scenario in ONE {
        if all.is_empty() {
            for (run, findings) in found(runs, scenario) {
                all.entry(run.series.contender.clone()).or_default().push(findings);
            }
        }
    }
    let median = |of: &[&Findings], metric: &str| {
        let values: Vec<f64> = of.iter().filter_map(|findings| findings.metrics.get(metric).copied()).collect();
        Summary::of(&values).map(|summary| summary.median)
    };
    let brief = |of: &[&Findings]| {
        Some(Brief {
            mbps: median(of, "goodput_mbps")?,
            kpps: median(of, "kpps")?,
            loss_pct: median(of, "loss_percent")?,
            cpu_us_per_packet: median(of, "cpu_packet_us")?,
        })
    };
    all.into_iter().filter_map(|(candidate, of)| Some((candidate, brief(&of)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::SeriesKey;

    fn run(scenario: &str, contender: &str, workload: &str, repetition: u32, figures: &[(&str, f64)]) -> Run {
        let word = |text: &str| text.to_owned();
        let series = SeriesKey {
            scenario: word(scenario),
            case: word(CASE),
            contender: word(contender),
            workload: word(workload),
        };
        let metrics = figures.iter().map(|(name, value)| (word(name), *value)).collect();
        let outcome = Outcome::Found(Findings { metrics, ..Findings::default() });
        Run { series, repetition, seed: 1, started: 0.0, outcome }
    }

    #[test]
    fn the_line_has_each_candidates_medians() {
        let figures = |mbps| {
            [("goodput_mbps", mbps), ("kpps", 90.0), ("loss_percent", 0.5), ("cpu_packet_us", 20.0), ("other", 1.0)]
        };
        let runs = [
            run("scion-one", "snet", "packets", 0, &figures(800.0)),
            run("scion-one", "snet", "packets", 1, &figures(900.0)),
            run("scion-one", "snet", "packets", 2, &figures(1000.0)),
            run("scion-one", "snet", "paced", 0, &figures(1.0)),
            run("scion-within", "snet", "packets", 0, &figures(2.0)),
        ];
        let line = serde_json::to_string(&brief(&runs)).expect("plain data");
        assert_eq!(line, r#"{"snet":{"mbps":900.0,"kpps":90.0,"loss_pct":0.5,"cpu_us_per_packet":20.0}}"#);
    }
}
