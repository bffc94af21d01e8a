//! The header of a data datagram, and packet numbers cut to four bytes.
//!
//! ```text
//! 0        1            5              9
//! +--------+------------+--------------+
//! | 4  | 0 | label    4 | number     4 |
//! +--------+------------+--------------+
//! ```

use crate::units::PacketNumber;

use super::{Reader, WireError};

/// Bytes of a data datagram's header.
pub const DATA_HEADER_LEN: usize = 9;

/// The bits that a truncated packet number keeps.
const NUMBER_BITS: u32 = 32;

/// What a datagram is, by its first byte (`type << 4`, no flags). A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DatagramKind {
    /// 1: a handshake's first message.
    Initiation,
    /// 2: its answer.
    Response,
    /// 3: a cookie that an initiator must show under load.
    CookieReply,
    /// 4: sealed frames.
    Data,
}

impl DatagramKind {
    /// The datagram's first byte.
    pub const fn first_byte(self) -> u8 {
        match self {
            DatagramKind::Initiation => 0x10,
            DatagramKind::Response => 0x20,
            DatagramKind::CookieReply => 0x30,
            DatagramKind::Data => 0x40,
        }
    }

    /// The kind that a first byte tells.
    ///
    /// # Errors
    /// [`WireError::UnknownType`], or [`WireError::Reserved`] where a flag is set.
    pub const fn of(first: u8) -> Result<Self, WireError> {
        let kind = match first >> 4 {
            1 => DatagramKind::Initiation,
            2 => DatagramKind::Response,
            3 => DatagramKind::CookieReply,
            4 => DatagramKind::Data,
            other => return Err(WireError::UnknownType(other)),
        };
        if first & 0x0f != 0 {
            return Err(WireError::Reserved);
        }
        Ok(kind)
    }
}

/// What a receiver tells a path of a session by, under one key. Any number, also zero, is a label.
/// A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Label(pub u32);

/// The low 32 bits of a packet number. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TruncatedNumber(pub u32);

impl TruncatedNumber {
    /// Cuts a packet number (RFC 9000 section A.2). Four bytes suffice while fewer than 2^31 packets
    /// are in flight.
    pub const fn of(number: PacketNumber) -> Self {
        TruncatedNumber(number.0 as u32)
    }

    /// The full number that is closest to the one after `largest`, the largest number that was
    /// opened on this path so far (RFC 9000 section A.3).
    pub const fn expand(self, largest: Option<PacketNumber>) -> PacketNumber {
        const WINDOW: u64 = 1 << NUMBER_BITS;
        let expected = match largest {
            Some(largest) => largest.0.saturating_add(1),
            None => 0,
        };
        let candidate = (expected & !(WINDOW - 1)) | self.0 as u64;
        if candidate.saturating_add(WINDOW / 2) <= expected && candidate <= u64::MAX - WINDOW {
            return PacketNumber(candidate + WINDOW);
        }
        if candidate > expected.saturating_add(WINDOW / 2) && candidate >= WINDOW {
            return PacketNumber(candidate - WINDOW);
        }
        PacketNumber(candidate)
    }
}

/// The header of a data datagram: who can open it, and under which number. No zero value; a plain
/// value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DataHeader {
    /// Names session, path and key epoch to the receiver alone.
    pub label: Label,
    /// The packet number, cut.
    pub number: TruncatedNumber,
}

impl DataHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; DATA_HEADER_LEN] {
        let mut out = [0; DATA_HEADER_LEN];
        out[0] = DatagramKind::Data.first_byte();
        out[1..5].copy_from_slice(&self.label.0.to_be_bytes());
        out[5..].copy_from_slice(&self.number.0.to_be_bytes());
        out
    }

    /// Reads a header; what follows it is left to the reader.
    ///
    /// # Errors
    /// [`WireError`] for another kind of datagram, a flag, or too few bytes.
    pub fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let first = from.u8()?;
        if DatagramKind::of(first)? != DatagramKind::Data {
            return Err(WireError::UnknownType(first >> 4));
        }
        Ok(DataHeader { label: Label(from.u32()?), number: TruncatedNumber(from.u32()?) })
    }
}
