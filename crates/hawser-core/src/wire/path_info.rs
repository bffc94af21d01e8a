//! PATH_INFO: the sender's word about one of the paths.
//!
//! ```text
//! +------+-------------+---------+----------+-----------------+
//! | 0x05 | path varint | state 1 | metric 2 | revision varint |
//! +------+-------------+---------+----------+-----------------+
//! ```

use crate::units::PathId;

use super::{EncodeError, FrameType, Reader, WireError, Writer, varint};

/// What the sender knows of a path's link. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// It may carry traffic.
    Usable = 0,
    /// It is down, perhaps for a while: what is in flight on it is lost.
    Down = 1,
    /// It will never be used again.
    Closed = 2,
}

/// A PATH_INFO frame; of two for one path the higher revision wins. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathInfo {
    /// Which path.
    pub path: PathId,
    /// What became of its link.
    pub state: LinkState,
    /// Its tier: a higher metric carries traffic only while no lower one works.
    pub metric: u16,
    /// Counted up by the sender with each change.
    pub revision: u64,
}

impl PathInfo {
    /// Bytes of the frame.
    ///
    /// # Errors
    /// [`EncodeError::OutOfRange`] for a revision above 62 bits.
    pub fn encoded_len(&self) -> Result<usize, EncodeError> {
        Ok(1 + varint::len(u64::from(self.path.0))? + 1 + 2 + varint::len(self.revision)?)
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.reserve(self.encoded_len()?)?;
        out.put_u8(FrameType::PathInfo as u8)?;
        out.put_varint(u64::from(self.path.0))?;
        out.put_u8(self.state as u8)?;
        out.put_u16(self.metric)?;
        out.put_varint(self.revision)
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        let path = path_id(from)?;
        let state = match from.u8()? {
            0 => LinkState::Usable,
            1 => LinkState::Down,
            2 => LinkState::Closed,
            _ => return Err(WireError::OutOfRange),
        };
        Ok(PathInfo { path, state, metric: from.u16()?, revision: from.varint()? })
    }
}

/// Reads a path id: a varint of at most 32 bits.
pub(super) fn path_id(from: &mut Reader<'_>) -> Result<PathId, WireError> {
    u32::try_from(from.varint()?).map(PathId).map_err(|_| WireError::OutOfRange)
}
