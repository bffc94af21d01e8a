//! `hawser shim status`: what the running shim says about its connections and their paths.

mod table;

use std::path::PathBuf;

use clap::Args;
use hawser_shim::config::DEFAULT_CONTROL;
use hawser_shim::status::ask;

use crate::cmd::output::{print, shown, unanswered};
use crate::failure::Failure;

/// Show the connections of the running shim, and the paths of their flows
#[derive(Debug, Args)]
pub struct Status {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
    /// The shim's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_CONTROL)]
    socket: PathBuf,
}

impl Status {
    /// Asks the shim and prints its answer.
    pub fn run(self) -> Result<(), Failure> {
        let asked = ask(&self.socket);
        let status = asked.map_err(|error| unanswered(error, "shim", "shim status"))?;
        print(&shown(&status, self.json, table::render)?)
    }
}
