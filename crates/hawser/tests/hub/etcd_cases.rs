//! What harm to etcd does to a hub whose peers are there: to traffic nothing, to failover nothing. Each case has people's
//! traffic while the harm comes, a member killed under traffic while it lasts, and a revoked peer after it.

use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cases::{GAP_MAX_MS, Harm, Run, assert_losses, assert_moved, assert_unnoticed, calmly, run};
use crate::etcd::Kind;
use crate::figures;
use crate::lab::{PATIENCE, ms};
use crate::store::{LEASE_S, away_for};
use crate::traffic::Seen;
use crate::world::{HOMES, MEMBERS, Setup, World, told};

/// A revoked peer is out on every member within this, with etcd (docs/hub.md); where etcd takes a second to answer, a
/// write and its way back more.
pub const REVOKED_WITHIN: Duration = Duration::from_secs(2);
const SLOW: Duration = Duration::from_secs(1);
/// What is done to etcd is looked at for this long: leases end, and members find out. And the most that a case takes.
pub const LASTS: Duration = Duration::from_secs(8);
const MOST: Duration = Duration::from_secs(14);
/// Bytes that etcd takes: some values of the most that a word of a command may have (execve(2)).
const QUOTA: u64 = 4 << 20;
pub const VALUE: usize = 128_000;
const KEY: &str = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";

/// From the order to the last member that follows it. Plain data.
#[derive(Serialize)]
pub struct Revoked {
    pub after_ms: u64,
}

/// What came of a case. Plain data.
#[derive(Serialize)]
struct Outcome {
    calm: Seen,
    killed: Run,
}

/// People go on while this is done to etcd, which nobody notices.
pub fn unnoticed(world: &mut World, deed: impl FnOnce(&mut World)) -> Seen {
    let seen = calmly(world, MOST, |world| {
        let begun = Instant::now();
        deed(world);
        sleep(LASTS.saturating_sub(begun.elapsed()));
    });
    assert_unnoticed(&seen);
    seen
}

/// The same, and while it lasts the member that the home is with dies, and starts again: nobody needs etcd for it.
pub fn harmless(world: &mut World, what: &str, deed: impl FnOnce(&mut World)) {
    let calm = unnoticed(world, deed);
    let killed = failover(world);
    figures::keep(&format!("etcd: {what}"), &[Outcome { calm, killed }]);
}

/// The member that the home is with dies, and starts again.
pub fn failover(world: &mut World) -> Run {
    let killed = run(world, Harm::Killed);
    assert_moved(std::slice::from_ref(&killed), GAP_MAX_MS);
    assert_losses(std::slice::from_ref(&killed));
    killed
}

/// The home is out on every member within that, and not answered; the other home goes on.
pub fn revoke(world: &World, what: &str, within: Duration) {
    let (capture, begun) = (world.capture(), Instant::now());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hawser"));
    command.args(["hub", "revoke", HOMES[0], "--socket"]).arg(world.path(MEMBERS[0], "sock"));
    let asked = spawn(move || command.output().expect("it runs"));
    wait_until_gone(world, begun, 0..MEMBERS.len());
    let gone = begun.elapsed();
    println!("{what}: revoked: {}", told(&asked.join().expect("no panic")));
    assert!(gone < within, "{what}: {gone:?}");
    assert_eq!(world.answers(0), [false; 2], "its packets pass still");
    assert!(world.is_answered(1), "it is another's affair");
    capture.finish(&world.logs());
    figures::keep(&format!("revoked: {what}"), &[Revoked { after_ms: gone.as_millis() as u64 }]);
}

/// Until none of these members serves the home.
pub fn wait_until_gone(world: &World, begun: Instant, mut members: impl Iterator<Item = usize> + Clone) {
    while members.clone().any(|member| world.serves(member, 0)) {
        assert!(
            begun.elapsed() < PATIENCE,
            "the home is served still: by {:?}",
            members.find(|at| world.serves(*at, 0))
        );
        sleep(ms(5));
    }
}

/// Who is to join waits, and is told why.
pub fn assert_nobody_joins(world: &World, why: &str) {
    let words = ["add", "new", "--key", KEY, "--allowed-ips", "203.0.113.10/32", "--wait", "1"];
    let told = told(&world.hub_command(0, &words));
    assert!(told.contains("error: add peer new: ") && told.contains(why), "{told}");
}

#[test]
fn etcd_that_answers_after_a_second_is_as_good() {
    let mut world = World::new(Setup { round_trip: Some(SLOW), ..Setup::default() });
    harmless(&mut world, "slow", |_| {});
    world.wait_for_etcd();
    revoke(&world, "etcd slow", REVOKED_WITHIN + SLOW);
}

