//! What may go wrong with a daemon, and what to do about it.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use super::address::{DaemonAddr, ENVIRONMENT};
use super::convert::Malformed;
use crate::addr::IsdAs;
use crate::path::PathInterface;

/// What a daemon was asked. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Paths to an AS.
    Paths(IsdAs),
    /// What AS it is in.
    LocalAs,
    /// The border routers of its AS.
    Interfaces,
    /// The ports that its AS's routers send to directly.
    PortRange,
    /// That an interface is down.
    InterfaceDown(PathInterface),
}

/// A daemon was asked, and gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("{request}")]
pub struct DaemonError {
    /// What it was asked.
    pub request: Request,
    /// Why it gave none.
    #[source]
    pub fault: DaemonFault,
}

/// Why a daemon gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum DaemonFault {
    /// Nobody listens there, or it cannot be reached.
    #[error("reach the scion daemon at {address}")]
    Unreachable {
        /// Where.
        address: DaemonAddr,
        /// What the connection said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It took too long.
    #[error("no answer from the scion daemon at {address} within {} s", .after.as_secs_f32())]
    TimedOut {
        /// Where.
        address: DaemonAddr,
        /// How long it was waited for.
        after: Duration,
    },
    /// Whoever listens there is no SCION daemon.
    #[error("what listens at {address} is no scion daemon ({says})")]
    NoDaemon {
        /// Where.
        address: DaemonAddr,
        /// What it said.
        says: String,
    },
    /// It could not, and said why.
    #[error("the scion daemon at {address} says: {says}")]
    Refused {
        /// Where.
        address: DaemonAddr,
        /// What it said.
        says: String,
    },
    /// Its answer makes no sense.
    #[error("read the answer of the scion daemon at {address}")]
    Malformed {
        /// Where.
        address: DaemonAddr,
        /// What is wrong with it.
        source: Malformed,
    },
}

impl DaemonError {
    /// What to do about it, if something can be said.
    pub fn hint(&self) -> Option<String> {
        let address = format!("name the daemon's address: --daemon IP:PORT or {ENVIRONMENT}");
        match (&self.fault, self.request) {
            (DaemonFault::Unreachable { .. }, _) => {
                Some(format!("start it (systemctl start scion-daemon), or {address}"))
            }
            (DaemonFault::NoDaemon { .. }, _) => Some(format!("{address} (sd.address in its sd.toml)")),
            (DaemonFault::TimedOut { .. }, _) => {
                Some("see the daemon's log: it may not reach the control service of its AS".to_owned())
            }
            (DaemonFault::Refused { .. }, Request::Paths(destination)) => Some(format!(
                "if there is an AS {destination}, its beacons may not have come this far yet; ask again with --refresh"
            )),
            (DaemonFault::Refused { .. } | DaemonFault::Malformed { .. }, _) => None,
        }
    }
}

impl DaemonFault {
    /// Whether a call failed on its way, so that it may be made again.
    pub(super) fn is_lost(status: &tonic::Status) -> bool {
        status.code() == tonic::Code::Unavailable || io_error(status).is_some()
    }

    /// What a failed call means.
    pub(super) fn of_status(address: DaemonAddr, status: &tonic::Status, after: Duration) -> DaemonFault {
        use tonic::Code;
        let says = || status.message().to_owned();
        let innermost = || causes(status).last().map_or_else(says, ToString::to_string);
        match status.code() {
            Code::DeadlineExceeded | Code::Cancelled => DaemonFault::TimedOut { address, after },
            _ if io_error(status).is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) => {
                DaemonFault::TimedOut { address, after }
            }
            _ if DaemonFault::is_lost(status) => DaemonFault::Unreachable { address, source: innermost().into() },
            Code::Unimplemented => DaemonFault::NoDaemon { address, says: says() },
            // What does not speak gRPC breaks its rules.
            Code::Unknown | Code::Internal if status.source().is_some() => {
                DaemonFault::NoDaemon { address, says: innermost() }
            }
            _ => DaemonFault::Refused { address, says: says() },
        }
    }
}

/// What the system said.
fn io_error(status: &tonic::Status) -> Option<&io::Error> {
    causes(status).find_map(|cause| cause.downcast_ref())
}

/// The causes of an error, the innermost last.
fn causes(error: &tonic::Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&error| error.source())
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Paths(destination) => write!(f, "look up paths to {destination}"),
            Request::LocalAs => f.write_str("ask for the local as"),
            Request::Interfaces => f.write_str("ask for the local as's border routers"),
            Request::PortRange => f.write_str("ask for the dispatched ports"),
            Request::InterfaceDown(interface) => write!(f, "report that {interface} is down"),
        }
    }
}
