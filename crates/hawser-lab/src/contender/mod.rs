//! What is compared: one file each, with `up`, `down` and what applications use meanwhile.
//!
//! 1. [`make`] finds the kind, and the kind reads its options: none is ignored.
//! 2. `up` sets it up on a stage, and waits until it carries traffic; each step is noted with what undoes it
//!    ([`undo`]).
//! 3. `down` ends its programs and takes the steps back, the last one first.
//!
//! Kernel: [`tcp`], [`ecmp`], [`mptcp`]. Programs: [`hawser`], and those of [`tunnel`], which shares what tunnels have
//! in common; each adapter only says what its program is told.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Pid;

use crate::error::LabError;
use crate::options::Options;
use crate::scenario::ContenderPlan;
use crate::stage::{Ends, Stage};

pub use hawser::Running;
pub use hawser_wire::traffic::Stack as Transport;

mod ecmp;
mod hawser;
mod links;
mod mptcp;
mod tcp;
mod tunnel;
mod undo;

/// Where programs are. Plain data.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The `hawser` executable.
    pub hawser: PathBuf,
    /// The folder where tools that the lab builds are kept.
    pub cache: PathBuf,
}

/// What applications use while a contender is up. Plain data.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The addresses at which client and server reach each other.
    pub ends: Ends,
    /// What sockets are made.
    pub socket: Transport,
    /// Its programs, for their costs.
    pub programs: Vec<Program>,
    /// Its portals, where it has any: for what happens to them, and what they tell.
    pub portals: Option<Arc<Running>>,
}

/// A process of a contender. Plain data.
#[derive(Clone, Debug)]
pub struct Program {
    /// `local` or `remote`.
    pub role: &'static str,
    /// Its process.
    pub pid: Pid,
}

/// Something that carries traffic between client and server. Down at first. One owner.
pub trait Contender: Send {
    /// Sets it up, and returns once it carries traffic over every link that is up.
    ///
    /// # Errors
    /// Where it does not come up: with what it said.
    fn up(&mut self, stage: &Stage) -> Result<Offer, LabError>;

    /// Ends it and undoes what it set; after it the stage is as it was. Called once after each `up` that succeeded.
    ///
    /// # Errors
    /// Where something of it stays.
    fn down(&mut self, stage: &Stage) -> Result<(), LabError>;
}

/// What makes a contender of one kind.
type Make = fn(&ContenderPlan, &Programs) -> Result<Box<dyn Contender>, LabError>;

/// Every kind there is, but for tunnels.
static KINDS: [(&str, Make); 4] =
    [("tcp", tcp::make), ("mptcp", mptcp::make), ("hawser", hawser::make), ("ecmp", ecmp::make)];

/// Every kind there is.
pub(crate) fn kinds() -> impl Iterator<Item = &'static (&'static str, Make)> {
    KINDS.iter().chain(&tunnel::KINDS)
}

/// Step 1: a contender as planned, down.
///
/// # Errors
/// [`LabError::Option`] for a kind or option that is not known, or a value that means nothing.
pub fn make(plan: &ContenderPlan, programs: &Programs) -> Result<Box<dyn Contender>, LabError> {
    let Some((_, make)) = kinds().find(|(kind, _)| *kind == plan.kind) else {
        let kinds = kinds().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
        let fault = format!("there is no kind {:?}, but: {kinds}", plan.kind);
        return Err(LabError::Option { contender: plan.label.clone(), fault });
    };
    make(plan, programs)
}

#[cfg(test)]
mod tests;
