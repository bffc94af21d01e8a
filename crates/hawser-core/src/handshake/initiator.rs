//! The side that begins. Steps 1, 3, 4 and 5 of the handshake's story.
//!
//! ```text
//!        new                      response
//! (none) -----> Waiting(0..=64 attempts) -----------------> Done
//!                 |  ^      begin_round: attempts that are a minute old are forgotten
//!                 +--+      initiation: the way's latest attempt again, or one more, or one in its place
//!                           cookie: kept for the next attempt by its way; nothing is sent at once
//!                           anything wrong: nothing
//! ```
//!
//! Every way has initiations of its own, with their own index, ephemeral key and cookie: nothing in the bytes tells
//! that two of them are of one portal. One is repeated byte for byte, which the responder answers with the same bytes:
//! so it takes one place on either side however long the round trip. Another is made by the way for a cookie, in the
//! place of the latest where there is no other, or after a while: a responder may have had its reasons to drop the first.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use snow::HandshakeState;

use super::identity::{Identity, Psk, PublicKey};
use super::keys::{Side, TransportKeys};
use super::mac::{Cookie, Mac1Key, MacBytes};
use super::{ANSWERED_WITHIN, Established, HandshakeError, agree, noise};
use crate::units::{LinkId, Random, Time};
use crate::wire::handshake::{CookieReply, HandshakeIndex, INITIATION_LEN, INITIATION_NOISE_LEN, Initiation, Response};
use crate::wire::{Freshness, Offer};

/// How long a way's first initiation is repeated (WireGuard whitepaper section 6.1, Rekey-Timeout).
const REPEATED_FIRST: Duration = Duration::from_secs(5);
/// Initiations of one way that wait at once: made at 0, 5, 15 and 35 s, they are those of [`ANSWERED_WITHIN`].
const ATTEMPTS_OF_A_WAY: usize = 4;
/// Initiations that wait at once: those of sixteen ways, each about a KiB.
const MAX_ATTEMPTS: usize = 16 * ATTEMPTS_OF_A_WAY;
/// Ways whose cookie is kept: as many as initiations may wait by.
const MAX_COOKIES: usize = MAX_ATTEMPTS;

/// How long a way's latest initiation is repeated where this many of the way wait: twice as long as the one before it
/// (RFC 6298 section 5.5). A responder has few places (`endpoint::pending`), and keeps each the longer the longer no
/// answer comes.
fn repeated_for(of_way: usize) -> Duration {
    REPEATED_FIRST * (1u32 << of_way.saturating_sub(1))
}

/// A way that initiations take. No zero value; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The link that they leave by.
    pub link: LinkId,
    /// Where to.
    pub remote: SocketAddr,
}

impl Way {
    /// The way of a caller that has only one.
    pub const ONLY: Way = Way { link: LinkId(0), remote: SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)) };
}

/// One initiation that was sent.
struct Attempt {
    made_at: Time,
    way: Way,
    index: HandshakeIndex,
    noise: HandshakeState,
    mac1: MacBytes,
    cookie: Option<Cookie>,
    message: [u8; INITIATION_LEN],
}

/// What is kept from one handshake with a peer to the next. Nothing at first; a plain value.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The latest cookie of each way, the latest of all last.
    cookies: VecDeque<(Way, Cookie)>,
    /// Rounds of initiations made so far.
    rounds: u32,
}

impl Memory {
    fn cookie(&self, way: Way) -> Option<Cookie> {
        self.cookies.iter().find(|(known, _)| *known == way).map(|(_, cookie)| *cookie)
    }

    fn keep(&mut self, way: Way, cookie: Cookie) {
        self.cookies.retain(|(known, _)| *known != way);
        if self.cookies.len() == MAX_COOKIES {
            self.cookies.pop_front();
        }
        self.cookies.push_back((way, cookie));
    }
}

/// A handshake that waits for its response. It begins without an initiation; exclusive, erased when
/// dropped.
pub struct Initiator {
    identity: Identity,
    peer: PublicKey,
    psk: Psk,
    /// What mac1 is made with, and what Noise binds: an enrolment has its own.
    pub(super) mac1_key: Mac1Key,
    pub(super) prologue: &'static [u8],
    offer: Offer,
    memory: Memory,
    /// Oldest first; none are left when the handshake is done.
    attempts: VecDeque<Attempt>,
}

impl Initiator {
    /// Who waits for the answer of `peer`; `memory` is that of the handshake before.
    pub fn new(identity: &Identity, peer: &PublicKey, psk: Psk, offer: Offer, memory: Memory) -> Self {
        Initiator {
            identity: identity.clone(),
            peer: *peer,
            psk,
            mac1_key: Mac1Key::to(peer),
            prologue: noise::SESSION,
            offer,
            memory,
            attempts: VecDeque::new(),
        }
    }

