//! Inner packets: who owns their bytes, what is in them, how trains are cut and put together.
//!
//! 1. The driver reads from TUN into [`store::TrainStore::read_buffer`].
//! 2. [`store::TrainStore::admit`] parses ([`inner`]), finds the flow bucket ([`flow`]) and keeps the [`train::Train`].
//! 3. Segments are written by [`train::Train::head`] and [`train::Train::body`], as often as paths need them.
//! 4. Each segment is released once; the last one gives the buffer back to the [`pool`].
//! 5. At the far side [`coalesce::Coalescer`] makes trains again for the TUN.

pub mod checksum;
pub mod coalesce;
pub mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod inner;
pub mod pool;
mod pure_ack;
pub mod store;
pub(crate) mod tcp_options;
pub mod train;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub use coalesce::Coalescer;
pub use flow::{FlowBucket, FlowHash, FlowKey, FlowSequence};
pub use inner::{Class, Inner, InnerError, Transport};
pub use store::{PacketDrop, SegmentRef, TrainId, TrainStore};
pub use train::{Gso, Offload, Train};
