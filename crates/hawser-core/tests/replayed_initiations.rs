//! Somebody on the way who recorded a peer's initiations sends them again: no genuine handshake fails by it, nothing
//! comes of them, and what goes back is no more than what came.

use crate::support;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};

fn is_initiation(flight: &Flight) -> bool {
    flight.bytes[0] >> 4 == 1
}

/// What the attacker has heard so far, and the bytes that went to its own address.
type Recordings = Rc<RefCell<Vec<Flight>>>;

/// A world in which every initiation of the local portal is recorded, and the local portal was started often enough
/// that there are some.
fn recorded(starts: u32) -> (World, Recordings) {
    let recordings = Recordings::default();
    let log = recordings.clone();
    let mut world = World::new(&[0, 0], 1);
    world.rule = Box::new(move |_, flight| {
        if flight.from == LOCAL && is_initiation(flight) {
            log.borrow_mut().push(flight.clone());
        }
        Fate::Pass
    });
    for _ in 0..starts {
        // Unanswered at first, so that each start makes several.
        world.cut.extend([0, 1]);
        world.restart(LOCAL);
        world.run(ms(2_400));
        world.cut.clear();
        world.run(ms(1_500));
    }
    (world, recordings)
}

/// Lets `time` pass while a recording is replayed every `interval`: all in turn, half of them from the address that
/// they came from, half from the attacker's own. Tells how long the local portal had no session.
fn under_attack(world: &mut World, recordings: &Recordings, interval: Duration, time: Duration) -> Duration {
    let own: SocketAddr = "203.0.113.9:9".parse().expect("an address");
    let (end, mut turn, mut without) = (world.now + time, 0, Duration::ZERO);
    while world.now < end {
        let mut flight = {
            let recordings = recordings.borrow();
            recordings[turn % recordings.len()].clone()
        };
        if turn % 2 == 0 {
            flight.source = own;
        }
        turn += 1;
        world.inject(flight);
        world.run(interval);
        if world.active(LOCAL) == 0 {
            without += interval;
        }
    }
    without
}

#[test]
fn recordings_keep_no_genuine_handshake_from_its_end() {
    // Slow enough that no load is noticed, and fast enough that it is.
    for (interval, round_trip) in [(ms(25), ms(300)), (ms(25), ms(20)), (ms(1), ms(20)), (ms(1), ms(300))] {
        for restarted in [REMOTE, LOCAL] {
            let (mut world, recordings) = recorded(14);
            let distinct: BTreeSet<_> = recordings.borrow().iter().map(|flight| flight.bytes.clone()).collect();
            assert!(distinct.len() >= 24);
            world.delay = round_trip / 2;
            world.run(ms(3_000));
            world.restart(restarted);
            let without = under_attack(&mut world, &recordings, interval, ms(8_000));
            let case = format!("every {interval:?}, round trip {round_trip:?}, portal {restarted} restarted");
            assert!(without < ms(3_500), "{case}: {without:?} without a session");
            assert_eq!((world.stream(LOCAL, 100), world.stream(REMOTE, 100)), (100, 100), "{case}");
        }
    }
}

#[test]
fn recordings_bring_no_session_and_no_more_bytes_than_they_have() {
    let (mut world, recordings) = recorded(6);
    world.cut.extend([0, 1]);
    world.restart(REMOTE);
    let before = world.portals[REMOTE].sent.1;
    under_attack(&mut world, &recordings, ms(5), ms(5_000));
    let bytes = world.portals[REMOTE].sent.1 - before;
    let came = 1_000 * recordings.borrow()[0].bytes.len() as u64;
    assert!(bytes > 0 && bytes < came, "{bytes} bytes for {came}");
    let snapshot = world.portals[REMOTE].endpoint.snapshot(world.now);
    assert!(snapshot.peers.iter().all(Option::is_none), "no session: {snapshot:?}");
}

#[test]
fn in_peace_a_handshake_takes_one_round_trip() {
    let mut world = World::new(&[0], 1);
    let kinds = Rc::new(RefCell::new(Vec::new()));
    let seen = kinds.clone();
    world.rule = Box::new(move |_, flight| {
        seen.borrow_mut().push(flight.bytes[0] >> 4);
        Fate::Pass
    });
    world.run(ms(25));
    assert_eq!(kinds.borrow()[..3], [1, 2, 4], "initiation, response, data");
}
