//! Who may send to whom: what the handshake of hawser-core is given.
//!
//! 1. [`Trust`]: keys of both ends, or a secret that they share. 2. [`Trust::calls`]: what a sender begins a handshake
//!    with.
//! 3. [`Trust::answers`] and [`Trust::knows`]: what a receiver answers with, and whom.

use blake2::{Blake2s256, Digest as _};
use hawser_core::handshake::{Identity, Known, Psk, PublicKey};
use hawser_core::units::Random;
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use zeroize::Zeroizing;

/// Bytes of every key and secret.
pub const KEY_LEN: usize = 32;
/// What makes the psk: a portal's handshake has another.
const PSK: &[u8] = b"hawser bulk 1 psk";
/// What makes a receiver's private key of a secret.
const RECEIVER: &[u8] = b"hawser bulk 1 receiver";

/// Who may send to whom. No default; erased when dropped.
#[derive(Clone)]
pub enum Trust {
    /// Both ends know 32 secret bytes.
    Secret(Zeroizing<[u8; KEY_LEN]>),
    /// Each end has a key, and knows the other's public one.
    Keys {
        /// The own one.
        own: Identity,
        /// A sender's one receiver, or who may send.
        peers: Vec<PublicKey>,
    },
}

impl Trust {
    /// Of a secret.
    pub fn secret(secret: [u8; KEY_LEN]) -> Trust {
        Trust::Secret(Zeroizing::new(secret))
    }

    /// Step 2: a sender's identity, the receiver's key, and the psk; none without a receiver.
    pub fn calls(&self, rng: &mut dyn Random) -> Option<(Identity, PublicKey, Psk)> {
        match self {
            Trust::Secret(secret) => {
                let mut own = Zeroizing::new([0; KEY_LEN]);
                rng.fill(&mut *own);
                Some((Identity::new(*own), receiver_of(secret).public(), self.psk()))
            }
            Trust::Keys { own, peers } => Some((own.clone(), *peers.first()?, self.psk())),
        }
    }

    /// Step 3: a receiver's identity.
    pub fn answers(&self) -> Identity {
        match self {
            Trust::Secret(secret) => receiver_of(secret),
            Trust::Keys { own, .. } => own.clone(),
        }
    }

    /// Step 3: what a receiver knows of a sender; nothing of strangers. With a secret anybody is known, and proves it
    /// by the first datagram that opens.
    pub fn knows(&self, sender: &PublicKey) -> Option<Known> {
        match self {
            Trust::Keys { peers, .. } if !peers.contains(sender) => None,
            _ => Some(self.psk().into()),
        }
    }

    fn psk(&self) -> Psk {
        match self {
            Trust::Secret(secret) => Psk::new(hashed(PSK, &**secret)),
            Trust::Keys { .. } => Psk::new(hashed(PSK, &[])),
        }
    }
}

/// What both ends wish: data is always encrypted.
pub fn offer(has_aes: bool) -> Offer {
    Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(has_aes), instance: InstanceId(0) }
}

fn receiver_of(secret: &[u8; KEY_LEN]) -> Identity {
    Identity::new(hashed(RECEIVER, secret))
}

fn hashed(what: &[u8], secret: &[u8]) -> [u8; KEY_LEN] {
    Blake2s256::new().chain_update(what).chain_update(secret).finalize().into()
}

impl std::fmt::Debug for Trust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Trust::Secret(_)) { "Trust::Secret" } else { "Trust::Keys" })
    }
}
