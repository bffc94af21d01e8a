//! What the kernel's MPTCP can do here, and what is to be set for it.
//!
//! ```text
//!   wanted                  lacking                        what is done
//!   userspace               (nothing)                      userspace: a subflow for each path
//!   userspace               its path manager, its events   kernel: endpoints and limits
//!   kernel                  (nothing)                      kernel
//!   either                  MPTCP                          one path
//! ```

use hawser_net::netcfg::{Change, EndpointFlags, MptcpEndpoint, MptcpLimits, NetConfigError, PathManager, SysctlKey};

use crate::config;
use crate::kernel::{Events, userspace};
use crate::route::{Addresses, MAX_EGRESS};

/// Whether new sockets get MPTCP at all (Documentation/networking/mptcp-sysctl).
const ENABLED: &str = "net/mptcp/enabled";

/// What was found, and what is to be set. Plain data.
#[derive(Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Who asks for subflows; none: connections have one path.
    pub manager: Option<config::PathManager>,
    /// What is to be set where clients are.
    pub clients: Vec<Change>,
    /// What is to be set where servers are.
    pub servers: Vec<Change>,
}

/// Looks at the calling thread's network namespace. What is lacking is told in the log, and done without.
pub fn prepare(wanted: config::PathManager, egress: &[Addresses]) -> Prepared {
    match try_prepare(wanted, egress) {
        Ok(prepared) => prepared,
        Err(error) => {
            tracing::warn!(%error, "connections have one path");
            Prepared { manager: None, clients: Vec::new(), servers: Vec::new() }
        }
    }
}

fn try_prepare(wanted: config::PathManager, egress: &[Addresses]) -> Result<Prepared, NetConfigError> {
    let kernel = PathManager::open()?;
    if !SysctlKey::new(ENABLED)?.read().is_ok_and(|value| value == "1") {
        tracing::warn!("sysctl {ENABLED} is 0: connections have one path");
        return Ok(Prepared { manager: None, clients: Vec::new(), servers: Vec::new() });
    }
    // As many as can join: the kernel's own path manager would refuse those beyond two.
    let most = u32::from(MAX_EGRESS);
    let limits = Change::MptcpLimits(MptcpLimits { subflows: most, accepted: most });
    let servers = vec![limits.clone()];
    if wanted == config::PathManager::Userspace {
        match userspace().and_then(|change| Events::open().map(|_| change)) {
            Ok(change) => {
                let others = kernel.endpoints()?;
                if !others.is_empty() {
                    let endpoints = others.len();
                    tracing::warn!(
                        endpoints,
                        "mptcp endpoints of this host are not used for new connections while the shim runs"
                    );
                }
                return Ok(Prepared { manager: Some(wanted), clients: vec![change], servers });
            }
            Err(error) => tracing::warn!(%error, "the kernel's own path manager is used: endpoints and limits"),
        }
    }
    let endpoints = egress.iter().flat_map(|own| own.iter());
    let endpoint = |address| Change::MptcpEndpoint(MptcpEndpoint::new(address, EndpointFlags::SUBFLOW));
    let clients = [limits].into_iter().chain(endpoints.map(endpoint)).collect();
    Ok(Prepared { manager: Some(config::PathManager::Kernel), clients, servers })
}
