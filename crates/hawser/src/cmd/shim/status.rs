//! `hawser shim status`: what the running shim says about its connections and their paths.

mod table;

use std::path::PathBuf;

use clap::Args;
use hawser_shim::config::DEFAULT_CONTROL;
use hawser_shim::status::{ClientError, ask};

use crate::cmd::output::print;
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
        let status = ask(&self.socket).map_err(told)?;
        let text = if self.json {
            let mut text = serde_json::to_string_pretty(&status).map_err(Failure::failed)?;
            text.push('\n');
            text
        } else {
            table::render(&status)
        };
        print(&text)
    }
}

fn told(error: ClientError) -> Failure {
    let hint = match &error {
        ClientError::NotRunning { .. } => {
            Some("start one: hawser shim -c FILE; if it has another socket: --socket PATH")
        }
        ClientError::NotAllowed { .. } => Some("ask as root or as the socket's group: sudo hawser shim status"),
        _ => None,
    };
    let failure = Failure::failed(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
