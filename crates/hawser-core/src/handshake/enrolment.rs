//! Enrolment: somebody whose key is unknown proves that it holds a one-time secret, and tells its key by that.
//!
//! An enrolling initiation has the bytes of any other, and differs by three keys:
//!
//! 1. mac1's key is made of the secret too. It says which secret the sender holds before anything costly is done, and
//!    binds the sealed public key to it: who does not hold the secret can neither make one nor put another key into it.
//! 2. The pre-shared key is made of the secret, so that nobody else can read the response.
//! 3. The prologue is another one: no message of an enrolment is of use in a handshake for a session, or the other way.
//!
//! ```text
//!   invited(secret) -- mac1 right, key new: Proven --> the caller decides --> bound(secret, key)
//!   bound(secret, key) -- the same key: Answer, as often as it asks       -- another key: nothing
//! ```
//! Nothing is kept here of any of them, and the keys of an enrolment protect no data.

use blake2::{Blake2s256, Digest};
use zeroize::Zeroizing;

use super::identity::{Identity, Psk, PublicKey};
use super::initiator::Initiator;
use super::mac::{ENROLMENT_LABEL, Mac1Key};
use super::responder::{HandshakeDrop, Known, Responder};
use super::{Memory, noise};
use crate::units::{Random, Time};
use crate::wire::Offer;
use crate::wire::handshake::{COOKIE_REPLY_LEN, HandshakeIndex, Initiation, KEY_LEN, RESPONSE_LEN};
use std::net::SocketAddr;

/// Bytes of a secret: random ones, so that nobody finds it out from a recorded mac1.
pub const SECRET_LEN: usize = 16;
/// Invitations that are looked at: an initiation whose mac1 is wrong costs a hash for each.
pub const INVITATIONS_MAX: usize = 16;
/// Sets the pre-shared key of an enrolment apart from every other hash.
const PSK_LABEL: &[u8] = b"hawser enrolment psk";

/// What a token holds and nobody else knows. Random; erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<[u8; SECRET_LEN]>);

impl Secret {
    /// The secret of these bytes.
    pub fn new(bytes: [u8; SECRET_LEN]) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// The bytes: do not keep a copy.
    pub fn bytes(&self) -> &[u8; SECRET_LEN] {
        &self.0
    }

    /// Both hold it, and are mixed by Noise into the keys of the response.
    fn psk(&self) -> Psk {
        let hash: Zeroizing<[u8; KEY_LEN]> =
            Zeroizing::new(Blake2s256::new().chain_update(PSK_LABEL).chain_update(*self.0).finalize().into());
        Psk::new(*hash)
    }

    fn mac1_key(&self, receiver: &PublicKey) -> Mac1Key {
        Mac1Key::of(ENROLMENT_LABEL, receiver, &*self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The caller's name of an invitation. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InvitationId(pub u32);

/// Somebody may enrol by this secret. No zero value; the responder owns it.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// What the caller calls it.
    pub id: InvitationId,
    /// By what its holder is known.
    pub secret: Secret,
    /// Whose it is by now: this key is answered, and no other.
    pub bound: Option<PublicKey>,
}

/// An invitation with the key of its mac1.
pub(super) struct Invited {
    invitation: Invitation,
    mac1_key: Mac1Key,
}

/// What to do with an initiation whose mac1 is not that of who knows our public key alone. A plain value.
#[derive(Debug)]
pub enum EnrolmentVerdict {
    /// Nothing is sent, nothing kept.
    Drop(HandshakeDrop),
    /// This is sent, nothing kept.
    Cookie([u8; COOKIE_REPLY_LEN]),
    /// The holder of this secret has this key. Nothing is sent before the invitation is bound to it.
    Proven(InvitationId, PublicKey),
    /// The invitation is bound to the sender's key: this tells it so. Nothing is kept.
    Answer([u8; RESPONSE_LEN]),
}

impl Initiator {
    /// Who waits to be enrolled at `peer`: its [`Initiator::on_response`] succeeds once the peer knows our key.
    pub fn enrolling(identity: &Identity, peer: &PublicKey, secret: &Secret, offer: Offer) -> Self {
        let mut initiator = Initiator::new(identity, peer, secret.psk(), offer, Memory::default());
        (initiator.mac1_key, initiator.prologue) = (secret.mac1_key(peer), noise::ENROLMENT);
        initiator
    }
}

impl Responder {
    /// These may enrol from now on, [`INVITATIONS_MAX`] of them, and no others.
    pub fn set_invitations(&mut self, invitations: Vec<Invitation>) {
        let ours = self.identity.public();
        let invited = |invitation: Invitation| Invited { mac1_key: invitation.secret.mac1_key(&ours), invitation };
        self.invited = invitations.into_iter().take(INVITATIONS_MAX).map(invited).collect();
    }

    /// Judges an initiation whose mac1 is none of [`Responder::on_initiation`]'s.
    pub fn on_enrolment(
        &mut self,
        now: Time,
        datagram: &[u8],
        from: SocketAddr,
        index: HandshakeIndex,
        rng: &mut dyn Random,
    ) -> EnrolmentVerdict {
        let (Ok(bytes), Ok(initiation)) = (datagram.try_into(), Initiation::decode(datagram)) else {
            return EnrolmentVerdict::Drop(HandshakeDrop::Malformed);
        };
        let known = self.invited.iter().find(|invited| invited.mac1_key.verify(datagram, initiation.mac1));
        let Some(Invitation { id, secret, bound }) = known.map(|invited| invited.invitation.clone()) else {
            return EnrolmentVerdict::Drop(HandshakeDrop::Mac1);
        };
        match self.admit(now, bytes, &initiation, from, rng) {
            Some(super::Verdict::Cookie(cookie)) => return EnrolmentVerdict::Cookie(cookie),
            Some(super::Verdict::Drop(reason)) => return EnrolmentVerdict::Drop(reason),
            Some(super::Verdict::Accept(_)) | None => {}
        }
        let mut sender = None;
        let mut lookup = |key: &PublicKey| {
            sender = Some(*key);
            (bound == Some(*key)).then(|| Known::from(secret.psk()))
        };
        let verdict = match (self.answer(noise::ENROLMENT, &initiation, index, &mut lookup, rng), sender) {
            (Ok((accepted, _)), _) => EnrolmentVerdict::Answer(accepted.response),
            (Err(HandshakeDrop::UnknownKey), Some(key)) if bound.is_none() => EnrolmentVerdict::Proven(id, key),
            (Err(reason), _) => return EnrolmentVerdict::Drop(reason),
        };
        // Nothing is kept of it: its repetition is answered once it is bound, and where the answer is lost.
        self.forget(bytes);
        verdict
    }
}
