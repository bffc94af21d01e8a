//! Too many initiations: cookies, and who gets through with them.

use std::time::Duration;

use super::*;

/// A second's worth of unasked initiations (`UNASKED`), and some more.
const FLOOD: usize = 60;

/// Puts the responder under load, and tells how many of the flood it worked on.
fn flood(pair: &mut Pair, now: Time) -> usize {
    let (_, message) = pair.start();
    let verdicts = (0..FLOOD).map(|_| pair.judge(now, &message, address(99)));
    verdicts.filter(|verdict| matches!(verdict, Verdict::Accept(_))).count()
}

fn cookie_for(pair: &mut Pair, now: Time, message: &[u8], from: SocketAddr) -> Vec<u8> {
    match pair.judge(now, message, from) {
        Verdict::Cookie(reply) => reply.to_vec(),
        other => panic!("no cookie: {other:?}"),
    }
}

#[test]
fn under_load_a_cookie_is_asked_for_and_opens_the_door() {
    let mut pair = Pair::new(both(), both());
    assert_eq!(flood(&mut pair, NOW), 50);
    let (mut initiator, message) = pair.start();
    let reply = cookie_for(&mut pair, NOW, &message, address(1));
    assert!(reply.len() < message.len(), "an answer is no amplifier");
    initiator.on_cookie(&reply).expect("our cookie");
    let with_cookie = pair.again(&mut initiator);
    let Verdict::Accept(accepted) = pair.judge(NOW, &with_cookie, address(1)) else { panic!("not accepted") };
    let established = initiator.on_response(&accepted.response).expect("the right response");
    assert!(carries(&established.keys, &accepted.established.keys));
}

#[test]
fn a_cookie_is_good_for_its_address_and_port_only() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (mut initiator, message) = pair.start();
    let reply = cookie_for(&mut pair, NOW, &message, address(1));
    initiator.on_cookie(&reply).expect("our cookie");
    let with_cookie = pair.again(&mut initiator);
    let other_port = SocketAddr::from(([192, 0, 2, 1], 4921));
    for spoofed in [address(2), other_port, SocketAddr::from(([0x2001, 0, 0, 0, 0, 0, 0, 1], 4920))] {
        cookie_for(&mut pair, NOW, &with_cookie, spoofed);
    }
    let mapped = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201], 4920));
    let verdict = pair.judge(NOW, &with_cookie, mapped);
    assert!(matches!(verdict, Verdict::Accept(_)), "an IPv4-mapped address is that address");
}

#[test]
fn a_cookie_ends_with_its_secret() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (mut initiator, message) = pair.start();
    initiator.on_cookie(&cookie_for(&mut pair, NOW, &message, address(1))).expect("our cookie");
    let later = NOW + Duration::from_secs(121);
    flood(&mut pair, later);
    let stale = pair.again(&mut initiator);
    let fresh = cookie_for(&mut pair, later, &stale, address(1));
    initiator.on_cookie(&fresh).expect("a new cookie");
    let message = pair.again(&mut initiator);
    assert!(matches!(pair.judge(later, &message, address(1)), Verdict::Accept(_)));
}

#[test]
fn every_flipped_bit_of_a_cookie_reply_is_refused_and_changes_nothing() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (mut initiator, message) = pair.start();
    let reply = cookie_for(&mut pair, NOW, &message, address(1));
    for bit in 0..reply.len() * 8 {
        let mut forged = reply.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert!(initiator.on_cookie(&forged).is_err(), "bit {bit}");
        assert_eq!(initiator.cookie(), None);
    }
    let (mut other, _) = pair.start();
    let refused = other.on_cookie(&reply);
    assert!(matches!(refused, Err(HandshakeError::Cookie)), "it answers another message: {refused:?}");
    initiator.on_cookie(&reply).expect("our cookie");
}

