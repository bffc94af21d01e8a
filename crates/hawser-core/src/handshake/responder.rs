//! The side that is called. One function, one verdict; what is not accepted is dropped.
//!
//! 1. Read the bytes; check mac1: the sender knows our public key.
//! 2. Under load: check mac2 (the sender got our cookie at its address) and its address's share.
//! 3. Noise: the sender holds the private key that it names.
//! 4. Look the key up: we know it.
//! 5. Agree on cipher and protection; answer.
//!
//! Only a sender that passed step 1 costs more than a hash, only one that passed step 4 leaves a
//! trace, and nothing sent back is longer than what came.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use zeroize::Zeroizing;

use super::enrolment::Invited;
use super::identity::{Identity, Psk, PublicKey};
use super::keys::{Side, TransportKeys};
use super::limit::{Allowance, Limit};
use super::mac::{Cookie, Mac1Key, MacBytes, keyed, mac1_of};
use super::{Established, agree, noise};
use crate::units::{Random, Time};
use crate::wire::handshake::{
    COOKIE_REPLY_LEN, CookieReply, HandshakeIndex, INITIATION_LEN, Initiation, KEY_LEN, MAC_LEN, RESPONSE_LEN,
    RESPONSE_NOISE_LEN, Response, SALT_LEN,
};
use crate::wire::{Freshness, InstanceId, Offer};

/// Initiations that are worked on without a cookie: 50 a second cost about 1 % of a core, and 50
/// peers that lose their portal at once come back without one.
const UNASKED: Allowance = Allowance { interval: Duration::from_millis(20), burst: 50 };
/// Initiations that one address may make us work on under load: a portal sends two a second over
/// each of its links.
const PER_ADDRESS: Allowance = Allowance { interval: Duration::from_millis(50), burst: 10 };
/// Buckets that addresses are hashed to, under the cookie secret: 4 KiB.
const ADDRESS_BUCKETS: usize = 512;
/// Initiations that are known again under load: those of one secret's life, at two a second.
const PASSED_KEPT: usize = 256;
/// How long a cookie secret is used (docs/wire.md).
const COOKIE_SECRET_LIFE: Duration = Duration::from_secs(120);
/// The bits of an IPv6 address that one customer has at least (RFC 6177): one share for them all.
const IPV6_SHARE_LEN: usize = 8;

/// Why an initiation was dropped. Malformed by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum HandshakeDrop {
    /// No initiation, byte for byte.
    #[default]
    Malformed,
    /// mac1 is not that of somebody who knows our public key.
    Mac1,
    /// Under load, and the sender's address has had its share.
    Share,
    /// Under load, and it was worked on before.
    Again,
    /// Noise failed: it was made for another key, or changed.
    Noise,
    /// The key is none of our peers'.
    UnknownKey,
    /// The offer is none that this version knows.
    Offer,
    /// The two sides have no cipher in common.
    NoCommonCipher,
}

impl HandshakeDrop {
    /// Whether it was dropped before step 3, for a hash.
    pub fn is_cheap(self) -> bool {
        matches!(self, Self::Malformed | Self::Mac1 | Self::Share | Self::Again)
    }
}

/// What to do with an initiation. Drop by default; move it.
#[derive(Debug)]
pub enum Verdict {
    /// Nothing is sent, nothing kept.
    Drop(HandshakeDrop),
    /// This is sent, nothing kept.
    Cookie([u8; COOKIE_REPLY_LEN]),
    /// The response is sent, the keys are kept.
    Accept(Box<Accepted>),
}

impl Default for Verdict {
    fn default() -> Self {
        Verdict::Drop(HandshakeDrop::default())
    }
}

/// An initiation that was accepted. No zero value; move it.
#[derive(Debug)]
pub struct Accepted {
    /// Who it is.
    pub peer: PublicKey,
    /// What is sent to it; the same again when the same initiation comes again.
    pub response: [u8; RESPONSE_LEN],
    /// The keys; they replace no others until a datagram opens under them.
    pub established: Established,
    /// It was made for a cookie of late, so that it is no recording of long ago.
    pub fresh: bool,
    /// Its place among the initiations of that start of the peer's portal.
    pub count: u32,
}

/// What we know of a peer that sends an initiation. A plain value.
#[derive(Clone)]
pub struct Known {
    /// Zero where none is set.
    pub psk: Psk,
    /// Which start of ours it is told; the responder's own where none is given.
    pub instance: Option<InstanceId>,
}

impl From<Psk> for Known {
    fn from(psk: Psk) -> Self {
        Known { psk, instance: None }
    }
}

