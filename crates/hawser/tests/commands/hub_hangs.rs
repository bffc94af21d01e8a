//! A hub whose etcd writes to a disk that hangs: connections stand, renewals are answered, and nothing is written. The
//! long cases are in tests/hub. Needs root, and Debian's etcd-server, etcd-client and e2fsprogs.

use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};

use crate::etcd::Kind;
use crate::etcd_hub::{ETCD, Hub, LEASE_S, THREE, lost, said};
use crate::hub_etcd::{REVOKED_WITHIN, is_taken_back_at_the_other_member};
use crate::lab::{PATIENCE, ms};

const DISKS: Kind = Kind { quota: None, disks: true };
/// A member has left such a server within this: a round each second, a third of the lease, in which a call may take 3 s
/// (hawser-etcd); and as much again for etcd's election, where builds have the processors.
const LEFT_WITHIN: Duration = Duration::from_secs(8);
/// A member asks an etcd that was away after 3 s at most (hawser-etcd).
const BACK_WITHIN: Duration = Duration::from_secs(4);
/// What `hub revoke` says of a revocation that etcd does not take.
const PENDING: &str = "error: revoke peer home: done at this member, and not in etcd yet: ";

/// The server that geneva talks to: it connects to another one where a leader changed, too.
fn server_of_geneva(hub: &Hub) -> usize {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(server) = hub.servers.asked_by(&hub.members[1]) {
            return server;
        }
        assert!(Instant::now() < end, "it talks to none: {}", hub.portal(1).log());
        sleep(ms(50));
    }
}

/// Until geneva talks to another server than this.
fn wait_until_left(hub: &Hub, server: usize, since: Instant) {
    while server_of_geneva(hub) == server {
        assert!(since.elapsed() < LEFT_WITHIN, "it stays: {:?}; {}", hub.portal(1).status(), hub.portal(1).log());
        sleep(ms(50));
    }
}

/// Until zurich serves the home no more: etcd is not waited for.
fn wait_until_gone_here(hub: &Hub, since: Instant) {
    while hub.serves_home(0) {
        assert!(since.elapsed() < REVOKED_WITHIN, "it is served where it was revoked");
        sleep(ms(5));
    }
}

#[test]
fn a_member_leaves_a_server_whose_disk_hangs_and_hears_elsewhere_who_is_revoked() {
    let mut hub = Hub::by(&THREE, DISKS, "");
    hub.admit_home();
    let key = hub.list(0).peers[0].public_key.clone();
    let ping = hub.ping(ms(20), ms(6_000));
    let pinging = spawn(move || ping.run().expect("a ping"));
    let first = server_of_geneva(&hub);
    let begun = Instant::now();
    hub.servers.hang(first);
    // It answers until something is to be written.
    hub.servers.wait_until_healthy();
    wait_until_left(&hub, first, begun);
    println!("left after {} ms", begun.elapsed().as_millis());
    let report = pinging.join().expect("no panic");
    assert_eq!(lost(&report), 0, "of {} requests", report.sent.len());
    hub.servers.go_on(first);
    hub.servers.wait_until_healthy();

    // Of another one the first thing that hangs is a revocation.
    hub.wait_for_etcd(1, "etcd", |etcd| etcd.reached);
    let next = server_of_geneva(&hub);
    hub.servers.hang(next);
    let begun = Instant::now();
    let told = said(&hub.hub(0, &["revoke", "home"]));
    let gone = hub.gone_after(begun);
    println!("revoked after {} ms: {told}", gone.as_millis());
    assert!(gone < LEFT_WITHIN + REVOKED_WITHIN, "{gone:?}: {told}");
    for at in 0..2 {
        hub.wait_for_etcd(at, "the revocation", |etcd| etcd.reached && etcd.revoked == 1);
    }
    is_taken_back_at_the_other_member(&hub, &key);
}

#[test]
fn a_revocation_while_etcds_disk_hangs_holds_here_at_once_and_everywhere_once_that_goes_on() {
    let mut hub = Hub::by(&[ETCD], DISKS, "etcd_strict = true\n");
    hub.admit_home();
    let key = hub.list(0).peers[0].public_key.clone();
    hub.servers.hang(0);
    let begun = Instant::now();
    let told = scope(|scope| {
        let asked = scope.spawn(|| said(&hub.hub(0, &["revoke", "home"])));
        wait_until_gone_here(&hub, begun);
        asked.join().expect("no panic")
    });
    assert!(told.starts_with(PENDING) && !told.contains("the connection ended"), "{told}");
    // Geneva is strict, and knows that it is not told.
    while hub.serves_home(1) {
        assert!(begun.elapsed() < Duration::from_secs(2 * LEASE_S), "{:?}", hub.portal(1).status());
        sleep(ms(20));
    }
    let again = said(&hub.hub(0, &["revoke", "home"]));
    assert!(again.starts_with(PENDING), "{again}");
    hub.wait_for_etcd(0, "etcd to be away", |etcd| !etcd.reached);
    // It was given to etcd, and is written when the disk goes on.
    let told = said(&hub.hub(0, &["revoke", "--undo", "home"]));
    assert!(told.starts_with("error: take back revocation of home: etcd is not reached: "), "{told}");
    assert!(!hub.serves_home(0), "it is not taken back");

    let begun = Instant::now();
    hub.servers.go_on(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "the revocation", |etcd| etcd.reached && etcd.revoked == 1 && etcd.peers == 0);
    }
    let gone = hub.gone_after(begun);
    println!("revoked on both members {} ms after the disk went on", gone.as_millis());
    assert!(gone < BACK_WITHIN + REVOKED_WITHIN, "{gone:?}");
    is_taken_back_at_the_other_member(&hub, &key);
}

#[test]
fn a_revocation_under_way_is_taken_back_when_etcd_has_done_so_and_not_before() {
    let mut hub = Hub::by(&[ETCD], DISKS, "");
    hub.admit_home();
    hub.servers.hang(0);
    let begun = Instant::now();
    let told = scope(|scope| {
        let asked = scope.spawn(|| hub.hub(0, &["revoke", "home"]));
        wait_until_gone_here(&hub, begun);
        let told = said(&hub.hub(0, &["revoke", "--undo", "home"]));
        asked.join().expect("no panic");
        told
    });
    let unknown = "error: take back revocation of home: take back revocation: no answer within 3 s\n";
    assert!(told.starts_with(unknown), "{told}");
    // Both were given to etcd, which does one after the other.
    hub.servers.go_on(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "neither", |etcd| etcd.reached && etcd.revoked == 0 && etcd.peers == 0);
    }
    hub.admit_home();
}
