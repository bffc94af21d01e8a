//! The handshake between honest sides, and between strangers.

use std::time::Duration;

use super::*;
use crate::units::LinkId;

#[test]
fn both_sides_agree_for_every_pair_of_offers() {
    let sets: [&[Cipher]; 6] =
        [&[AES, CHACHA], &[AES], &[CHACHA], &[BLAKE2S], &[AES, CHACHA, BLAKE2S], &[CHACHA, BLAKE2S]];
    let wishes = [Protection::Encrypt, Protection::Authenticate];
    let offers = || sets.into_iter().flat_map(|set| wishes.map(|wish| offer(wish, set)));
    let mut agreed = 0;
    for (ours, theirs) in offers().flat_map(|ours| offers().map(move |theirs| (ours, theirs))) {
        let mut pair = Pair::new(ours, theirs);
        let Some((protection, cipher)) = agree(&ours, &theirs) else {
            let (_, message) = pair.start();
            let verdict = pair.judge(NOW, &message, address(1));
            assert!(matches!(verdict, Verdict::Drop(HandshakeDrop::NoCommonCipher)), "{verdict:?}");
            continue;
        };
        let (local, remote) = pair.finish();
        for (side, peer_offer) in [(&local, theirs), (&remote, ours)] {
            assert_eq!((side.protection, side.cipher), (protection, cipher));
            assert_eq!(side.peer_offer, peer_offer);
            assert!(side.cipher.can(side.protection));
        }
        assert!(carries(&local.keys, &remote.keys) && carries(&remote.keys, &local.keys));
        assert!(!carries(&local.keys, &local.keys), "the directions have keys of their own");
        agreed += 1;
    }
    assert_eq!(agreed, 89, "of 144 pairs, 55 have no cipher in common that does what is wished");
}

#[test]
fn the_stricter_protection_wins_and_blake2s_never_serves_one_who_wants_encryption() {
    const ENCRYPT: Protection = Protection::Encrypt;
    const AUTHENTICATE: Protection = Protection::Authenticate;
    // What `cipher` = auto (with AES instructions and without), aes, chacha and blake2s offer.
    let (auto, plain): (&[Cipher], &[Cipher]) = (&[AES, CHACHA], &[CHACHA]);
    let (auto_too, plain_too): (&[Cipher], &[Cipher]) = (&[AES, CHACHA, BLAKE2S], &[CHACHA, BLAKE2S]);
    let (aes, chacha, blake2s): (&[Cipher], &[Cipher], &[Cipher]) = (&[AES], &[CHACHA], &[BLAKE2S]);
    for (one, other, agreed) in [
        // Both encrypt.
        ((ENCRYPT, auto), (ENCRYPT, auto), Some((ENCRYPT, AES))),
        ((ENCRYPT, auto), (ENCRYPT, plain), Some((ENCRYPT, CHACHA))),
        ((ENCRYPT, auto), (ENCRYPT, aes), Some((ENCRYPT, AES))),
        ((ENCRYPT, auto), (ENCRYPT, chacha), Some((ENCRYPT, CHACHA))),
        ((ENCRYPT, aes), (ENCRYPT, plain), None),
        ((ENCRYPT, aes), (ENCRYPT, chacha), None),
        // One of them does.
        ((ENCRYPT, auto), (AUTHENTICATE, auto_too), Some((ENCRYPT, AES))),
        ((ENCRYPT, auto), (AUTHENTICATE, plain_too), Some((ENCRYPT, CHACHA))),
        ((ENCRYPT, auto), (AUTHENTICATE, aes), Some((ENCRYPT, AES))),
        ((ENCRYPT, auto), (AUTHENTICATE, chacha), Some((ENCRYPT, CHACHA))),
        ((ENCRYPT, auto), (AUTHENTICATE, blake2s), None),
        ((ENCRYPT, plain), (AUTHENTICATE, blake2s), None),
        ((ENCRYPT, aes), (AUTHENTICATE, plain_too), None),
        ((ENCRYPT, aes), (AUTHENTICATE, blake2s), None),
        ((ENCRYPT, chacha), (AUTHENTICATE, blake2s), None),
        // A peer that offers what it must not.
        ((ENCRYPT, blake2s), (AUTHENTICATE, auto_too), None),
        ((ENCRYPT, auto_too), (AUTHENTICATE, blake2s), None),
        // Neither does.
        ((AUTHENTICATE, auto_too), (AUTHENTICATE, auto_too), Some((AUTHENTICATE, AES))),
        ((AUTHENTICATE, auto_too), (AUTHENTICATE, plain_too), Some((AUTHENTICATE, CHACHA))),
        ((AUTHENTICATE, auto_too), (AUTHENTICATE, blake2s), Some((AUTHENTICATE, BLAKE2S))),
        ((AUTHENTICATE, plain_too), (AUTHENTICATE, blake2s), Some((AUTHENTICATE, BLAKE2S))),
        ((AUTHENTICATE, blake2s), (AUTHENTICATE, blake2s), Some((AUTHENTICATE, BLAKE2S))),
        ((AUTHENTICATE, aes), (AUTHENTICATE, blake2s), None),
        ((AUTHENTICATE, chacha), (AUTHENTICATE, blake2s), None),
    ] {
        let (ours, theirs) = (offer(one.0, one.1), offer(other.0, other.1));
        assert_eq!(agree(&ours, &theirs), agreed, "{one:?} {other:?}");
        assert_eq!(agree(&theirs, &ours), agreed, "{other:?} {one:?}");
    }
}

