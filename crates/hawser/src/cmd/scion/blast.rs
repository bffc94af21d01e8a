//! `hawser scion blast`: one end of a measurement. `hawser scion bench` runs both.

use clap::Args;
use hawser_lab::scion_bench::end::Task;

use crate::cmd::lab::told;
use crate::failure::Failure;

/// One end of a measurement
#[derive(Debug, Args)]
pub struct Blast {
    #[command(subcommand)]
    task: Task,
}

impl Blast {
    /// Does what it was told; says what that was in a line of JSON.
    pub fn run(self) -> Result<(), Failure> {
        self.task.run().map_err(told)
    }
}
