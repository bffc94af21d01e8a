//! What is measured beside a workload: links, the contender's programs, recovery, and what packets say.
//!
//! Each measure gives findings of its own, which are added to the workload's.

mod capacity;
mod links;
mod processors;
mod programs;
mod recovery;
mod signals;

pub(super) use capacity::capacity;
pub(super) use links::{Carried, When, application_bytes, carried, handed, links_recovery, overhead, sends, watched};
pub(super) use programs::Meter;
pub(super) use recovery::{FINE, LOST, lost, recovery};
pub(super) use signals::{SIGNALS, Signals};
