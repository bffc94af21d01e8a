//! A way out that spoils trains and lets single datagrams pass.

use crate::support;
use std::time::Duration;

use hawser_core::endpoint::Event;
use hawser_core::units::Time;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// What the slow link carries.
const LINK_MBPS: u64 = 40;

/// Sends `count` bursts of 30 packets, one each 20 ms; tells how many packets of the last ten bursts arrived.
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

/// Packets of 1,200 bytes that arrive in the second from `after` on, by a link of 40 Mbit/s with a queue of 100 ms that
/// is offered more.
fn arrived_in_a_second(delay: u64, spoils_trains: bool, after: Duration) -> usize {
    let mut world = World::new(&[0], 1).settled();
    world.delay = ms(delay);
    let mut free = Time::ZERO;
    world.rule = Box::new(move |now, flight| {
        if flight.from == LOCAL && flight.in_train && spoils_trains {
            return Fate::Drop;
        }
        let start = free.max(now);
        if flight.from != LOCAL || start.since(now) > ms(100) {
            return if flight.from == LOCAL { Fate::Drop } else { Fate::Pass };
        }
        free = start + Duration::from_nanos(flight.bytes.len() as u64 * 8 * 1_000 / LINK_MBPS);
        Fate::Delay(free.since(now))
    });
    let offer = |world: &mut World, time: Duration| {
        let end = world.now + time;
        while world.now < end {
            (0..6).for_each(|number| world.inner(LOCAL, number, 1_200));
            world.run(ms(1));
        }
    };
    offer(&mut world, after);
    world.portals[REMOTE].inbox.0.clear();
    offer(&mut world, ms(1_000));
    assert_eq!(world.paths(LOCAL)[0].apart, spoils_trains);
    world.portals[REMOTE].inbox.0.len()
}

/// What was still under way when the datagrams began to leave one by one says nothing of the rate.
#[test]
fn a_path_without_trains_has_its_rate_within_two_seconds() {
    for delay in [1, 5, 12, 30] {
        let usual = arrived_in_a_second(delay, false, ms(2_000));
        let apart = arrived_in_a_second(delay, true, ms(2_000));
        assert!(apart * 10 >= usual * 9, "one way {delay} ms: {apart} of {usual}");
    }
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
