//! `hawser status`: what the running portal says about its peers and paths.

mod table;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use hawser_config::DEFAULT_SOCKET;
use hawser_portal::api::Client;

use super::output::{print, shown, unanswered, write};
use crate::failure::Failure;

/// From one look to the next of who watches.
const EVERY: Duration = Duration::from_secs(1);
/// To the corner of the terminal, and nothing from there on (ECMA-48, CUP and ED).
const CLEAR: &str = "\x1b[H\x1b[J";

/// Show the peers and paths of the running portal
#[derive(Debug, Args)]
pub struct Status {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
    /// Print it again each second, until interrupted; on a terminal in the same place
    #[arg(long)]
    watch: bool,
    /// The portal's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

impl Status {
    /// Asks the portal and prints its answer.
    pub fn run(self) -> Result<(), Failure> {
        if self.watch {
            self.watch();
            return Ok(());
        }
        print(&self.ask()?)
    }

    /// Until nobody reads it any more. Who watches does so over the portal's restarts, too.
    fn watch(&self) {
        let place = if io::stdout().is_terminal() { CLEAR } else { "" };
        loop {
            let text = self.ask().unwrap_or_else(|failure| failure.to_string());
            if write(&format!("{place}{text}")).is_err() {
                return;
            }
            sleep(EVERY);
        }
    }

    fn ask(&self) -> Result<String, Failure> {
        let asked = Client::status(&self.socket);
        let status = asked.map_err(|error| unanswered(error, "up", "status"))?;
        shown(&status, self.json, table::render)
    }
}

/// Why a peer that answers has no session with the portal, and what mends it; none for a word of a newer version.
pub(super) fn refusal(word: &str) -> Option<[&'static str; 2]> {
    match word {
        "unknown_key" => Some([
            "does not know this portal's public key",
            "on its side, sudo hawser peer list; on this one, hawser pubkey of the private key",
        ]),
        "preshared_key" => {
            Some(["has another preshared key", "give both sides the same `preshared_key_file`, or none"])
        }
        _ => None,
    }
}
