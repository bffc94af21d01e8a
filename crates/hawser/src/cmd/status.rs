//! `hawser status`: what the running portal says about its peers and paths.

mod table;

use std::path::PathBuf;

use clap::Args;
use hawser_portal::api::{Client, ClientError};
use hawser_portal::config::DEFAULT_SOCKET;

use super::output::print;
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
        let status = Client::status(&self.socket).map_err(told)?;
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
        ClientError::NotRunning { .. } => Some("start one: hawser up -c FILE; if it has another socket: --socket PATH"),
        ClientError::NotAllowed { .. } => Some("ask as root or as the socket's group: sudo hawser status"),
        _ => None,
    };
    let failure = Failure::failed(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
