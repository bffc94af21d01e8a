//! What full disks of etcd's servers do to a hub. Such a server goes on for as long as what it has finds its place, and
//! ends then: its log has some that was set aside.

use std::ops::Range;

use crate::etcd::Kind;
use crate::etcd_cases::{REVOKED_WITHIN, VALUE, assert_nobody_joins, harmless, revoke, unnoticed};
use crate::world::{Setup, World};

const DISKS: Kind = Kind { quota: None, disks: true };

/// The disks of these are full, and they end of what is to be written next.
fn full(world: &mut World, servers: Range<usize>) {
    servers.clone().for_each(|server| world.store.servers.fill(server));
    // Where all are full it may be written to their logs, and not answered.
    let _ = world.store.servers.try_ctl(&format!("put /full {}", "x".repeat(VALUE)));
    servers.for_each(|server| world.store.servers.wait_for_end(server));
}

/// They have room again, and start.
fn begin_again(world: &mut World, servers: Range<usize>) {
    servers.for_each(|server| {
        world.store.servers.empty(server);
        world.store.servers.begin(server);
    });
    world.store.servers.wait_until_healthy();
    world.wait_for_etcd();
}

#[test]
fn a_server_whose_disk_is_full_is_not_missed() {
    let mut world = World::new(Setup { servers: DISKS, ..Setup::default() });
    harmless(&mut world, "a server's disk is full", |world| {
        full(world, 0..1);
        world.wait_for_etcd();
    });
    begin_again(&mut world, 0..1);
    revoke(&world, "a full disk has room again", REVOKED_WITHIN);
}

#[test]
fn without_room_on_any_disk_nobody_joins_and_members_die_unnoticed() {
    let mut world = World::new(Setup { servers: DISKS, ..Setup::default() });
    harmless(&mut world, "all disks are full", |world| {
        full(world, 0..3);
        world.wait_for_etcd_to("be away", |etcd| !etcd.reached);
        assert_nobody_joins(world, "etcd is not reached: ");
    });
    unnoticed(&mut world, |world| begin_again(world, 0..3));
    revoke(&world, "all full disks have room again", REVOKED_WITHIN);
}
