//! What is not a scenario of the lab yet: each a command, `measure CASE`.
//!
//! 1. [`cases`] is the table: what is done, targets.
//! 2. A [`Bench`] runs a case again and again, each time in a fresh network: [`coupling`], [`outages`], [`peers`], [`scion`],
//!    [`shim`].
//! 3. A [`Report`] takes medians or the worst, holds them against the targets, and is told as a table or JSON.

mod bench;
mod cases;
mod coupling;
mod outages;
mod peers;
mod report;
mod scion;
mod shim;
mod usable;

pub use bench::Bench;
pub use cases::{Bound, CASES, Case, Of, Probe, Target};
pub use report::Report;
pub use usable::usable_mbps;
