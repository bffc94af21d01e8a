//! PROTECTED: an inner packet, to the end of the datagram, that is also a source symbol of repairs.
//!
//! ```text
//! +------+--------------+--------------------+--------------+------------- - -
//! | 0x0d | symbol     2 | flags 4, bucket 12 | sequence   3 | inner packet
//! +------+--------------+--------------------+--------------+------------- - -
//! ```

use super::{
    DATA_FRAME_LEN, DataFlags, DataFrame, EncodeError, FlowBucket, FlowSequence, FrameType, Reader, WireError,
};
use super::{DATA_HEADER_LEN, TAG_LEN, Writer};

/// Half of the number space: what is further ahead counts as behind (RFC 1982 section 3.2).
const HALF: u64 = 1 << (u16::BITS - 1);

/// A source symbol's number: the low 16 bits of a count of the session that never ends. Zero is the
/// first. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SymbolNumber(pub u16);

impl SymbolNumber {
    /// Cuts a full count to what the wire carries.
    pub const fn of(count: u64) -> Self {
        SymbolNumber(count as u16)
    }

    /// The full count with these 16 bits that is closest to `near`; never below zero.
    pub const fn expand(self, near: u64) -> u64 {
        let ahead = (self.0 as u64).wrapping_sub(near) & u16::MAX as u64;
        let behind = u16::MAX as u64 + 1 - ahead;
        if ahead >= HALF && near >= behind { near - behind } else { near.saturating_add(ahead) }
    }
}

/// A PROTECTED frame: a DATA frame and its symbol's number. No zero value; it borrows the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ProtectedFrame<'a> {
    /// The number that repairs tell it by.
    pub symbol: SymbolNumber,
    /// The rest, as of a DATA frame.
    pub data: DataFrame<'a>,
}

impl<'a> ProtectedFrame<'a> {
    /// Bytes of the frame before its inner packet.
    pub const HEAD_LEN: usize = DATA_FRAME_LEN + 2;
    /// Bytes that a datagram costs beside its inner packet.
    pub const OVERHEAD: usize = DATA_HEADER_LEN + Self::HEAD_LEN + TAG_LEN;

    /// The frame without its packet, for a sender that seals the packet from where it lies.
    pub fn head(symbol: SymbolNumber, bucket: FlowBucket, flags: DataFlags, sequence: FlowSequence) -> [u8; 8] {
        let [symbol_0, symbol_1] = symbol.0.to_be_bytes();
        let [_, word_0, word_1, sequence_0, sequence_1, sequence_2] = DataFrame::head(bucket, flags, sequence);
        [FrameType::Protected as u8, symbol_0, symbol_1, word_0, word_1, sequence_0, sequence_1, sequence_2]
    }

    /// Appends the frame; nothing may follow it.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`]; [`EncodeError::OutOfRange`] for an empty packet.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        let DataFrame { bucket, flags, sequence, packet } = self.data;
        if packet.is_empty() {
            return Err(EncodeError::OutOfRange);
        }
        out.reserve(Self::HEAD_LEN + packet.len())?;
        out.put_bytes(&Self::head(self.symbol, bucket, flags, sequence))?;
        out.put_bytes(packet)
    }

    /// Reads what follows the type byte, to the end.
    pub(super) fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let symbol = SymbolNumber(from.u16()?);
        Ok(ProtectedFrame { symbol, data: DataFrame::decode(from)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_expand_to_the_closest_count() {
        for (cut, near, whole) in [
            (5, 0, 5),
            (0xffff, 0, 0xffff),
            (0xffff, 0x1_0000, 0xffff),
            (0, 0xffff, 0x1_0000),
            (0x7000, 0x2_0000, 0x2_7000),
            (0x9000, 0x2_0000, 0x1_9000),
        ] {
            assert_eq!(SymbolNumber(cut).expand(near), whole, "{cut:#x} near {near:#x}");
        }
    }
}