#[test]
fn one_of_three_servers_is_not_missed() {
    let mut world = World::new(Setup::default());
    for server in 0..3 {
        harmless(&mut world, &format!("server {server} dies"), |world| {
            world.store.servers.kill(server);
            sleep(LASTS / 2);
            world.wait_for_etcd();
        });
        world.store.servers.begin(server);
        world.store.servers.wait_until_healthy();
    }
    world.store.servers.kill(0);
    sleep(LASTS / 2);
    world.wait_for_etcd();
    revoke(&world, "one of three servers dead", REVOKED_WITHIN);
}

#[test]
fn without_a_quorum_nobody_joins_and_members_die_unnoticed() {
    let mut world = World::new(Setup::default());
    harmless(&mut world, "no quorum", |world| {
        (0..2).for_each(|server| world.store.servers.kill(server));
        for etcd in world.wait_for_etcd_to("be away", |etcd| !etcd.reached) {
            println!("no quorum: {}", etcd.why.unwrap_or_default());
        }
        assert_nobody_joins(world, "etcd is not reached: ");
    });
    unnoticed(&mut world, |world| {
        (0..2).for_each(|server| world.store.servers.begin(server));
        world.wait_for_etcd();
    });
    revoke(&world, "quorum back", REVOKED_WITHIN);
}

#[test]
fn servers_that_do_not_reach_each_other_are_as_good_as_none() {
    let mut world = World::new(Setup::default());
    harmless(&mut world, "servers parted", |world| {
        world.store.servers.part(true);
        world.wait_for_etcd_to("be away", |etcd| !etcd.reached);
        assert_nobody_joins(world, "etcd is not reached: ");
    });
    unnoticed(&mut world, |world| {
        world.store.servers.part(false);
        world.wait_for_etcd();
    });
    revoke(&world, "servers joined again", REVOKED_WITHIN);
}

#[test]
fn all_servers_may_go_and_come_back() {
    let mut world = World::new(Setup::default());
    harmless(&mut world, "all gone", |world| {
        (0..3).for_each(|server| world.store.servers.kill(server));
        world.wait_for_etcd_to("be away", |etcd| !etcd.reached);
    });
    unnoticed(&mut world, |world| {
        (0..3).for_each(|server| world.store.servers.begin(server));
        world.wait_for_etcd();
    });
    let owner = MEMBERS[world.active(0)];
    world.wait_for_etcd_to_say(0, "its peers", |_| world.owner_in_etcd(0).as_deref() == Some(owner));
    println!("etcd has {} MB of memory for each server", world.store.servers.memory() / 3 / 1_000_000);
    revoke(&world, "all servers back", REVOKED_WITHIN);
}

#[test]
fn etcd_that_is_full_forgets_who_is_revoked_and_takes_nobody() {
    let mut world = World::new(Setup { servers: Kind { quota: Some(QUOTA), disks: false }, ..Setup::default() });
    harmless(&mut world, "full", |world| {
        let value = "x".repeat(VALUE);
        let put = |at: u32| world.store.servers.try_ctl(&format!("put /fill/{at} {value}"));
        assert!((0..64).any(|at| !put(at).status.success()), "the quota is not used up");
        assert_nobody_joins(world, "space exceeded");
    });
    revoke(&world, "etcd full", REVOKED_WITHIN);
    let full = world.wait_for_etcd_to_say(0, "what is not written", |etcd| etcd.unwritten.is_some());
    assert!(full.reached, "{full:?}");
    let revision = world.store.servers.ctl("get /hawser/hub/ -w json");
    let (_, revision) = revision.split_once("\"revision\":").expect("a header");
    let revision: String = revision.chars().take_while(char::is_ascii_digit).collect();
    for words in ["del /fill/ --prefix", &format!("compact {revision}"), "defrag", "alarm disarm"] {
        world.store.servers.ctl(words);
    }
    world.wait_for_etcd_to("know the revocation", |etcd| etcd.revoked == 1 && etcd.members == MEMBERS.len());
}

#[test]
fn strict_members_that_etcd_cannot_tell_serve_nobody_once_their_lease_is_over() {
    let world = World::new(Setup { strict: true, ..Setup::default() });
    let begun = Instant::now();
    away_for(&world.network, &[1, 2]);
    let out = world.hub_command(0, &["revoke", HOMES[0]]);
    assert!(out.status.success(), "{}", told(&out));
    wait_until_gone(&world, begun, 0..1);
    assert!((1..MEMBERS.len()).all(|member| world.serves(member, 0)), "they are not told");
    wait_until_gone(&world, begun, 1..MEMBERS.len());
    let gone = begun.elapsed();
    assert!(gone <= Duration::from_secs(LEASE_S), "{gone:?}");
    figures::keep("revoked: strict members without etcd", &[Revoked { after_ms: gone.as_millis() as u64 }]);
}
