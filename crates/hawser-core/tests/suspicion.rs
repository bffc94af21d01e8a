//! When a path is suspect, what it says then, and how it returns.

use crate::support;
use hawser_core::path::health::HealthState;
use hawser_core::units::ByteCount;
use std::net::SocketAddr;
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};

/// Receiving, it owes more acknowledgements than its quota takes; the question whether the path lives goes all the
/// same.
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

/// A call of both, a packet every 40 ms, `apart` ms between theirs: for how many of these ms an end does not use the
/// second path.
fn call(world: &mut World, millis: u64, apart: u64) -> u32 {
    let mut doubted = 0;
    for at in 0..millis {
        for (portal, phase) in [(LOCAL, 0), (REMOTE, apart)] {
            if (at + phase) % 40 == 0 {
                world.inner(portal, (at / 40) as u16, 200);
            }
        }
        world.run(ms(1));
        doubted += u32::from([LOCAL, REMOTE].iter().any(|end| world.paths(*end)[1].state != HealthState::Active));
    }
    doubted
}

/// For how many ms of three seconds an end doubts a short path beside a long one, a second after it lost three of ten
/// datagrams.
fn doubted_after_losses(mut seed: u64) -> u32 {
    let mut world = World::new(&[0, 0], 1);
    let [long, short] = [world.portals[LOCAL].links[0], world.portals[LOCAL].links[1]];
    let is_on = |link: SocketAddr, flight: &Flight| flight.source == link || flight.to == link;
    let whole = move |flight: &Flight| if is_on(long, flight) { Fate::Delay(ms(15)) } else { Fate::Pass };
    world.rule = Box::new(move |_, flight| whole(flight));
    let (mut world, apart) = (world.settled(), seed * 7 % 40);
    call(&mut world, 2_000, apart);
    world.run(ms(15_000));
    let ends = world.now + ms(1_500);
    world.rule = Box::new(move |now, flight| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if now < ends && is_on(short, flight) && (seed >> 33) % 10 < 3 { Fate::Drop } else { whole(flight) }
    });
    call(&mut world, 2_500, apart);
    call(&mut world, 3_000, apart)
}

/// The acknowledgements of a suspect path go by the long one. Each end finds the other's late, and would suspect it
/// anew for as long as anybody talks.
#[test]
fn a_short_path_that_both_ends_suspected_is_trusted_again_beside_a_long_one() {
    let doubted: Vec<(u64, u32)> = (0..24).map(|seed| (seed, doubted_after_losses(seed))).collect();
    assert!(doubted.iter().all(|(_, millis)| *millis <= 300), "ms of 3,000, by seed: {doubted:?}");
}

/// For how many ms an end doubts the only path after 300 ms in which datagrams waited for 150 more and half were lost:
/// a flood of a stranger's filled the peer's socket.
fn doubted_after_a_flood(mut seed: u64) -> u32 {
    let mut world = World::new(&[0], 1);
    world.delay = ms(1);
    let mut world = world.settled();
    let talk = |world: &mut World, millis: u16| {
        let mut doubted = 0;
        for number in 0..millis {
            [LOCAL, REMOTE].iter().for_each(|end| world.inner(*end, number, 1_000));
            world.run(ms(1));
            doubted += u32::from([LOCAL, REMOTE].iter().any(|end| world.active(*end) == 0));
        }
        doubted
    };
    talk(&mut world, 500);
    let ends = world.now + ms(300);
    world.rule = Box::new(move |now, _| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match (now < ends, (seed >> 33) % 2) {
            (false, _) => Fate::Pass,
            (true, 0) => Fate::Drop,
            (true, _) => Fate::Delay(ms(150)),
        }
    });
    talk(&mut world, 300);
    talk(&mut world, 2_000)
}

/// Each acknowledges what came late, until its quota is used up; then each asks, and none has an answer left.
#[test]
fn two_ends_that_suspect_their_only_path_answer_each_other() {
    let doubted: Vec<(u64, u32)> = (0..24).map(|seed| (seed, doubted_after_a_flood(seed))).collect();
    assert!(doubted.iter().all(|(_, millis)| *millis <= 450), "ms of 2,000, by seed: {doubted:?}");
}