#[test]
fn every_handshake_makes_other_keys() {
    let mut pair = Pair::new(both(), both());
    let (first, _) = pair.finish();
    let (_, second) = pair.finish();
    assert!(!carries(&first.keys, &second.keys));
    assert_ne!(first.keys.send.label(PathId(1)), second.keys.recv.label(PathId(1)));
}

#[test]
fn labels_match_and_differ_by_path_and_direction() {
    let (local, remote) = Pair::new(both(), both()).finish();
    for path in (0..50).map(PathId) {
        assert_eq!(local.keys.send.label(path), remote.keys.recv.label(path));
        assert_eq!(remote.keys.send.label(path), local.keys.recv.label(path));
        assert_ne!(local.keys.send.label(path), remote.keys.send.label(path));
        assert_ne!(local.keys.send.label(path), local.keys.send.label(PathId(path.0 + 1)));
    }
}

#[test]
fn an_unknown_key_gets_nothing() {
    let mut pair = Pair::new(both(), both());
    pair.local = Identity::new([9; 32]);
    let (_, message) = pair.start();
    let mut stranger = |_: &PublicKey| None;
    let rng = &mut Seeded::new(5);
    let verdict = pair.responder.on_initiation(NOW, &message, address(1), HandshakeIndex(1), &mut stranger, rng);
    assert!(matches!(verdict, Verdict::Drop(HandshakeDrop::UnknownKey)), "{verdict:?}");
}

#[test]
fn who_does_not_know_our_key_gets_nothing() {
    let mut pair = Pair::new(both(), both());
    pair.remote = Identity::new([8; 32]).public();
    let (_, message) = pair.start();
    let verdict = pair.judge(NOW, &message, address(1));
    assert!(matches!(verdict, Verdict::Drop(HandshakeDrop::Mac1)), "{verdict:?}");
}

#[test]
fn a_wrong_pre_shared_key_is_found_by_the_initiator() {
    let mut pair = Pair::new(both(), both());
    pair.psk = Psk::default();
    let (mut initiator, message) = pair.start();
    let accepted = pair.accept(&message);
    assert!(matches!(initiator.on_response(&accepted.response), Err(HandshakeError::Noise(_))));
}

