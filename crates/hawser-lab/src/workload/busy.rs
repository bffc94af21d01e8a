//! Other work on the processors: a loop on each that never waits, beside any workload.
//!
//! 1. The loops start before the workload does, with an ordinary priority, as any program's.
//! 2. They end with it, whatever came of it.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hawser_wire::Moment;

use super::options::Options;
use super::{Ground, Workload};
use crate::error::LabError;
use crate::experiment::Findings;

/// Between two looks at whether the loop is to end.
const TURNS: u32 = 10_000;

/// A workload on busy processors. Starts idle; one owner.
pub(super) struct Busy(Box<dyn Workload>);

impl Busy {
    /// The workload with what its option `busy` asks for.
    pub(super) fn parse(workload: Box<dyn Workload>, options: &mut Options) -> Result<Box<dyn Workload>, LabError> {
        Ok(if options.yes("busy", false)? { Box::new(Self(workload)) } else { workload })
    }
}

impl Workload for Busy {
    fn prepare(&mut self, ground: &Ground) -> Result<(), LabError> {
        self.0.prepare(ground)
    }

    /// Steps 1 and 2.
    fn run(&mut self, ground: &Ground, start: Moment) -> Result<Findings, LabError> {
        let processors =
            thread::available_parallelism().map_err(|error| LabError::system("count processors", error))?;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..processors.get() {
                scope.spawn(|| work(&is_over));
            }
            let found = self.0.run(ground, start);
            is_over.store(true, Ordering::Release);
            found
        })
    }
}

fn work(is_over: &AtomicBool) {
    let mut sum = 0_u32;
    while !is_over.load(Ordering::Acquire) {
        for turn in 0..TURNS {
            sum = hint::black_box(sum.wrapping_add(turn));
        }
    }
}
