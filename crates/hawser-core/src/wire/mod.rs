//! Every datagram and frame that two portals exchange, one file each; `docs/wire.md` draws them.
//!
//! 1. A datagram's first byte tells its kind ([`DatagramKind`]).
//! 2. Kinds 1 to 3 are [`handshake`] messages, of fixed length.
//! 3. Kind 4 is data: a [`header`], then sealed frames, then the tag.
//! 4. What was opened is read with [`Frames`], which borrows and never allocates.
//!
//! Decoders accept exactly what the page allows: an unknown type, a reserved flag, a missing or a
//! left-over byte is a typed [`WireError`]. Only frames of a reserved range are for later versions.

mod ack;
mod close;
mod cursor;
mod data;
mod frame;
mod freshness;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gone;
pub mod handshake;
pub mod header;
mod hold;
mod hub;
mod link_name;
mod offer;
mod path_challenge;
mod path_info;
mod protected;
mod repair;
mod reserved;
mod speed;
mod split;
mod terms;
pub mod varint;
mod version;

#[cfg(test)]
mod tests;

pub use ack::{AckFrame, AckHead, AckRanges, EcnCounts};
pub use close::{Close, CloseReason};
pub use cursor::{Reader, Writer};
pub use data::{DATA_FRAME_LEN, DataFlags, DataFrame, FlowBucket, FlowSequence};
pub use frame::{Frame, FrameType, Frames};
pub use freshness::Freshness;
pub use gone::Gone;
pub use header::{DATA_HEADER_LEN, DataHeader, DatagramKind, Label, TruncatedNumber};
pub use hold::Hold;
pub use hub::{HubFrame, HubFrameType};
pub use link_name::LinkNameFrame;
pub use offer::{Cipher, CipherSet, InstanceId, Offer, Protection};
pub use path_challenge::{PathChallenge, PathResponse, Token};
pub use path_info::{LinkState, PathInfo};
pub use protected::{ProtectedFrame, SymbolNumber};
pub use repair::RepairFrame;
pub use reserved::ReservedFrame;
pub(crate) use speed::{FILLER, FILLER_HEAD, fill};
pub use speed::{SpeedFrame, SpeedWord};
pub use split::{SplitFrame, SplitId};
pub use terms::TermsFrame;
pub use version::{Capabilities, Version};

/// Bytes of an authentication tag: AES-128-GCM and ChaCha20-Poly1305 have the same (RFC 5116
/// section 5.1, RFC 8439 section 2.8).
pub const TAG_LEN: usize = 16;

/// Bytes that a data datagram costs beside its inner packet: header, DATA frame, tag.
pub const DATA_OVERHEAD: usize = DATA_HEADER_LEN + DATA_FRAME_LEN + TAG_LEN;

/// Why bytes are no datagram or frame of ours. Not constructed by hand; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("decode: truncated")]
    Truncated,
    /// A datagram or frame type that this version does not know.
    #[error("decode: unknown type {0:#04x}")]
    UnknownType(u8),
    /// A bit or byte is set that must be zero.
    #[error("decode: reserved bits set")]
    Reserved,
    /// A number is outside of what its field may hold.
    #[error("decode: value out of range")]
    OutOfRange,
    /// Bytes are left over behind a message of fixed length.
    #[error("decode: {0} trailing bytes")]
    Trailing(usize),
    /// The ranges of an ACK run below zero.
    #[error("decode: acknowledgement ranges below zero")]
    AckRanges,
}

/// Why something could not be written. Not constructed by hand; a plain value. What was written
/// before it stays, and nothing of the thing itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// The buffer or budget is too small.
    #[error("encode: no room")]
    NoRoom,
    /// A number is larger than its field can hold.
    #[error("encode: value out of range")]
    OutOfRange,
    /// Acknowledgement ranges must be there, descending and apart.
    #[error("encode: acknowledgement ranges empty or out of order")]
    AckRanges,
}
