//! Shila's questions again (Flückiger 2020, chapter 6), for today's shim: how much more paths carry, what the choice of
//! paths costs, how QUIC compares, and what the ordinary internet beside adds.
//!
//! 1. The scenarios of the group `shila` say what is run; [`experiment::conduct`](crate::experiment::conduct) says
//!    when.
//! 2. [`Bench::run`] does one run: a [`Candidate`] comes up in the network of six ASes, which stays from run to
//!    run, and a file goes from client to server.
//! 3. `run` counts what left the client meanwhile, and asks the shim for the paths in use. `choice` holds them against
//!    the best ones.

mod candidate;
mod choice;
mod run;

use std::cell::OnceCell;
use std::path::PathBuf;

use candidate::Candidate;
use run::Ground;

use crate::contender::Programs;
use crate::error::LabError;
use crate::options::Options;
use crate::scenario::{Scenario, WorkloadPlan};

/// What scenarios call their contenders' kind.
pub const CONTENDER: &str = "shila";
/// What they call their workloads' kind.
pub const WORKLOAD: &str = "shila-file";
/// A file, where the scenario does not say: as its QUIC sent.
const FILE: u64 = 50_000_000;

/// Executes runs of the scenarios. Starts without a network; one run at a time, or they measure each other.
pub struct Bench {
    hawser: PathBuf,
    ground: OnceCell<Ground>,
}

impl Bench {
    /// For a scenario, each of whose contenders, workloads and cases must mean something.
    pub fn new(scenario: &Scenario, programs: &Programs) -> Result<Self, LabError> {
        scenario.contenders.iter().try_for_each(|contender| Candidate::of(contender).map(drop))?;
        scenario.workloads.iter().try_for_each(|workload| bytes(workload).map(drop))?;
        scenario.cases.iter().try_for_each(|case| candidate::paths(case.x).map(drop))?;
        Ok(Self { hawser: programs.hawser.clone(), ground: OnceCell::new() })
    }

    /// The network: comes up once.
    fn ground(&self) -> Result<&Ground, LabError> {
        match self.ground.get() {
            Some(ground) => Ok(ground),
            None => Ground::up().map(|ground| self.ground.get_or_init(|| ground)),
        }
    }
}

/// Whether a scenario is one of these.
pub fn is_ours(scenario: &Scenario) -> bool {
    scenario.contenders.iter().any(|contender| contender.kind == CONTENDER)
}

/// How long a workload's file is.
fn bytes(plan: &WorkloadPlan) -> Result<u64, LabError> {
    let mut options = Options::of_workload(plan);
    if plan.kind != WORKLOAD {
        return Err(options.fault(format!("no kind `{}` between SCION hosts; there is: {WORKLOAD}", plan.kind)));
    }
    let bytes = options.bytes("bytes")?.unwrap_or(FILE);
    options.finish()?;
    Ok(bytes)
}
