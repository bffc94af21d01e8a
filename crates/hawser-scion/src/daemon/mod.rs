//! The SCION daemon, which knows the paths (`proto.daemon.v1.DaemonService` of the reference implementation, over
//! gRPC).
//!
//! 1. [`DaemonAddr`]: where it listens. 2. [`DaemonClient`]: asks it, within a time, and connects anew by itself.
//! 3. Its answers are parsed into what the rest of the house knows; nothing that it says is taken as it is.

mod address;
mod client;
mod convert;
mod error;

pub use address::{DEFAULT_ADDRESS, DaemonAddr, ENVIRONMENT, InvalidAddr};
pub use client::{AsInfo, CONNECT_TIMEOUT, DaemonClient, Lookup, REQUEST_TIMEOUT, Refresh};
pub use convert::{Malformed, MalformedPath};
pub use error::{DaemonError, DaemonFault, Request};

pub use crate::conn::PortRange;

/// Public for those who stand in for a daemon in tests.
#[doc(hidden)]
pub mod proto;
