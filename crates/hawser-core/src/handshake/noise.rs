//! The Noise handshake itself: `snow`, with randomness that the caller gave.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random as SnowRandom};
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::identity::{Identity, Psk, PublicKey};
use crate::units::Random;
use crate::wire::handshake::KEY_LEN;

/// The pattern and the primitives (Noise revision 34, sections 7.5 and 9).
const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// Binds the protocol and its version, where a session is to begin.
pub(super) const SESSION: &[u8] = b"hawser 1";
/// The same where a key is to be enrolled.
pub(super) const ENROLMENT: &[u8] = b"hawser 1 enrolment";
/// Where the pattern mixes in the pre-shared key.
const PSK_LOCATION: u8 = 2;

/// Why there is no handshake: `snow`'s reason.
type Result<T> = std::result::Result<T, snow::Error>;

/// An initiator's handshake with a fresh ephemeral key.
pub(super) fn initiator(
    identity: &Identity,
    peer: &PublicKey,
    psk: &Psk,
    prologue: &'static [u8],
    rng: &mut dyn Random,
) -> Result<HandshakeState> {
    builder(prologue, rng)?
        .local_private_key(identity.private())?
        .remote_public_key(&peer.0)?
        .psk(PSK_LOCATION, psk.bytes())?
        .build_initiator()
}

/// A responder's handshake with a fresh ephemeral key. Its pre-shared key follows with [`set_psk`],
/// once the first message has told who the initiator is.
pub(super) fn responder(identity: &Identity, prologue: &'static [u8], rng: &mut dyn Random) -> Result<HandshakeState> {
    builder(prologue, rng)?.local_private_key(identity.private())?.build_responder()
}

/// Sets the pre-shared key of the initiator that the first message named.
pub(super) fn set_psk(state: &mut HandshakeState, psk: &Psk) -> Result<()> {
    state.set_psk(usize::from(PSK_LOCATION), psk.bytes())
}

/// The initiator's public key, once its first message was read.
pub(super) fn initiator_key(state: &HandshakeState) -> Option<PublicKey> {
    state.get_remote_static()?.try_into().ok().map(PublicKey)
}

fn builder(prologue: &'static [u8], rng: &mut dyn Random) -> Result<Builder<'static>> {
    let mut ephemeral = Zeroizing::new([0; KEY_LEN]);
    rng.fill(&mut *ephemeral);
    Builder::with_resolver(PATTERN.parse()?, Box::new(Resolver { ephemeral })).prologue(prologue)
}

/// `snow`'s own primitives, and an ephemeral key that was drawn beforehand.
struct Resolver {
    ephemeral: Zeroizing<[u8; KEY_LEN]>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn SnowRandom>> {
        Some(Box::new(DrawnOnce(Some(self.ephemeral.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// Gives its bytes once; a second draw, or one of another length, fails.
struct DrawnOnce(Option<Zeroizing<[u8; KEY_LEN]>>);

impl SnowRandom for DrawnOnce {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<()> {
        let drawn = self.0.take().filter(|drawn| drawn.len() == out.len()).ok_or(snow::Error::Rng)?;
        out.copy_from_slice(&*drawn);
        Ok(())
    }
}
