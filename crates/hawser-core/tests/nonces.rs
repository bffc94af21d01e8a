//! No nonce twice: whatever becomes of links, and whatever is recorded and replayed.
//!
//! A label stands for one path under one key of one direction (docs/wire.md), so label and packet number say whether a
//! nonce came before; numbers stay far below 2^32 here.

use crate::support;
use hawser_core::path::health::DownReason;
use hawser_core::units::{LinkId, Random};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::Seeded;
use support::world::{Fate, Flight, LOCAL, REMOTE, World, ms};

/// Recorded datagrams kept for later: more than the 64 path ids whose use is on record.
const KEPT: usize = 4_000;

/// What left, by who sent it, label and number: never twice.
#[derive(Default)]
struct Seen {
    numbers: BTreeSet<(usize, [u8; 8])>,
    labels: BTreeMap<(usize, [u8; 4]), u32>,
    recorded: Vec<Flight>,
}

impl Seen {
    fn take(&mut self, flight: &Flight) {
        if !flight.is_data() {
            return;
        }
        let name: [u8; 8] = flight.bytes[1..9].try_into().expect("a header");
        assert!(self.numbers.insert((flight.from, name)), "{} sent {name:?} twice", flight.from);
        let label = name[..4].try_into().expect("a label");
        *self.labels.entry((flight.from, label)).or_default() += 1;
        if self.recorded.len() < KEPT {
            self.recorded.push(flight.clone());
        }
    }
}

/// A life of links that come and go, with traffic, and a neighbour who sends again what he recorded.
fn live(seed: u64, steps: u32) -> usize {
    let mut world = World::new(&[0, 0], 2);
    let seen = Rc::new(RefCell::new(Seen::default()));
    let tape = Rc::clone(&seen);
    let mut luck = Seeded(seed);
    world.rule = Box::new(move |_, flight| {
        tape.borrow_mut().take(flight);
        Fate::Pass
    });
    world.run(ms(1_000));
    let mut random = Seeded(seed ^ 0x5eed);
    let mut below = move |n: u64| random.next_u64() % n;
    for step in 0..steps {
        let (now, link) = (world.now, LinkId(below(2) as u16));
        let local = &mut world.portals[LOCAL].endpoint;
        match below(6) {
            // Every path of it is closed, and others are opened.
            0 | 1 => {
                local.remove_link(now, link);
                world.portals[LOCAL].add_links(now);
            }
            2 => local.handle_link_down(now, link, DownReason::LinkLost),
            3 => local.handle_link_up(now, link),
            4 => drop(world.cut.insert(link.0)),
            _ => world.cut.clear(),
        }
        for side in [LOCAL, REMOTE] {
            world.inner(side, step as u16, 200);
        }
        world.run(ms(10 + luck.next_u64() % 400));
        for _ in 0..5 {
            let again = { seen.borrow().recorded[below(seen.borrow().recorded.len() as u64) as usize].clone() };
            world.inject(again);
        }
        world.run(ms(1));
    }
    let labels = seen.borrow().labels.len();
    assert!(world.portals.iter().all(|portal| portal.endpoint.snapshot(world.now).labels < 400), "labels are freed");
    labels
}

#[test]
fn no_nonce_comes_twice_however_paths_come_and_go() {
    for seed in 1..5 {
        let labels = live(seed, 250);
        assert!(labels > 200, "seed {seed}: {labels} paths and keys");
    }
}

#[test]
fn an_id_that_was_closed_long_ago_does_not_come_back_when_an_older_path_closes() {
    let mut world = World::new(&[0, 0], 1);
    let seen = Rc::new(RefCell::new(Seen::default()));
    let tape = Rc::clone(&seen);
    world.rule = Box::new(move |_, flight| {
        tape.borrow_mut().take(flight);
        Fate::Pass
    });
    world.run(ms(500));
    // One link comes and goes for longer than closed ids are on record, the other one stays until then.
    let again = |world: &mut World, link: u16| {
        let now = world.now;
        world.portals[LOCAL].endpoint.remove_link(now, LinkId(link));
        world.portals[LOCAL].add_links(now);
        world.run(ms(100));
    };
    (0..100).for_each(|_| again(&mut world, 0));
    again(&mut world, 1);
    let recorded = std::mem::take(&mut seen.borrow_mut().recorded);
    for flight in recorded.into_iter().filter(|flight| flight.from == LOCAL) {
        world.inject(flight);
    }
    world.run(ms(1_000));
    assert!(world.paths(REMOTE).len() <= 4, "{:?}", world.paths(REMOTE));
}
