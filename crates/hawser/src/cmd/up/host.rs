//! What surrounds the portal of `hawser up`: signals, the service manager, and the configuration's file.

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use hawser_portal::config::{self, Config, Keys, LoadError};
use hawser_portal::run::{Host, Order};

use super::notify;
use super::signals::{Event, Signals};

/// Signals as orders, and news for the service manager. Used by the control thread only.
#[derive(Debug)]
pub struct ServiceManager {
    signals: Signals,
    config: PathBuf,
}

impl ServiceManager {
    /// Orders come by `signals`; the configuration is read again from the file `config`.
    pub fn new(signals: Signals, config: PathBuf) -> Self {
        Self { signals, config }
    }
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

    fn reload(&mut self) -> Option<(Config, Keys)> {
        notify::reloading();
        match config::load(&self.config) {
            Ok(loaded) => Some(loaded),
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
