//! In the place of `scion.rs` where this program was built without SCION: there is nothing to plan.

use hawser_config::{Link, Peer, ScionEndpoint, ScionPaths};
use hawser_core::units::LinkGroup;

use super::SocketPlan;

/// Never called.
pub(super) fn for_link(_: &Link, _: LinkGroup, paths: &ScionPaths, _: &[Peer]) -> Option<SocketPlan> {
    match *paths {}
}

/// Never called.
pub(super) fn for_listen(endpoint: &ScionEndpoint, _: LinkGroup) -> SocketPlan {
    match *endpoint {}
}
