//! What `hawser scion send` and `receive` have in common: whom they trust, and how progress is shown.
//!
//! 1. [`TrustArgs`]: a secret, or keys. 2. [`Meter`]: a rate, and one line of a terminal that is written over.

pub mod receive;
pub mod send;

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use hawser_config::{KeyFileError, PrivateKey, PublicKey};
use hawser_scion::bulk::{self, Identity, Trust};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// How far back a rate looks.
const RATE_OVER: Duration = Duration::from_secs(2);
/// Bits of a byte, and of a megabit.
const BITS: f64 = 8.0;
const MEGA: f64 = 1e6;

/// Whom an end trusts, as it is typed.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// A secret that both ends have in a file, as `hawser genkey` makes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "peer"])]
    secret: Option<PathBuf>,
    /// This end's private key, as `hawser genkey` makes it
    #[arg(long, value_name = "FILE", requires = "peer")]
    key: Option<PathBuf>,
    /// The other end's public key, as `hawser pubkey` prints it; a receiver may be given several
    #[arg(long, value_name = "KEY", requires = "key")]
    peer: Vec<String>,
}

impl TrustArgs {
    /// What was typed; nothing where nothing was.
    pub fn read(&self) -> Result<Option<Trust>, Failure> {
        if let Some(file) = &self.secret {
            return load(file).map(|secret| Some(Trust::secret(*secret.as_bytes())));
        }
        let Some(file) = &self.key else { return Ok(None) };
        let own = Identity::new(*load(file)?.as_bytes());
        let peers = self.peer.iter().map(|text| {
            let key = PublicKey::parse(text).map_err(|error| Failure::wrong(format!("read --peer {text}: {error}")))?;
            Ok(bulk::PublicKey(*key.as_bytes()))
        });
        Ok(Some(Trust::Keys { own, peers: peers.collect::<Result<_, Failure>>()? }))
    }
}

fn load(file: &std::path::Path) -> Result<PrivateKey, Failure> {
    PrivateKey::load(file).map_err(|error: KeyFileError| {
        let hint = error.hint();
        Failure::wrong(error).hint(hint)
    })
}

/// A flag that is set when the user ends the command.
pub fn ended_by_user() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag))
            .map_err(|error| Failure::failed(format!("catch signals: {error}")))?;
    }
    Ok(flag)
}

/// How fast something grows, and the line that says so. Empty at first; the command owns it.
#[derive(Debug)]
pub struct Meter {
    seen: VecDeque<(Instant, u64)>,
    /// A terminal shows it.
    shows: bool,
    shown: usize,
}

impl Meter {
    /// Shows itself where standard error is a terminal, unless `quiet`.
    pub fn new(quiet: bool) -> Meter {
        Meter { seen: VecDeque::new(), shows: !quiet && io::stderr().is_terminal(), shown: 0 }
    }

    /// Bits a second, lately, of what has come to `bytes`.
    pub fn rate(&mut self, bytes: u64) -> f64 {
        let now = Instant::now();
        self.seen.push_back((now, bytes));
        while self.seen.len() > 2 && now - self.seen[1].0 >= RATE_OVER {
            self.seen.pop_front();
        }
        let (from, before) = self.seen[0];
        let seconds = (now - from).as_secs_f64();
        if seconds > 0.0 { bytes.saturating_sub(before) as f64 * BITS / seconds } else { 0.0 }
    }

    /// Writes the line over the one before.
    pub fn show(&mut self, line: &str) {
        if self.shows {
            let width = self.shown.max(line.chars().count());
            // A terminal that is gone is no reason to stop.
            let _ = write!(io::stderr(), "\r{line:<width$}");
            self.shown = line.chars().count();
        }
    }

    /// Makes room for other lines.
    pub fn clear(&mut self) {
        if self.shown > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.shown);
            self.shown = 0;
        }
    }
}

/// A rate for people.
pub fn mbps(bits: f64) -> String {
    format!("{:.1} Mbit/s", bits / MEGA)
}

/// The mean rate of bytes in a time, in bit/s.
pub fn mean(bytes: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * BITS / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_bytes_in_a_time() {
        assert_eq!(mbps(mean(1_000_000, Duration::from_secs(2))), "4.0 Mbit/s");
        assert_eq!(mean(1, Duration::ZERO), 0.0);
        let mut meter = Meter::new(true);
        assert_eq!(meter.rate(5), 0.0, "nothing is known yet");
    }
}
