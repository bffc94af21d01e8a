//! Where hubs are tried, by `hawser demo hub` and by tests: the [`Network`], the portals' [`Configurations`], and a
//! [`Follower`] in the place of routing daemons.

mod configurations;
mod follower;
mod network;

pub use configurations::{Configurations, Site};
pub use follower::Follower;
pub use network::{Network, SERVER, SITES, outward, upward};
