//! TERMS: on what terms the sender offers a path.
//!
//! ```text
//! +------+-------------+---------+----------+----------------------+-----------------+
//! | 0x0c | path varint | flags 1 | weight 1 | max rate kbit varint | revision varint |
//! +------+-------------+---------+----------+----------------------+-----------------+
//! ```

use super::path_info::path_id;
use super::{EncodeError, FrameType, Reader, WireError, Writer, varint};
use crate::units::PathId;

/// A TERMS frame; of two for one path the higher revision wins. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TermsFrame {
    /// Which path.
    pub path: PathId,
    /// It carries no inner packets, in neither direction.
    pub barred: bool,
    /// Its part of what `weighted` sends; never zero.
    pub weight: u8,
    /// The most that may be sent by it, kbit/s of IP packets; zero: no limit.
    pub max_kbit: u64,
    /// Counted up by the sender with each change.
    pub revision: u64,
}

impl TermsFrame {
    const BARRED: u8 = 1;

    /// Bytes of the frame.
    ///
    /// # Errors
    /// [`EncodeError::OutOfRange`] for a number above 62 bits.
    pub fn encoded_len(&self) -> Result<usize, EncodeError> {
        let numbers = varint::len(u64::from(self.path.0))? + varint::len(self.max_kbit)? + varint::len(self.revision)?;
        Ok(1 + 1 + 1 + numbers)
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.reserve(self.encoded_len()?)?;
        out.put_u8(FrameType::Terms as u8)?;
        out.put_varint(u64::from(self.path.0))?;
        out.put_u8(if self.barred { Self::BARRED } else { 0 })?;
        out.put_u8(self.weight)?;
        out.put_varint(self.max_kbit)?;
        out.put_varint(self.revision)
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let path = path_id(from)?;
        let flags = from.u8()?;
        let weight = from.u8()?;
        if flags & !Self::BARRED != 0 {
            return Err(WireError::Reserved);
        }
        if weight == 0 {
            return Err(WireError::OutOfRange);
        }
        let barred = flags & Self::BARRED != 0;
        Ok(TermsFrame { path, barred, weight, max_kbit: from.varint()?, revision: from.varint()? })
    }
}
