//! A hub's store in etcd: which members there are, whom they serve, who is revoked, which epochs were seen.
//!
//! 1. [`record`] is what is written below each of the [`keys`], [`state`] what follows from it, [`roster`] whom a
//!    member serves beside the peers of its file, and what it remembers of that, [`namesake`] who else has its name.
//!    These open, wait for and log nothing.
//! 2. `client` asks etcd over gRPC; [`driver`] follows it, shows it that the member is there, and tells the portal.
//!
//! Nothing that carries packets waits for it: while etcd is away, members serve whom they served, and peers move
//! between them as ever (`hawser-hub`).
#![forbid(unsafe_code)]

mod client;
pub mod driver;
pub mod keys;
pub mod namesake;
mod proto;
pub mod record;
pub mod roster;
pub mod state;

pub use client::{Access, TlsFiles};
