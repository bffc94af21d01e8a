//! What somebody gains who stole a portal's private key.

use super::*;

/// A datagram of the local portal, sealed.
fn sealed(keys: &TransportKeys) -> Vec<u8> {
    let mut datagram = plain(b"an inner packet");
    keys.send.seal(PathId(1), PacketNumber(1), &mut datagram).expect("room");
    datagram
}

#[test]
fn a_stolen_key_opens_nothing_that_was_recorded_before() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, recorded) = pair.start();
    let accepted = pair.accept(&recorded);
    let local = initiator.on_response(&accepted.response).expect("the right response");
    let datagram = sealed(&local.keys);
    // Both private keys, the pre-shared one and all that was said: only the ephemeral keys are gone.
    let mut thief = Pair::new(both(), both());
    thief.rng = Box::new(Seeded::new(2));
    let theirs = thief.accept(&recorded).established;
    let (mut again, _) = thief.start();
    assert_eq!(theirs.keys.recv.open(PathId(1), PacketNumber(1), &mut datagram.clone()), Err(OpenError::Unauthentic));
    assert!(again.on_response(&accepted.response).is_err());
    let opened =
        accepted.established.keys.recv.open(PathId(1), PacketNumber(1), &mut datagram.clone()).map(<[u8]>::to_vec);
    assert_eq!(opened, Ok(b"an inner packet".to_vec()), "it was the right datagram");
}

#[test]
fn who_has_a_local_portals_key_cannot_play_the_remote_portal_to_it() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let mut thief = Responder::new(pair.local.clone(), both());
    let mut signed = message;
    mac::Mac1Key::to(&pair.local.public()).sign(&mut signed);
    let (known, psk) = (pair.local.public(), pair.psk.clone());
    for (said, reason) in [(message, HandshakeDrop::Mac1), (signed, HandshakeDrop::Noise)] {
        let mut lookup = |key: &PublicKey| (*key == known).then(|| psk.clone().into());
        let index = HandshakeIndex(3);
        let verdict = thief.on_initiation(NOW, &said, address(1), index, &mut lookup, pair.rng.as_mut());
        let Verdict::Drop(dropped) = verdict else { panic!("not dropped: {verdict:?}") };
        assert_eq!(std::mem::discriminant(&dropped), std::mem::discriminant(&reason));
    }
    let right = pair.accept(&message);
    assert!(initiator.on_response(&right.response).is_ok(), "the remote portal itself can");
}
