//! REPAIR: a sum of source symbols, to the end of the datagram.
//!
//! ```text
//! +------+--------------+---------+-------+------------- - -
//! | 0x0b | first      2 | count 1 | row 1 | symbol
//! +------+--------------+---------+-------+------------- - -
//! ```

use super::{DATA_HEADER_LEN, EncodeError, FrameType, Reader, SymbolNumber, TAG_LEN, WireError, Writer};

const REPAIR_HEAD_LEN: usize = 5;

/// A REPAIR frame: what brings back a lost packet among those that it covers. No zero value; it
/// borrows the symbol.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RepairFrame<'a> {
    /// The first source symbol that it covers.
    pub first: SymbolNumber,
    /// How many it covers, in a row; 1 to [`RepairFrame::MAX_COUNT`].
    pub count: u8,
    /// Names the coefficients; at most [`RepairFrame::MAX_ROW`].
    pub row: u8,
    /// The sum; never empty.
    pub symbol: &'a [u8],
}

impl<'a> RepairFrame<'a> {
    /// Bytes of the frame before its symbol.
    pub const HEAD_LEN: usize = REPAIR_HEAD_LEN;
    /// Bytes that a datagram costs beside its symbol.
    pub const OVERHEAD: usize = DATA_HEADER_LEN + Self::HEAD_LEN + TAG_LEN;
    /// The most symbols that one repair covers.
    pub const MAX_COUNT: u8 = 32;
    /// The last row of coefficients.
    pub const MAX_ROW: u8 = 127;

    /// The frame without its symbol, for a sender that makes the symbol in place.
    pub fn head(first: SymbolNumber, count: u8, row: u8) -> [u8; REPAIR_HEAD_LEN] {
        let [first_0, first_1] = first.0.to_be_bytes();
        [FrameType::Repair as u8, first_0, first_1, count, row]
    }

    /// Appends the frame; nothing may follow it.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`]; [`EncodeError::OutOfRange`] for what the fields do not hold.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.symbol.is_empty() || !in_range(self.count, self.row) {
            return Err(EncodeError::OutOfRange);
        }
        out.reserve(Self::HEAD_LEN + self.symbol.len())?;
        out.put_bytes(&Self::head(self.first, self.count, self.row))?;
        out.put_bytes(self.symbol)
    }

    /// Reads what follows the type byte, to the end.
    pub(super) fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let first = SymbolNumber(from.u16()?);
        let (count, row) = (from.u8()?, from.u8()?);
        if !in_range(count, row) {
            return Err(WireError::OutOfRange);
        }
        let symbol = from.rest();
        if symbol.is_empty() {
            return Err(WireError::Truncated);
        }
        Ok(RepairFrame { first, count, row, symbol })
    }
}

const fn in_range(count: u8, row: u8) -> bool {
    0 < count && count <= RepairFrame::MAX_COUNT && row <= RepairFrame::MAX_ROW
}
