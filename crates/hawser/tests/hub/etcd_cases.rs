//! What harm to etcd does to a hub whose peers are there: to traffic nothing, to failover nothing. Three servers of
//! Debian's etcd, two members, a home; all traffic is pings each 20 ms.

use std::fs;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use hawser_wire::traffic::PingReport;

use crate::etcd_hub::{Hub, Setup, lost, said};
use crate::faketime;
use crate::lab::{Portal, ms};

/// A revoked peer is out on every member within this, with etcd (docs/hub.md); where etcd takes a second to answer, a
/// write and its way back more.
const REVOKED_WITHIN: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_secs(1);
/// What is done to etcd lasts for this long: leases end, and members find out.
const LASTS: Duration = Duration::from_secs(8);
/// Bytes that etcd takes: some values of the most that a word of a command may have (execve(2)).
const QUOTA: u64 = 4 << 20;
const VALUE: usize = 128_000;

fn hub() -> Hub {
    let hub = Hub::new(Setup { servers: 3, ..Setup::default() });
    hub.admit_home();
    hub
}

fn pinging(hub: &Hub, duration: Duration) -> JoinHandle<PingReport> {
    let ping = hub.ping(ms(20), duration);
    spawn(move || ping.run().expect("a ping"))
}

fn assert_unnoticed(pinging: JoinHandle<PingReport>) {
    let report = pinging.join().expect("no panic");
    assert_eq!(lost(&report), 0, "of {} requests", report.sent.len());
}

fn wait_until_reached(hub: &Hub) {
    for member in 0..2 {
        hub.wait_for_etcd(member, "etcd, and both members there", |etcd| etcd.reached && etcd.members == 2);
    }
}

/// The member that the home goes to dies, and is started again: nobody needs etcd for it.
fn fail_over(hub: &mut Hub) {
    let owner = 1 - hub.kill_active();
    hub.start_member(owner);
    hub.portal(owner).wait_for("the home", |status| status.peers.iter().any(|peer| peer.name == "home"));
}

/// From the order to the last member that follows it.
fn revoke(hub: &Hub, what: &str, within: Duration) {
    let begun = Instant::now();
    let asked = spawn({
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.args(["hub", "revoke", "home", "--socket"]).arg(&hub.portal(0).socket);
        move || command.output().expect("it runs")
    });
    let gone = hub.gone_after(begun);
    println!(
        "{what}: revoked on both members after {} ms; {}",
        gone.as_millis(),
        said(&asked.join().expect("no panic"))
    );
    assert!(gone < within, "{what}: {gone:?}");
}

#[test]
fn etcd_that_answers_after_a_second_is_as_good() {
    let hub = Hub::new(Setup { servers: 3, round_trip: Some(SLOW), ..Setup::default() });
    hub.admit_home();
    let pings = pinging(&hub, LASTS);
    sleep(LASTS);
    for member in 0..2 {
        hub.wait_for_etcd(member, "etcd to be reached still", |etcd| etcd.reached && etcd.members == 2);
    }
    assert_unnoticed(pings);
    revoke(&hub, "etcd slow", REVOKED_WITHIN + SLOW);
}

#[test]
fn one_of_three_servers_is_not_missed() {
    let mut hub = hub();
    for server in 0..3 {
        let pings = pinging(&hub, LASTS);
        hub.servers.kill(server);
        sleep(LASTS / 2);
        wait_until_reached(&hub);
        hub.servers.begin(server);
        hub.servers.wait_until_healthy();
        assert_unnoticed(pings);
    }
    hub.servers.kill(0);
    sleep(LASTS / 2);
    wait_until_reached(&hub);
    revoke(&hub, "one of three servers killed", REVOKED_WITHIN);
}

#[test]
fn without_a_quorum_peers_are_served_and_move_and_nobody_joins() {
    let mut hub = hub();
    let pings = pinging(&hub, LASTS);
    hub.servers.kill(0);
    hub.servers.kill(1);
    for member in 0..2 {
        let etcd = hub.wait_for_etcd(member, "etcd to be away", |etcd| !etcd.reached);
        println!("no quorum: {}", etcd.why.unwrap_or_default());
    }
    let told = said(&hub.hub(0, &["add", "branch", "--key", KEY, "--allowed-ips", "203.0.113.9/32", "--wait", "1"]));
    assert!(told.contains("error: add peer branch: etcd is not reached: "), "{told}");
    assert_unnoticed(pings);
    fail_over(&mut hub);
    hub.servers.begin(0);
    hub.servers.begin(1);
    wait_until_reached(&hub);
    revoke(&hub, "quorum back", REVOKED_WITHIN);
}

