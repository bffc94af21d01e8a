//! What is sent while it is measured: one file each.

use std::time::Duration;

use hawser_wire::{Moment, Namespace};

use crate::contender::Transport;
use crate::error::LabError;
use crate::experiment::Findings;
use crate::stage::Ends;

/// Where and how a workload runs. Plain data.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Where the client runs.
    pub client: Namespace,
    /// Where the server runs.
    pub server: Namespace,
    /// At which addresses they reach each other.
    pub ends: Ends,
    /// What reliable streams are made of.
    pub socket: Transport,
    /// Hosts whose own plain traffic may compete with the client's.
    pub bystanders: Vec<Beside>,
    /// How long to run.
    pub duration: Duration,
    /// Of whatever is random.
    pub seed: u64,
}

/// A host beside the client. Plain data.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What the scenario calls it.
    pub name: String,
    /// Where it runs.
    pub host: Namespace,
    /// At which addresses it and the server reach each other.
    pub ends: Ends,
}

/// Traffic, ready to run. Once; one owner.
pub trait Workload: Send {
    /// Sets up what takes time (listening, connecting) in both namespaces; nothing is measured yet.
    ///
    /// # Errors
    /// Where a socket or program cannot be had.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError>;

    /// Runs from `start` (now, or a little later) for the ground's duration, and returns what was found.
    /// Times in the findings are seconds after `start`.
    ///
    /// # Errors
    /// Where the traffic broke in a way that is no finding.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError>;
}
