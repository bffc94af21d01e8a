//! What disks of etcd's servers that hang do to a hub. Such a server keeps its connections, tells what it knows, and
//! has another one renew leases; what a quorum is to be asked for, or is to be written, gets no answer.

use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use crate::etcd::Kind;
use crate::etcd_cases::{REVOKED_WITHIN, Revoked, assert_nobody_joins, harmless, revoke, wait_until_gone};
use crate::figures;
use crate::lab::ms;
use crate::store::LEASE_S;
use crate::world::{HOMES, MEMBERS, Setup, World, told};

const DISKS: Kind = Kind { quota: None, disks: true };
/// The member whose server is harmed: commands are given to the first one.
const FAR: usize = 1;
/// It has left such a server within a round, a third of its lease, in which a call may take 3 s (hawser-etcd), and what
/// it takes to connect to another.
const LEFT_WITHIN: Duration = Duration::from_secs(LEASE_S / 3 + 3 + 1);
/// A quorum elects within two of etcd's election timeouts of a second, and more where votes are split; members ask
/// again after 3 s at most (hawser-etcd).
const BACK_WITHIN: Duration = Duration::from_secs(2 + 1 + 3);

/// Until the member talks to another server than this.
fn wait_until_left(world: &World, server: usize, since: Instant) {
    let asked = || world.store.servers.asked_by(&world.network.members[FAR]);
    while asked().is_none_or(|asked| asked == server) {
        assert!(since.elapsed() < LEFT_WITHIN, "{} talks to it still", MEMBERS[FAR]);
        sleep(ms(50));
    }
    println!("left after {} ms", since.elapsed().as_millis());
}

#[test]
fn a_server_whose_disk_hangs_is_left_and_keeps_nobody_in_who_is_revoked() {
    let mut world = World::new(Setup { servers: DISKS, ..Setup::default() });
    let server = world.store.servers.asked_by(&world.network.members[FAR]).expect("it is reached");
    harmless(&mut world, "a server's disk hangs", |world| {
        let begun = Instant::now();
        world.store.servers.hang(server);
        // It answers until something is to be written.
        world.store.servers.wait_until_healthy();
        wait_until_left(world, server, begun);
    });
    // A member that died meanwhile may have begun with that server.
    let is_in_step = |age: f64| age < LEASE_S as f64;
    world.wait_for_etcd_to("be in step", |etcd| etcd.reached && etcd.in_step_age_s.is_some_and(is_in_step));
    revoke(&world, "one of three disks hangs", REVOKED_WITHIN);
}

#[test]
fn who_is_revoked_while_a_quorum_hangs_is_out_there_at_once_and_everywhere_once_that_goes_on() {
    let mut world = World::new(Setup { servers: DISKS, ..Setup::default() });
    harmless(&mut world, "a quorum's disks hang", |world| {
        (0..2).for_each(|server| world.store.servers.hang(server));
        assert!(!world.store.servers.try_ctl("put health 1").status.success(), "it is written");
        world.wait_for_etcd_to("be away", |etcd| !etcd.reached);
        assert_nobody_joins(world, "etcd is not reached: ");
    });
    let begun = Instant::now();
    let said = scope(|scope| {
        let asked = scope.spawn(|| told(&world.hub_command(0, &["revoke", HOMES[0]])));
        wait_until_gone(&world, begun, 0..1);
        assert!(begun.elapsed() < REVOKED_WITHIN, "{} waits for etcd", MEMBERS[0]);
        asked.join().expect("no panic")
    });
    let pending = "error: revoke peer home: done at this member, and not in etcd yet: etcd is not reached: ";
    assert!(said.starts_with(pending), "{said}");
    assert!((1..MEMBERS.len()).all(|member| world.serves(member, 0)), "they cannot know");

    let begun = Instant::now();
    (0..2).for_each(|server| world.store.servers.go_on(server));
    wait_until_gone(&world, begun, 1..MEMBERS.len());
    let gone = begun.elapsed();
    assert!(gone < BACK_WITHIN + REVOKED_WITHIN, "{gone:?}");
    figures::keep("revoked: while a quorum's disks hang", &[Revoked { after_ms: gone.as_millis() as u64 }]);
    comes_back(&world);
}

/// Its revocation is taken back at another member, and it is added anew.
fn comes_back(world: &World) {
    world.wait_for_etcd_to("know the revocation", |etcd| etcd.reached && etcd.revoked == 1);
    let said = told(&world.hub_command(FAR, &["revoke", "--undo", HOMES[0]]));
    let (_, key) = said.split_once("may serve home again, by the key ").unwrap_or_else(|| panic!("{said}"));
    let key = key.lines().next().expect("a key");
    world.wait_for_etcd_to("know of none", |etcd| etcd.revoked == 0);
    world.admit(0, key);
    world.wait_until_ready();
}
