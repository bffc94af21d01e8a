//! Two portals agree on keys: Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s, guarded against floods.
//!
//! ```text
//! initiator                                                   responder
//! 1 Initiator::initiation -- initiation -------------------->  2 Responder::on_initiation
//!                                                                mac1 wrong: nothing
//!                         <------------------ cookie reply --    under load and no cookie of its own
//! 3 Initiator::on_cookie
//! 4 Initiator::initiation -- initiation with mac2, when due ->    Noise wrong, key unknown: nothing
//!                         <---------------------- response --    else: Established
//! 5 Initiator::on_response: Established
//!                         -- data under the new keys ------->  6 the caller makes them the session's
//! ```
//!
//! Initiations can be recorded and replayed. Where it matters, the caller asks for one that was made lately: a cookie
//! is asked for ([`Responder::cookie`]), and the initiation says under its seal that it has it ([`Accepted::fresh`]).
//!
//! Neither side reads a clock or draws randomness: both come in as arguments. Nothing that fails
//! changes anything: a wrong response leaves the handshake waiting for the right one.

pub mod enrolment;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod identity;
mod initiator;
mod keys;
mod limit;
mod mac;
mod noise;
mod responder;
pub mod secrets;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use identity::{Identity, Psk, PublicKey};
pub use initiator::{Initiator, Memory, Way};
pub(crate) use keys::place;
pub use keys::{OpenError, OpenKey, SealError, SealKey, TransportKeys};
pub use mac::Cookie;
pub use responder::{Accepted, HandshakeDrop, InitiationId, Known, Responder, Verdict};

use crate::wire::{Cipher, Offer, Protection, WireError};

/// Keys are replaced after this time (WireGuard's `REKEY_AFTER_TIME`).
pub const REKEY_AFTER: Duration = Duration::from_secs(120);
/// Keys are replaced after this many packets over all paths: 100 GB at 1500 bytes, a quarter of the
/// 2^28 packets of 2 KiB that AES-GCM allows under one key (RFC 9001 appendix B.1.1).
pub const REKEY_AFTER_PACKETS: u64 = 1 << 26;

/// Who answered the handshake begins one itself where the initiator is late by this: it may have no way to (WireGuard
/// leaves time to the initiator; with 150 s there are 30 s of attempts before the end).
pub const ASK_AFTER: Duration = Duration::from_secs(150);
/// The same in packets: half as many again.
pub const ASK_AFTER_PACKETS: u64 = REKEY_AFTER_PACKETS + REKEY_AFTER_PACKETS / 2;
/// When keys of an idle session are replaced: late, to send less, with 8 s of attempts before the end.
pub const IDLE_REKEY: Duration = Duration::from_secs(172);
/// And when who answered begins the handshake itself then.
pub const IDLE_ASK: Duration = Duration::from_secs(176);
/// Nothing is sealed or opened under older keys (WireGuard whitepaper section 6.1, Reject-After-Time).
pub const REJECT_AFTER: Duration = Duration::from_secs(180);
/// Nor under keys that sealed or opened this many packets: half of what AES-GCM allows (RFC 9001 appendix B.1.1).
pub const REJECT_AFTER_PACKETS: u64 = 1 << 27;

/// How long the answer to an initiation is taken: as long as TCP waits for one at least (RFC 6298 section 2.5), and a
/// path for that to a challenge (`path::constants::TOKEN_LIFE`).
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// How long an answered handshake keeps its place until its first datagram, which follows the answer: as long as the
/// initiator takes that.
pub const HALF_OPEN_FOR: Duration = ANSWERED_WITHIN;

/// What a handshake gives. No zero value; move it into the session.
#[derive(Debug)]
pub struct Established {
    /// The keys of both directions.
    pub keys: TransportKeys,
    /// What the other side offered.
    pub peer_offer: Offer,
    /// The stricter wish of both.
    pub protection: Protection,
    /// The best cipher of both.
    pub cipher: Cipher,
}

/// Why a message changed nothing. Not constructed by hand; a plain value.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The bytes are no such message.
    #[error("handshake: message unreadable")]
    Wire(#[from] WireError),
    /// The message answers another handshake than this one, or this one is over.
    #[error("handshake: answers no pending initiation")]
    NotPending,
    /// As many ways as can be have initiations that wait for their answers.
    #[error("handshake: too many initiations wait for their answers")]
    Waiting,
    /// mac1 is not that of somebody who knows our public key.
    #[error("handshake: mac1 wrong")]
    Mac1,
    /// Noise failed: another key, another pre-shared key, or changed bytes.
    #[error("handshake: noise failed")]
    Noise(#[source] snow::Error),
    /// The peer chose another cipher than both offers give, or there is none.
    #[error("handshake: cipher is not the best of both offers")]
    Cipher,
    /// The cookie does not open: it answers another message.
    #[error("handshake: cookie reply unauthentic")]
    Cookie,
}

/// What both offers give: the stricter protection, and the best cipher that can do it.
fn agree(ours: &Offer, theirs: &Offer) -> Option<(Protection, Cipher)> {
    let protection = ours.protection.stricter(theirs.protection);
    let cipher = ours.ciphers.best_common(theirs.ciphers, protection)?;
    Some((protection, cipher))
}
