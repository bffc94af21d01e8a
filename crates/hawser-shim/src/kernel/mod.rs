//! The kernel's MPTCP: what it may do of its own accord, and subflows one by one.
//!
//! 1. Endpoints and limits, for the kernel's own path manager, are changes as any other: [`Change::MptcpEndpoint`] and
//!    [`Change::MptcpLimits`] are journalled, and undone also after a `kill -9`.
//! 2. [`userspace`] puts connections that begin from now on under a path manager in user space: [`Subflows`] tells the
//!    kernel of each what to do.
//! 3. [`Events`] says what happens to connections and subflows, whoever manages them.

mod events;
mod subflows;

pub use events::{Connected, Event, Events, Lost, Subflow, SubflowEvent};
pub use hawser_net::netcfg::{Change, EndpointFlags, EndpointId, MptcpEndpoint, MptcpLimits, PathManager};
pub use subflows::Subflows;

use hawser_net::netcfg::{NetConfigError, SysctlKey};

/// Which path manager new connections get: since linux 6.15 by name, since 5.19 by number
/// (Documentation/networking/mptcp-sysctl).
const BY_NAME: (&str, &str) = ("net/mptcp/path_manager", "userspace");
const BY_NUMBER: (&str, &str) = ("net/mptcp/pm_type", "1");

/// The change by which connections that begin from now on in this network namespace are managed by [`Subflows`] alone.
///
/// # Errors
/// [`NetConfigError::MissingFeature`] before linux 5.19.
pub fn userspace() -> Result<Change, NetConfigError> {
    for (key, value) in [BY_NAME, BY_NUMBER] {
        let key = SysctlKey::new(key)?;
        if key.exists() {
            return Ok(Change::Sysctl { key, value: value.to_owned() });
        }
    }
    let feature = hawser_net::netcfg::Feature::MptcpUserspace;
    Err(NetConfigError::lacking("choose", "path manager of mptcp", feature))
}
