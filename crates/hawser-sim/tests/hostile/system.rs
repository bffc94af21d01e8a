//! What a machine does to a portal: a clock that jumps, a queue that is full, memory.

use crate::memory::live;
use crate::stage::{Stage, recipes};
use hawser_core::units::{ByteCount, Rate, Time};
use hawser_sim::host::flow::{Demand, Ledger, Plan, Sink, Source};
use hawser_sim::net::link;
use hawser_sim::situation::{address, second};
use hawser_sim::world::Setup;
use hawser_sim::{LOCAL, REMOTE, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// What a portal may hold at 100 Mbit/s and 300 ms, bytes (issue "Bond two links").
const MOST: i64 = 64 << 20;

#[test]
fn a_clock_jumps_an_hour_ahead() {
    for side in [LOCAL, REMOTE] {
        let mut stage = Stage::new(40);
        stage.world.portals[side].clock.offset += Duration::from_secs(3_600);
        stage.world.settle(side);
        stage.pass(3_000);
        stage.all_is_well();
    }
}

#[test]
fn a_full_queue_is_bounded_and_drains() {
    let before = live();
    let setup =
        Setup { seed: 41, links: vec![link(1.0, 40.0)], recipes: recipes(), clocks: None, both_initiate: false };
    let mut world = World::new(setup);
    let ledger = Rc::<RefCell<Ledger>>::default();
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    let demand = Demand::Pace(Rate::from_bits(200_000_000));
    let plan = Plan { demand, flows: 100, from: Time::ZERO, until: second(2.0), size: 1_200, train: 1 };
    world.add_host(LOCAL, ends[LOCAL], Source::new(plan, ends[LOCAL], ends[REMOTE], Rc::clone(&ledger)));
    world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&ledger)));
    let mut most = 0;
    for step in 1..=200 {
        world.run_until(second(f64::from(step) / 100.0));
        most = most.max(live() - before);
        let session = world.portals[LOCAL].session(world.now);
        assert!(session.is_none_or(|session| session.queued <= ByteCount(8 << 20)), "a queue of more than 8 MiB");
    }
    assert!(most < MOST, "{most} bytes on the heap");
    world.run_until(second(90.0));
    let session = world.portals[LOCAL].session(world.now).expect("a session");
    assert_eq!((session.queued, session.retransmit), (ByteCount::ZERO, ByteCount::ZERO), "queued, retransmit");
    assert_eq!((ledger.borrow().corrupt, ledger.borrow().duplicates), (0, 0));
}

#[test]
fn a_hundred_mbit_over_300_ms_with_loss_stays_within_64_mib_for_both_portals() {
    let before = live();
    let links = vec![link(50.0, 300.0).loss(0.01), link(50.0, 300.0)];
    let mut world = World::new(Setup { seed: 42, links, recipes: recipes(), clocks: None, both_initiate: false });
    let ledger = Rc::<RefCell<Ledger>>::default();
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    let plan = Plan { train: 40, until: second(6.0), ..Plan::greedy(1 << 20) };
    world.add_host(LOCAL, ends[LOCAL], Source::new(plan, ends[LOCAL], ends[REMOTE], Rc::clone(&ledger)));
    world.add_host(REMOTE, ends[REMOTE], Sink(Rc::clone(&ledger)));
    let mut most = 0;
    for step in 1..=60 {
        world.run_until(second(f64::from(step) / 10.0));
        most = most.max(live() - before);
    }
    assert!(most < MOST, "{most} bytes on the heap, links and hosts included");
}
