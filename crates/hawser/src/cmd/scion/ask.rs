//! What commands ask the daemon.

use hawser_scion::IsdAs;
use hawser_scion::conn::PortRange;
use hawser_scion::daemon::{AsInfo, DaemonAddr, DaemonClient, DaemonError, InvalidAddr, Lookup, Refresh};
use hawser_scion::select::{Acl, AclEntry, AclError, Policy, Sequence};

use crate::failure::Failure;

/// What the daemon said. Plain data.
pub struct Asked {
    /// Where it is.
    pub address: DaemonAddr,
    /// Its AS.
    pub local: AsInfo,
    /// The ports that its AS's routers send to directly.
    pub ports: PortRange,
    /// The paths.
    pub lookup: Lookup,
}

/// Asks for the paths to an AS, and for what is known of the own one.
pub fn ask(daemon: Option<&DaemonAddr>, destination: IsdAs) -> Result<Asked, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("start to ask the daemon: {error}")))?;
    runtime.block_on(async {
        let address = daemon.cloned().map_or_else(DaemonAddr::from_environment, Ok).map_err(no_address)?;
        let client = DaemonClient::new(address.clone()).map_err(no_address)?;
        let local = client.local_as().await.map_err(told)?;
        let ports = client.port_range().await.map_err(told)?;
        let lookup = client.paths(destination, Refresh::No).await.map_err(told)?;
        Ok(Asked { address, local, ports, lookup })
    })
}

/// Asks for what is known of the own AS.
pub fn ask_local(daemon: Option<&DaemonAddr>) -> Result<(AsInfo, PortRange), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::failed(format!("start to ask the daemon: {error}")))?;
    runtime.block_on(async {
        let address = daemon.cloned().map_or_else(DaemonAddr::from_environment, Ok).map_err(no_address)?;
        let client = DaemonClient::new(address).map_err(no_address)?;
        Ok((client.local_as().await.map_err(told)?, client.port_range().await.map_err(told)?))
    })
}

/// Which paths may be used.
pub fn policy(acl: &[AclEntry], sequence: Option<&Sequence>) -> Result<Policy, Failure> {
    let acl = Acl::new(acl.to_vec()).map_err(|error| {
        Failure::wrong(error).hint(match error {
            AclError::NoDefault => "add --acl + or --acl - at the end",
            AclError::Unreachable { .. } => "leave out what follows it",
        })
    })?;
    Ok(Policy { acl, sequence: sequence.cloned().unwrap_or_default() })
}

/// What the daemon's error is to whoever asked.
pub fn told(error: DaemonError) -> Failure {
    Failure::hinted(error.hint(), error)
}

/// The daemon's address is none.
pub fn no_address(error: InvalidAddr) -> Failure {
    Failure::wrong(error).hint(format!("in --daemon, or {}", hawser_scion::daemon::ENVIRONMENT))
}
