//! A whole portal and somebody with a token: what is told, what is answered, what is kept.

use crate::support;
use hawser_core::endpoint::{Endpoint, Event};
use hawser_core::handshake::enrolment::{INVITATIONS_MAX, Invitation, InvitationId, SECRET_LEN, Secret};
use hawser_core::handshake::{Identity, Initiator, PublicKey, Way};
use hawser_core::transport::Transport;
use hawser_core::units::{Ecn, LinkId, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::time::Duration;
use support::{Buffer, Delivered, Seeded, endpoint, link, peer};

const JOINER: u8 = 9;

fn secret(n: u8) -> Secret {
    Secret::new([n; SECRET_LEN])
}

fn invitation(n: u8, bound: Option<PublicKey>) -> Invitation {
    Invitation { id: InvitationId(n.into()), secret: secret(n), bound }
}

/// A portal that listens and knows nobody.
struct Hub {
    portal: Endpoint,
    now: Time,
    rng: Seeded,
}

impl Hub {
    fn new() -> Self {
        let mut portal = endpoint(2, Vec::new());
        portal.add_link(Time::ZERO, link(0, Transport::Udp, false));
        Hub { portal, now: Time::from_nanos(5_000_000_000), rng: Seeded(7) }
    }

    fn initiator(&self, secret: &Secret) -> Initiator {
        let ciphers = CipherSet::for_machine(true);
        let offer = Offer { protection: Protection::Encrypt, ciphers, instance: InstanceId(1) };
        Initiator::enrolling(&Identity::new([JOINER; 32]), &Identity::new([2; 32]).public(), secret, offer)
    }

    /// What the portal answers to one more initiation.
    fn ask(&mut self, initiator: &mut Initiator) -> Option<Vec<u8>> {
        self.now = self.now + Duration::from_millis(500);
        initiator.begin_round(self.now);
        let message = initiator.initiation(self.now, Way::ONLY, HandshakeIndex(3), &mut self.rng);
        let mut bytes = message.expect("a message").to_vec();
        let from = "192.0.2.1:1000".parse().expect("an address");
        let mut sink = Delivered::default();
        self.portal.handle_datagram(self.now, LinkId(0), from, None, Ecn::NotEct, &mut bytes, &mut sink);
        let mut buffer = Buffer(vec![0; 65_536]);
        let transmit = self.portal.poll_transmit(self.now, &mut buffer)?;
        assert_eq!(transmit.remote, from);
        Some(buffer.0[..transmit.len].to_vec())
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.portal.poll_event()).collect()
    }

    fn assert_keeps_nothing(&self) {
        let snapshot = self.portal.snapshot(self.now);
        assert!(snapshot.peers.iter().all(Option::is_none) && snapshot.labels == 0);
    }
}

#[test]
fn who_holds_a_token_is_told_of_and_answered_only_when_it_is_a_peer() {
    let (mut hub, key) = (Hub::new(), Identity::new([JOINER; 32]).public());
    hub.portal.set_invitations(vec![invitation(4, None), invitation(5, None)]);
    let mut initiator = hub.initiator(&secret(5));
    for _ in 0..2 {
        assert_eq!(hub.ask(&mut initiator), None, "nobody has decided yet");
        assert_eq!(hub.events(), [Event::Enrolment { invitation: InvitationId(5), key }]);
    }
    hub.assert_keeps_nothing();
    let known = peer(JOINER, &[], "10.77.0.2/32");
    assert_eq!(known.public_key, key);
    hub.portal.add_peer(hub.now, known);
    hub.portal.set_invitations(vec![invitation(5, Some(key))]);
    let answer = hub.ask(&mut initiator).expect("it is told");
    initiator.on_response(&answer).expect("by who holds the secret too");
    assert_eq!(hub.events(), [], "it is no news");
    hub.assert_keeps_nothing();
}

#[test]
fn a_token_that_was_taken_back_a_guess_and_one_too_many_get_no_byte_and_no_event() {
    let mut hub = Hub::new();
    let full = (0..=INVITATIONS_MAX as u8).map(|n| invitation(n, None)).collect();
    hub.portal.set_invitations(full);
    for wrong in [200, INVITATIONS_MAX as u8] {
        let mut initiator = hub.initiator(&secret(wrong));
        assert_eq!(hub.ask(&mut initiator), None);
    }
    hub.portal.set_invitations(Vec::new());
    let mut initiator = hub.initiator(&secret(1));
    assert_eq!(hub.ask(&mut initiator), None);
    assert_eq!(hub.events(), []);
    hub.assert_keeps_nothing();
}