/// What an initiator says by one way within `time`, in rounds of half a second: each initiation once, and when it was
/// said first.
fn said_within(
    pair: &mut Pair,
    initiator: &mut Initiator,
    way: Way,
    time: Duration,
) -> Vec<(Duration, [u8; INITIATION_LEN])> {
    let (mut said, mut after) = (Vec::<(Duration, [u8; INITIATION_LEN])>::new(), Duration::ZERO);
    while after < time {
        initiator.begin_round(NOW + after);
        let message = initiator.initiation(NOW + after, way, HandshakeIndex(11), pair.rng.as_mut());
        let message = message.expect("a message");
        if said.iter().all(|(_, known)| *known != message) {
            said.push((after, message));
        }
        after += Duration::from_millis(500);
    }
    said
}

/// An initiator that has said nothing yet.
fn silent(pair: &Pair) -> Initiator {
    Initiator::new(&pair.local, &pair.remote, pair.psk.clone(), pair.local_offer, Memory::default())
}

#[test]
fn an_initiation_is_repeated_byte_for_byte_and_a_response_to_any_of_the_last_minute_is_taken_once() {
    for answered in 0..4 {
        let mut pair = Pair::new(both(), both());
        let mut initiator = silent(&pair);
        let said = said_within(&mut pair, &mut initiator, Way::ONLY, Duration::from_secs(60));
        let seconds: Vec<_> = said.iter().map(|(after, _)| after.as_secs()).collect();
        assert_eq!(seconds, [0, 5, 15, 35]);
        let [late, other] = [answered, 3 - answered].map(|which| pair.accept(&said[which].1));
        let established = initiator.on_response(&late.response).expect("an answer within a minute");
        assert!(carries(&established.keys, &late.established.keys));
        let again = initiator.on_response(&other.response);
        assert!(matches!(again, Err(HandshakeError::NotPending)), "another's answer comes too late: {again:?}");
    }
}

#[test]
fn an_initiation_of_a_minute_ago_is_forgotten_and_another_made() {
    let mut pair = Pair::new(both(), both());
    let mut initiator = silent(&pair);
    let said = said_within(&mut pair, &mut initiator, Way::ONLY, Duration::from_secs(301));
    let forgotten = pair.accept(&said[0].1);
    assert!(initiator.on_response(&forgotten.response).is_err());
    let seconds: Vec<_> = said.iter().map(|(after, _)| after.as_secs()).collect();
    assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] <= 30), "made at {seconds:?}");
    let newest = pair.accept(&said[said.len() - 1].1);
    assert!(initiator.on_response(&newest.response).is_ok());
}

#[test]
fn ever_new_cookies_are_said_and_push_out_none_of_a_ways_first_three_nor_take_another_ways_place() {
    let mut pair = Pair::new(both(), both());
    let mut initiator = silent(&pair);
    let way = |link: u16| Way { link: LinkId(link), remote: address(9) };
    let (mut said, mut after) = (Vec::new(), Duration::ZERO);
    for round in 0..60 {
        let message = said_within(&mut pair, &mut initiator, way(0), Duration::from_millis(1))[0].1;
        if said.last() != Some(&message) {
            said.push(message);
        }
        // A secret of its own makes each of them.
        let (at, rng) = (NOW + after, pair.rng.as_mut());
        let cookie = pair.responder.cookie(at, &message, address(round), rng).expect("a cookie");
        initiator.on_cookie(&cookie).expect("it opens");
        after += Duration::from_secs(121);
    }
    assert_eq!(said.len(), 60, "who is under load answers nothing without its newest");
    for link in 1..=60 {
        assert!(initiator.initiation(NOW, way(link), HandshakeIndex(12), pair.rng.as_mut()).is_ok(), "link {link}");
    }
    assert!(initiator.on_response(&pair.accept(&said[58]).response).is_err(), "one after them gave way to the last");
    let third = pair.accept(&said[2]);
    assert!(initiator.on_response(&third.response).is_ok(), "the third is still waited for");
}

