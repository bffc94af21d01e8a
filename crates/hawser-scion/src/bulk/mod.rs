//! Files over several paths at once: sockets, threads and files around the protocol of `hawser_bulk` (its README.md).
//!
//! 1. [`send`]: one thread for the packets of all paths, one that reads and hashes (`reader.rs`).
//! 2. [`receive`]: one thread for packets, and one for each session that hashes and writes (`writer.rs`, `part.rs`,
//!    `folder.rs`, `ended.rs`).
//! 3. What happens is told to the caller, who may end it.

mod ended;
mod folder;
mod lanes;
mod order;
mod part;
mod reader;
mod receive;
mod send;
#[cfg(test)]
mod tests;
mod wake;
mod writer;

pub use hawser_bulk::digest::Digest;
pub use hawser_bulk::layout::NameError;
pub use hawser_bulk::receiver::SessionId;
pub use hawser_bulk::sender::{Law, PathCounts, PathState};
pub use hawser_bulk::trust::{KEY_LEN, Trust};
pub use hawser_bulk::wire::Verdict;
pub use hawser_core::handshake::{Identity, PublicKey};
pub use hawser_core::units::{Random, Rate};
pub use order::{PathProgress, Progress, SendError, SendOrder, Sent};
pub use part::PartError;
pub use reader::SourceError;
pub use receive::{ReceiveError, ReceiveOrder, Received, receive};
pub use send::send;
