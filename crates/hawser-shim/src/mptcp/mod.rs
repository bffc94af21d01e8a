//! What TCP and MPTCP (RFC 8684) say in a packet, read without copying; no bytes make it panic.
//!
//! 1. [`Segment::parse`] finds the TCP segment in an IP packet, of which the beginning is enough.
//! 2. [`Segment::options`] walks its options, [`Segment::mptcp`] those of MPTCP, each as a [`MptcpOption`].
//! 3. A [`Key`] has the [`Token`] that other subflows join by.

mod capable;
mod dss;
mod join;
mod option;
mod segment;
mod token;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

pub use capable::{Capable, CapableFlags, CapableForm};
pub use dss::{DataAck, DataSequence, Dss, Mapping};
pub use join::{Join, JoinForm};
pub use option::{AddAddr, AddressId, MptcpOption, OptionError, ResetFlags, ResetReason};
pub use segment::{Flags, NoSegment, Options, Segment, Sequence, TcpOption};
pub use token::{Key, Token};
