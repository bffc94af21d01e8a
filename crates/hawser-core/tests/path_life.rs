//! What brings a path back, and what a path that moved or shrank still believes of itself.

use crate::support;
use hawser_core::path::health::HealthState;
use hawser_core::session::Moved;
use hawser_core::units::{ByteCount, LinkId};
use std::net::SocketAddr;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

#[test]
fn word_of_what_was_sent_before_the_silence_brings_no_path_back() {
    let mut world = World::new(&[0, 0], 1).settled();
    world.stream(LOCAL, 200);
    let one: SocketAddr = world.portals[LOCAL].links[0];
    let cut = world.now + ms(100);
    // From then on nothing gets through, and what comes back of before is late.
    world.rule = Box::new(move |now, flight| match now >= cut {
        true if flight.source == one => Fate::Drop,
        true if flight.to == one => Fate::Delay(ms(80)),
        _ => Fate::Pass,
    });
    let mut states = Vec::new();
    for number in 0..400 {
        world.inner(LOCAL, number, 400);
        world.run(ms(1));
        states.push(world.paths(LOCAL)[0].state);
    }
    let suspected = states.iter().position(|state| *state == HealthState::Suspect).expect("a suspicion");
    assert!((100..170).contains(&suspected), "before the late word: {suspected} ms");
    assert!(!states[suspected..].contains(&HealthState::Active), "{:?}", &states[suspected..]);
}

/// The states of the first path in two seconds, each ms, whose link is away for the first of them.
fn states_beside_an_outage(away: u16) -> Vec<HealthState> {
    let mut world = World::new(&[0, 0], 1).settled();
    world.stream(LOCAL, 200);
    world.cut.insert(0);
    let state = |number| {
        if number == away {
            world.cut.clear();
        }
        world.inner(LOCAL, number, 400);
        world.run(ms(1));
        world.paths(LOCAL)[0].state
    };
    (0..2_000).map(state).collect()
}

/// The last question of a suspect path is lost, and its link returns before the path is given up for that.
#[test]
fn a_path_that_is_given_up_as_its_link_returns_is_back_within_a_few_round_trips() {
    let is_down = |state: &HealthState| matches!(state, HealthState::Down(_));
    let given_up = states_beside_an_outage(2_000).iter().position(is_down).expect("a path that is given up");
    let states = states_beside_an_outage(given_up as u16 - 5);
    assert!(is_down(&states[given_up]), "it was given up all the same: {:?}", states[given_up]);
    let back = states[given_up..].iter().position(|state| *state == HealthState::Active);
    assert!(back.is_some_and(|ms| ms <= 60), "back after {back:?} ms, with a round trip of 20");
}

/// Windows, round trips and MTU are those of a fresh path (RFC 9000 section 9.4).
const FRESH_WINDOW: ByteCount = ByteCount(16_000);
const FRESH_MTU: u16 = 1_252;

/// One link of 20 ms that the remote portal has filled a while, so that it believes a lot of it.
fn well_known_path() -> World {
    let mut world = World::new(&[0], 1).settled();
    for number in 0..3_000 {
        (0..4).for_each(|_| world.inner(REMOTE, number, 1_400));
        world.inner(LOCAL, number, 1_400);
        world.run(ms(1));
    }
    for portal in [LOCAL, REMOTE] {
        let path = &world.paths(portal)[0];
        assert!(path.window > FRESH_WINDOW + FRESH_WINDOW && path.mtu == 1_472, "{path:?}");
        assert!((ms(19)..ms(25)).contains(&path.rtt), "{path:?}");
    }
    world
}

#[test]
fn a_peer_seen_at_another_address_is_a_path_that_nothing_is_known_of_and_at_another_port_the_old_one() {
    for (address, fresh) in [("192.0.2.77:1000", true), ("192.0.2.1:7777", false)] {
        let mut world = well_known_path();
        world.portals[LOCAL].links[0] = address.parse().expect("an address");
        world.delay = ms(100);
        world.inner(LOCAL, 1, 400);
        let moved = (0..2_000).find_map(|_| {
            world.run(ms(1));
            Some(world.paths(REMOTE).remove(0)).filter(|path| path.remote.to_string() == address)
        });
        let path = moved.expect("the new address");
        let seen = (path.window < FRESH_WINDOW, path.mtu == FRESH_MTU, path.rtt > ms(190));
        assert_eq!(seen, (fresh, fresh, fresh), "{address}: {path:?}");
        // It works, and what was in flight comes home.
        world.run(ms(10_000));
        assert_eq!((world.stream(LOCAL, 500), world.stream(REMOTE, 500)), (500, 500), "{address}");
        assert_eq!(world.paths(REMOTE)[0].mtu, 1_472);
        world.run(ms(10_000));
        let trains = world.portals[REMOTE].endpoint.snapshot(world.now).trains;
        assert_eq!(trains, ByteCount::ZERO, "{address}");
    }
}

