//! A way out that spoils trains and lets single datagrams pass.
#![allow(missing_docs, reason = "a test")]

mod support;

use hawser_core::endpoint::Event;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// Sends so many bursts of 30 packets, one each 20 ms; tells how many packets came of the last ten.
fn bursts(world: &mut World, from: usize, count: u16) -> usize {
    for burst in 0..count {
        if burst + 10 == count {
            world.run(ms(500));
            world.portals[1 - from].inbox.0.clear();
        }
        (0..30).for_each(|number| world.inner(from, burst * 30 + number, 1_200));
        world.run(ms(20));
    }
    world.run(ms(500));
    world.portals[1 - from].inbox.0.len()
}

#[test]
fn where_trains_do_not_arrive_datagrams_leave_one_by_one() {
    let mut world = World::new(&[0], 1).settled();
    world.rule = Box::new(|_, flight| if flight.from == LOCAL && flight.in_train { Fate::Drop } else { Fate::Pass });
    let arrived = bursts(&mut world, LOCAL, 100);
    let told = world.portals[LOCAL].events.iter().filter(|event| matches!(event, Event::TrainsLost { .. })).count();
    assert_eq!((told, world.paths(LOCAL)[0].apart), (1, true), "{arrived}");
    assert_eq!(arrived, 300, "nothing is lost from then on");
    assert!(!world.paths(REMOTE)[0].apart, "the way back is as it was");
    assert_eq!(bursts(&mut world, REMOTE, 20), 300);
}

#[test]
fn cuts_and_loss_leave_trains_as_they_are() {
    let mut world = World::new(&[0], 1).settled();
    let mut count = 0_u32;
    world.rule = Box::new(move |now, flight| {
        count += 1;
        // Cut for 100 ms of every second, and a third is lost beside.
        let cut = now.as_micros() % 1_000_000 < 100_000;
        if flight.is_data() && (cut || count.is_multiple_of(3)) { Fate::Drop } else { Fate::Pass }
    });
    bursts(&mut world, LOCAL, 500);
    assert!(!world.paths(LOCAL)[0].apart);
    let told = world.portals[LOCAL].events.iter().any(|event| matches!(event, Event::TrainsLost { .. }));
    assert!(!told);
}
