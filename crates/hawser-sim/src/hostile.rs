//! What anybody on the internet can make: noise, and handshakes of nobody.

use crate::random::Seeded;
use hawser_core::handshake::{Identity, Initiator, Psk, PublicKey};
use hawser_core::units::Random;
use hawser_core::wire::Offer;
use hawser_core::wire::handshake::HandshakeIndex;

/// Bytes of no meaning, mostly with the first byte of a kind of datagram. May be empty.
pub fn noise(rng: &mut Seeded) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(200) as usize];
    rng.fill(&mut bytes);
    if let Some(first) = bytes.first_mut() {
        *first = [0x10, 0x20, 0x30, 0x40, *first][rng.below(5) as usize];
    }
    bytes
}

/// An initiation of somebody whom the portal with the key `to` does not know.
pub fn initiation(
    who: &Identity,
    to: &PublicKey,
    offer: impl FnOnce(u64) -> Offer,
    rng: &mut Seeded,
) -> Option<Vec<u8>> {
    let index = HandshakeIndex(rng.next_u64() as u32);
    let instance = offer(rng.next_u64());
    let started = Initiator::start(who, to, Psk::default(), instance, index, None, rng);
    started.ok().map(|(_, message)| message.to_vec())
}
