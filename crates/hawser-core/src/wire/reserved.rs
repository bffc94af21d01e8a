//! Frames that a later version may add: whoever does not know them skips them by their length.
//!
//! ```text
//! 0x40–0x5f (acknowledged), 0x60–0x7f (not) | length varint | bytes
//! ```

use super::{EncodeError, Reader, WireError, Writer, varint};

/// The first type of the range, and the first that is not acknowledged.
const FIRST: u8 = 0x40;
const FIRST_UNACKED: u8 = 0x60;
/// The last type of the range.
const LAST: u8 = 0x7f;

/// A frame of another version. No zero value; it borrows the payload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReservedFrame<'a> {
    kind: u8,
    bytes: &'a [u8],
}

impl<'a> ReservedFrame<'a> {
    /// One of that type; none where the type is not of the range.
    pub fn new(kind: u8, bytes: &'a [u8]) -> Option<Self> {
        Self::holds(kind).then_some(ReservedFrame { kind, bytes })
    }

    /// Whether a type is of the range.
    pub(super) const fn holds(kind: u8) -> bool {
        kind >= FIRST && kind <= LAST
    }

    /// Its type.
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// What it holds.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether a datagram with it is to be acknowledged.
    pub(super) const fn is_acked(&self) -> bool {
        self.kind < FIRST_UNACKED
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(kind: u8, from: &mut Reader<'a>) -> Result<Self, WireError> {
        let len = usize::try_from(from.varint()?).map_err(|_| WireError::Truncated)?;
        Ok(ReservedFrame { kind, bytes: from.bytes(len)? })
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// [`EncodeError`] where it does not fit.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        let len = self.bytes.len() as u64;
        out.reserve(1 + varint::len(len)? + self.bytes.len())?;
        out.put_u8(self.kind)?;
        out.put_varint(len)?;
        out.put_bytes(self.bytes)
    }
}
