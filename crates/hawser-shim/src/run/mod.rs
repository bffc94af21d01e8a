//! A shim that runs.
//!
//! 1. The calling thread becomes the control thread. It cleans up after a killed predecessor, asks the daemon where
//!    this is (`place`), makes the interfaces and sets what they need ([`crate::host`]).
//! 2. It gives up the privileges that are not needed any more, and starts the other threads with fewer still
//!    (`powers`): paths, packets, the map, subflows, notices, the control socket.
//! 3. Until the end it follows the map, the host's addresses, and orders (`serve`).
//! 4. A shutdown, or the end of the packet thread for whatever reason, undoes what was set in the system.

mod error;
mod place;
mod powers;
mod serve;
mod threads;

pub use error::RunError;
use hawser_net::daemon::orders_of;
pub use hawser_net::daemon::{Host, Order};

use crate::config::Config;
use crate::host::System;
use crate::manager::{Prepared, prepare};
use crate::route::{Addresses, InterfaceIndex};

use place::Place;
use serve::Serving;
use threads::Threads;

/// Runs a shim on the calling thread and some more until `host` orders its end, in the calling thread's network
/// namespace.
///
/// Afterwards the calling thread, and each that it starts, has the capabilities alone that undoing needed.
///
/// # Errors
/// [`RunError`], with everything undone that could be.
pub fn run(config: Config, host: &mut impl Host<Config>) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
    runtime.block_on(async {
        let mut system = System::open(&config).await?;
        let result = serve(config, host, &mut system).await;
        system.undo().await;
        result
    })
}

/// All but the undoing.
async fn serve(config: Config, host: &mut impl Host<Config>, system: &mut System) -> Result<(), RunError> {
    let place = Place::find(&config).await?;
    let own = |index: InterfaceIndex| place.addresses(index);
    let egress: Vec<Addresses> = config.egress.interfaces().map(own).collect::<Result<_, _>>()?;
    let Prepared { manager, clients, servers } = prepare(config.path_manager, &egress);
    let devices = system.configure(&config, own, clients, servers).await?;
    let sockets = (place.bind()?, place.bind_tcp(&config));
    powers::reduce(&config)?;
    let mut threads = Threads::start(&config, &place, egress, manager, devices, sockets)?;
    let serving = Serving::new(config, &place, system, &threads);
    let result = serving.run(&mut threads, host).await;
    host.stopping();
    // Interfaces go with the packet thread, and with them all that is set on them.
    let ended = threads.stop();
    result.and(ended)
}
