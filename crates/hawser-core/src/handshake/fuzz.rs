//! What the fuzz target `handshake` of `fuzz/` and the test `fuzz_smoke` run on any bytes: both sides
//! take whatever comes, accept nothing, and still finish the handshake.

use std::sync::LazyLock;

use super::mac::Mac1Key;
use super::{Identity, Initiator, Psk, PublicKey, Responder, Verdict};
use crate::units::{Random, Time};
use crate::wire::handshake::{HandshakeIndex, INITIATION_LEN, RESPONSE_LEN};
use crate::wire::{CipherSet, InstanceId, Offer, Protection};

/// No randomness: what a fuzzer finds must happen again.
struct Counting(u8);

impl Random for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 = self.0.wrapping_add(1);
        bytes.fill(self.0);
    }
}

/// Whom the responder knows, and itself: keys that no input holds.
static SIDES: LazyLock<(Identity, Identity)> = LazyLock::new(|| (Identity::new([0xe1; 32]), Identity::new([0xe2; 32])));

/// Any bytes as a message to either side: as they are, and with a right mac1 (anybody can make one).
pub fn handshake(datagram: &[u8]) {
    let (local, remote) = &*SIDES;
    let ciphers = CipherSet::for_machine(true);
    let offer = Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(1) };
    let mut rng = Counting(0);
    let (peer, index) = (remote.public(), HandshakeIndex(1));
    let (mut initiator, initiation) =
        Initiator::start(local, &peer, Psk::default(), offer, index, None, &mut rng).expect("a message");
    let mut responder = Responder::new(remote.clone(), offer);
    let mut judge = |message: &[u8]| {
        let mut lookup = |key: &PublicKey| (*key == local.public()).then(|| Psk::default().into());
        let from = ([192, 0, 2, 1], 4920).into();
        responder.on_initiation(Time::ZERO, message, from, index, &mut lookup, &mut rng)
    };

    let mut signed = datagram.to_vec();
    if datagram.len() == INITIATION_LEN {
        Mac1Key::to(&peer).sign(&mut signed);
    } else if datagram.len() == RESPONSE_LEN {
        Mac1Key::to(&local.public()).sign(&mut signed);
    }
    for hostile in [datagram, &signed] {
        let verdict = judge(hostile);
        assert!(matches!(verdict, Verdict::Drop(_)), "{verdict:?}");
        assert!(initiator.on_response(hostile).is_err());
        assert!(initiator.on_cookie(hostile).is_err());
    }
    let Verdict::Accept(accepted) = judge(&initiation) else { panic!("the right initiation is refused") };
    initiator.on_response(&accepted.response).expect("the right response");
}
