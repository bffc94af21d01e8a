//! What the bench leaves: the lab's report, also as one text for docs/results, and what one connection carries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::LabError;
use crate::experiment::{Findings, Outcome, Run};
use crate::report::statistics::Summary;
use crate::report::{self, Written, results};

/// The text.
const TEXT: &str = "scion.md";
const HEAD: &str = "# SCION end hosts\n\nMade by `hawser scion bench`; docs/scion.md says what is measured.\n\n";

/// Of one connection: which scenarios may say it, which case, and which workload.
const ONE: [&str; 2] = ["scion-one", "scion-within"];
const WORKLOAD: &str = "packets";
const CASE: &str = "1";

/// What was found, ready to be told. Plain data.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The page with tables and plots, and whether what is claimed holds.
    pub written: Written,
    /// One connection within an AS, by candidate.
    pub brief: BTreeMap<String, Brief>,
}

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

/// Writes the report of a folder of results in it.
///
/// # Errors
/// Where results are missing or cannot be read, or the report cannot be written.
pub fn finish(dir: &Path) -> Result<Finish, LabError> {
    let results = results::read(dir)?;
    let reports = report::all(&results);
    let written = report::publish(dir, &reports)?;
    let path = dir.join(TEXT);
    fs::write(&path, report::text(HEAD, &reports, false)).map_err(LabError::file("write", &path))?;
    let runs: Vec<Run> = results.into_iter().flat_map(|results| results.runs).collect();
    Ok(Finish { written, brief: brief(&runs) })
}

/// Medians of every candidate that was measured with one connection within an AS.
fn brief(runs: &[Run]) -> BTreeMap<String, Brief> {
    let found = |scenario: &str| {
        let mut all: BTreeMap<&str, Vec<&Findings>> = BTreeMap::new();
        for Run { series, outcome, .. } in runs {
            let is_asked = series.scenario == scenario && series.workload == WORKLOAD && series.case == CASE;
            if let Outcome::Found(findings) = outcome
                && is_asked
            {
                all.entry(&series.contender).or_default().push(findings);
            }
        }
        all
    };
    let all = ONE.into_iter().map(found).find(|all| !all.is_empty()).unwrap_or_default();
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
    all.into_iter().filter_map(|(candidate, of)| Some((candidate.to_owned(), brief(&of)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::SeriesKey;

    fn run(scenario: &str, contender: &str, workload: &str, repetition: u32, figures: &[(&str, f64)]) -> Run {
        let [scenario, case, contender, workload] = [scenario, CASE, contender, workload].map(str::to_owned);
        let series = SeriesKey { scenario, case, contender, workload };
        let outcome = Outcome::Found(Findings::named(figures.iter().copied()));
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
