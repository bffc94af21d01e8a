//! A hub whose peers are in a real etcd, with TLS and a role: members join by it, serve without it, and forget whom it
//! revokes. The long cases are in tests/hub, disks that hang in `hub_hangs`. Needs root, and Debian's etcd-server and
//! etcd-client.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::etcd_hub::{ETCD, Hub, LEASE_S, lost, said};
use crate::lab::ms;
use hawser_portal::api::EventKind;
use rustix::process::Signal;

/// A revoked peer is out on every member within this (docs/hub.md).
pub const REVOKED_WITHIN: Duration = Duration::from_secs(2);

#[test]
fn peers_come_and_go_by_etcd_and_are_served_while_it_is_away() {
    let mut hub = Hub::new("");
    hub.admit_home();
    let owner = hub.active();
    hub.portal(owner).wait_for("its epoch in etcd", |_| hub.list(owner).peers[0].epoch > 0);
    let list = hub.list(1 - owner);
    let placed = [&list.peers[0].active, &list.peers[0].standby].map(|name| name.clone().expect("a member"));
    assert_ne!(placed[0], placed[1], "{list:?}");
    assert_eq!(list.peers[0].owner.as_deref(), Some(crate::etcd_hub::MEMBERS[owner]));
    let again = hub.hub(0, &["add", "home", "--key", &list.peers[0].public_key, "--allowed-ips", "203.0.113.9/32"]);
    assert!(said(&again).starts_with("error: add peer home: the name is taken\nhint: "), "{}", said(&again));

    // Without etcd: nothing is lost, joining waits and says why, and a member that starts anew serves whom it served.
    let ping = hub.ping(ms(20), ms(4_000));
    let pinging = std::thread::spawn(move || ping.run().expect("a ping"));
    hub.servers.kill(0);
    for at in 0..2 {
        let etcd = hub.wait_for_etcd(at, "etcd to be away", |etcd| {
            etcd.why.as_ref().is_some_and(|why| why.starts_with("connect to "))
        });
        assert!(!etcd.reached && etcd.serving && etcd.peers == 1, "{etcd:?}");
    }
    let waits = hub.hub(0, &["add", "branch", "--key", KEY, "--allowed-ips", "203.0.113.9/32", "--wait", "1"]);
    let told = said(&waits);
    assert!(
        told.starts_with("waiting for up to 1 s: etcd is not reached: connect to https://198.51.9.1:2379: "),
        "{told}"
    );
    assert!(told.contains("error: add peer branch: etcd is not reached: "), "{told}");
    let report = pinging.join().expect("no panic");
    assert_eq!(lost(&report), 0, "of {} requests", report.sent.len());
    let owner = 1 - hub.kill_active();
    hub.start_member(owner);
    hub.portal(owner)
        .wait_for("the peer that it remembers", |status| status.peers.iter().any(|peer| peer.name == "home"));

    // It is back: a revocation is on both members at once.
    hub.servers.begin(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "etcd to be back", |etcd| etcd.reached && etcd.members == 2);
    }
    tells_that_it_was_away(&hub, owner);
    hub.wait_until_answered();
    let begun = Instant::now();
    assert_eq!(said(&hub.hub(0, &["revoke", "home"])), "revoked: no member serves home any more\n");
    let gone = hub.gone_after(begun);
    println!("revoked on both members after {} ms", gone.as_millis());
    assert!(gone < REVOKED_WITHIN, "{gone:?}");
    let key = &list.peers[0].public_key;
    let again = hub.hub(1, &["add", "home", "--key", key, "--allowed-ips", "203.0.113.8/32"]);
    assert!(said(&again).contains("its key is revoked"), "{}", said(&again));
}

/// Both members do: one of them started anew meanwhile.
fn tells_that_it_was_away(hub: &Hub, restarted: usize) {
    let told = hub.told_of_etcd(1 - restarted);
    let kinds: Vec<EventKind> = told.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::EtcdReached, EventKind::EtcdAway, EventKind::EtcdReached]);
    assert!(told[1].cause.starts_with("after ") && told[1].cause.contains(" s: "), "{told:?}");
    assert!(told[2].cause.starts_with("after "), "{told:?}");
    assert_eq!(hub.told_of_etcd(restarted)[0].kind, EventKind::EtcdAway, "it started without");
}

const KEY: &str = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";

#[test]
fn a_revocation_without_etcd_holds_here_at_once_and_is_told_when_etcd_is_back() {
    let mut hub = Hub::new("etcd_strict = true\n");
    hub.admit_home();
    hub.servers.kill(0);
    hub.wait_for_etcd(0, "etcd to be away", |etcd| !etcd.reached);
    // Geneva, which is strict, serves nobody once the lease is over; zurich goes on until it is told here.
    let begun = Instant::now();
    while hub.serves_home(1) {
        assert!(begun.elapsed() < Duration::from_secs(2 * LEASE_S), "{:?}", hub.portal(1).status());
        std::thread::sleep(ms(20));
    }
    println!("a strict member serves nobody {} ms after etcd was missed", begun.elapsed().as_millis());
    assert!(hub.serves_home(0));
    let told = said(&hub.hub(0, &["revoke", "home"]));
    let expected = "error: revoke peer home: done at this member, and not in etcd yet: etcd is not reached";
    assert!(told.starts_with(expected), "{told}");
    assert!(!hub.serves_home(0));
    let key = &hub.list(0).peers[0].public_key.clone();
    let told = said(&hub.hub(0, &["revoke", "--undo", "home"]));
    assert!(told.starts_with(&format!("taken back: members may serve home again, by the key {key}\nhint: ")), "{told}");
    hub.portal(0)
        .wait_for("the home, of which etcd never heard", |status| status.peers.iter().any(|peer| peer.name == "home"));
    assert!(said(&hub.hub(0, &["revoke", "home"])).starts_with(expected));
    hub.portal(0).signal(Signal::KILL);
    hub.portals[0] = None;
    hub.start_member(0);
    hub.wait_for_etcd(0, "its status", |_| true);
    assert!(!hub.serves_home(0), "it remembers");
    hub.servers.begin(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "the revocation", |etcd| etcd.reached && etcd.revoked == 1 && etcd.peers == 0);
        assert!(!hub.serves_home(at));
    }
    is_taken_back_at_the_other_member(&hub, key);
}

