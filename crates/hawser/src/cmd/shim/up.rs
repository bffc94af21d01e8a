//! `hawser shim -c FILE`: a shim in the foreground, as `hawser up` is a portal.
//!
//! 1. Say what happens on standard error, as `HAWSER_LOG` asks; raise the limit of descriptors. 2. Catch signals, so
//!    that none is lost from here on. 3. Load the configuration. 4. Start the shim, and run until a signal ends it.

use std::path::PathBuf;

use clap::Args;
use hawser_config::LogFormat;
use hawser_shim::config;

use crate::cmd::up::host::ServiceManager;
use crate::cmd::up::{raise_descriptors, start_log};
use crate::failure::Failure;

/// A shim in the foreground.
#[derive(Debug, Args)]
pub struct Up {
    /// The configuration of the shim to run in the foreground
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

impl Up {
    /// Runs until a signal ends it.
    pub fn run(self) -> Result<(), Failure> {
        start_log(LogFormat::Text)?;
        raise_descriptors();
        let shown = self.config.display().to_string();
        let (config, mut host) = ServiceManager::start(self.config, config::load)?;
        tracing::info!(config = shown, routes = config.routes.len(), "configuration loaded");
        hawser_shim::run::run(config, &mut host).map_err(|error| Failure::hinted(error.hint(), error))
    }
}
