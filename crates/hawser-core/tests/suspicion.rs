//! When a path is suspect, what it says then, and how it returns.

mod support;

use hawser_core::path::health::HealthState;
use hawser_core::units::ByteCount;
use std::net::SocketAddr;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// Receiving, it owes more acknowledgements than its quota takes; the question whether the path lives goes all the same.
#[test]
fn a_path_that_is_suspected_while_it_receives_much_is_asked_and_returns_at_once() {
    let mut world = World::new(&[0, 0], 1);
    world.delay = ms(1);
    let mut world = world.settled();
    let streams = |world: &mut World, millis: u16| {
        for number in 0..millis {
            (0..40).for_each(|_| world.inner(LOCAL, number, 1_000));
            world.run(ms(1));
        }
    };
    streams(&mut world, 500);
    let one: SocketAddr = world.portals[LOCAL].links[0];
    // What the remote portal asks on the first path is not answered, until it doubts the path.
    world.rule = Box::new(
        move |_, flight| {
            if flight.source == one && flight.bytes.len() < 200 { Fate::Drop } else { Fate::Pass }
        },
    );
    let suspect = |world: &World| world.paths(REMOTE).iter().any(|path| path.state == HealthState::Suspect);
    let doubted = (0..3_000).any(|_| {
        streams(&mut world, 1);
        suspect(&world)
    });
    assert!(doubted, "{:#?}", world.paths(REMOTE));
    // Nor the first question after that.
    streams(&mut world, 10);
    world.rule = Box::new(|_, _| Fate::Pass);
    streams(&mut world, 100);
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2), "{:#?}", world.paths(REMOTE));
}

#[test]
fn a_lost_ping_makes_no_path_suspect_that_the_peer_goes_on_sending_by() {
    let mut world = World::new(&[0, 0], 1).settled();
    let mut small = 0;
    // Of what the local portal acknowledges every second word is lost.
    world.rule = Box::new(move |_, flight| {
        let word = flight.from == LOCAL && flight.bytes.len() < 200;
        small += u32::from(word);
        if word && small % 2 == 0 { Fate::Drop } else { Fate::Pass }
    });
    for number in 0..20_000 {
        world.inner(LOCAL, number, 1_000);
        world.run(ms(1));
        let busy = world.paths(REMOTE).into_iter().max_by_key(|path| path.rx_bytes).expect("a path");
        assert_eq!(busy.state, HealthState::Active, "after {number} ms");
    }
}

#[test]
fn a_delay_that_jumps_makes_a_path_suspect_and_brings_it_back() {
    let mut world = World::new(&[0, 0], 1).settled();
    let one = world.portals[LOCAL].links[0];
    let jump = world.now + ms(500);
    world.rule = Box::new(move |now, flight| {
        let there = flight.source == one || flight.to == one;
        if there && now >= jump { Fate::Delay(ms(150)) } else { Fate::Pass }
    });
    assert_eq!((world.stream(LOCAL, 3_000), world.stream(REMOTE, 3_000)), (3_000, 3_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2));
    world.run(ms(10_000));
    for portal in [LOCAL, REMOTE] {
        let trains = world.portals[portal].endpoint.snapshot(world.now).trains;
        assert_eq!(trains, ByteCount::ZERO, "portal {portal}");
    }
}