/// Names the bytes of an initiation: the same one may come over several links. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InitiationId(MacBytes);

/// Answers initiations. Without load at first; exclusive.
pub struct Responder {
    pub(super) identity: Identity,
    mac1_key: Mac1Key,
    /// Who may enrol.
    pub(super) invited: Vec<Invited>,
    offer: Offer,
    unasked: Limit,
    per_address: Box<[Limit; ADDRESS_BUCKETS]>,
    secret: Option<CookieSecret>,
    /// What passed step 2 lately, and where the next goes: a recording of it is not to use up the address's share.
    passed: [MacBytes; PASSED_KEPT],
    next_passed: usize,
}

/// What cookies are made with, and since when.
struct CookieSecret {
    key: Zeroizing<[u8; KEY_LEN]>,
    since: Time,
}

impl Responder {
    /// Answers for `identity`, with `offer`.
    pub fn new(identity: Identity, offer: Offer) -> Self {
        let mac1_key = Mac1Key::to(&identity.public());
        let per_address = Box::new([Limit::FULL; ADDRESS_BUCKETS]);
        Responder {
            identity,
            mac1_key,
            invited: Vec::new(),
            offer,
            unasked: Limit::FULL,
            per_address,
            secret: None,
            passed: [[0; MAC_LEN]; PASSED_KEPT],
            next_passed: 0,
        }
    }

    /// Offers something else from now on.
    pub fn set_offer(&mut self, offer: Offer) {
        self.offer = offer;
    }

    /// The id of an initiation that passes step 1; for the caller to find the response that it was
    /// given before. Two initiations with one id differ in mac2 at most.
    pub fn initiation_id(&self, datagram: &[u8]) -> Option<InitiationId> {
        let initiation = Initiation::decode(datagram).ok()?;
        let known = self.mac1_key.verify(datagram, initiation.mac1);
        known.then_some(InitiationId(*initiation.mac1))
    }

    /// Judges an initiation that came `from` there. `index` names the half-open handshake that an
    /// acceptance makes; `lookup` tells what is known of a peer.
    pub fn on_initiation(
        &mut self,
        now: Time,
        datagram: &[u8],
        from: SocketAddr,
        index: HandshakeIndex,
        lookup: &mut dyn FnMut(&PublicKey) -> Option<Known>,
        rng: &mut dyn Random,
    ) -> Verdict {
        let (Ok(bytes), Ok(initiation)) = (datagram.try_into(), Initiation::decode(datagram)) else {
            return Verdict::Drop(HandshakeDrop::Malformed);
        };
        if !self.mac1_key.verify(datagram, initiation.mac1) {
            return Verdict::Drop(HandshakeDrop::Mac1);
        }
        if let Some(verdict) = self.admit(now, bytes, &initiation, from, rng) {
            return verdict;
        }
        match self.answer(noise::SESSION, &initiation, index, lookup, rng) {
            Ok((mut accepted, echo)) => {
                accepted.fresh =
                    echo != Freshness::default().echo && Cookie::of(&self.secret_at(now, rng), from).echo() == echo;
                Verdict::Accept(Box::new(accepted))
            }
            Err(reason) => {
                if reason == HandshakeDrop::UnknownKey {
                    self.forget(bytes);
                }
                Verdict::Drop(reason)
            }
        }
    }

    /// It may be answered otherwise when it is repeated: its key is made known, or what was enrolled is said.
    pub(super) fn forget(&mut self, initiation: &[u8; INITIATION_LEN]) {
        let mac1 = mac1_of(initiation);
        self.passed.iter_mut().filter(|known| **known == mac1).for_each(|known| *known = [0; MAC_LEN]);
    }

    /// A cookie for the sender of an initiation; none for anything else.
    pub fn cookie(
        &mut self,
        now: Time,
        datagram: &[u8],
        from: SocketAddr,
        rng: &mut dyn Random,
    ) -> Option<[u8; COOKIE_REPLY_LEN]> {
        let (Ok(bytes), Ok(initiation)) = (datagram.try_into(), Initiation::decode(datagram)) else { return None };
        let cookie = Cookie::of(&self.secret_at(now, rng), from);
        Some(self.seal_cookie(&cookie, bytes, &initiation, rng))
    }

    fn seal_cookie(
        &self,
        cookie: &Cookie,
        bytes: &[u8; INITIATION_LEN],
        initiation: &Initiation<'_>,
        rng: &mut dyn Random,
    ) -> [u8; COOKIE_REPLY_LEN] {
        let mut salt = [0; SALT_LEN];
        rng.fill(&mut salt);
        let sealed = cookie.seal(&self.identity.public(), &salt, &mac1_of(bytes));
        CookieReply { receiver: initiation.index, salt: &salt, sealed: &sealed }.encode()
    }

