//! `hawser genkey`: a new private key on standard output.

use std::io::{self, IsTerminal, Write};

use clap::Args;
use hawser_config::PrivateKey;

use crate::failure::Failure;

/// Print a new private key
#[derive(Debug, Args)]
pub struct Genkey {}

impl Genkey {
    /// Prints the key; on a terminal, also how to keep it.
    pub fn run(self) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::failed(format!("make private key: {error}"));
        let key = PrivateKey::generate().map_err(failed)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", key.to_base64().as_str()).and_then(|()| out.flush()).map_err(failed)?;
        if out.is_terminal() {
            eprintln!("hint: to keep it where only you can read it: (umask 077; hawser genkey > private.key)");
        }
        Ok(())
    }
}
