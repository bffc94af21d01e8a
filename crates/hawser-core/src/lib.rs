//! The sans-IO heart of Hawser.
//!
//! Bytes, the time and randomness come in as arguments; datagrams, deliveries and the next
//! deadline (with its reason) come out. Nothing here opens a socket, reads a clock, starts a
//! thread or writes a log, so the whole protocol runs under simulated time in a test.
//!
//! The packet's story is told in `session`, top to bottom; every other module is one step of it.
#![forbid(unsafe_code)]

pub mod alias;
pub mod beside;
pub mod congestion;
pub mod drops;
pub mod endpoint;
pub mod fec;
pub mod flows;
#[cfg(test)]
mod fuzz_smoke;
pub mod handshake;
pub mod packet;
pub mod path;
pub mod policy;
pub mod queue;
pub mod resequence;
pub mod rules;
pub mod scheduler;
pub mod session;
pub mod transport;
pub mod treatment;
pub mod units;
pub mod wire;
