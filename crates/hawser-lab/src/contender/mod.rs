//! What is compared: one file each, with `up`, `down` and what applications use meanwhile.

use rustix::process::Pid;

use crate::error::LabError;
use crate::stage::{Ends, Stage};

/// What applications use while a contender is up. Plain data.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The addresses at which client and server reach each other.
    pub ends: Ends,
    /// What sockets are made.
    pub socket: Transport,
    /// Its programs, for their costs.
    pub programs: Vec<Program>,
}

/// A process of a contender. Plain data.
#[derive(Clone, Debug)]
pub struct Program {
    /// `local` or `remote`.
    pub role: &'static str,
    /// Its process.
    pub pid: Pid,
}

/// What a reliable stream is made of. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// RFC 9293.
    Tcp,
    /// RFC 8684.
    Mptcp,
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
