//! HOLD: how long the resequencer may wait.
//!
//! ```text
//! +------+-----------+
//! | 0x0a | µs varint |
//! +------+-----------+
//! ```

use super::{EncodeError, FrameType, Reader, WireError, Writer, varint};

/// A HOLD frame: how long after now, by the sender's view, something that was sent may still be
/// repaired. Zero: wait for nothing. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Hold {
    /// Microseconds.
    pub hold_us: u64,
}

impl Hold {
    /// Bytes of the frame.
    ///
    /// # Errors
    /// [`EncodeError::OutOfRange`] above 62 bits.
    pub fn encoded_len(&self) -> Result<usize, EncodeError> {
        Ok(1 + varint::len(self.hold_us)?)
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.reserve(self.encoded_len()?)?;
        out.put_u8(FrameType::Hold as u8)?;
        out.put_varint(self.hold_us)
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Hold { hold_us: from.varint()? })
    }
}