    /// Begins a handshake with `peer` by [`Way::ONLY`]: who waits for the answer, and what to send. `memory` is that of
    /// the handshake before.
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
        let mut initiator = Initiator::new(identity, peer, psk, offer, memory.unwrap_or_default());
        initiator.begin_round(Time::ZERO);
        let message = initiator.initiation(Time::ZERO, Way::ONLY, index, rng)?;
        Ok((initiator, message))
    }

    /// Begins a round: the initiations that are made until the next one count as one, whatever way they take. Those of
    /// [`ANSWERED_WITHIN`] ago are not waited for any more.
    pub fn begin_round(&mut self, now: Time) {
        self.memory.rounds = self.memory.rounds.saturating_add(1);
        self.attempts.retain(|attempt| now.since(attempt.made_at) < ANSWERED_WITHIN);
    }

    /// The initiation to be sent by one way: its latest again, or another, which `index` names among all that the
    /// caller waits for.
    ///
    /// # Errors
    /// [`HandshakeError::Waiting`] by a way that has none, while as many ways as can be have one.
    /// [`HandshakeError::Noise`] as of [`Initiator::start`].
    pub fn initiation(
        &mut self,
        now: Time,
        way: Way,
        index: HandshakeIndex,
        rng: &mut dyn Random,
    ) -> Result<[u8; INITIATION_LEN], HandshakeError> {
        let Some(at) = self.attempts.iter().rposition(|attempt| attempt.way == way) else {
            self.make_room()?;
            return self.another(now, way, index, rng);
        };
        let latest = &self.attempts[at];
        let of_way = self.attempts.iter().filter(|attempt| attempt.way == way).count();
        let has_room = of_way < ATTEMPTS_OF_A_WAY && self.attempts.len() < MAX_ATTEMPTS;
        let has_other_cookie = self.memory.cookie(way) != latest.cookie;
        // Neither a reply nor time pushes out the first of a way: where round trips are long, those are answered. The
        // latest gives way to a cookie: whoever is under load answers nothing without.
        match (has_room, has_other_cookie) {
            (true, true) => {}
            (true, false) if now.since(latest.made_at) >= repeated_for(of_way) => {}
            (false, true) if of_way > 1 => drop(self.attempts.remove(at)),
            _ => return Ok(latest.message),
        }
        self.another(now, way, index, rng)
    }

    /// A way that has no initiation gets the place of the oldest one of a way that has others: a link that was just
    /// plugged in may be the only one that works.
    fn make_room(&mut self) -> Result<(), HandshakeError> {
        if self.attempts.len() < MAX_ATTEMPTS {
            return Ok(());
        }
        let of_way = |way: Way| self.attempts.iter().filter(|attempt| attempt.way == way).count();
        let oldest = self.attempts.iter().position(|attempt| of_way(attempt.way) > 1);
        self.attempts.remove(oldest.ok_or(HandshakeError::Waiting)?);
        Ok(())
    }

    /// An initiation with a fresh ephemeral key, and mac2 where a cookie came by its way.
    pub(super) fn another(
        &mut self,
        now: Time,
        way: Way,
        index: HandshakeIndex,
        rng: &mut dyn Random,
    ) -> Result<[u8; INITIATION_LEN], HandshakeError> {
        let noise = noise::initiator(&self.identity, &self.peer, &self.psk, self.prologue, rng);
        let mut noise = noise.map_err(HandshakeError::Noise)?;
        let mut bytes = [0; INITIATION_NOISE_LEN];
        let mut payload = self.offer.encode(None);
        let cookie = self.memory.cookie(way);
        let echo = cookie.map_or([0; Freshness::ECHO_LEN], |cookie| cookie.echo());
        Freshness { echo, count: self.memory.rounds.saturating_sub(1) }.put(&mut payload);
        noise.write_message(&payload, &mut bytes).map_err(HandshakeError::Noise)?;
        let mut message = Initiation::encode(index, &bytes);
        let mac1 = self.mac1_key.sign(&mut message);
        if let Some(cookie) = cookie {
            cookie.sign(&mut message);
        }
        self.attempts.push_back(Attempt { made_at: now, way, index, noise, mac1, cookie, message });
        Ok(message)
    }

    /// Takes a cookie reply: the next attempt by its way says it. Anybody who saw an initiation and knows the peer's
    /// public key can make one, so that nothing else may follow from it. Says whether the initiation had a cookie
    /// already.
    ///
    /// # Errors
    /// [`HandshakeError`] where it answers none of the attempts; nothing has changed.
    pub fn on_cookie(&mut self, datagram: &[u8]) -> Result<bool, HandshakeError> {
        let reply = CookieReply::decode(datagram)?;
        if !self.waits_for(reply.receiver) {
            return Err(HandshakeError::NotPending);
        }
        let named = self.attempts.iter().rev().filter(|attempt| attempt.index == reply.receiver);
        let mut opened = named.filter_map(|attempt| {
            let cookie = Cookie::open(reply.sealed, &self.peer, reply.salt, &attempt.mac1)?;
            Some((attempt.way, cookie, attempt.cookie.is_some()))
        });
        let (way, cookie, had_cookie) = opened.next().ok_or(HandshakeError::Cookie)?;
        self.memory.keep(way, cookie);
        Ok(had_cookie)
    }

    /// Takes the response to any of the attempts.
    ///
    /// # Errors
    /// [`HandshakeError`] where it is not that; the right response is still taken.
    pub fn on_response(&mut self, datagram: &[u8]) -> Result<Established, HandshakeError> {
        let response = Response::decode(datagram)?;
        if !self.waits_for(response.receiver) {
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
            if self.attempts[at].index != response.receiver {
                continue;
            }
            match self.attempts[at].noise.read_message(response.noise, payload) {
                Ok(_) => return self.attempts.remove(at).ok_or(HandshakeError::NotPending),
                Err(error) => failure = HandshakeError::Noise(error),
            }
        }
        Err(failure)
    }

    /// Whether responses and cookie replies to this index are for this handshake.
    pub fn waits_for(&self, index: HandshakeIndex) -> bool {
        self.attempts.iter().any(|attempt| attempt.index == index)
    }

    /// Whom it is with.
    pub fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The latest cookie of [`Way::ONLY`]. Another one under the same secret of the responder is for another address or
    /// port.
    pub fn cookie(&self) -> Option<Cookie> {
        self.memory.cookie(Way::ONLY)
    }

    /// What the next handshake with this peer is to know.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Initiator")
            .field("peer", &self.peer)
            .field("attempts", &self.attempts.len())
            .finish_non_exhaustive()
    }
}
