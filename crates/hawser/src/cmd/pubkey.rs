//! `hawser pubkey`: the public key of the private key on standard input.

use std::io::{self, Read, Write};

use clap::Args;
use hawser_config::PrivateKey;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// A key is 44 characters; whoever sends much more sends something else. Bytes.
const INPUT_LIMIT: usize = 4096;

/// Print the public key of the private key on standard input
#[derive(Debug, Args)]
pub struct Pubkey {}

impl Pubkey {
    /// Reads the private key, prints the public one.
    pub fn run(self) -> Result<(), Failure> {
        // Room for all of it, so that growing leaves no unwiped copy behind.
        let mut text = Zeroizing::new(String::with_capacity(INPUT_LIMIT + 1));
        let hint = "hawser pubkey < /etc/hawser/private.key";
        io::stdin()
            .take(INPUT_LIMIT as u64)
            .read_to_string(&mut text)
            .map_err(|e| Failure::wrong(format!("read private key from standard input: {e}")).hint(hint))?;
        let key = PrivateKey::parse(&text)
            .map_err(|e| Failure::wrong(format!("read private key from standard input: {e}")).hint(hint))?;
        let mut out = io::stdout().lock();
        writeln!(out, "{}", key.public())
            .and_then(|()| out.flush())
            .map_err(|e| Failure::failed(format!("print public key: {e}")))
    }
}
