//! A portal that runs: the core of `hawser-core` between a TUN device and its links.
//!
//! 1. The calling thread becomes the control thread. It closes the way past the tunnel, where it is to be
//!    (`kill_switch`), cleans up after a killed predecessor, makes the TUN device and configures the system
//!    (`control/`), and gives up the privileges that are not needed any more (`privileges`).
//! 2. It starts the packet thread, which owns the core, the TUN device and all sockets (`packet/`).
//! 3. The two exchange messages: [`messages::Command`] to the packet thread, [`messages::Report`] back.
//!    There is no lock and no shared memory between them.
//! 4. A shutdown, or the end of the packet thread for whatever reason, makes the control thread undo what it
//!    set in the system.

mod clock;
mod control;
mod error;
mod interfaces;
pub mod kill_switch;
mod messages;
mod own;
mod packet;
mod plan;
mod privileges;
mod random;
mod terms;

pub use control::TakeoverError;
pub use error::RunError;
pub use hawser_net::daemon::{Host, Order};
pub use own::mark as link_mark;
pub(crate) use random::SystemRandom;

use hawser_config::Config;

use crate::keys::Keys;

/// Undoes what a killed portal with the TUN device of this name left in the system. Whether there was something.
///
/// # Errors
/// [`RunError`]; where such a portal runs, everything stays.
pub fn clean_up(tun: &str) -> Result<bool, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
    runtime.block_on(control::clean_up(tun))
}

/// Runs a portal on the calling thread and one more until `host` orders its end, in the calling thread's
/// network namespace.
///
/// Afterwards the calling thread, and each that it starts, has CAP_NET_ADMIN and no other capability (`privileges`).
/// That one is needed throughout: to open sockets anew, to set the MTU and sysctls, and to undo all of it.
///
/// # Errors
/// [`RunError`], with everything undone that could be.
pub fn run(config: Config, keys: Keys, host: &mut impl Host<(Config, Keys)>) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Runtime)?;
    runtime.block_on(control::run(config, keys, host))
}
