//! Keys end, whoever drops the handshakes that would replace them; and sessions with peers that vanished.

use crate::support;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::Event;
use hawser_core::session::KeyEnd;
use hawser_core::units::{ByteCount, PeerId, Time};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};

const INITIATION: u8 = 1;
/// Nothing is sealed or opened under older keys.
const END: Duration = Duration::from_secs(180);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn kind(flight: &Flight) -> u8 {
    flight.bytes[0] >> 4
}

/// Packets both ways, ten a second, for so long; tells how many came to each side.
fn talk(world: &mut World, time: Duration) -> [usize; 2] {
    world.portals.iter_mut().for_each(|portal| portal.inbox.0.clear());
    for number in 0..time.as_millis() / 100 {
        for side in [LOCAL, REMOTE] {
            world.inner(side, number as u16, 200);
        }
        world.run(ms(100));
    }
    [LOCAL, REMOTE].map(|side| world.portals[side].inbox.0.len())
}

fn told(world: &World, side: usize, event: &Event) -> usize {
    world.portals[side].events.iter().filter(|told| *told == event).count()
}

#[test]
fn who_drops_all_handshakes_for_ten_minutes_stops_the_traffic_and_pins_no_key() {
    let mut world = World::new(&[0, 0], 1).settled();
    let begun = world.now;
    // One datagram is held back to be delivered when its keys are over.
    let (last, held) = (Rc::new(RefCell::new(Time::ZERO)), Rc::new(RefCell::new(None)));
    let (tape, hold) = (Rc::clone(&last), Rc::clone(&held));
    world.rule = Box::new(move |now, flight| {
        if !flight.is_data() {
            return Fate::Drop;
        }
        *tape.borrow_mut() = now;
        let keep = flight.from == LOCAL && now > begun + seconds(170) && hold.borrow().is_none();
        if keep {
            *hold.borrow_mut() = Some(flight.clone());
        }
        if keep { Fate::Drop } else { Fate::Pass }
    });
    let came = talk(&mut world, seconds(170));
    assert_eq!(came, [1_700, 1_700], "keys of their age carry as before");
    talk(&mut world, seconds(430));
    assert!(*last.borrow() <= begun + END, "sealed {:?} after the keys were made", last.borrow().since(begun));
    assert!(*last.borrow() >= begun + seconds(177), "and not much sooner: {:?}", last.borrow().since(begun));
    for side in [LOCAL, REMOTE] {
        assert_eq!(told(&world, side, &Event::KeysOver { peer: PeerId(0), end: KeyEnd::Age }), 1, "portal {side}");
        assert!(world.dropped(side, DropReason::TooOld) > 3_000, "what waits is dropped by its age");
    }
    let late = held.borrow_mut().take().expect("a datagram");
    let before = world.dropped(REMOTE, DropReason::KeyExpired);
    world.inject(late);
    assert_eq!(world.dropped(REMOTE, DropReason::KeyExpired), before + 1);
    // The session goes on as soon as a handshake passes.
    world.rule = Box::new(|_, _| Fate::Pass);
    talk(&mut world, seconds(6));
    assert_eq!(talk(&mut world, seconds(10)), [100, 100]);
    assert_eq!([LOCAL, REMOTE].map(|side| world.sessions(side)), [1, 1]);
}

#[test]
fn who_was_called_begins_a_handshake_where_the_caller_does_not() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.rule =
        Box::new(|_, flight| if flight.from == LOCAL && kind(flight) == INITIATION { Fate::Drop } else { Fate::Pass });
    assert_eq!(talk(&mut world, seconds(600)), [6_000, 6_000]);
    for side in [LOCAL, REMOTE] {
        let keys = told(&world, side, &Event::Session { peer: PeerId(0), new: false });
        assert_eq!((keys, world.sessions(side)), (4, 1), "every 150 s, portal {side}");
    }
}

/// Bytes that a portal sent within `time`, with a packet from its TUN every 100 ms.
fn spoken(world: &mut World, side: usize, time: Duration) -> u64 {
    let before = world.portals[side].sent.1;
    for number in 0..time.as_millis() / 100 {
        world.inner(side, number as u16, 300);
        world.run(ms(100));
    }
    world.portals[side].sent.1 - before
}

#[test]
fn a_peer_that_vanished_is_asked_ever_more_seldom_until_its_session_ends() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.rule = Box::new(|_, _| Fate::Drop);
    spoken(&mut world, REMOTE, seconds(120));
    // Two paths; UDP payloads.
    let rate = |bytes: u64, time: u64| bytes * 8 / time;
    let later = rate(spoken(&mut world, REMOTE, seconds(60)), 60);
    let trains = world.portals[REMOTE].endpoint.snapshot(world.now).trains;
    assert!(later <= 900, "{later} bit/s in the third minute");
    assert!(trains <= ByteCount(150_000), "{trains:?} for 10 s of packets");
    spoken(&mut world, REMOTE, seconds(361));
    assert_eq!(told(&world, REMOTE, &Event::Silent { peer: PeerId(0) }), 1);
    assert_eq!(spoken(&mut world, REMOTE, seconds(60)), 0, "nothing is left to ask by");
    let now = world.portals[REMOTE].endpoint.snapshot(world.now);
    assert!(now.peers[0].is_none() && now.labels == 0 && now.trains < ByteCount(64_000), "{now:?}");
    // The caller goes on for ever, with something to send and without.
    let eager = rate(spoken(&mut world, LOCAL, seconds(600)), 600);
    assert!(eager <= 800, "{eager} bit/s on two links");
    world.run(seconds(1_800));
    let before = world.portals[LOCAL].sent.1;
    world.run(seconds(600));
    let idle = rate(world.portals[LOCAL].sent.1 - before, 600);
    assert!(idle <= 50, "{idle} bit/s on two links");
    // Nothing is on record that keeps the two from each other.
    world.rule = Box::new(|_, _| Fate::Pass);
    world.inner(LOCAL, 1, 300);
    world.run(seconds(6));
    assert_eq!(talk(&mut world, seconds(10)), [100, 100]);
    assert_eq!([LOCAL, REMOTE].map(|side| world.sessions(side)), [2, 2]);
}

#[test]
fn who_ended_a_silent_session_alone_gets_another_one_with_who_kept_its_own() {
    let mut world = World::new(&[0, 0], 1).settled();
    // Only the remote portal hears nothing any more.
    world.rule = Box::new(|_, flight| if flight.from == LOCAL { Fate::Drop } else { Fate::Pass });
    for _ in 0..550 {
        world.inner(REMOTE, 1, 300);
        world.run(seconds(1));
    }
    assert_eq!(told(&world, REMOTE, &Event::Silent { peer: PeerId(0) }), 1);
    world.rule = Box::new(|_, _| Fate::Pass);
    world.inner(LOCAL, 1, 300);
    world.run(seconds(6));
    assert_eq!(talk(&mut world, seconds(10)), [100, 100]);
}

#[test]
fn who_was_told_of_an_end_by_a_portal_that_stays_gets_another_session_with_it() {
    for side in [LOCAL, REMOTE] {
        let mut world = World::new(&[0, 0], 1).settled();
        world.portals[side].endpoint.close();
        world.inner(LOCAL, 1, 300);
        world.run(seconds(6));
        assert_eq!(talk(&mut world, seconds(10)), [100, 100], "{side} said so");
    }
}
