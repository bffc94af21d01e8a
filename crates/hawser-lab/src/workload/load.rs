//! A load: a bulk stream beside any other workload, as long as that.
//!
//! 1. Both are prepared, and start in the same moment.
//! 2. What the load brought joins the other's figures under a name of its own.

use std::thread;

use hawser_wire::Moment;

use super::bulk::Bulk;
use super::options::{Options, Ways};
use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// The load's own figure and line, and what it is called beside another's.
const GOODPUT: &str = "goodput_mbps";
const LOAD: &str = "load_mbps";

/// A workload with a bulk stream beside it. Starts idle; one owner.
pub(super) struct Loaded {
    workload: Box<dyn Workload>,
    load: Bulk,
}

impl Loaded {
    /// The workload with what its option `load` asks for: the directions of a stream of CUBIC.
    pub(super) fn parse(workload: Box<dyn Workload>, options: &mut Options) -> Result<Box<dyn Workload>, LabError> {
        let ways = [("up", Some(Ways::Up)), ("down", Some(Ways::Down)), ("both", Some(Ways::Both))];
        Ok(match options.choice("load", &ways, None)? {
            None => workload,
            Some(ways) => Box::new(Self { workload, load: Bulk::plain(ways) }),
        })
    }
}

impl Workload for Loaded {
    /// Step 1.
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.load.prepare(ground)?;
        self.workload.prepare(ground)
    }

    /// Step 2.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let Self { workload, load } = self;
        let (found, loaded) = thread::scope(|scope| {
            let loading = scope.spawn(|| load.run(ground, start));
            (workload.run(ground, start), loading.join())
        });
        let mut loaded = loaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut found = found?;
        found.metrics.extend(loaded.metrics.remove(GOODPUT).map(|goodput| (LOAD.to_owned(), goodput)));
        let lines = loaded.lines.into_iter().filter(|line| line.name == GOODPUT);
        found.lines.extend(lines.map(|line| crate::experiment::Line { name: LOAD.to_owned(), ..line }));
        Ok(found)
    }
}