#[test]
fn where_all_places_are_taken_a_new_way_gets_the_oldest_of_a_way_that_has_others() {
    let mut pair = Pair::new(both(), both());
    let mut initiator = silent(&pair);
    let way = |link: u16| Way { link: LinkId(link), remote: address(1) };
    let said: Vec<_> =
        (0..16).map(|link| said_within(&mut pair, &mut initiator, way(link), Duration::from_secs(36))).collect();
    assert!(said.iter().all(|of_way| of_way.len() == 4));
    let now = NOW + Duration::from_secs(36);
    let mut by = |initiator: &mut Initiator, link: u16| {
        initiator.initiation(now, way(link), HandshakeIndex(12), pair.rng.as_mut())
    };
    let refused = (16..1_000).find(|link| by(&mut initiator, *link).is_err());
    assert_eq!(refused, Some(64), "each of 64 ways has one");
    let newest = said[7][3].1;
    assert_eq!(by(&mut initiator, 7).ok(), Some(newest), "the latest of each way is left, and repeated");
    let accepted = pair.accept(&newest);
    assert!(initiator.on_response(&accepted.response).is_ok());
}

#[test]
fn initiations_by_two_links_have_no_byte_in_common_but_their_type() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, _) = pair.start();
    initiator.begin_round(NOW);
    let mut by = |link: u16, index: u32| {
        let way = Way { link: LinkId(link), remote: address(1) };
        initiator.initiation(NOW, way, HandshakeIndex(index), pair.rng.as_mut()).expect("a message")
    };
    let (one, other) = (by(0, 0x0102_0304), by(1, 0x0506_0708));
    // Everything between the type and the cookie's mac, which nobody asked for.
    let runs = one[1..141].windows(4).filter(|run| other[1..141].windows(4).any(|theirs| theirs == *run));
    assert_eq!(runs.count(), 0, "{one:x?} {other:x?}");
    let (one, other) = (pair.accept(&one), pair.accept(&other));
    assert_eq!(one.count, other.count, "both are of one round");
    assert_ne!(one.response[5..9], other.response[5..9], "nor do the answers");
}

#[test]
fn a_cookie_goes_by_the_way_that_it_came_for() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, _) = pair.start();
    let way = |link: u16| Way { link: LinkId(link), remote: address(9) };
    let by = |initiator: &mut Initiator, link: u16, rng: &mut dyn Random| {
        initiator.initiation(NOW, way(link), HandshakeIndex(u32::from(link)), rng).expect("a message")
    };
    for link in [1, 2] {
        let message = by(&mut initiator, link, pair.rng.as_mut());
        let from = address(link as u8);
        let cookie = pair.responder.cookie(NOW, &message, from, pair.rng.as_mut()).expect("a cookie");
        initiator.on_cookie(&cookie).expect("our cookie");
    }
    for link in [1, 2] {
        let message = by(&mut initiator, link, pair.rng.as_mut());
        let Verdict::Accept(accepted) = pair.judge(NOW, &message, address(link as u8)) else { panic!("not accepted") };
        assert!(accepted.fresh, "link {link} has its own cookie");
    }
}

#[test]
fn a_wrong_response_leaves_the_initiator_able_to_take_the_right_one() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let right = pair.accept(&message);

    // Made by a stranger who knows every public key and saw the initiation, with a right mac1.
    let mut forged = right.response;
    forged[9..9 + 72].fill(0x42);
    mac::Mac1Key::to(&pair.local.public()).sign(&mut forged);
    // The right answer to another handshake of the same two.
    let (_, other_message) = pair.start();
    let other = pair.accept(&other_message).response;

    for wrong in [&forged[..], &other, &right.response[..112], &message, &[]] {
        assert!(initiator.on_response(wrong).is_err());
    }
    let established = initiator.on_response(&right.response).expect("the right response");
    assert!(carries(&right.established.keys, &established.keys));
}

#[test]
fn an_initiation_is_known_again_by_its_id() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let again = pair.again(&mut initiator);
    let id = pair.responder.initiation_id(&message);
    assert!(id.is_some() && id == pair.responder.initiation_id(&message.clone()));
    assert_ne!(id, pair.responder.initiation_id(&again));
    let mut changed = message;
    changed[50] ^= 1;
    assert_eq!(pair.responder.initiation_id(&changed), None, "a copied mac1 is no id");
}
