//! How fast end hosts are over SCION: the reference implementation's and Hawser's, in turns (`hawser scion bench`).
//!
//! 1. The scenarios of the group `scion` say what is run; [`experiment::run`](crate::experiment::run()) says
//!    when, and keeps what came of it, as for every other scenario of the lab.
//! 2. An [`executor`] does each run. A [`Candidate`] says which programs send and receive, and what hands packets on
//!    between them; a [`Plan`] says what is sent, and where.
//! 3. Go builds the programs over snet; Hawser's own ends are this executable ([`end`]).
//! 4. `ground`: two hosts in namespaces. `helpers`: dispatchers, the program that bypasses them, portals.
//!    `worker`: an end's process, and the file that is sent.
//! 5. `run`: the programs, the receiver, the sender, what each counted and what it cost.
//! 6. [`finish`]: the lab's report, also as one text, and one connection in short ([`Brief`]), from what was kept.

pub mod end;
pub(crate) mod figures;
mod ground;
mod helpers;
pub(crate) mod plan;
mod run;
pub(crate) mod worker;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use ground::Network;
use plan::{Candidate, Load, Plan};

use crate::contender::Programs;
use crate::error::LabError;
use crate::experiment::Execute;
use crate::report::results::{self, Results};
use crate::report::series::Book;
use crate::report::{self, Written};
use crate::scenario::{ContenderPlan, Scenario};

/// What scenarios of the bench call their contenders' kind.
pub const CONTENDER: &str = "scion";
/// What they call their workloads' kinds: packets of one size, and a file.
pub const WORKLOADS: [&str; 2] = ["scion-packets", "scion-file"];
/// The group of the bench's scenarios.
pub const GROUP: &str = "scion";
/// The report as one text, for docs/results.
const TEXT: &str = "scion.md";
const HEAD: &str = "# SCION end hosts\n\nMade by `hawser scion bench`; docs/scion.md says what is measured.\n\n";
/// Of one connection: which scenarios may say it, which case, and which workload.
const ONE: [&str; 2] = ["scion-one", "scion-within"];
const WORKLOAD: &str = "packets";
const CASE: &str = "1";

/// Executes runs of the bench's scenarios. Starts without any program built; one run at a time, or they measure each
/// other.
struct Bench {
    programs: Programs,
    /// Comes up once.
    network: OnceCell<Network>,
}

/// What executes a scenario's runs, each of whose contenders and workloads must mean something.
pub(crate) fn executor(scenario: &Scenario, programs: &Programs) -> Result<Execute<'static>, LabError> {
    let candidates = scenario.contenders.iter().map(Candidate::of).collect::<Result<Vec<_>, _>>()?;
    for workload in &scenario.workloads {
        let plan = Plan::of(workload)?;
        let lost = candidates.iter().find(|candidate| !candidate.carries(plan.load));
        if let Some(Candidate { label, .. }) = lost {
            let other = if matches!(plan.load, Load::File { .. }) { "packets" } else { "files" };
            let fault = format!("the candidate {label} carries {other} alone");
            return Err(LabError::refused(format!("plan workload {}", workload.name), fault));
        }
    }
    let bench = Bench { programs: programs.clone(), network: OnceCell::new() };
    Ok(Box::new(move |planned| bench.run(planned)))
}

/// What is in a cell, made where it is not.
pub(crate) fn once<T>(cell: &OnceCell<T>, make: fn() -> Result<T, LabError>) -> Result<&T, LabError> {
    match cell.get() {
        Some(made) => Ok(made),
        None => make().map(|made| cell.get_or_init(|| made)),
    }
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

/// Writes the report of a folder of results in it: the page with tables and plots. Tells of one connection within an
/// AS, by candidate.
///
/// # Errors
/// Where results are missing or cannot be read, or the report cannot be written.
pub fn finish(dir: &Path) -> Result<(Written, BTreeMap<String, Brief>), LabError> {
    let results = results::read(dir)?;
    let reports = report::all(&results);
    let written = report::publish(dir, &reports)?;
    let path = dir.join(TEXT);
    fs::write(&path, report::text(HEAD, &reports, false)).map_err(LabError::file("write", &path))?;
    Ok((written, brief(&results)))
}

/// Medians of every candidate that was measured with one connection within an AS.
fn brief(results: &[Results]) -> BTreeMap<String, Brief> {
    let of = |name: &str| {
        let Results { scenario, runs, .. } = results.iter().find(|of| of.scenario.name == name)?;
        let book = Book::new(scenario, runs);
        let brief = |ContenderPlan { label, .. }: &ContenderPlan| {
            let series = book.get(CASE, label, Some(WORKLOAD), |_| true)?;
            let median = |metric: &str| series.summary(metric).map(|summary| summary.median);
            let brief = Brief {
                mbps: median("goodput_mbps")?,
                kpps: median("kpps")?,
                loss_pct: median("loss_percent")?,
                cpu_us_per_packet: median("cpu_packet_us")?,
            };
            Some((label.clone(), brief))
        };
        let all: BTreeMap<String, Brief> = scenario.contenders.iter().filter_map(brief).collect();
        (!all.is_empty()).then_some(all)
    };
    ONE.into_iter().find_map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::experiment::{Findings, Outcome, Run, SeriesKey};
    use crate::scenario;

    fn run(scenario: &str, workload: &str, repetition: u32, mbps: f64) -> Run {
        let [scenario, case, contender, workload] = [scenario, CASE, "snet", workload].map(str::to_owned);
        let series = SeriesKey { scenario, case, contender, workload };
        let figures = [("goodput_mbps", mbps), ("kpps", 90.0), ("loss_percent", 0.5), ("cpu_packet_us", 20.0)];
        let outcome = Outcome::Found(Findings::named(figures));
        Run { series, repetition, seed: 1, started: 0.0, outcome }
    }

    #[test]
    fn the_line_has_each_candidates_medians() {
        let of = |name: &str, runs: &[(&str, f64)]| Results {
            scenario: scenario::find(name, None).expect("it comes along").remove(0),
            runs: runs.iter().zip(0..).map(|(&(workload, mbps), number)| run(name, workload, number, mbps)).collect(),
            machine: Value::Null,
            folder: "/nowhere".into(),
        };
        let one = of("scion-one", &[("packets", 800.0), ("packets", 900.0), ("packets", 1000.0), ("paced", 1.0)]);
        let line = serde_json::to_string(&brief(&[of("scion-within", &[("packets", 2.0)]), one])).expect("plain data");
        assert_eq!(line, r#"{"snet":{"mbps":900.0,"kpps":90.0,"loss_pct":0.5,"cpu_us_per_packet":20.0}}"#);
    }
}
