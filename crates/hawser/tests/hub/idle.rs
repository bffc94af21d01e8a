//! Homes that have nothing to say when their member dies: other members notice, and tell them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_core::session::constants::IDLE_AFTER;
use rustix::process::Signal;
use serde::Serialize;

use crate::cases::repeated;
use crate::lab::{PATIENCE, ms};
use crate::owners::Owned;
use crate::world::{HOMES, MEMBERS, Setup, World};

/// A home has moved within this: what a million's simulation is to reach, too (crates/hawser-hub/README.md).
const WITHIN: Duration = Duration::from_secs(1);
/// How often a home is asked where its packets go.
const GLANCE: Duration = Duration::from_millis(5);

/// When a home that was with the member has moved, in ms; none for one that was with another.
#[derive(Debug, Serialize)]
struct Run {
    moved_after_ms: Vec<Option<f64>>,
    #[serde(flatten)]
    owned: Owned,
}

/// Both homes are silent for so long that nothing but claims is said; then this is done to the first one's member.
fn once(world: &mut World, harm: fn(&World, usize), heal: fn(&mut World, usize)) -> Run {
    let capture = world.capture();
    sleep(IDLE_AFTER + ms(2_000));
    let before = [0, 1].map(|home| world.active(home));
    let member = before[0];
    harm(world, member);
    let harmed = Instant::now();
    let moved = |home: usize| {
        while world.active(home) == member {
            assert!(harmed.elapsed() < PATIENCE, "{} is where it was: {}", HOMES[home], world.homes[home].log());
            sleep(GLANCE);
        }
        harmed.elapsed().as_secs_f64() * 1e3
    };
    let moved = &moved;
    let hit = |home: usize| (before[home] == member).then_some(home);
    let moved_after_ms = std::thread::scope(|scope| {
        let waiting = [0, 1].map(|home| hit(home).map(|home| scope.spawn(move || moved(home))));
        waiting.map(|home| home.map(|home| home.join().expect("no panic"))).into()
    });
    heal(world, member);
    world.wait_until_ready();
    world.wait_for_etcd();
    Run { moved_after_ms, owned: capture.finish(&world.logs()) }
}

fn assert_soon(runs: &[Run]) {
    for run in runs {
        let all: Vec<f64> = run.moved_after_ms.iter().copied().flatten().collect();
        assert!(!all.is_empty() && all.iter().all(|after| *after <= WITHIN.as_secs_f64() * 1e3), "{run:?}");
    }
}

#[test]
fn a_home_with_nothing_to_say_leaves_a_dead_member_within_a_second() {
    let killed = |world: &World, member| world.signal(member, Signal::KILL);
    assert_soon(&repeated(Setup::default(), "killed, idle", 10, |world| once(world, killed, World::restart)));
}

#[test]
fn a_home_with_nothing_to_say_leaves_a_silent_machine_within_a_second() {
    let silenced = |world: &World, member| world.silence(member, true);
    let heard = |world: &mut World, member| world.silence(member, false);
    assert_soon(&repeated(Setup::default(), "silent, idle", 5, |world| once(world, silenced, heard)));
}

#[test]
fn members_that_do_not_reach_each_other_move_nobody() {
    let world = World::new(Setup::default());
    let (capture, before) = (world.capture(), [0, 1].map(|home| world.active(home)));
    world.part_members();
    sleep(IDLE_AFTER + ms(2_000));
    for (name, log) in MEMBERS.iter().zip(world.logs()) {
        assert!(log.contains("hub member suspected"), "{name} misses nobody: {log}");
    }
    assert_eq!([0, 1].map(|home| world.active(home)), before);
    capture.finish(&world.logs());
}
