//! A key that nobody knows, and somebody who holds a secret.

use super::*;
use crate::handshake::enrolment::{EnrolmentVerdict, Invitation, InvitationId, SECRET_LEN, Secret};

const ID: InvitationId = InvitationId(7);

fn secret() -> Secret {
    Secret::new([5; SECRET_LEN])
}

/// A portal that knows nobody, and invited one by [`secret`].
struct Inviting {
    pair: Pair,
}

impl Inviting {
    fn new() -> Self {
        let mut inviting = Inviting { pair: Pair::new(both(), both()) };
        inviting.invite(None);
        inviting
    }

    fn invite(&mut self, bound: Option<PublicKey>) {
        self.pair.responder.set_invitations(vec![Invitation { id: ID, secret: secret(), bound }]);
    }

    fn ask(&mut self, identity: &Identity, secret: &Secret) -> (Initiator, [u8; INITIATION_LEN]) {
        let mut initiator = Initiator::enrolling(identity, &self.pair.remote, secret, both());
        let message = self.pair.again(&mut initiator);
        (initiator, message)
    }

    fn judge(&mut self, message: &[u8]) -> EnrolmentVerdict {
        self.pair.responder.on_enrolment(NOW, message, address(1), HandshakeIndex(22), self.pair.rng.as_mut())
    }
}

fn is_dropped(verdict: &EnrolmentVerdict, why: HandshakeDrop) -> bool {
    matches!(verdict, EnrolmentVerdict::Drop(reason) if *reason == why)
}

#[test]
fn the_holder_of_the_secret_is_answered_once_its_key_is_bound_and_as_often_as_it_asks() {
    let (mut inviting, joiner) = (Inviting::new(), Identity::new([9; 32]));
    let (mut initiator, message) = inviting.ask(&joiner, &secret());
    match inviting.judge(&message) {
        EnrolmentVerdict::Proven(id, key) => assert_eq!((id, key), (ID, joiner.public())),
        other => panic!("{other:?}"),
    }
    inviting.invite(Some(joiner.public()));
    for _ in 0..2 {
        let message = inviting.pair.again(&mut initiator);
        let EnrolmentVerdict::Answer(response) = inviting.judge(&message) else { panic!("no answer") };
        initiator.on_response(&response).expect("it is told that it was enrolled");
    }
}

#[test]
fn nobody_else_enrols_by_a_secret_that_is_bound() {
    let mut inviting = Inviting::new();
    inviting.invite(Some(Identity::new([9; 32]).public()));
    let (_, message) = inviting.ask(&Identity::new([8; 32]), &secret());
    assert!(is_dropped(&inviting.judge(&message), HandshakeDrop::UnknownKey));
}

#[test]
fn who_has_no_secret_or_another_one_costs_a_mac_and_gets_nothing() {
    let (mut inviting, joiner) = (Inviting::new(), Identity::new([9; 32]));
    let (_, ordinary) = inviting.pair.start();
    let (_, guessed) = inviting.ask(&joiner, &Secret::new([6; SECRET_LEN]));
    let (_, right) = inviting.ask(&joiner, &secret());
    for message in [&ordinary, &guessed] {
        assert!(is_dropped(&inviting.judge(message), HandshakeDrop::Mac1));
    }
    inviting.pair.responder.set_invitations(Vec::new());
    assert!(is_dropped(&inviting.judge(&right), HandshakeDrop::Mac1), "it was used, or is over");
    assert!(is_dropped(&inviting.judge(&right[1..]), HandshakeDrop::Malformed));
}

#[test]
fn no_key_but_the_senders_can_be_put_into_an_enrolment() {
    let (mut inviting, joiner) = (Inviting::new(), Identity::new([9; 32]));
    let (_, message) = inviting.ask(&joiner, &secret());
    // What mac1 covers is the joiner's from end to end.
    for at in 0..INITIATION_LEN - 16 {
        let mut changed = message;
        changed[at] ^= 1;
        assert!(matches!(inviting.judge(&changed), EnrolmentVerdict::Drop(_)), "byte {at}");
    }
}

#[test]
fn messages_of_an_enrolment_are_of_no_use_for_a_session_or_the_other_way() {
    let (mut inviting, psk) = (Inviting::new(), Psk::new([3; 32]));
    let local = inviting.pair.local.clone();
    let (_, enrolling) = inviting.ask(&local, &secret());
    assert!(inviting.pair.responder.initiation_id(&enrolling).is_none());
    // Somebody on the way knows the portal's public key, and puts an ordinary mac1 in the place of the other.
    let mut as_initiation = enrolling;
    mac::Mac1Key::to(&inviting.pair.remote).sign(&mut as_initiation);
    match inviting.pair.judge(NOW, &as_initiation, address(1)) {
        Verdict::Drop(reason) => assert_eq!(reason, HandshakeDrop::Noise),
        other => panic!("{other:?}"),
    }
    // And the holder of a token cannot have a peer enrolled by what that sends of itself.
    let (local, remote) = (&inviting.pair.local, &inviting.pair.remote);
    let (index, rng) = (HandshakeIndex(11), inviting.pair.rng.as_mut());
    let (_, mut initiation) = Initiator::start(local, remote, psk, both(), index, None, rng).expect("a message");
    let mut as_enrolment = Initiator::enrolling(local, remote, &secret(), both());
    as_enrolment.mac1_key.sign(&mut initiation);
    as_enrolment.begin_round(NOW);
    assert!(is_dropped(&inviting.judge(&initiation), HandshakeDrop::Noise));
}

#[test]
fn the_answer_opens_for_the_holder_of_the_secret_alone() {
    let (mut inviting, joiner) = (Inviting::new(), Identity::new([9; 32]));
    inviting.invite(Some(joiner.public()));
    let (mut initiator, message) = inviting.ask(&joiner, &secret());
    let EnrolmentVerdict::Answer(response) = inviting.judge(&message) else { panic!("no answer") };
    assert!(response.len() < message.len(), "a replay turns nothing on somebody else");
    let mut other = Initiator::enrolling(&joiner, &inviting.pair.remote, &Secret::new([6; SECRET_LEN]), both());
    inviting.pair.again(&mut other);
    assert!(other.on_response(&response).is_err());
    let mut changed = response;
    changed[20] ^= 1;
    assert!(initiator.on_response(&changed).is_err());
    initiator.on_response(&response).expect("the right one is still taken");
}

#[test]
fn under_load_an_enrolment_needs_a_cookie_as_any_initiation() {
    let (mut inviting, joiner) = (Inviting::new(), Identity::new([9; 32]));
    let (mut initiator, _) = inviting.ask(&joiner, &secret());
    let cookie = loop {
        // A new round: attempts of the last one are forgotten.
        initiator.begin_round(Time::NEVER);
        let message = inviting.pair.again_at(NOW, &mut initiator);
        match inviting.judge(&message) {
            EnrolmentVerdict::Cookie(cookie) => break cookie,
            EnrolmentVerdict::Proven(..) => {}
            other => panic!("{other:?}"),
        }
    };
    initiator.on_cookie(&cookie).expect("it is of its own message");
    let message = inviting.pair.again(&mut initiator);
    assert!(matches!(inviting.judge(&message), EnrolmentVerdict::Proven(..)));
}
