//! The three handshake messages, by their fields; what the fields mean is `crate::handshake`'s.
//!
//! ```text
//! initiation    0x10 | index 4 | noise 120 | mac1 16 | mac2 16                  157
//! response      0x20 | index 4 | receiver 4 | noise 72 | mac1 16 | mac2 16      113
//! cookie reply  0x30 | receiver 4 | salt 24 | sealed cookie 32                   61
//! ```

use super::{DatagramKind, Offer, Reader, TAG_LEN, WireError};

/// Bytes of a public key (RFC 7748 section 5).
pub const KEY_LEN: usize = 32;
/// Bytes of mac1, mac2 and a cookie (BLAKE2s-128).
pub const MAC_LEN: usize = 16;
/// Bytes of a cookie reply's salt.
pub const SALT_LEN: usize = 24;
/// Bytes of the Noise part of an initiation: ephemeral, sealed static key, sealed payload.
pub const INITIATION_NOISE_LEN: usize = KEY_LEN + KEY_LEN + TAG_LEN + Offer::LEN + TAG_LEN;
/// Bytes of the Noise part of a response: ephemeral, sealed payload.
pub const RESPONSE_NOISE_LEN: usize = KEY_LEN + Offer::LEN + TAG_LEN;
/// Bytes of an initiation.
pub const INITIATION_LEN: usize = 1 + 4 + INITIATION_NOISE_LEN + 2 * MAC_LEN;
/// Bytes of a response: fewer than of the initiation it answers.
pub const RESPONSE_LEN: usize = 1 + 4 + 4 + RESPONSE_NOISE_LEN + 2 * MAC_LEN;
/// Bytes of a cookie reply: fewer than of the initiation it answers.
pub const COOKIE_REPLY_LEN: usize = 1 + 4 + SALT_LEN + MAC_LEN + TAG_LEN;

/// Names a half-open handshake to the side that chose it. Any number; a plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HandshakeIndex(pub u32);

/// A handshake's first message. No zero value; it borrows the datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Initiation<'a> {
    /// The sender's half-open handshake.
    pub index: HandshakeIndex,
    /// Noise IKpsk2, first message.
    pub noise: &'a [u8; INITIATION_NOISE_LEN],
    /// Proves that the sender knows whom it talks to.
    pub mac1: &'a [u8; MAC_LEN],
    /// Proves that the sender got a cookie at its address; zero without one.
    pub mac2: &'a [u8; MAC_LEN],
}

impl<'a> Initiation<'a> {
    /// The datagram with zero macs.
    pub fn encode(index: HandshakeIndex, noise: &[u8; INITIATION_NOISE_LEN]) -> [u8; INITIATION_LEN] {
        let mut out = [0; INITIATION_LEN];
        out[0] = DatagramKind::Initiation.first_byte();
        out[1..5].copy_from_slice(&index.0.to_be_bytes());
        out[5..5 + INITIATION_NOISE_LEN].copy_from_slice(noise);
        out
    }

    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`WireError`] where it is no initiation, byte for byte.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, WireError> {
        let mut from = start(datagram, DatagramKind::Initiation)?;
        let index = HandshakeIndex(from.u32()?);
        let message = Initiation { index, noise: from.array()?, mac1: from.array()?, mac2: from.array()? };
        from.finish().map(|()| message)
    }
}

/// The answer to an [`Initiation`]. No zero value; it borrows the datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Response<'a> {
    /// The sender's half-open handshake.
    pub index: HandshakeIndex,
    /// The one that it answers.
    pub receiver: HandshakeIndex,
    /// Noise IKpsk2, second message.
    pub noise: &'a [u8; RESPONSE_NOISE_LEN],
    /// Proves that the sender knows whom it talks to.
    pub mac1: &'a [u8; MAC_LEN],
    /// Zero: nobody asks a responder for a cookie.
    pub mac2: &'a [u8; MAC_LEN],
}

impl<'a> Response<'a> {
    /// The datagram with zero macs.
    pub fn encode(
        index: HandshakeIndex,
        receiver: HandshakeIndex,
        noise: &[u8; RESPONSE_NOISE_LEN],
    ) -> [u8; RESPONSE_LEN] {
        let mut out = [0; RESPONSE_LEN];
        out[0] = DatagramKind::Response.first_byte();
        out[1..5].copy_from_slice(&index.0.to_be_bytes());
        out[5..9].copy_from_slice(&receiver.0.to_be_bytes());
        out[9..9 + RESPONSE_NOISE_LEN].copy_from_slice(noise);
        out
    }

    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`WireError`] where it is no response, byte for byte.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, WireError> {
        let mut from = start(datagram, DatagramKind::Response)?;
        let index = HandshakeIndex(from.u32()?);
        let receiver = HandshakeIndex(from.u32()?);
        let (noise, mac1, mac2) = (from.array()?, from.array()?, from.array()?);
        if *mac2 != [0; MAC_LEN] {
            return Err(WireError::Reserved);
        }
        from.finish().map(|()| Response { index, receiver, noise, mac1, mac2 })
    }
}

/// A cookie for an initiator, sealed. No zero value; it borrows the datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CookieReply<'a> {
    /// The half-open handshake that it answers.
    pub receiver: HandshakeIndex,
    /// What makes the sealing key a new one.
    pub salt: &'a [u8; SALT_LEN],
    /// The cookie and its tag.
    pub sealed: &'a [u8; MAC_LEN + TAG_LEN],
}

impl<'a> CookieReply<'a> {
    /// The datagram.
    pub fn encode(&self) -> [u8; COOKIE_REPLY_LEN] {
        let mut out = [0; COOKIE_REPLY_LEN];
        out[0] = DatagramKind::CookieReply.first_byte();
        out[1..5].copy_from_slice(&self.receiver.0.to_be_bytes());
        out[5..5 + SALT_LEN].copy_from_slice(self.salt);
        out[5 + SALT_LEN..].copy_from_slice(self.sealed);
        out
    }

    /// Reads a whole datagram.
    ///
    /// # Errors
    /// [`WireError`] where it is no cookie reply, byte for byte.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, WireError> {
        let mut from = start(datagram, DatagramKind::CookieReply)?;
        let receiver = HandshakeIndex(from.u32()?);
        let message = CookieReply { receiver, salt: from.array()?, sealed: from.array()? };
        from.finish().map(|()| message)
    }
}

/// A reader behind the first byte of a datagram of `kind`.
fn start(datagram: &[u8], kind: DatagramKind) -> Result<Reader<'_>, WireError> {
    let mut from = Reader::new(datagram);
    let first = from.u8()?;
    if DatagramKind::of(first)? != kind {
        return Err(WireError::UnknownType(first >> 4));
    }
    Ok(from)
}
