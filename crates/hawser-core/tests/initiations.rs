//! What others make of initiations that they see: forged cookie replies, and which links belong together.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::{Event, Refusal};
use hawser_core::handshake::{Identity, Responder};
use hawser_core::units::PeerId;
use hawser_core::wire::{CipherSet, InstanceId, Offer, Protection};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use support::sender::{PING, Sender};
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};
use support::{Buffer, Seeded};

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;

/// What the local portal's initiations were, as they left.
type Heard = Rc<RefCell<Vec<Flight>>>;

/// A world of this many links, whose local portal's initiations are heard.
fn heard(links: usize) -> (World, Heard) {
    let heard = Heard::default();
    let log = heard.clone();
    let mut world = World::new(&vec![0; links], 1);
    world.rule = Box::new(move |_, flight| {
        if flight.from == LOCAL && flight.bytes[0] >> 4 == INITIATION {
            log.borrow_mut().push(flight.clone());
        }
        Fate::Pass
    });
    (world, heard)
}

/// Somebody who makes cookie replies in the remote portal's name.
fn forger() -> Responder {
    let offer =
        Offer { protection: Protection::Encrypt, ciphers: CipherSet::for_machine(true), instance: InstanceId(9) };
    Responder::new(Identity::new([2; 32]), offer)
}

/// Lets `milliseconds` pass, with a forged reply to the newest initiation in each of them, and another cookie in each.
fn forge(world: &mut World, heard: &Heard, milliseconds: u64) {
    let mut rng = Seeded(7);
    for _ in 0..milliseconds {
        let newest = heard.borrow().last().cloned();
        if let Some(Flight { source, to, bytes, .. }) = newest {
            let bytes = forger().cookie(world.now, &bytes, source, &mut rng).expect("a cookie").to_vec();
            world.inject(Flight { from: 1 - LOCAL, link: 0, source: to, to: source, bytes, in_train: false });
        }
        world.run(ms(1));
    }
}

#[test]
fn forged_cookie_replies_bring_no_initiation_before_its_time() {
    let (mut world, heard) = heard(1);
    world.cut.insert(0);
    forge(&mut world, &heard, 2_000);
    let sent = heard.borrow().len();
    assert!((4..=5).contains(&sent), "{sent} initiations in two seconds, at one every 500 ms");
}

#[test]
fn forged_cookie_replies_push_out_no_attempt_that_is_still_answered() {
    let (mut world, heard) = heard(1);
    world.delay = ms(900);
    forge(&mut world, &heard, 1_750);
    assert_eq!((heard.borrow().len(), world.sessions(LOCAL)), (4, 0), "no answer has come yet");
    forge(&mut world, &heard, 100);
    assert_eq!(world.sessions(LOCAL), 1, "the answer to the first was taken");
    world.run(ms(2_500));
    assert_eq!(world.active(LOCAL), 1, "and its path validated a round trip later");
}

#[test]
fn no_attempt_whose_answer_takes_six_seconds_is_pushed_out_by_forged_cookie_replies() {
    let (mut world, heard) = heard(1);
    world.delay = ms(3_000);
    forge(&mut world, &heard, 5_950);
    assert_eq!((heard.borrow().len(), world.sessions(LOCAL)), (12, 0), "no answer has come yet");
    let distinct: BTreeSet<_> = heard.borrow().iter().map(|flight| flight.bytes.clone()).collect();
    assert_eq!(distinct.len(), 12, "each says the newest cookie");
    forge(&mut world, &heard, 100);
    assert_eq!(world.sessions(LOCAL), 1, "the answer to the first was taken");
}

#[test]
fn each_links_initiations_are_its_own_and_repeated_by_it_alone() {
    let (mut world, heard) = heard(2);
    world.cut.extend([0, 1]);
    world.run(ms(5_600));
    let heard = heard.borrow();
    assert_eq!(heard.len(), 24, "twelve rounds by two links");
    let of_link = |link: u16| heard.iter().filter(move |flight| flight.link == link);
    let said: Vec<BTreeSet<_>> =
        (0..2).map(|link| of_link(link).map(|flight| flight.bytes.clone()).collect()).collect();
    assert_eq!(said.iter().map(BTreeSet::len).collect::<Vec<_>>(), [2, 2], "another after five seconds");
    let all = || said.iter().flatten();
    let indices: BTreeSet<_> = all().map(|bytes| bytes[1..5].to_vec()).collect();
    let ephemeral: BTreeSet<_> = all().map(|bytes| bytes[5..37].to_vec()).collect();
    assert_eq!((indices.len(), ephemeral.len()), (4, 4), "neither index nor ephemeral key is met by two");
}

