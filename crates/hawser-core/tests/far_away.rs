//! A peer that is seconds away, as behind the full queue of a mobile or satellite link.

use crate::support;
use support::world::{LOCAL, REMOTE, World, ms};

/// Ten packets a second each way, for so long; tells how many came to each side meanwhile.
fn talk(world: &mut World, seconds: u16) -> [usize; 2] {
    world.portals.iter_mut().for_each(|portal| portal.inbox.0.clear());
    for number in 0..10 * seconds {
        world.inner(LOCAL, number, 200);
        world.inner(REMOTE, number, 200);
        world.run(ms(100));
    }
    [LOCAL, REMOTE].map(|side| world.portals[side].inbox.0.len())
}

#[test]
fn a_nat_that_rebinds_is_followed_though_a_round_trip_takes_four_seconds() {
    let mut world = World::new(&[0], 1).settled();
    world.delay = ms(2_000);
    talk(&mut world, 40);
    let new = "192.0.2.1:7777".parse().expect("an address");
    world.portals[LOCAL].links[0] = new;
    talk(&mut world, 30);
    assert_eq!(world.paths(REMOTE)[0].remote, new);
    let came = talk(&mut world, 20);
    assert!(came.iter().all(|came| *came > 100), "{came:?} of 200 each");
}