/// By the key; the peer itself comes anew.
pub fn is_taken_back_at_the_other_member(hub: &Hub, key: &str) {
    assert!(said(&hub.hub(1, &["revoke", "--undo", key])).starts_with("taken back: members may serve home again"));
    for at in 0..2 {
        hub.wait_for_etcd(at, "nobody to be revoked", |etcd| etcd.revoked == 0);
    }
    let told = said(&hub.hub(1, &["revoke", "--undo", "home"]));
    assert!(told.starts_with("error: take back revocation of home: no key of home is revoked\nhint: "), "{told}");
    hub.admit_home();
}

#[test]
fn a_name_that_another_member_has_is_refused_by_name_and_free_once_that_one_is_gone() {
    let mut hub = Hub::new("");
    hub.admit_home();
    let key =
        hub.list(0).members.iter().find(|member| member.name == "zurich").expect("it is there").public_key.clone();
    hub.portal(1).signal(Signal::KILL);
    hub.portals[1] = None;
    let file = hub.path("geneva.toml");
    let text = std::fs::read_to_string(&file).expect("its configuration");
    std::fs::write(&file, text.replace("name = \"geneva\"", "name = \"zurich\"")).expect("writable");
    hub.start_member(1);
    // It is told, and serves its peers.
    let etcd = hub.wait_for_etcd(1, "another portal of its name", |etcd| etcd.namesake.is_some());
    let other = format!("member zurich is another portal, at 192.0.1.2:4920, with the public key {key}");
    assert_eq!((etcd.namesake.as_deref(), etcd.unwritten), (Some(&*other), None));
    let told = said(&hub.hub(1, &["status"]));
    let line =
        format!("not among the hub's members in etcd: {other}\n  hint: give one of the two another name in [hub]");
    assert!(told.contains(&line), "{told}");
    assert!(hub.serves_home(1) && hub.portal(1).log().contains("not among the hub's members in etcd"));
    // The first one keeps the name for as long as it is there.
    std::thread::sleep(Duration::from_secs(2 * LEASE_S));
    let keys = |hub: &Hub, at| hub.list(at).members.iter().map(|one| one.public_key.clone()).collect::<Vec<_>>();
    assert_eq!((keys(&hub, 0), keys(&hub, 1)), (vec![key.clone()], vec![key.clone()]));
    // As where a machine was installed anew: another key, and the name of one that is gone.
    hub.portal(0).signal(Signal::KILL);
    hub.portals[0] = None;
    hub.wait_for_etcd(1, "the name to be its own", |etcd| etcd.namesake.is_none() && etcd.members == 1);
    assert_ne!(keys(&hub, 1), [key]);
}

#[test]
fn a_copy_of_etcd_that_is_restored_takes_no_revocation_back() {
    let mut hub = Hub::new("");
    hub.admit_home();
    let key = hub.list(0).peers[0].public_key.clone();
    let mark = |hub: &Hub| hub.servers.ctl("get /hawser/hub/history --print-value-only");
    let before = mark(&hub);
    assert!(before.starts_with("{\"v\":1,\"id\":\""), "{before}");
    let copy = hub.path("copy.db").display().to_string();
    hub.servers.ctl(&format!("snapshot save {copy}"));
    assert_eq!(said(&hub.hub(0, &["revoke", "home"])), "revoked: no member serves home any more\n");
    for at in 0..2 {
        hub.wait_for_etcd(at, "the revocation", |etcd| etcd.revoked == 1);
    }
    hub.servers.kill(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "etcd to be away", |etcd| !etcd.reached);
    }
    restore(&copy, &hub.path("e0"));
    hub.servers.begin(0);
    for at in 0..2 {
        hub.wait_for_etcd(at, "the revocation", |etcd| etcd.reached && etcd.revoked == 1 && etcd.peers == 0);
        assert!(!hub.serves_home(at));
    }
    assert_ne!(mark(&hub), before, "whoever comes later is to know that it is a copy");
    is_taken_back_at_the_other_member(&hub, &key);
}

/// etcd's server, which has ended, begins with this copy the next time.
fn restore(copy: &str, folder: &Path) {
    std::fs::remove_dir_all(folder).expect("it was there");
    let peer = format!("http://{ETCD}:2380");
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["snapshot", "restore", copy, "--name", "e0", "--data-dir"]).arg(folder);
    command.args(["--initial-cluster", &format!("e0={peer}"), "--initial-advertise-peer-urls", &peer]);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
