//! GONE: the sender has given up on part of a flow's order.
//!
//! ```text
//! +------+----------------+----------+
//! | 0x06 | 0 4, bucket 12 | upto   3 |
//! +------+----------------+----------+
//! ```

use super::{EncodeError, FlowBucket, FlowSequence, FrameType, Reader, WireError, Writer};

/// A GONE frame: what has not arrived of `bucket` up to and with `upto` need not be waited for.
/// No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Gone {
    /// Whose order.
    pub bucket: FlowBucket,
    /// The highest number given up.
    pub upto: FlowSequence,
}

impl Gone {
    /// Bytes of the frame.
    pub const LEN: usize = 6;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`].
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.reserve(Self::LEN)?;
        out.put_u8(FrameType::Gone as u8)?;
        out.put_u16(self.bucket.get())?;
        out.put_u24(self.upto.get())
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let bucket = FlowBucket::new(from.u16()?).ok_or(WireError::Reserved)?;
        Ok(Gone { bucket, upto: FlowSequence::of(u64::from(from.u24()?)) })
    }
}
