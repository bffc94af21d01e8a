//! A configured link with a socket for each IP version keeps one path between them, to the endpoint that validates
//! first.

use crate::support;
use hawser_core::path::health::HealthState;
use hawser_core::units::LinkId;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// The sockets, which are links to the core.
const V4: u16 = 0;
const V6: u16 = 1;
/// A path that goes silent is down and the other IP version in its place within: probe timeouts (about 1 s), the
/// housekeeping that looks for links without a path (1 s), a validation.
const TAKEN_OVER: u64 = 4_000;

/// The sockets of the paths that a portal has and did not close, with their state.
fn paths(world: &World, portal: usize) -> Vec<(u16, HealthState)> {
    world.paths(portal).iter().map(|path| (path.link.0, path.state)).collect()
}

/// A world whose IPv6 way is longer by this many milliseconds, or IPv4's by as many less than none.
fn longer_by_v6(world: &mut World, more: i64) {
    world.rule = Box::new(move |_, flight| {
        let late = if flight.to.is_ipv6() { more } else { -more };
        u64::try_from(late).map_or(Fate::Pass, |late| Fate::Delay(ms(late)))
    });
}

#[test]
fn the_ip_version_that_validates_first_keeps_the_path_and_the_other_is_closed() {
    for (more, kept) in [(15, V4), (-15, V6)] {
        let mut world = World::dual_stack();
        longer_by_v6(&mut world, more);
        world.run(ms(2_000));
        assert_eq!(paths(&world, LOCAL), [(kept, HealthState::Active)]);
        assert_eq!(world.active(REMOTE), 1, "{:?}", world.paths(REMOTE));
        assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    }
}

#[test]
fn a_black_hole_of_one_ip_version_from_the_start_leaves_the_other() {
    for (hole, kept) in [(V4, V6), (V6, V4)] {
        let mut world = World::dual_stack();
        world.cut.insert(hole);
        world.run(ms(2_000));
        assert_eq!(paths(&world, LOCAL), [(kept, HealthState::Active)]);
        assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    }
}

#[test]
fn when_the_kept_path_goes_silent_the_other_ip_version_takes_over_and_back() {
    let mut world = World::dual_stack();
    longer_by_v6(&mut world, 15);
    world.run(ms(2_000));
    assert_eq!(paths(&world, LOCAL), [(V4, HealthState::Active)]);
    for (hole, taken) in [(V4, V6), (V6, V4), (V4, V6)] {
        world.cut = [hole].into();
        world.run(ms(TAKEN_OVER));
        assert_eq!(paths(&world, LOCAL), [(taken, HealthState::Active)], "{hole} is a hole");
        assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
    }
    // What comes back beside a path that works is not taken up again.
    world.cut.clear();
    world.run(ms(TAKEN_OVER));
    assert_eq!(paths(&world, LOCAL), [(V6, HealthState::Active)]);
}

#[test]
fn a_socket_that_comes_up_beside_a_working_path_of_its_link_opens_none_for_long() {
    let mut world = World::dual_stack();
    world.cut.insert(V4);
    world.run(ms(2_000));
    world.cut.clear();
    let now = world.now;
    world.portals[LOCAL].endpoint.handle_link_up(now, LinkId(V4));
    world.run(ms(1_000));
    assert_eq!(paths(&world, LOCAL), [(V6, HealthState::Active)]);
    assert_eq!((world.stream(LOCAL, 200), world.stream(REMOTE, 200)), (200, 200));
}
