//! `hawser shim -c FILE`: a shim in the foreground, as `hawser up` is a portal.
//!
//! 1. Say what happens on standard error, as `HAWSER_LOG` asks. 2. Catch signals, so that none is lost from here on.
//! 3. Load the configuration. 4. Start the shim, and run until a signal ends it.

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use clap::Args;
use hawser_shim::config::{self, Config, LoadError};
use hawser_shim::run::{Host, Order, RunError};

use crate::cmd::up::signals::{Event, Signals};
use crate::cmd::up::{notify, start_log};
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
        start_log()?;
        let signals = Signals::catch().map_err(|e| Failure::failed(format!("catch signals: {e}")))?;
        let config = config::load(&self.config)?;
        tracing::info!(config = %self.config.display(), routes = config.routes.len(), "configuration loaded");
        let mut host = ServiceManager { signals, config: self.config };
        hawser_shim::run::run(config, &mut host).map_err(failure)
    }
}

fn failure(error: RunError) -> Failure {
    let hint = error.hint();
    let failure = Failure::failed(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Signals as orders, and news for the service manager. Used by the control thread only.
#[derive(Debug)]
struct ServiceManager {
    signals: Signals,
    config: PathBuf,
}

impl AsFd for ServiceManager {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

impl Host for ServiceManager {
    fn orders(&mut self) -> Vec<Order> {
        let order = |event| match event {
            Event::Reload => Order::Reload,
            Event::Shutdown => Order::Shutdown,
        };
        self.signals.pending().into_iter().map(order).collect()
    }

    fn reload(&mut self) -> Option<Config> {
        notify::reloading();
        match config::load(&self.config) {
            Ok(config) => Some(config),
            Err(error) => {
                if let LoadError::Faulty { errors, .. } = &error {
                    errors.iter().for_each(|fault| tracing::error!(hint = fault.hint, "{fault}"));
                }
                let cause = error.source().map(ToString::to_string);
                tracing::error!(%error, cause, "configuration not read again, the old one stays in force");
                None
            }
        }
    }

    fn ready(&mut self, status: &str) {
        notify::ready(status);
        tracing::info!(status, "ready");
    }

    fn stopping(&mut self) {
        notify::stopping();
        tracing::info!("stopping");
    }
}