#[test]
fn a_link_with_another_address_has_paths_that_nothing_is_known_of_and_with_another_port_the_old_ones() {
    for (moved, address) in [(Moved::Address, "192.0.2.77:1000"), (Moved::Port, "192.0.2.1:7777")] {
        let mut world = well_known_path();
        let before = world.paths(LOCAL).remove(0);
        world.portals[LOCAL].links[0] = address.parse().expect("an address");
        let now = world.now;
        world.portals[LOCAL].endpoint.handle_link_moved(now, LinkId(0), moved);
        let path = world.paths(LOCAL).remove(0);
        if moved == Moved::Address {
            assert!(path.window < FRESH_WINDOW && path.mtu == FRESH_MTU && path.rtt > ms(300), "{path:?}");
            assert_eq!(path.in_flight, ByteCount::ZERO);
        } else {
            assert_eq!((path.window, path.mtu, path.rtt), (before.window, before.mtu, before.rtt));
        }
        world.run(ms(3_000));
        assert_eq!((world.stream(LOCAL, 500), world.stream(REMOTE, 500)), (500, 500), "{address}");
        let path = world.paths(LOCAL).remove(0);
        assert!(path.mtu == 1_472 && path.rtt < ms(30), "{path:?}");
    }
}

#[test]
fn what_was_sent_before_a_move_says_nothing_of_the_new_way() {
    let mut world = well_known_path();
    world.inner(LOCAL, 1, 400);
    world.run(ms(1));
    // The new way takes 90 ms longer; what went by the old one is acknowledged soon.
    let moved = world.now;
    world.rule = Box::new(
        move |now, flight| {
            if flight.from == LOCAL && now >= moved { Fate::Delay(ms(90)) } else { Fate::Pass }
        },
    );
    world.portals[LOCAL].endpoint.handle_link_moved(moved, LinkId(0), Moved::Address);
    for number in 0..500 {
        world.inner(LOCAL, number, 100);
        world.run(ms(1));
        let path = world.paths(LOCAL).remove(0);
        assert!(path.rtt > ms(105), "{number} ms: {path:?}");
    }
}

/// Sends `sizes` in turn, `load` packets a millisecond, over a bond whose paths pass datagrams of at most `passes`
/// from now on; tells after how many ms it knows that of one.
fn until_shrunk(links: &[u16], passes: usize, load: u16, sizes: &[usize]) -> Option<u16> {
    let mut world = World::new(links, 1);
    world.run(ms(6_000));
    let feed = |world: &mut World, number: u16| {
        for more in 0..load {
            let turn = usize::from(number * load + more) % sizes.len();
            world.inner(LOCAL, number, sizes[turn]);
        }
        world.run(ms(1));
    };
    (0..1_000).for_each(|number| feed(&mut world, number));
    assert!(world.paths(LOCAL).iter().all(|path| path.mtu == 1_472));
    world.rule = Box::new(move |_, flight| if flight.bytes.len() > passes { Fate::Drop } else { Fate::Pass });
    let shrunk = (0..5_000u16).find(|number| {
        feed(&mut world, *number);
        world.paths(LOCAL).iter().any(|path| usize::from(path.mtu) <= passes)
    });
    world.run(ms(10_000));
    assert_eq!(world.stream(LOCAL, 100), 100);
    shrunk
}

/// What is not larger than the base needs no search: a path that is smaller than it believes carries it all the same.
#[test]
fn small_packets_alone_are_not_harmed_by_a_path_that_shrank() {
    assert_eq!(until_shrunk(&[0, 0], 1_300, 1, &[1_200, 60]), None);
}

#[test]
fn large_packets_that_vanish_while_small_ones_arrive_uncover_a_black_hole() {
    let table: [(&str, usize, &[usize]); 5] = [
        ("full packets and tiny ones", 1_300, &[1_400, 60]),
        ("full packets alone", 1_300, &[1_400]),
        ("full packets, and others above the base that pass", 1_440, &[1_430, 1_350]),
        ("a full packet among many tiny ones", 1_300, &[1_400, 60, 60, 60, 60, 60, 60, 60, 60, 60]),
        ("full packets alone, and hardly more than the base passes", 1_260, &[1_430]),
    ];
    for (what, passes, sizes) in table {
        for (links, load) in [(&[0][..], 1), (&[0, 0], 1), (&[0], 6)] {
            let shrunk = until_shrunk(links, passes, load, sizes);
            let told = format!("{what}, {} links, {load} packets a ms: {shrunk:?} ms", links.len());
            assert!(shrunk.is_some_and(|ms| ms <= 300), "{told}");
        }
    }
}

#[test]
fn a_black_hole_on_one_of_two_paths_costs_nothing_and_is_found_when_that_path_must_carry() {
    const PASSES: usize = 1_300;
    let mut world = World::new(&[0, 0], 1);
    world.run(ms(6_000));
    let [one, other]: [SocketAddr; 2] = [world.portals[LOCAL].links[0], world.portals[LOCAL].links[1]];
    let alone = world.now + ms(1_000);
    world.rule = Box::new(move |now, flight| {
        let is_by = |link| flight.source == link || flight.to == link;
        let vanishes = is_by(one) && flight.bytes.len() > PASSES || is_by(other) && now >= alone;
        if vanishes { Fate::Drop } else { Fate::Pass }
    });
    let shrunk = (0..5_000u16).find(|number| {
        world.inner(LOCAL, *number, 1_400);
        world.run(ms(1));
        usize::from(world.paths(LOCAL)[0].mtu) <= PASSES
    });
    assert!(shrunk.is_some_and(|after| after <= 1_000 + 600), "{shrunk:?} ms, the other path gone after 1000");
    world.run(ms(10_000));
    assert_eq!(world.stream(LOCAL, 100), 100);
}
