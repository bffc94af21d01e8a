//! The measurements of issues 2, 3, 4 and 6, "Must show": each a command, `measure CASE`.
//!
//! 1. [`cases`] is the table: links, what is done with them, targets.
//! 2. A [`Bench`] runs a case again and again, each time in a fresh topology with fresh portals: [`goodput`],
//!    [`cut`], [`restart`], [`unshaped`], [`controllers`], [`coupling`], [`random`], [`outages`], [`peers`], [`hostile`], [`transports`], [`scion`], [`shim`].
//! 3. [`paired`] sets Hawser beside plain forwarding, wireguard-go and the yardstick; a [`History`] keeps what was found.
//! 4. A [`Report`] takes medians or the worst, holds them against the targets, and is told as a table or JSON.

mod bench;
mod cases;
mod changes;
mod controllers;
mod cost;
mod coupling;
mod cut;
mod fec;
mod fidelity;
mod goodput;
mod history;
mod hostile;
mod machine;
mod others;
mod outages;
mod paired;
mod peers;
mod random;
mod report;
mod restart;
mod scion;
mod shim;
mod thin;
mod tiers;
mod transports;
mod unshaped;
mod usable;

pub use bench::Bench;
pub use cases::{Bound, CASES, Case, Line, Of, Probe, Target};
pub use history::History;
pub use paired::{PAIRED, Paired};
pub use report::Report;
pub use usable::usable_mbps;
