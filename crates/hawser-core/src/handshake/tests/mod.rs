//! Both sides against each other, and an attacker between them.

mod enrolment;
mod exchange;
mod flood;
mod golden;
mod key_log;
mod seal;
mod stolen;
mod tamper;

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::units::{PacketNumber, PathId, Random, Time};
use crate::wire::handshake::{HandshakeIndex, INITIATION_LEN};
use crate::wire::{Cipher, CipherSet, DATA_HEADER_LEN, InstanceId, Offer, Protection, TAG_LEN};

/// Randomness by a seed.
pub(super) struct Seeded(ChaCha20Rng);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Seeded(ChaCha20Rng::seed_from_u64(seed))
    }
}

impl Random for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

const NOW: Time = Time::from_nanos(1_000_000_000);
const AES: Cipher = Cipher::Aes128Gcm;
const CHACHA: Cipher = Cipher::ChaCha20Poly1305;
const BLAKE2S: Cipher = Cipher::Blake2s;

fn offer(protection: Protection, ciphers: &[Cipher]) -> Offer {
    Offer { protection, ciphers: CipherSet::of(ciphers), instance: InstanceId(7) }
}

fn both() -> Offer {
    offer(Protection::Encrypt, &[AES, CHACHA])
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 4920))
}

/// A local and a remote portal that know each other.
struct Pair {
    local: Identity,
    psk: Psk,
    local_offer: Offer,
    responder: Responder,
    remote: PublicKey,
    rng: Box<dyn Random>,
}

impl Pair {
    fn new(local_offer: Offer, remote_offer: Offer) -> Self {
        let remote = Identity::new([2; 32]);
        Pair {
            local: Identity::new([1; 32]),
            psk: Psk::new([3; 32]),
            local_offer,
            remote: remote.public(),
            responder: Responder::new(remote, remote_offer),
            rng: Box::new(Seeded::new(1)),
        }
    }

    fn start(&mut self) -> (Initiator, [u8; INITIATION_LEN]) {
        let index = HandshakeIndex(11);
        let (psk, offer) = (self.psk.clone(), self.local_offer);
        Initiator::start(&self.local, &self.remote, psk, offer, index, None, self.rng.as_mut()).expect("a message")
    }

    /// Another initiation, of the next round.
    fn again(&mut self, initiator: &mut Initiator) -> [u8; INITIATION_LEN] {
        self.again_at(NOW, initiator)
    }

    fn again_at(&mut self, now: Time, initiator: &mut Initiator) -> [u8; INITIATION_LEN] {
        initiator.begin_round(now);
        initiator.another(now, Way::ONLY, HandshakeIndex(11), self.rng.as_mut()).expect("a message")
    }

    /// The remote portal's verdict; it knows the local one only.
    fn judge(&mut self, now: Time, message: &[u8], from: SocketAddr) -> Verdict {
        let (known, psk) = (self.local.public(), Psk::new([3; 32]));
        let mut lookup = |key: &PublicKey| (*key == known).then(|| psk.clone().into());
        self.responder.on_initiation(now, message, from, HandshakeIndex(22), &mut lookup, self.rng.as_mut())
    }

    fn accept(&mut self, message: &[u8]) -> Accepted {
        match self.judge(NOW, message, address(1)) {
            Verdict::Accept(accepted) => *accepted,
            other => panic!("not accepted: {other:?}"),
        }
    }

    /// A whole handshake: the keys of the local portal, then of the remote one.
    fn finish(&mut self) -> (Established, Established) {
        let (mut initiator, message) = self.start();
        let accepted = self.accept(&message);
        let established = initiator.on_response(&accepted.response).expect("the right response");
        (established, accepted.established)
    }
}

/// Header, frames and room for the tag.
fn plain(frames: &[u8]) -> Vec<u8> {
    [&[0x40; DATA_HEADER_LEN], frames, &[0; TAG_LEN]].concat()
}

/// Whether what `from` seals opens at `to`, in place.
fn carries(from: &TransportKeys, to: &TransportKeys) -> bool {
    let (path, number) = (PathId(5), PacketNumber(1 << 40));
    let mut datagram = plain(b"frames");
    from.send.seal(path, number, &mut datagram).expect("room");
    to.recv.open(path, number, &mut datagram).is_ok_and(|frames| frames == b"frames")
}
