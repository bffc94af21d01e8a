//! A peer that is seconds away, as behind the full queue of a mobile or satellite link.

use crate::support;
use hawser_core::endpoint::Event;
use hawser_core::session::KeyEnd;
use hawser_core::units::PeerId;
use std::cell::Cell;
use std::rc::Rc;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

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
fn a_session_begins_with_the_first_answer_however_long_that_takes() {
    for delay in [ms(1_200), ms(3_000), ms(25_000)] {
        let mut world = World::new(&[0, 0], 1);
        world.delay = delay;
        world.run(2 * delay + ms(10));
        assert_eq!(world.sessions(LOCAL), 1, "{delay:?} each way");
        world.run(delay);
        assert_eq!(world.sessions(REMOTE), 1, "{delay:?} each way");
    }
}

#[test]
fn keys_are_replaced_before_their_end() {
    for delay in [1_200, 3_000] {
        let mut world = World::new(&[0, 0], 1);
        world.delay = ms(delay);
        talk(&mut world, 400);
        for side in [LOCAL, REMOTE] {
            let told = |event: Event| world.portals[side].events.iter().filter(|told| **told == event).count();
            let replaced = told(Event::Session { peer: PeerId(0), new: false });
            assert!(replaced >= 2, "portal {side}, {delay} ms each way: {replaced} times in 400 s");
            let over = told(Event::KeysOver { peer: PeerId(0), end: KeyEnd::Age });
            assert_eq!((world.sessions(side), over), (1, 0), "portal {side}, {delay} ms each way");
        }
    }
}

#[test]
fn a_peer_three_seconds_away_is_not_taken_for_silent() {
    let mut world = World::new(&[0, 0], 1);
    world.delay = ms(1_500);
    let initiations = Rc::new(Cell::new(0));
    let counted = Rc::clone(&initiations);
    world.rule = Box::new(move |_, flight| {
        counted.set(counted.get() + usize::from(!flight.is_data()));
        Fate::Pass
    });
    let say_little = |world: &mut World| {
        for number in 0..20 {
            world.inner(LOCAL, number, 400);
            world.run(ms(1_500));
        }
    };
    // At first nobody knows how far it is.
    say_little(&mut world);
    let before = initiations.get();
    say_little(&mut world);
    assert_eq!(initiations.get(), before, "each was acknowledged three seconds later");
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
