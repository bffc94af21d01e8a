//! Clocks that jump: a member's, and those of all of etcd's servers. Nothing that a hub does hangs on what day it is.

use std::fs;

use crate::etcd_cases::{LASTS, REVOKED_WITHIN, failover, harmless, revoke, unnoticed};
use crate::faketime;
use crate::figures;
use crate::owners::JUMP_S;
use crate::wall_clock::WallClock;
use crate::world::{Setup, World};

#[test]
fn a_members_clock_that_jumps_ends_no_lease_and_hides_no_revocation() {
    let mut world = World::new(Setup::default());
    let offset = world.path("offset", "txt");
    fs::write(&offset, "+0").expect("a file");
    let words = [
        "env".to_owned(),
        format!("LD_PRELOAD={}", faketime::library()),
        format!("FAKETIME_TIMESTAMP_FILE={}", offset.display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let member = world.active(0);
    world.signal(member, rustix::process::Signal::KILL);
    world.restart_by(member, &words);
    world.wait_until_ready();
    world.wait_for_etcd();
    let since = |world: &World| world.wait_for_etcd_to("be reached", |etcd| etcd.reached)[member].since_s;
    let before = since(&world);
    for jump in [JUMP_S, -JUMP_S] {
        unnoticed(&mut world, |_| fs::write(&offset, format!("{jump:+}")).expect("a file"));
    }
    let after = since(&world);
    assert!(after > before + LASTS.as_secs_f64(), "it was missed: {before} s, {after} s");
    world.wait_for_etcd();
    figures::keep("a member's clock jumped", &[failover(&mut world)]);
    revoke(&world, "after two jumps", REVOKED_WITHIN);
}

#[test]
fn clocks_of_etcds_servers_that_jump_end_no_lease_and_hide_no_revocation() {
    let mut world = World::new(Setup::default());
    let clocks: Vec<WallClock> = world.store.servers.processes().into_iter().map(WallClock::of).collect();
    let set = |ahead_s: i64| clocks.iter().for_each(|clock| clock.set(ahead_s));
    unnoticed(&mut world, |_| set(JUMP_S));
    // Each goes its own way.
    harmless(&mut world, "clocks jump", |_| {
        clocks.iter().zip([-JUMP_S, 0, JUMP_S]).for_each(|(clock, ahead_s)| clock.set(ahead_s));
    });
    world.wait_for_etcd();
    revoke(&world, "servers' clocks jumped", REVOKED_WITHIN);
}
