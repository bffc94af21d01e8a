//! What a shim says about itself.
//!
//! 1. [`Server`] answers on the control socket with a [`Status`] of the moment.
//! 2. `build` makes it of a snapshot of the engine and of what does not change ([`About`]).
//! 3. [`Log`] makes lines of what the engine notices.

mod build;
mod document;
mod log;
mod server;
#[cfg(test)]
mod tests;

pub use hawser_net::daemon::{ClientError, ServeError};

pub use build::About;
pub use document::{
    ConnectionStatus, Counts, FlowProtocol, FlowRole, FlowStatus, InterfaceStatus, PathStatus, ShareSample, ShimRole,
    Status,
};
pub use log::Log;
pub use server::{Server, StartError, ask, snapshot};
