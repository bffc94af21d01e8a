//! A hub: several remote portals (its *members*) that serve the same peers.
//!
//! 1. [`placement`] says which member is a peer's active one, and which its standby.
//! 2. [`claim`] moves a peer between the two: the peer's side, the member's, and what they say.
//! 3. [`pair`] does so beside a peer's endpoint, [`gate`] beside a member's.
//! 4. [`epochs`] says what a peer keeps on disk, [`metric`] how a member's routes say who owns.
//!
//! As in `hawser-core`, the time is an argument, and nothing here opens a socket, reads a clock, starts a thread or
//! writes a log.
#![forbid(unsafe_code)]

pub mod claim;
pub mod epochs;
pub mod gate;
pub mod metric;
pub mod pair;
pub mod placement;
#[cfg(test)]
mod testing;
pub mod units;
