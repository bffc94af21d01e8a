//! An attacker in the middle changes one bit.

use super::*;

/// The bits before mac2, which an initiation's receiver looks at under load only.
const INITIATION_BITS: usize = (INITIATION_LEN - 16) * 8;

fn flipped(message: &[u8], bit: usize) -> Vec<u8> {
    let mut message = message.to_vec();
    message[bit / 8] ^= 1 << (bit % 8);
    message
}

#[test]
fn every_flipped_bit_of_an_initiation_is_refused_and_changes_nothing() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    for bit in 0..INITIATION_BITS {
        let verdict = pair.judge(NOW, &flipped(&message, bit), address(1));
        assert!(matches!(verdict, Verdict::Drop(_)), "bit {bit}: {verdict:?}");
    }
    let accepted = pair.accept(&message);
    assert!(initiator.on_response(&accepted.response).is_ok());
}

#[test]
fn every_flipped_bit_of_noise_under_a_right_mac1_is_refused() {
    // mac1 only says that the sender knows the public key: an attacker makes it anew.
    let mut pair = Pair::new(both(), both());
    let (_, message) = pair.start();
    let key = mac::Mac1Key::to(&pair.remote);
    // What is flipped in the clear ephemeral key's top bit, RFC 7748 section 5 has the curve ignore;
    // the transcript does not.
    for (nth, bit) in (5 * 8..(5 + 120) * 8).enumerate() {
        let mut forged: [u8; INITIATION_LEN] = flipped(&message, bit).try_into().expect("same length");
        key.sign(&mut forged);
        let verdict = pair.judge(NOW + std::time::Duration::from_secs(nth as u64), &forged, address(1));
        assert!(matches!(verdict, Verdict::Drop(HandshakeDrop::Noise)), "bit {bit}: {verdict:?}");
    }
}

#[test]
fn every_flipped_bit_of_a_response_is_refused_and_changes_nothing() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let accepted = pair.accept(&message);
    let key = mac::Mac1Key::to(&pair.local.public());
    for bit in 0..accepted.response.len() * 8 {
        let mut forged = flipped(&accepted.response, bit);
        assert!(initiator.on_response(&forged).is_err(), "bit {bit}");
        if (9 * 8..(9 + 72) * 8).contains(&bit) {
            key.sign(&mut forged);
            let refused = initiator.on_response(&forged);
            assert!(matches!(refused, Err(HandshakeError::Noise(_))), "bit {bit}: {refused:?}");
        }
    }
    let established = initiator.on_response(&accepted.response).expect("the right response");
    assert!(carries(&established.keys, &accepted.established.keys));
}

#[test]
fn offers_cannot_be_changed_in_flight() {
    // The payload is the 24 sealed bytes before the tag and the macs: byte 2 holds the ciphers.
    let mut pair = Pair::new(both(), both());
    let (_, message) = pair.start();
    let payload_at = INITIATION_LEN - 2 * 16 - 16 - Offer::LEN;
    for byte in payload_at..payload_at + Offer::LEN {
        let mut downgraded = message;
        downgraded[byte] ^= 1;
        mac::Mac1Key::to(&pair.remote).sign(&mut downgraded);
        let verdict = pair.judge(NOW, &downgraded, address(1));
        assert!(matches!(verdict, Verdict::Drop(HandshakeDrop::Noise)), "byte {byte}: {verdict:?}");
    }
}

#[test]
fn a_peer_that_chooses_another_cipher_than_the_best_is_refused() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    // A responder with the right keys that answers with its second best.
    let remote = Identity::new([2; 32]);
    let mut state = noise::responder(&remote, noise::SESSION, pair.rng.as_mut()).expect("a state");
    let mut payload = [0; Offer::LEN];
    let noise_part = crate::wire::handshake::Initiation::decode(&message).expect("an initiation").noise;
    state.read_message(noise_part, &mut payload).expect("the right key");
    noise::set_psk(&mut state, &Psk::new([3; 32])).expect("a slot");
    let mut bytes = [0; crate::wire::handshake::RESPONSE_NOISE_LEN];
    state.write_message(&both().encode(Some(CHACHA)), &mut bytes).expect("room");
    let mut response = crate::wire::handshake::Response::encode(HandshakeIndex(1), HandshakeIndex(11), &bytes);
    mac::Mac1Key::to(&pair.local.public()).sign(&mut response);
    let refused = initiator.on_response(&response);
    assert!(matches!(refused, Err(HandshakeError::Cipher)), "{refused:?}");
}

#[test]
fn random_and_cut_messages_are_refused() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let response = pair.accept(&message).response;
    let mut rng = Seeded::new(9);
    for len in 0..200 {
        let mut random = vec![0; len];
        rng.fill(&mut random);
        let cut = &message[..len.min(INITIATION_LEN - 1)];
        for bad in [&random[..], cut] {
            assert!(matches!(pair.judge(NOW, bad, address(1)), Verdict::Drop(_)));
        }
        for bad in [&random[..], cut, &response[..len.min(response.len() - 1)]] {
            assert!(initiator.on_response(bad).is_err() && initiator.on_cookie(bad).is_err());
        }
    }
    assert!(initiator.on_response(&response).is_ok());
}
