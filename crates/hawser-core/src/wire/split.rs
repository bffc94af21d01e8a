//! SPLIT: a piece of an inner packet that is retransmitted on a path too small for it.
//!
//! ```text
//! +------+------+----------------------+--------------------+--------------+------- - -
//! | 0x07 | id 2 | more 1, offset    15 | flags 4, bucket 12 | sequence   3 | bytes
//! +------+------+----------------------+--------------------+--------------+------- - -
//! ```

use super::data::DataFlags;
use super::{EncodeError, FlowBucket, FlowSequence, FrameType, Reader, WireError, Writer};

/// The bit above the offset: this is not the last piece.
const MORE: u16 = 1 << 15;

/// Which pieces belong together: counted by the sender, wraps. Zero is the first. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SplitId(pub u16);

/// A SPLIT frame: one piece. No zero value; it borrows the bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SplitFrame<'a> {
    /// The packet that this is a piece of.
    pub id: SplitId,
    /// Whether a piece follows behind this one.
    pub more: bool,
    /// Where the piece begins in the packet, in bytes; at most [`SplitFrame::MAX_OFFSET`].
    pub offset: u16,
    /// As of the packet's DATA frame.
    pub bucket: FlowBucket,
    /// As of the packet's DATA frame.
    pub flags: DataFlags,
    /// As of the packet's DATA frame.
    pub sequence: FlowSequence,
    /// The piece; never empty.
    pub bytes: &'a [u8],
}

impl<'a> SplitFrame<'a> {
    /// Bytes of the frame before its piece.
    pub const HEAD_LEN: usize = 10;
    /// The largest offset (15 bits).
    pub const MAX_OFFSET: u16 = MORE - 1;

    /// Bytes of the whole frame.
    pub fn encoded_len(&self) -> usize {
        Self::HEAD_LEN + self.bytes.len()
    }

    /// Appends the frame; nothing may follow it.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`]; [`EncodeError::OutOfRange`] for an offset too large or an empty piece.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.bytes.is_empty() || self.offset > Self::MAX_OFFSET {
            return Err(EncodeError::OutOfRange);
        }
        out.reserve(self.encoded_len())?;
        out.put_u8(FrameType::Split as u8)?;
        out.put_u16(self.id.0)?;
        out.put_u16(if self.more { MORE | self.offset } else { self.offset })?;
        out.put_u16(self.flags.join(self.bucket))?;
        out.put_u24(self.sequence.get())?;
        out.put_bytes(self.bytes)
    }

    /// Reads what follows the type byte, to the end.
    pub(super) fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let id = SplitId(from.u16()?);
        let place = from.u16()?;
        let (flags, bucket) = DataFlags::split(from.u16()?)?;
        let sequence = FlowSequence::of(u64::from(from.u24()?));
        let bytes = from.rest();
        if bytes.is_empty() {
            return Err(WireError::Truncated);
        }
        let (more, offset) = (place & MORE != 0, place & Self::MAX_OFFSET);
        Ok(SplitFrame { id, more, offset, bucket, flags, sequence, bytes })
    }
}
