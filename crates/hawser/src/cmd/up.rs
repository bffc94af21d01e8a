//! `hawser up`: a portal in the foreground.
//!
//! 1. Say what happens on standard error, as `HAWSER_LOG` asks; raise the limit of descriptors. 2. Catch signals, so
//!    that none is lost from here on.
//! 3. Load the configuration and the keys; where they cannot be, nothing is let past the tunnel that was not before
//!    (`kill_switch`). 4. Start the portal, and run until a signal ends it.

pub(super) mod host;
mod log;
mod notify;
mod signals;

use std::path::PathBuf;

use clap::Args;
use hawser_config::DEFAULT_FILE;
use hawser_portal::keys;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::host::ServiceManager;
pub(super) use self::log::start_log;
use super::kill_switch;
use crate::failure::Failure;

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
        start_log(hawser_config::log_format(&self.config))?;
        raise_descriptors();
        let shown = self.config.display().to_string();
        let loaded = ServiceManager::start(self.config.clone(), keys::load);
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

/// A portal has a descriptor for each stream, a shim three for each connection along a path: as many as it may have at
/// all (the soft limit is for who uses select(2)).
pub(super) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::debug!(%error, "limit of descriptors not raised");
    }
}
