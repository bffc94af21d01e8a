//! An idle bond costs next to nothing, and is busy again at once.

use crate::support;
use hawser_core::path::health::HealthState;
use hawser_core::units::Time;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use support::world::{Fate, LOCAL, REMOTE, World, ms};

/// Outer headers of a datagram: IPv4 and UDP, bytes.
const HEADERS: u64 = 28;
const HOUR: Duration = Duration::from_secs(3_600);
/// What an idle link may cost in 30 days, both ways together, bytes of IP packets.
const MONTH: u64 = 10_000_000;
/// What a link of a tier that is not used may cost in a day.
const STANDBY_DAY: u64 = 100_000;
/// NATs and firewalls keep what leaves at least this often.
const BINDING: Duration = Duration::from_secs(30);

/// What went by each local link, both ways.
#[derive(Default)]
struct Meter {
    bytes: BTreeMap<SocketAddr, u64>,
    left: BTreeMap<SocketAddr, Time>,
    longest: BTreeMap<SocketAddr, Duration>,
}

fn metered(metrics: &[u16]) -> (World, Rc<RefCell<Meter>>) {
    let mut world = World::new(metrics, 1);
    world.run(ms(60_000));
    let meter = Rc::<RefCell<Meter>>::default();
    let shown = Rc::clone(&meter);
    world.rule = Box::new(move |now, flight| {
        let mut meter = meter.borrow_mut();
        let link = if flight.from == LOCAL { flight.source } else { flight.to };
        *meter.bytes.entry(link).or_default() += flight.bytes.len() as u64 + HEADERS;
        if flight.from == LOCAL {
            let before = meter.left.insert(link, now).unwrap_or(now);
            let longest = meter.longest.entry(link).or_default();
            *longest = (*longest).max(now.since(before));
        }
        Fate::Pass
    });
    (world, shown)
}

#[test]
fn an_idle_link_costs_10_megabytes_a_month_and_keeps_its_binding() {
    for metrics in [&[0][..], &[0, 0]] {
        let (mut world, meter) = metered(metrics);
        world.run(HOUR * 12);
        let meter = meter.borrow();
        assert_eq!(meter.bytes.len(), metrics.len());
        for (link, bytes) in &meter.bytes {
            let month = bytes * 60;
            assert!(month <= MONTH, "{link}: {month} bytes in 30 days");
            assert!(meter.longest[link] < BINDING, "{link}: silent for {:?}", meter.longest[link]);
        }
        assert_eq!((world.active(LOCAL), world.active(REMOTE)), (metrics.len(), metrics.len()));
        assert_eq!([LOCAL, REMOTE].map(|side| world.sessions(side)), [1, 1]);
    }
}

#[test]
fn a_standby_link_costs_100_kilobytes_a_day_whether_the_bond_is_idle_or_busy() {
    for busy in [false, true] {
        let (mut world, meter) = metered(&[0, 1]);
        for number in 0..36_000u32 {
            if busy {
                world.inner(LOCAL, number as u16, 200);
            }
            world.run(ms(100));
        }
        let bytes = meter.borrow().bytes[&world.portals[LOCAL].links[1]];
        // An hour's, 24 times.
        assert!(bytes * 24 <= STANDBY_DAY, "busy: {busy}: {} bytes a day", bytes * 24);
        // It is there when it is needed.
        world.cut.insert(0);
        assert!(world.stream(LOCAL, 500) >= 500 - 50, "busy: {busy}");
        assert_eq!(world.stream(LOCAL, 500), 500, "busy: {busy}");
    }
}

/// How long it takes from now on until a packet comes that enters now, and the longest pause of a stream of one a
/// millisecond that follows.
fn first_and_longest_gap(world: &mut World) -> (Duration, Duration) {
    world.portals[REMOTE].inbox.0.clear();
    let (begun, mut first, mut came, mut last, mut longest) = (world.now, None, 0, world.now, Duration::ZERO);
    for number in 0..2_000u16 {
        world.inner(LOCAL, number, 400);
        world.run(ms(1));
        let count = world.portals[REMOTE].inbox.0.len();
        if count > came {
            first.get_or_insert(world.now.since(begun));
            longest = longest.max(world.now.since(last));
            (came, last) = (count, world.now);
        }
    }
    assert!(came >= 1_900, "{came} of 2000 came");
    (first.expect("a packet"), longest)
}

#[test]
fn after_an_idle_hour_the_first_packet_goes_at_once_and_all_that_follow() {
    let mut world = World::new(&[0, 0], 1);
    world.run(ms(2_000));
    world.run(HOUR);
    let (first, longest) = first_and_longest_gap(&mut world);
    assert!(first <= ms(12) && longest <= ms(15), "first after {first:?}, longest gap {longest:?}");
    assert_eq!([LOCAL, REMOTE].map(|side| world.sessions(side)), [1, 1]);
}

#[test]
fn a_link_that_died_while_idle_is_noticed_as_soon_as_one_in_use() {
    let gap = |idle: bool, link: u16| {
        let mut world = World::new(&[0, 0], 1);
        world.run(ms(5_000));
        assert_eq!(world.stream(LOCAL, 2_000), 2_000);
        if idle {
            world.run(HOUR);
        }
        world.cut.insert(link);
        if idle {
            world.run(ms(100_000));
        }
        first_and_longest_gap(&mut world).1
    };
    let [busy, idle] = [false, true].map(|idle| (0..2).map(|link| gap(idle, link)).max().expect("two links"));
    assert!(idle <= busy + ms(20), "busy {busy:?}, idle {idle:?}");
}

#[test]
fn who_hears_nothing_of_an_idle_path_asks_and_says_that_it_is_down() {
    let mut world = World::new(&[0, 0], 1);
    world.run(ms(60_000));
    world.cut.insert(1);
    world.run(ms(250_000));
    for side in [LOCAL, REMOTE] {
        let down = world.paths(side).iter().filter(|path| matches!(path.state, HealthState::Down(_))).count();
        assert_eq!(down, 1, "portal {side}: {:?}", world.paths(side));
    }
    world.cut.clear();
    world.inner(LOCAL, 1, 400);
    world.run(ms(1_000));
    assert_eq!((world.active(LOCAL), world.active(REMOTE)), (2, 2), "asked at once when there is traffic");
}

#[test]
fn an_idle_caller_is_reached_by_who_was_called_though_the_first_datagram_under_new_keys_was_lost() {
    let mut world = World::new(&[0], 1);
    // The caller replaces the keys 172 s after they were made; who was called asks for others at 176.
    world.run(ms(165_000));
    let (mut answered, mut lost) = (false, false);
    world.rule = Box::new(move |_, flight| {
        if !flight.is_data() {
            answered |= flight.from == REMOTE;
            return Fate::Pass;
        }
        let first = answered && flight.from == LOCAL && !std::mem::replace(&mut lost, true);
        if first { Fate::Drop } else { Fate::Pass }
    });
    world.run(ms(13_000));
    assert_eq!(world.stream(REMOTE, 500), 500);
}
