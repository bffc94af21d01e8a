//! `hawser scion bench`: how fast end hosts are over SCION, the reference implementation's and ours.
//!
//! 1. The lab's scenarios of the group `scion` are chosen, and in them the candidates.
//! 2. They are run as `hawser lab run` does it, each into a folder.
//! 3. The report is written, and told whether what the scenarios claim holds.

use std::path::PathBuf;

use clap::Args;
use hawser_lab::contender::Programs;
use hawser_lab::experiment::{self, Choice, Progress};
use hawser_lab::scenario::{self, Scenario};
use hawser_lab::{LabError, cleanup, go, scion_bench};

use crate::cmd::lab::{judge, tell, told};
use crate::cmd::output::print;
use crate::failure::Failure;

/// Where results go, where no folder is named.
const RESULTS: &str = "hawser-scion-bench";
/// What every scenario's name begins with, where it is not written.
const PREFIX: &str = "scion-";
/// What `--quick` runs, where no scenario is named.
const QUICK: &str = "scion-one";

/// Measure how fast end hosts are over SCION (needs root)
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct Bench {
    /// One connection, each candidate once, for a second
    #[arg(long)]
    quick: bool,
    /// Print one line of JSON and nothing else: an object of candidates
    #[arg(long)]
    json: bool,
    /// Run this candidate, or this experiment; may be given several times [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Run each series this often [default: as the scenarios say, 3 to 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    reps: Option<u32>,
    /// The folder for results; what it holds already is not run again
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    out: PathBuf,
}

const AFTER: &str = "Experiments: one, lossless, within, between, quic, bulk. Candidates: dispatcher, shim, snet, snet-queues, bypass-snet, \
                     shim-flooded, bypass-flooded, bypass-queues, bypass-hawser, hawser-sendmmsg, hawser, bulk, session. docs/scion.md tells what they are.";

impl Bench {
    /// Steps 1 to 3.
    pub fn run(self) -> Result<(), Failure> {
        let scenarios = self.chosen()?;
        let program = std::env::current_exe().map_err(|e| Failure::failed(format!("find this executable: {e}")))?;
        let programs = Programs { hawser: program, cache: go::cache() };
        cleanup::start().map_err(|error| match error {
            LabError::NotRoot => Failure::failed(error).hint("run it with sudo: sudo hawser scion bench"),
            error => told(error),
        })?;
        let choice = Choice { repetitions: self.reps, quick: self.quick };
        let mut progress = Progress::default();
        let mut summaries = Vec::new();
        for scenario in &scenarios {
            let dir = self.out.join(&scenario.name);
            summaries.push(experiment::run(scenario, choice, &dir, &programs, &mut progress).map_err(told)?);
        }
        let (written, brief) = scion_bench::finish(&self.out).map_err(told)?;
        if self.json {
            let line = serde_json::to_string(&brief);
            let line = line.map_err(|error| Failure::failed(format!("write figures: {error}")))?;
            print(&format!("{line}\n"))?;
        } else {
            tell(&written)?;
        }
        judge(&summaries)
    }

    /// Step 1: names are of scenarios and of candidates; of either none is all.
    fn chosen(&self) -> Result<Vec<Scenario>, Failure> {
        let mut scenarios = scenario::find(scion_bench::GROUP, None)?;
        let own = |name: &str| format!("{PREFIX}{name}");
        let is_scenario = |name: &String| scenarios.iter().any(|one| one.name == *name || one.name == own(name));
        let (mut wanted, candidates): (Vec<String>, Vec<String>) = self.only.iter().cloned().partition(is_scenario);
        let labels = || scenarios.iter().flat_map(|one| &one.contenders).map(|contender| contender.label.as_str());
        if let Some(strange) = candidates.iter().find(|name| !labels().any(|label| label == *name)) {
            let wrong = format!("--only {strange}: there is no such experiment or candidate");
            return Err(Failure::wrong(wrong).hint("hawser scion bench --help names them"));
        }
        if wanted.is_empty() && self.quick {
            wanted.push(QUICK.to_owned());
        }
        scenarios
            .retain(|one| wanted.is_empty() || wanted.iter().any(|name| one.name == *name || one.name == own(name)));
        for case in scenarios.iter_mut().flat_map(|one| &mut one.cases) {
            case.contenders.retain(|label| candidates.is_empty() || candidates.contains(label));
        }
        Ok(scenarios)
    }
}
