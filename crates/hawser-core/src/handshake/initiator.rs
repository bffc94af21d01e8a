//! The side that begins. Steps 1, 3, 4 and 5 of the handshake's story.
//!
//! ```text
//!        start                    response
//! (none) -----> Waiting(1..=4 attempts) ------------------> Done
//!                 |  ^      cookie: kept for the next attempt
//!                 +--+      retransmit: one attempt more, the oldest of five forgotten
//!                           anything wrong: nothing
//! ```

use std::collections::VecDeque;

use snow::HandshakeState;

use super::identity::{Identity, Psk, PublicKey};
use super::keys::{Side, TransportKeys};
use super::mac::{Cookie, Mac1Key, MacBytes};
use super::{Established, HandshakeError, agree, noise};
use crate::units::Random;
use crate::wire::handshake::{CookieReply, HandshakeIndex, INITIATION_LEN, INITIATION_NOISE_LEN, Initiation, Response};
use crate::wire::{Freshness, Offer};

/// Initiations whose answer is still taken: at one every 500 ms, answers may be 2 s late
/// (DESIGN section 6 asks for round trips of 300 ms; a satellite's first one may take a second).
const MAX_ATTEMPTS: usize = 4;

/// One initiation that was sent.
struct Attempt {
    noise: HandshakeState,
    mac1: MacBytes,
}

/// What is kept from one handshake with a peer to the next. Nothing at first; a plain value.
#[derive(Copy, Clone, Debug, Default)]
pub struct Memory {
    cookie: Option<Cookie>,
    /// Initiations made so far.
    count: u32,
}

/// A handshake that waits for its response. It begins with one attempt; exclusive, erased when
/// dropped.
pub struct Initiator {
    identity: Identity,
    peer: PublicKey,
    psk: Psk,
    offer: Offer,
    index: HandshakeIndex,
    memory: Memory,
    /// Oldest first; empty when the handshake is done.
    attempts: VecDeque<Attempt>,
}

impl Initiator {
    /// Begins a handshake with `peer`: what to send, and who waits for the answer. `index` names it
    /// among the caller's half-open ones; `memory` is that of the one before.
    ///
    /// # Errors
    /// [`HandshakeError::Noise`], which does not happen with keys of the right length.
    pub fn start(
        identity: &Identity,
        peer: &PublicKey,
        psk: Psk,
        offer: Offer,
        index: HandshakeIndex,
        memory: Option<Memory>,
        rng: &mut dyn Random,
    ) -> Result<(Self, [u8; INITIATION_LEN]), HandshakeError> {
        let mut initiator = Initiator {
            identity: identity.clone(),
            peer: *peer,
            psk,
            offer,
            index,
            memory: memory.unwrap_or_default(),
            attempts: VecDeque::with_capacity(MAX_ATTEMPTS),
        };
        let message = initiator.retransmit(rng)?;
        Ok((initiator, message))
    }

    /// Another initiation with a fresh ephemeral key, and mac2 where a cookie came. Answers to the
    /// three before it are still taken.
    ///
    /// # Errors
    /// As of [`Initiator::start`].
    pub fn retransmit(&mut self, rng: &mut dyn Random) -> Result<[u8; INITIATION_LEN], HandshakeError> {
        let mut noise = noise::initiator(&self.identity, &self.peer, &self.psk, rng).map_err(HandshakeError::Noise)?;
        let mut bytes = [0; INITIATION_NOISE_LEN];
        let mut payload = self.offer.encode(None);
        let echo = self.memory.cookie.map_or([0; Freshness::ECHO_LEN], |cookie| cookie.echo());
        Freshness { echo, count: self.memory.count }.put(&mut payload);
        self.memory.count = self.memory.count.saturating_add(1);
        noise.write_message(&payload, &mut bytes).map_err(HandshakeError::Noise)?;
        let mut message = Initiation::encode(self.index, &bytes);
        let mac1 = Mac1Key::to(&self.peer).sign(&mut message);
        if let Some(cookie) = &self.memory.cookie {
            cookie.sign(&mut message);
        }
        if self.attempts.len() == MAX_ATTEMPTS {
            self.attempts.pop_front();
        }
        self.attempts.push_back(Attempt { noise, mac1 });
        Ok(message)
    }

    /// Takes a cookie reply; send a [`Initiator::retransmit`] then.
    ///
    /// # Errors
    /// [`HandshakeError`] where it answers none of the attempts; nothing has changed.
    pub fn on_cookie(&mut self, datagram: &[u8]) -> Result<(), HandshakeError> {
        let reply = CookieReply::decode(datagram)?;
        if reply.receiver != self.index || self.attempts.is_empty() {
            return Err(HandshakeError::NotPending);
        }
        let opened = self
            .attempts
            .iter()
            .rev()
            .find_map(|attempt| Cookie::open(reply.sealed, &self.peer, reply.salt, &attempt.mac1));
        self.memory.cookie = Some(opened.ok_or(HandshakeError::Cookie)?);
        Ok(())
    }

    /// Takes the response to any of the attempts.
    ///
    /// # Errors
    /// [`HandshakeError`] where it is not that; the right response is still taken.
    pub fn on_response(&mut self, datagram: &[u8]) -> Result<Established, HandshakeError> {
        let response = Response::decode(datagram)?;
        if response.receiver != self.index || self.attempts.is_empty() {
            return Err(HandshakeError::NotPending);
        }
        if !Mac1Key::to(&self.identity.public()).verify(datagram, response.mac1) {
            return Err(HandshakeError::Mac1);
        }
        let mut payload = [0; Offer::LEN];
        let answered = self.read(&response, &mut payload)?;
        let (peer_offer, chosen) = Offer::decode(&payload)?;
        let agreed = agree(&self.offer, &peer_offer).filter(|(_, cipher)| *cipher == chosen);
        let (protection, cipher) = agreed.ok_or(HandshakeError::Cipher)?;
        let mut noise = answered.noise;
        let keys = TransportKeys::derive(Side::Initiator, &mut noise, cipher, protection);
        self.attempts.clear();
        Ok(Established { keys, peer_offer, protection, cipher })
    }

    /// Reads the Noise part with the attempt that it answers, which is taken out.
    fn read(&mut self, response: &Response<'_>, payload: &mut [u8; Offer::LEN]) -> Result<Attempt, HandshakeError> {
        let mut failure = HandshakeError::NotPending;
        for at in (0..self.attempts.len()).rev() {
            match self.attempts[at].noise.read_message(response.noise, payload) {
                Ok(_) => return self.attempts.remove(at).ok_or(HandshakeError::NotPending),
                Err(error) => failure = HandshakeError::Noise(error),
            }
        }
        Err(failure)
    }

    /// The index by which responses and cookie replies find this handshake.
    pub fn index(&self) -> HandshakeIndex {
        self.index
    }

    /// Whom it is with.
    pub fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The latest cookie.
    #[cfg(test)]
    pub(super) fn cookie(&self) -> Option<Cookie> {
        self.memory.cookie
    }

    /// What the next handshake with this peer is to know.
    pub fn memory(&self) -> Memory {
        self.memory
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Initiator")
            .field("peer", &self.peer)
            .field("index", &self.index)
            .field("attempts", &self.attempts.len())
            .finish_non_exhaustive()
    }
}
