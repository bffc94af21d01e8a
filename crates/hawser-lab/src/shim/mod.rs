//! Shims on hosts of a SCION network, and what is done with them.
//!
//! 1. [`Place`]: the networks, and where client and server are in them (`ways`).
//! 2. [`ShimPair`]: a shim on each host, as a process of its own (`pair`).
//! 3. `files`: a file from client to server, by TCP through the shims or the portals' tunnel, or by quinn beside them.
//! 4. `wire`: what of a SCION flow passed a link, by capture. `beside`: the ordinary internet between the hosts.
//! 5. `churn`: connections opened and closed.

mod beside;
mod churn;
pub(crate) mod files;
mod pair;
mod ways;
mod wire;

pub(crate) use beside::{Beside, INTERNET_SERVER};
pub(crate) use churn::Churn;
pub(crate) use pair::PORT;
pub use pair::{Shim, ShimPair, ShimPlan};
pub use ways::Place;
pub(crate) use wire::scion_flow;
pub use wire::{Carried, Wire, scion_links};