#[test]
fn all_servers_may_go_and_come_back() {
    let mut hub = hub();
    let pings = pinging(&hub, LASTS);
    (0..3).for_each(|server| hub.servers.kill(server));
    (0..2).for_each(|member| drop(hub.wait_for_etcd(member, "etcd to be away", |etcd| !etcd.reached)));
    assert_unnoticed(pings);
    fail_over(&mut hub);
    let pings = pinging(&hub, LASTS);
    (0..3).for_each(|server| hub.servers.begin(server));
    wait_until_reached(&hub);
    assert_unnoticed(pings);
    let owner = crate::etcd_hub::MEMBERS[hub.active()];
    hub.portal(0).wait_for("the new owner in etcd", |_| hub.list(0).peers[0].owner.as_deref() == Some(owner));
    println!("etcd has {} MB of memory for each server", hub.servers.memory() / 3 / 1_000_000);
    revoke(&hub, "all servers back", REVOKED_WITHIN);
}

#[test]
fn etcd_that_is_full_forgets_who_is_revoked_and_takes_nobody() {
    let mut hub = Hub::new(Setup { servers: 1, quota: Some(QUOTA), ..Setup::default() });
    hub.admit_home();
    let pings = pinging(&hub, LASTS);
    let value = "x".repeat(VALUE);
    let is_full = (0..64).any(|at| !hub.servers.try_ctl(&format!("put /fill/{at} {value}")).status.success());
    assert!(is_full, "the quota is not used up");
    let told = said(&hub.hub(0, &["add", "branch", "--key", KEY, "--allowed-ips", "203.0.113.9/32", "--wait", "1"]));
    assert!(told.contains("space exceeded"), "{told}");
    assert_unnoticed(pings);
    fail_over(&mut hub);
    hub.wait_until_answered();
    revoke(&hub, "etcd full", REVOKED_WITHIN);
    let full = hub.wait_for_etcd(0, "to be told", |etcd| etcd.unwritten.is_some());
    assert!(full.reached, "{full:?}");
    let revision = hub.servers.ctl("get /hawser/hub/ -w json");
    let (_, revision) = revision.split_once("\"revision\":").expect("a header");
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    for words in ["del /fill/ --prefix", &format!("compact {revision}"), "defrag", "alarm disarm"] {
        hub.servers.ctl(words);
    }
    for member in 0..2 {
        hub.wait_for_etcd(member, "the revocation", |etcd| etcd.revoked == 1 && etcd.members == 2);
    }
}

#[test]
fn a_clock_that_jumps_ends_no_lease_and_hides_no_revocation() {
    let mut hub = hub();
    let offset = hub.path("offset");
    fs::write(&offset, "+0").expect("a file");
    hub.portals[0] = None;
    let (library, file) = (faketime::library(), offset.display().to_string());
    let words = [
        "env".to_owned(),
        format!("LD_PRELOAD={library}"),
        format!("FAKETIME_TIMESTAMP_FILE={file}"),
        "FAKETIME_NO_CACHE=1".to_owned(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let folder = offset.parent().expect("a folder");
    hub.portals[0] = Some(Portal::start_by(&hub.members[0], folder, crate::etcd_hub::MEMBERS[0], &words));
    wait_until_reached(&hub);
    let before = hub.wait_for_etcd(0, "etcd", |etcd| etcd.reached).since_s;
    for jump in ["+400d", "-400d"] {
        fs::write(&offset, jump).expect("a file");
        sleep(LASTS);
    }
    let after = hub.wait_for_etcd(0, "etcd", |etcd| etcd.reached).since_s;
    assert!(after > before + LASTS.as_secs_f64(), "it was missed: {before} s, {after} s");
    assert_eq!(hub.wait_for_etcd(1, "etcd", |_| true).members, 2);
    revoke(&hub, "after two jumps", REVOKED_WITHIN);
}

const KEY: &str = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