#[test]
fn a_handshake_ends_by_whichever_link_is_answered() {
    for cut in [0, 1] {
        let (mut world, _) = heard(2);
        world.cut.insert(cut);
        world.run(ms(300));
        assert_eq!(world.active(LOCAL), 1, "link {cut} is cut");
    }
}

/// Which of a portal's handshakes a response is for; none of other datagrams.
fn answered(bytes: &[u8]) -> Option<&[u8]> {
    (bytes[0] >> 4 == RESPONSE).then(|| &bytes[5..9])
}

#[test]
fn a_portal_that_wakes_answers_the_newest_of_all_that_came_meanwhile_first() {
    let flights = Heard::default();
    let log = flights.clone();
    let mut world = World::new(&[0, 0], 1);
    world.cut.extend([0, 1]);
    world.rule = Box::new(move |_, flight| {
        log.borrow_mut().push(flight.clone());
        Fate::Pass
    });
    world.run(ms(20_000));
    world.cut.clear();
    let came = flights.take();
    assert!(came.len() > 70, "{} by two links", came.len());
    came.iter().for_each(|flight| world.inject(flight.clone()));
    world.run(ms(200));
    let said = flights.take();
    let first: Vec<_> = said.iter().filter_map(|flight| answered(&flight.bytes)).take(2).collect();
    let newest: Vec<_> = came.iter().rev().map(|flight| &flight.bytes[1..5]).take(2).collect();
    assert_eq!(first, newest);
    assert_eq!(world.active(LOCAL), 2);
}

#[test]
fn a_few_are_answered_at_a_time_and_no_older_one_of_that_way_once_one_is_genuine() {
    let mut sender = Sender::new();
    let mut started: Vec<_> = (0..10).map(|index| sender.initiation(1, index)).collect();
    started.iter().for_each(|(_, message)| sender.send(message));
    let mut buffer = Buffer(vec![0; 65_536]);
    let mut answers = Vec::new();
    while let Some(transmit) = sender.portal.poll_transmit(sender.now, &mut buffer) {
        answers.push(buffer.0[..transmit.len].to_vec());
    }
    let of: Vec<_> = answers.iter().filter_map(|bytes| answered(bytes)).collect();
    let newest: Vec<_> = started.iter().rev().map(|(_, message)| &message[1..5]).take(4).collect();
    assert_eq!(of, newest);
    let (initiator, _) = started.last_mut().expect("ten");
    sender.keys = Some(initiator.on_response(&answers[0]).expect("keys").keys);
    sender.say(0, |out| out.put_u8(PING));
    let later = sender.hear(ms(50));
    assert!(sender.session().is_some() && later.iter().all(|(_, bytes)| answered(bytes).is_none()));
    assert_eq!(sender.dropped(DropReason::Handshake), 6);
}

#[test]
fn a_session_that_only_one_side_ended_begins_anew_on_both() {
    for closes in [LOCAL, 1 - LOCAL] {
        let mut world = World::new(&[0, 0], 1).settled();
        assert_eq!(world.stream(LOCAL, 50), 50);
        // Its peer ends the session; it does not, for it goes on running.
        world.portals[closes].endpoint.close();
        world.run(ms(3_000));
        assert_eq!(world.active(LOCAL), 2, "portal {closes} closed");
        assert_eq!((world.stream(LOCAL, 50), world.stream(1 - LOCAL, 50)), (50, 50), "portal {closes} closed");
    }
}

#[test]
fn a_portal_whose_key_is_unknown_there_is_told_so_once_and_by_nobody_who_is_merely_away() {
    let refusals = |world: &World| {
        let told = world.portals[LOCAL].events.iter();
        told.filter(|event| matches!(event, Event::Refused { refusal: Refusal::UnknownKey, .. })).count()
    };
    let mut world = World::new(&[0, 0], 1);
    world.cut.extend([0, 1]);
    world.run(ms(10_000));
    assert_eq!(refusals(&world), 0, "nobody answers");
    world.cut.clear();
    let now = world.now;
    world.portals[REMOTE].endpoint.remove_peer(now, PeerId(0));
    world.run(ms(10_000));
    assert_eq!(refusals(&world), 1);
    assert_eq!(world.portals[LOCAL].endpoint.snapshot(world.now).refusals, [Some(Refusal::UnknownKey)]);
    world.restart(REMOTE);
    world.run(ms(10_000));
    assert_eq!((world.sessions(LOCAL), refusals(&world)), (1, 1));
    assert_eq!(world.portals[LOCAL].endpoint.snapshot(world.now).refusals, [None]);
}
