//! Where hubs are tried, by `hawser demo hub` and by tests: the [`Network`] and the portals' [`Configurations`]; and for
//! the demo a `follower` in the place of routing daemons.

mod configurations;
mod follower;
mod network;

pub use configurations::{Configurations, Site};
pub(crate) use follower::follow;
pub use network::{Network, SERVER, SITES, outward, upward};
