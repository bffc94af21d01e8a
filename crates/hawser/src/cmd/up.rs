//! `hawser up`: a portal in the foreground.
//!
//! 1. Say what happens on standard error, as `HAWSER_LOG` asks; raise the limit of descriptors. 2. Catch signals, so that none is lost from here on.
//! 3. Load the configuration and the keys; where they cannot be, nothing is let past the tunnel that was not before (`kill_switch`). 4. Start the portal, and run until a signal ends it.

pub(super) mod host;
mod notify;
mod signals;

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use hawser_portal::config::{self, DEFAULT_FILE};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, registry};

use self::host::ServiceManager;
use super::kill_switch;
use crate::failure::Failure;

/// The environment variable that chooses what is logged.
const LOG_VARIABLE: &str = "HAWSER_LOG";
/// What is logged where the variable says nothing.
const LOG_DEFAULT: &str = "info";

/// Run a portal in the foreground
#[derive(Debug, Args)]
pub struct Up {
    /// The configuration
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
}

impl Up {
    /// Runs until a signal ends it.
    pub fn run(self) -> Result<(), Failure> {
        start_log()?;
        raise_descriptors();
        let shown = self.config.display().to_string();
        let loaded = ServiceManager::start(self.config.clone(), config::load);
        if loaded.is_err() {
            // Nothing leaks because of a slip in a file. What is wrong with that file is told all the same.
            if let Err(failure) = kill_switch::by_records(&self.config) {
                let _ = failure.report();
            }
        }
        let ((config, keys), mut host) = loaded?;
        tracing::info!(
            config = shown,
            public_key = %keys.private.public(),
            links = config.links.len(),
            peers = config.peers.len(),
            "configuration loaded"
        );
        let ended = hawser_portal::run::run(config, keys, &mut host);
        ended.map_err(|error| Failure::hinted(error.hint(), error))
    }
}

/// A portal has a descriptor for each stream: as many as it may have at all (the soft limit is for who uses select(2)).
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::debug!(%error, "limit of descriptors not raised");
    }
}

/// Log lines to standard error, in colour on a terminal; without a time of their own where the journal adds one.
pub(super) fn start_log() -> Result<(), Failure> {
    let filter = std::env::var(LOG_VARIABLE).unwrap_or_else(|_| LOG_DEFAULT.to_owned());
    let filter: Targets = filter.parse().map_err(|e| {
        Failure::wrong(format!("read {LOG_VARIABLE}={filter}: {e}"))
            .hint(format!("such as {LOG_VARIABLE}=debug or {LOG_VARIABLE}=info,hawser_net=trace"))
    })?;
    let others = filter.default_level().unwrap_or(LevelFilter::ERROR);
    let log = registry().with(filter.with_default(others));
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal()).compact();
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.with(lines.without_time()).init();
    } else {
        log.with(lines).init();
    }
    Ok(())
}
