//! A shim that runs.
//!
//! 1. The calling thread becomes the control thread. It cleans up after a killed predecessor, asks the daemon where this
//!    is (`place`), makes the interfaces and sets what they need ([`crate::host`]).
//! 2. It gives up the privileges that are not needed any more, and starts the other threads with fewer still (`powers`):
//!    paths, packets, the map, subflows, notices, the control socket.
//! 3. Until the end it follows the map, the host's addresses, and orders (`serve`).
//! 4. A shutdown, or the end of the packet thread for whatever reason, undoes what was set in the system.

mod error;
mod place;
mod powers;
mod serve;
mod threads;

use std::os::fd::AsFd;

pub use error::RunError;

use crate::config::Config;
use crate::host::System;
use crate::manager::{Prepared, prepare};
use crate::route::{Addresses, InterfaceIndex};

use place::Place;
use serve::Serving;
use threads::Threads;

/// What a shim is told to do. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read the configuration again.
    Reload,
    /// Undo everything and end.
    Shutdown,
}

/// Who gives orders to a shim and is told about it. Its file descriptor is readable while orders wait.
/// Used by the control thread only.
pub trait Host: AsFd {
    /// The orders that came since the last call. Never blocks.
    fn orders(&mut self) -> Vec<Order>;

    /// The configuration, read anew; `None` where that failed, which was told.
    fn reload(&mut self) -> Option<Config>;

    /// The shim carries connections; `status` says in a line where.
    fn ready(&mut self, status: &str);

    /// The shim is undoing what it made.
    fn stopping(&mut self);
}

/// Runs a shim on the calling thread and some more until `host` orders its end, in the calling thread's network namespace.
///
/// Afterwards the calling thread, and each that it starts, has the capabilities alone that undoing needed.
///
/// # Errors
/// [`RunError`], with everything undone that could be.
pub fn run(config: Config, host: &mut impl Host) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
    runtime.block_on(async {
        let mut system = System::open(&config).await?;
        let result = serve(config, host, &mut system).await;
        system.undo().await;
        result
    })
}

/// All but the undoing.
async fn serve(config: Config, host: &mut impl Host, system: &mut System) -> Result<(), RunError> {
    let place = Place::find(&config).await?;
    let own = |index: InterfaceIndex| place.addresses(index);
    let egress: Vec<Addresses> = config.egress.interfaces().map(own).collect::<Result<_, _>>()?;
    let Prepared { manager, clients, servers } = prepare(config.path_manager, &egress);
    let devices = system.configure(&config, own, clients, servers).await?;
    let socket = place.bind()?;
    powers::reduce(&config)?;
    let mut threads = Threads::start(&config, &place, egress, manager, devices, socket)?;
    let serving = Serving::new(config, &place, system, &threads);
    let result = serving.run(&mut threads, host).await;
    host.stopping();
    // Interfaces go with the packet thread, and with them all that is set on them.
    let ended = threads.stop();
    result.and(ended)
}
