//! How fast end hosts are over SCION: the reference implementation's and Hawser's, in turns (`hawser scion bench`).
//!
//! 1. The scenarios of the group `scion` say what is run; [`experiment::run`](crate::experiment::run()) says
//!    when, and keeps what came of it, as for every other scenario of the lab.
//! 2. [`Bench::run`] does one run. A [`Candidate`] says which programs send and receive, and what hands packets on
//!    between them; a [`plan::Plan`] says what is sent, and where.
//! 3. `programs` builds the programs over snet with Go; Hawser's own ends are this executable ([`end`]).
//! 4. `ground`, `network`: two hosts in namespaces. `helpers`: dispatchers, the program that bypasses them, portals.
//!    `worker`: an end's process.
//! 5. `run`: the receiver, the sender, what each counted and what it cost. `memory`: the file that is sent.
//! 6. [`finish`]: the report, and one connection in short ([`Brief`]), from what was kept.

mod candidate;
pub mod end;
pub(crate) mod figures;
mod finish;
mod ground;
mod helpers;
mod lossless;
pub(crate) mod memory;
pub(crate) mod network;
mod plan;
mod programs;
mod run;
pub(crate) mod worker;

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use candidate::Candidate;
use memory::MemoryFile;
use network::Network;

pub use finish::{Brief, Finish, finish};

use crate::contender::Programs;
use crate::error::LabError;
use crate::scenario::Scenario;

/// What scenarios of the bench call their contenders' kind.
pub const CONTENDER: &str = "scion";
/// What they call their workloads' kinds: packets of one size, and a file.
pub const WORKLOADS: [&str; 2] = ["scion-packets", "scion-file"];
/// The group of the bench's scenarios.
pub const GROUP: &str = "scion";

/// Executes runs of the bench's scenarios. Starts without any program built; one run at a time, or they measure each
/// other.
pub(crate) struct Bench {
    hawser: PathBuf,
    /// Of what Go builds.
    cache: PathBuf,
    network: OnceCell<Network>,
    file: RefCell<Option<Rc<MemoryFile>>>,
}

impl Bench {
    /// For a scenario, each of whose contenders and workloads must mean something.
    pub fn new(scenario: &Scenario, programs: &Programs) -> Result<Self, LabError> {
        let candidates = scenario.contenders.iter().map(Candidate::of).collect::<Result<Vec<_>, _>>()?;
        for workload in &scenario.workloads {
            let plan = plan::Plan::of(workload)?;
            let lost = candidates.iter().find(|candidate| !candidate.carries(plan.load));
            if let Some(Candidate { label, .. }) = lost {
                let fault = format!("the candidate {label} carries files alone");
                return Err(LabError::Workload { workload: workload.name.clone(), fault });
            }
        }
        let (hawser, cache) = (programs.hawser.clone(), programs.cache.clone());
        Ok(Self { hawser, cache, network: OnceCell::new(), file: RefCell::default() })
    }
}

/// Whether a scenario is the bench's: its contenders are SCION end hosts.
pub(crate) fn is_ours(scenario: &Scenario) -> bool {
    scenario.contenders.iter().any(|contender| contender.kind == CONTENDER)
}
