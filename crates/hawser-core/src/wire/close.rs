//! CLOSE: the sender ends the session.
//!
//! ```text
//! +------+----------+
//! | 0x09 | reason 1 |
//! +------+----------+
//! ```

use super::{EncodeError, FrameType, Reader, WireError, Writer};

/// Why a session ends. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// 0: the portal stops.
    Shutdown,
    /// 1: the portal's configuration no longer knows the peer.
    PeerRemoved,
    /// 2: the peer sent under valid keys what no correct peer sends.
    Violation,
    /// A reason of a later version; the session ends all the same.
    Other(u8),
}

impl CloseReason {
    const fn code(self) -> u8 {
        match self {
            CloseReason::Shutdown => 0,
            CloseReason::PeerRemoved => 1,
            CloseReason::Violation => 2,
            CloseReason::Other(code) => code,
        }
    }

    const fn of(code: u8) -> Self {
        match code {
            0 => CloseReason::Shutdown,
            1 => CloseReason::PeerRemoved,
            2 => CloseReason::Violation,
            other => CloseReason::Other(other),
        }
    }
}

/// A CLOSE frame. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Close {
    /// Why.
    pub reason: CloseReason,
}

impl Close {
    /// Bytes of the frame.
    pub const LEN: usize = 2;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`].
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        out.put_bytes(&[FrameType::Close as u8, self.reason.code()])
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Close { reason: CloseReason::of(from.u8()?) })
    }
}
