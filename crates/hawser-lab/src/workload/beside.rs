//! A workload with another beside it: a load, or a ping.
//!
//! 1. Both are prepared, and start in the same moment.
//! 2. What is kept of the other's findings joins the workload's.

use std::thread;

use hawser_wire::Moment;

use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// A workload and the one beside it. Starts idle; one owner.
pub(super) struct Both {
    pub workload: Box<dyn Workload>,
    pub other: Box<dyn Workload>,
    /// What is kept.
    pub keep: fn(Findings) -> Findings,
}

impl Workload for Both {
    /// Step 1.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.other.prepare(ground)?;
        self.workload.prepare(ground)
    }

    /// Step 2.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let Self { workload, other, keep } = self;
        let (found, others) = thread::scope(|scope| {
            let others = scope.spawn(|| other.run(ground, start));
            (workload.run(ground, start), others.join())
        });
        let others = others.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut found = found?;
        found.add(keep(others));
        Ok(found)
    }
}
