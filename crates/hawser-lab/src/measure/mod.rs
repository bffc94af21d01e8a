//! The measurements of issue 2, "Must show": each a command, `measure CASE`.
//!
//! 1. [`cases`] is the table: links, what is done with them, targets.
//! 2. A [`Bench`] runs a case again and again, each time in a fresh topology with fresh portals: [`goodput`],
//!    [`cut`], [`restart`], [`unshaped`], [`controllers`], [`random`].
//! 3. A [`Report`] takes medians or the worst, holds them against the targets, and is told as a table or JSON.

mod bench;
mod cases;
mod controllers;
mod cut;
mod goodput;
mod machine;
mod random;
mod report;
mod restart;
mod unshaped;
mod usable;

pub use bench::Bench;
pub use cases::{Bound, CASES, Case, Line, Of, Probe, Target};
pub use report::Report;
pub use usable::usable_mbps;