#[test]
fn every_flipped_bit_of_mac2_under_load_is_asked_again() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (mut initiator, message) = pair.start();
    initiator.on_cookie(&cookie_for(&mut pair, NOW, &message, address(1))).expect("our cookie");
    let with_cookie = pair.again(&mut initiator);
    for bit in (INITIATION_LEN - 16) * 8..INITIATION_LEN * 8 {
        let mut forged = with_cookie;
        forged[bit / 8] ^= 1 << (bit % 8);
        cookie_for(&mut pair, NOW, &forged, address(1));
    }
    assert!(matches!(pair.judge(NOW, &with_cookie, address(1)), Verdict::Accept(_)));
}

#[test]
fn one_address_has_no_more_than_its_share_and_others_have_theirs() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let through = |pair: &mut Pair, from: SocketAddr| {
        let (mut initiator, message) = pair.start();
        initiator.on_cookie(&cookie_for(pair, NOW, &message, from)).expect("our cookie");
        let mut next = |pair: &mut Pair| {
            let message = pair.again(&mut initiator);
            pair.judge(NOW, &message, from)
        };
        let verdicts = (0..30).map(|_| next(pair)).collect::<Vec<_>>();
        let accepted = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Accept(_))).count();
        let dropped = verdicts.iter().filter(|v| matches!(v, Verdict::Drop(HandshakeDrop::Share))).count();
        (accepted, dropped)
    };
    assert_eq!(through(&mut pair, address(1)), (10, 20));
    assert_eq!(through(&mut pair, address(2)), (10, 20));
}

#[test]
fn under_load_a_recording_takes_nothing_of_the_share() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (mut initiator, message) = pair.start();
    initiator.on_cookie(&cookie_for(&mut pair, NOW, &message, address(1))).expect("our cookie");
    let recorded = pair.again(&mut initiator);
    assert!(matches!(pair.judge(NOW, &recorded, address(1)), Verdict::Accept(_)));
    for _ in 0..100 {
        assert!(matches!(pair.judge(NOW, &recorded, address(1)), Verdict::Drop(HandshakeDrop::Again)));
    }
    let genuine = pair.again(&mut initiator);
    assert!(matches!(pair.judge(NOW, &genuine, address(1)), Verdict::Accept(_)));
}

#[test]
fn an_initiation_is_fresh_only_with_the_cookie_of_its_address_and_time() {
    let mut pair = Pair::new(both(), both());
    let (mut initiator, message) = pair.start();
    let first = pair.accept(&message);
    assert_eq!((first.fresh, first.count), (false, 0));
    let (rng, from) = (&mut Seeded::new(5), address(1));
    let cookie = pair.responder.cookie(NOW, &message, from, rng).expect("a cookie");
    initiator.on_cookie(&cookie).expect("our cookie");
    let fresh = pair.again(&mut initiator);
    let life = Duration::from_secs(120);
    for (now, from, is_fresh) in [(NOW, from, true), (NOW, address(2), false), (NOW + life, from, false)] {
        let Verdict::Accept(accepted) = pair.judge(now, &fresh, from) else { panic!("not accepted") };
        assert_eq!((accepted.fresh, accepted.count), (is_fresh, 1), "{from}");
    }
    assert_eq!(pair.responder.cookie(NOW, &message[1..], from, rng), None);
}

#[test]
fn a_wrong_mac1_is_no_load() {
    let mut pair = Pair::new(both(), both());
    let (_, message) = pair.start();
    let mut wrong = message;
    wrong[INITIATION_LEN - 32] ^= 1;
    for _ in 0..1000 {
        assert!(matches!(pair.judge(NOW, &wrong, address(1)), Verdict::Drop(HandshakeDrop::Mac1)));
    }
    assert!(matches!(pair.judge(NOW, &message, address(1)), Verdict::Accept(_)));
}

#[test]
fn the_load_ends() {
    let mut pair = Pair::new(both(), both());
    flood(&mut pair, NOW);
    let (_, message) = pair.start();
    let later = NOW + Duration::from_secs(2);
    assert!(matches!(pair.judge(later, &message, address(1)), Verdict::Accept(_)));
}

#[test]
fn the_zero_verdict_is_drop() {
    assert!(matches!(Verdict::default(), Verdict::Drop(_)));
}
