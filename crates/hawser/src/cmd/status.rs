//! `hawser status`: what the running portal says about its peers and paths.

mod table;

use std::path::PathBuf;

use clap::Args;
use hawser_portal::api::Client;
use hawser_portal::config::DEFAULT_SOCKET;

use super::output::{print_status, unanswered};
use crate::failure::Failure;

/// Show the peers and paths of the running portal
#[derive(Debug, Args)]
pub struct Status {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

impl Status {
    /// Asks the portal and prints its answer.
    pub fn run(self) -> Result<(), Failure> {
        let asked = Client::status(&self.socket);
        let status = asked.map_err(|error| unanswered(error, "up", "status"))?;
        print_status(&status, self.json, table::render)
    }
}