    /// Step 2: the verdict on an initiation that may not pass, which is under load alone.
    pub(super) fn admit(
        &mut self,
        now: Time,
        bytes: &[u8; INITIATION_LEN],
        initiation: &Initiation<'_>,
        from: SocketAddr,
        rng: &mut dyn Random,
    ) -> Option<Verdict> {
        if self.unasked.take(now, UNASKED) {
            return None;
        }
        let secret = self.secret_at(now, rng);
        let cookie = Cookie::of(&secret, from);
        if !cookie.verify(bytes) {
            return Some(Verdict::Cookie(self.seal_cookie(&cookie, bytes, initiation, rng)));
        }
        let mac1 = mac1_of(bytes);
        if self.passed.contains(&mac1) {
            return Some(Verdict::Drop(HandshakeDrop::Again));
        }
        let share = &mut self.per_address[address_bucket(&secret, from.ip())];
        if !share.take(now, PER_ADDRESS) {
            return Some(Verdict::Drop(HandshakeDrop::Share));
        }
        // Only now: it is repeated, and the share may have room then.
        self.passed[self.next_passed] = mac1;
        self.next_passed = (self.next_passed + 1) % PASSED_KEPT;
        None
    }

    /// The secret of now, drawn anew where the last one is too old.
    fn secret_at(&mut self, now: Time, rng: &mut dyn Random) -> Zeroizing<[u8; KEY_LEN]> {
        if let Some(secret) = &self.secret
            && now.since(secret.since) < COOKIE_SECRET_LIFE
        {
            return secret.key.clone();
        }
        let mut key = Zeroizing::new([0; KEY_LEN]);
        rng.fill(&mut *key);
        self.secret = Some(CookieSecret { key: key.clone(), since: now });
        key
    }

    /// Steps 3 to 5; tells the initiation's echo too.
    pub(super) fn answer(
        &self,
        prologue: &'static [u8],
        initiation: &Initiation<'_>,
        index: HandshakeIndex,
        lookup: &mut dyn FnMut(&PublicKey) -> Option<Known>,
        rng: &mut dyn Random,
    ) -> Result<(Accepted, [u8; Freshness::ECHO_LEN]), HandshakeDrop> {
        let failed = |_| HandshakeDrop::Noise;
        let mut noise = noise::responder(&self.identity, prologue, rng).map_err(failed)?;
        let mut payload = [0; Offer::LEN];
        noise.read_message(initiation.noise, &mut payload).map_err(failed)?;
        let peer = noise::initiator_key(&noise).ok_or(HandshakeDrop::Noise)?;
        let Known { psk, instance } = lookup(&peer).ok_or(HandshakeDrop::UnknownKey)?;
        let Freshness { echo, count } = Freshness::take(&mut payload);
        let (peer_offer, _) = Offer::decode(&payload).map_err(|_| HandshakeDrop::Offer)?;
        let agreed = agree(&self.offer, &peer_offer);
        let (protection, cipher) = agreed.ok_or(HandshakeDrop::NoCommonCipher)?;

        noise::set_psk(&mut noise, &psk).map_err(failed)?;
        let mut bytes = [0; RESPONSE_NOISE_LEN];
        let offer = instance.map_or(self.offer, |instance| self.offer.started_as(instance));
        noise.write_message(&offer.encode(Some(cipher)), &mut bytes).map_err(failed)?;
        let mut response = Response::encode(index, initiation.index, &bytes);
        Mac1Key::to(&peer).sign(&mut response);
        let keys = TransportKeys::derive(Side::Responder, &mut noise, cipher, protection);
        let established = Established { keys, peer_offer, protection, cipher };
        Ok((Accepted { peer, response, established, fresh: false, count }, echo))
    }
}

/// The bucket of an address's share: one for an IPv4 address, one for an IPv6 /64.
fn address_bucket(secret: &[u8; KEY_LEN], ip: IpAddr) -> usize {
    let hash = match ip.to_canonical() {
        IpAddr::V4(ip) => keyed(secret, &[&ip.octets()]),
        IpAddr::V6(ip) => keyed(secret, &[&ip.octets()[..IPV6_SHARE_LEN]]),
    };
    usize::from(u16::from_be_bytes([hash[0], hash[1]])) % ADDRESS_BUCKETS
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("identity", &self.identity)
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}
