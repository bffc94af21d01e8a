//! PATH_CHALLENGE and PATH_RESPONSE: whoever answers the token receives at that address
//! (RFC 9000 section 8.2).
//!
//! ```text
//! +--------------+---------+
//! | 0x03 or 0x04 | token 8 |
//! +--------------+---------+
//! ```

use super::{EncodeError, FrameType, Reader, WireError, Writer};

/// Eight bytes that only who received them can know. Any value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Token(pub [u8; 8]);

/// A PATH_CHALLENGE frame. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathChallenge {
    /// To be echoed.
    pub token: Token,
}

/// A PATH_RESPONSE frame. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PathResponse {
    /// The challenge's.
    pub token: Token,
}

impl PathChallenge {
    /// Bytes of the frame.
    pub const LEN: usize = 9;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`].
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        put(FrameType::PathChallenge, self.token, out)
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(PathChallenge { token: Token(*from.array()?) })
    }
}

impl PathResponse {
    /// Bytes of the frame.
    pub const LEN: usize = 9;

    /// Appends the frame.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`].
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), EncodeError> {
        put(FrameType::PathResponse, self.token, out)
    }

    /// Reads what follows the type byte.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(PathResponse { token: Token(*from.array()?) })
    }
}

fn put(kind: FrameType, token: Token, out: &mut Writer<'_>) -> Result<(), EncodeError> {
    out.reserve(PathChallenge::LEN)?;
    out.put_u8(kind as u8)?;
    out.put_bytes(&token.0)
}
