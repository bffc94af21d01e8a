//! A configured link whose sockets are not all as good: the preferred one carries while it passes, another where it
//! does not. Each arrow of the drawing in `session/rivals.rs`.

use crate::support;
use hawser_core::endpoint::PeerConfig;
use hawser_core::path::health::{DownReason, HealthState};
use hawser_core::units::PeerId;
use std::cell::Cell;
use std::rc::Rc;
use support::world::{DUAL_REMOTES, Fate, LOCAL, REMOTE, World, ms, peer};

/// The sockets: the one that is preferred, and the other.
const BEST: u16 = 0;
const OTHER: u16 = 1;
/// What is promised: traffic goes on within this time, in milliseconds.
const GOES_ON: u64 = 3_000;
/// A path that is down is probed twice a second.
const COMES_BACK: u64 = 1_500;

fn paths(world: &World) -> Vec<(u16, HealthState)> {
    world.paths(LOCAL).iter().map(|path| (path.link.0, path.state)).collect()
}

fn carries(world: &mut World) {
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
}

fn on_the_best() -> World {
    let world = World::preferring().settled();
    assert_eq!(paths(&world), [(BEST, HealthState::Active)]);
    world
}

fn assert_fallen_back(world: &World) {
    let down = HealthState::Down(DownReason::Timeout);
    let mut paths = paths(world);
    paths.sort_by_key(|(link, _)| *link);
    assert_eq!(paths, [(BEST, down), (OTHER, HealthState::Active)], "the better one is still probed");
}

#[test]
fn where_the_preferred_socket_passes_nothing_goes_by_another() {
    let mut world = World::preferring();
    let others = Rc::new(Cell::new(0));
    let count = Rc::clone(&others);
    world.rule = Box::new(move |_, flight| {
        count.set(count.get() + u32::from(flight.from == LOCAL && flight.link == OTHER));
        Fate::Pass
    });
    world.run(ms(3_000));
    assert_eq!(paths(&world), [(BEST, HealthState::Active)]);
    carries(&mut world);
    assert_eq!(others.get(), 0);
}

#[test]
fn where_it_never_passed_a_handshake_goes_by_the_other_and_the_path_too() {
    let mut world = World::preferring();
    world.cut.insert(BEST);
    world.run(ms(GOES_ON));
    assert_fallen_back(&world);
    carries(&mut world);
}

#[test]
fn when_it_is_blocked_the_other_takes_over_and_it_comes_back_when_it_passes() {
    let mut world = on_the_best();
    for _ in 0..2 {
        world.cut.insert(BEST);
        // Traffic is what shows it.
        world.stream(LOCAL, 10);
        world.run(ms(GOES_ON - 510));
        assert_fallen_back(&world);
        carries(&mut world);
        world.cut.clear();
        world.run(ms(COMES_BACK));
        assert_eq!(paths(&world), [(BEST, HealthState::Active)], "the other is closed");
        carries(&mut world);
        assert_eq!(world.sessions(LOCAL), 1);
    }
}

#[test]
fn when_the_other_fails_too_all_are_tried_and_the_first_that_passes_carries() {
    for back in [BEST, OTHER] {
        let mut world = on_the_best();
        world.cut.insert(BEST);
        world.stream(LOCAL, 10);
        world.run(ms(GOES_ON));
        assert_fallen_back(&world);
        world.cut.insert(OTHER);
        world.stream(LOCAL, 10);
        world.run(ms(GOES_ON));
        assert!(paths(&world).iter().all(|(_, state)| matches!(state, HealthState::Down(_))), "{:?}", paths(&world));
        world.cut.remove(&back);
        world.run(ms(COMES_BACK));
        let active: Vec<u16> =
            paths(&world).iter().filter(|(_, state)| *state == HealthState::Active).map(|(link, _)| *link).collect();
        assert_eq!(active, [back]);
        carries(&mut world);
    }
}

#[test]
fn a_short_outage_of_the_link_itself_is_waited_for() {
    let mut world = on_the_best();
    world.cut.extend([BEST, OTHER]);
    world.stream(LOCAL, 10);
    world.run(ms(400));
    world.cut.clear();
    world.run(ms(COMES_BACK));
    assert_eq!(paths(&world), [(BEST, HealthState::Active)]);
}

#[test]
fn of_several_endpoints_the_preferred_one_is_returned_to() {
    let mut world = World::dual_stack();
    let endpoints = DUAL_REMOTES.map(|text| text.parse().expect("an endpoint"));
    let (now, config) = (world.now, PeerConfig { ranks: vec![0, 1], ..peer(2, &endpoints) });
    world.portals[LOCAL].endpoint.change_peer(now, PeerId(0), config);
    world.run(ms(2_000));
    assert_eq!(paths(&world), [(BEST, HealthState::Active)], "both were tried at once, and the worse one closed");
    world.cut.insert(BEST);
    world.stream(LOCAL, 10);
    world.run(ms(2 * GOES_ON));
    assert_fallen_back(&world);
    world.cut.clear();
    world.run(ms(COMES_BACK));
    assert_eq!(paths(&world), [(BEST, HealthState::Active)]);
    carries(&mut world);
}

#[test]
fn a_better_endpoint_that_comes_to_be_known_is_gone_to() {
    let endpoints = DUAL_REMOTES.map(|text| text.parse().expect("an endpoint"));
    let mut world = World::dual_stack();
    let now = world.now;
    let only = PeerConfig { ranks: vec![1], ..peer(2, &endpoints[1..]) };
    world.portals[LOCAL].endpoint.change_peer(now, PeerId(0), only);
    world.run(ms(2_000));
    assert_eq!(paths(&world), [(OTHER, HealthState::Active)]);
    let now = world.now;
    let both = PeerConfig { ranks: vec![0, 1], ..peer(2, &endpoints) };
    world.portals[LOCAL].endpoint.change_peer(now, PeerId(0), both);
    world.run(ms(1_500));
    assert_eq!(paths(&world), [(BEST, HealthState::Active)]);
    carries(&mut world);
}
