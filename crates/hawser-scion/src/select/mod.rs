//! Which paths to use: pure functions over what a daemon told.
//!
//! 1. [`Policy`] leaves out what the user does not want: an access list and a sequence of hops.
//! 2. [`listed`] puts the rest in the order `scion showpaths` has; of paths over the same interfaces the one that lasts
//!    longest stays.
//! 3. [`choose`] takes the best by a [`Criterion`]; paths that failed lately come last, whatever it is.
//! 4. [`SetMetrics`] says what the chosen ones are like together.

mod acl;
mod error;
mod health;
mod hop;
mod metrics;
mod order;
mod policy;
mod sequence;
mod sharability;
mod tokens;

pub use acl::{Acl, AclEntry, AclError};
pub use error::{PolicyError, PolicyFault};
pub use health::{FAILURE_MEMORY, Health, HealthTable, Loss};
pub use hop::{Direction, Hop, HopPredicate, Interfaces, hops};
pub use metrics::{SetMetrics, Shared};
pub use order::{Criterion, UnknownCriterion, choose, listed};
pub use policy::Policy;
pub use sequence::Sequence;
pub use sharability::{Exactness, LeastShared, greedy, least_shared};

#[cfg(test)]
mod tests;
