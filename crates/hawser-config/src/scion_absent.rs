//! In the place of `scion.rs` where this program was built without SCION: nothing of it is read, so nothing of it
//! exists.

use std::net::SocketAddr;

pub use std::convert::Infallible as ScionEndpoint;
pub use std::convert::Infallible as ScionPaths;

use super::error::Read;
use super::parsers::not_supported;
use super::reading::Table;
use super::words::Transport;

/// Before a SCION endpoint.
pub(super) const SCHEME: &str = "scion://";
/// Transports of links that this version does not carry out.
pub(super) const LATER_TRANSPORTS: &[Transport] = &[Transport::Scion];

/// Never called.
pub(super) fn host(endpoint: &ScionEndpoint) -> SocketAddr {
    match *endpoint {}
}

/// Its keys are unknown.
pub(super) fn link(_: &mut Table<'_, '_, '_>, _: Option<Transport>) -> Option<ScionPaths> {
    None
}

/// Refused.
pub(super) fn endpoint(_: &str) -> Read<ScionEndpoint> {
    Err(not_supported("scion"))
}

/// No text is one.
pub(super) fn is_bare(_: &str) -> bool {
    false
}
