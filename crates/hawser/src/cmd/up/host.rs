//! What surrounds a daemon in the foreground: signals, the service manager, and the configuration's file.

use std::error::Error;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use hawser_config::LoadError;
use hawser_portal::run::{Host, Order};

use super::notify;
use super::signals::{Event, Signals};
use crate::failure::Failure;

/// The program that runs, also where its file has been replaced (proc(5)).
const OURSELVES: &str = "/proc/self/exe";

/// Reads a configuration from its file.
pub type Load<C> = fn(&Path) -> Result<C, LoadError>;

/// Signals as orders, and news for the service manager. Used by the control thread only.
#[derive(Debug)]
pub struct ServiceManager<C> {
    signals: Signals,
    config: PathBuf,
    load: Load<C>,
}

impl<C> ServiceManager<C> {
    /// Catches signals, so that none is lost from here on, and loads the configuration, as a reload will again.
    ///
    /// # Errors
    /// A fault of the configuration, or signals that cannot be caught.
    pub fn start(config: PathBuf, load: Load<C>) -> Result<(C, Self), Failure> {
        let signals = Signals::catch().map_err(|e| Failure::failed(format!("catch signals: {e}")))?;
        let loaded = load(&config)?;
        Ok((loaded, Self { signals, config, load }))
    }
}

impl<C> AsFd for ServiceManager<C> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}

impl<C> Host<C> for ServiceManager<C> {
    fn orders(&mut self) -> Vec<Order> {
        let order = |event| match event {
            Event::Reload => Order::Reload,
            Event::Shutdown => Order::Shutdown,
        };
        self.signals.pending().into_iter().map(order).collect()
    }

    fn reload(&mut self) -> Option<C> {
        notify::reloading();
        match (self.load)(&self.config) {
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

    fn doctor(&self) -> Option<Command> {
        let mut doctor = Command::new(OURSELVES);
        doctor.args(["doctor", "--json", "-c"]).arg(&self.config);
        Some(doctor)
    }

    fn speed(&self) -> Option<Command> {
        let mut speed = Command::new(OURSELVES);
        speed.args(["speed", "--json"]);
        Some(speed)
    }
}
