//! Which capabilities stay, and for whom.
//!
//! 1. [`reduce`]: the control thread keeps what undoing needs: CAP_NET_ADMIN, and CAP_SYS_ADMIN where it has namespaces
//!    to remove.
//! 2. [`working`]: all other threads begin with CAP_NET_ADMIN alone, for buffers beyond the system's limit, and for
//!    subflows.

use std::thread;

use caps::{Capability, CapsHashSet};
use hawser_net::powers;

use super::RunError;
use crate::config::{Config, Mode};

/// Step 1, for the calling thread and those it starts from now on.
pub fn reduce(config: &Config) -> Result<(), RunError> {
    let mut kept = CapsHashSet::from([Capability::CAP_NET_ADMIN]);
    if config.mode == Mode::Namespaces {
        kept.insert(Capability::CAP_SYS_ADMIN);
    }
    powers::give_up_all_but(&kept).map_err(RunError::Privileges)
}

/// Step 2: does `work` where threads that it starts have no more.
pub fn working<T: Send>(work: impl FnOnce() -> Result<T, RunError> + Send) -> Result<T, RunError> {
    let reduced = || {
        powers::keep(&[Capability::CAP_NET_ADMIN].into()).map_err(RunError::Privileges)?;
        work()
    };
    thread::scope(|scope| scope.spawn(reduced).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
