//! What harm does to people's traffic, case by case. It is done to the member that is active, so that they take turns.

use std::time::Duration;

use hawser_wire::Moment;
use rustix::process::Signal;
use serde::Serialize;

use crate::bars::{BOTH_GAP_MAX_MS, assert_stayed, is_short, is_whole};
use crate::figures;
use crate::owners::Owned;
use crate::traffic::{Many, Noticed, Seen, Traffic};
use crate::world::{MEMBERS, Setup, World, told};

pub use crate::bars::{GAP_MAX_MS, assert_followed, assert_losses, assert_moved, assert_unnoticed};
pub use crate::harm::Harm;

/// How long the harm lasts where it ends, and from it until the traffic does.
const LASTS: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// What each home has: the first one 300 connections up, of which each as a stream would have less than a packet a round
/// trip by these links, and some rest for longer than they are looked at; the other one less of all.
pub const MANY: [Many; 2] =
    [Many { streams: 20, conversations: 280, calls: 20 }, Many { streams: 5, conversations: 45, calls: 5 }];
/// What it takes to drain a member, to start it anew, and to wait for it, with room.
const UPGRADE: Duration = Duration::from_secs(8);

/// One run of a case. Plain data.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The members that the harm was done to.
    harmed: Vec<usize>,
    /// The member that was active before, and the one after, for each home.
    pub before: [usize; 2],
    pub after: [usize; 2],
    #[serde(flatten)]
    pub seen: Seen,
    /// Packets of the homes' that the harmed member gave the router after it was let go on.
    stale: u64,
    #[serde(flatten)]
    owned: Owned,
    load: f64,
}

impl Run {
    /// Whether the harm was done to the member that a home was with.
    pub fn is_hit(&self, home: usize) -> bool {
        self.harmed.contains(&self.before[home])
    }
}

/// Traffic of both homes, harm in its midst, and what came of it: no flow may die.
pub fn run(world: &mut World, harm: Harm) -> Run {
    let capture = world.capture();
    let traffic = Traffic::start(world, MANY, harm.comes_after() + AFTER);
    let begun = traffic.end() - AFTER;
    harm.prepare(world);
    let (harmed, before) = (harm.on(world), [0, 1].map(|home| world.active(home)));
    world.forwarded(harmed[0]);
    assert!(Moment::now() < begun, "what is done before took longer than there was");
    begun.sleep_until();
    if world.translates() && harm != Harm::RebootedSince {
        let known = world.flows(world.holding(0, "standby"));
        assert!(known >= MANY[0].connections(), "the standby knows {known} flows");
    }
    harm.begin(world, &harmed);
    (begun + LASTS).sleep_until();
    let counted = world.forwarded(harmed[0]);
    harm.end(world, harmed[0]);
    let end = traffic.end();
    let seen = traffic.finish(begun, if harm.is_calm() { begun + LASTS } else { end });
    let stale = world.forwarded(harmed[0]) - counted;
    let after = [0, 1].map(|home| world.active(home));
    assert_alive(world, &seen, harm.is_calm());
    if harm.ends_it() {
        harmed.iter().for_each(|member| world.restart(*member));
    }
    world.wait_until_ready();
    let owned = capture.finish(&world.logs());
    Run { harmed, before, after, seen, stale, owned, load: figures::load() }
}

/// No flow died; where one did, where something is lost that is to be whole, or where nothing came for longer than is
/// allowed, all logs are shown.
fn assert_alive(world: &World, seen: &Seen, calm: bool) {
    let is_right = |noticed: &&Noticed| {
        noticed.flows_that_died == 0 && (is_whole(noticed) || !calm) && is_short(noticed, GAP_MAX_MS)
    };
    if !seen.both().iter().all(is_right) {
        world.tell();
    }
    seen.both().iter().for_each(|noticed| assert_eq!(noticed.flows_that_died, 0, "{seen:?}"));
}

/// All runs of a case, kept.
fn runs(setup: Setup, harm: Harm, usual: u64) -> Vec<Run> {
    repeated(setup, &format!("{harm:?}{}", setup.name()), usual, |world| run(world, harm))
}

/// The same with addresses that are routed, and with such as members translate.
fn by_both(harm: Harm, usual: u64) -> [Vec<Run>; 2] {
    [false, true].map(|nat| runs(Setup { nat, ..Setup::default() }, harm, usual))
}

/// Does it as often as usual, or as HAWSER_HUB_RUNS says, in one world. All that came of it is kept.
pub fn repeated<R: Serialize>(setup: Setup, what: &str, usual: u64, once: impl Fn(&mut World) -> R) -> Vec<R> {
    let mut world = World::new(setup);
    let count =
        std::env::var("HAWSER_HUB_RUNS").map_or(usual, |text| text.parse().expect("HAWSER_HUB_RUNS is a number"));
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(once(&mut world));
        figures::keep(&what.to_lowercase(), &all);
    }
    all
}

/// Each who had to move did, within the bar, and without more of a loss.
fn assert_bar(runs: &[Run]) {
    assert_moved(runs, GAP_MAX_MS);
    assert_losses(runs);
}

/// The same without any loss.
fn assert_drained(runs: &[Run]) {
    assert_followed(runs);
    runs.iter().for_each(|run| assert_unnoticed(&run.seen));
}

#[test]
fn a_member_that_is_killed_costs_no_flow() {
    by_both(Harm::Killed, 20).iter().for_each(|runs| assert_bar(runs));
}

#[test]
fn active_and_standby_killed_at_once_cost_no_flow() {
    let runs = runs(Setup::default(), Harm::BothKilled, 3);
    assert_moved(&runs, BOTH_GAP_MAX_MS);
    assert_losses(&runs);
}

#[test]
fn machines_that_began_anew_know_the_flows_that_they_take_over() {
    let translated = Setup { nat: true, ..Setup::default() };
    for harm in [Harm::Rebooted, Harm::RebootedSince] {
        assert_bar(&runs(translated, harm, 3));
    }
}

#[test]
fn repairs_rules_and_tiers_begin_anew_without_a_hole() {
    let setup = Setup { rules: true, ..Setup::default() };
    let runs = repeated(setup, &format!("{:?}{}", Harm::Killed, setup.name()), 3, |world| {
        let run = run(world, Harm::Killed);
        assert!(world.repairs(0, run.after[0]) > 0, "no repairs go to the new owner");
        run
    });
    assert_bar(&runs);
}

#[test]
fn two_members_without_etcd_cost_no_flow_either() {
    let setup = Setup { files: true, ..Setup::default() };
    assert_bar(&runs(setup, Harm::Killed, 3));
    assert_drained(&runs(setup, Harm::Drained, 3));
}

#[test]
fn a_silent_machine_costs_no_flow() {
    by_both(Harm::Silent, 5).iter().for_each(|runs| assert_bar(runs));
}

#[test]
fn a_member_that_is_stopped_and_let_go_on_forwards_nothing_as_owner() {
    for runs in by_both(Harm::Stopped, 5) {
        assert_bar(&runs);
        runs.iter().for_each(|run| assert_eq!(run.stale, 0, "it had packets in hand, and gave them away: {run:?}"));
    }
}

#[test]
fn one_links_way_to_the_active_member_is_the_bonds_own_affair() {
    let runs = runs(Setup::default(), Harm::LinkCut, 3);
    assert_stayed(&runs);
    let is_well = |noticed: &Noticed| is_whole(noticed) && is_short(noticed, GAP_MAX_MS);
    runs.iter().for_each(|run| assert!(run.seen.both().into_iter().all(is_well), "{run:?}"));
}

#[test]
fn a_partition_one_way_costs_no_flow() {
    [Harm::Deaf, Harm::Mute].iter().for_each(|harm| assert_bar(&runs(Setup::default(), *harm, 5)));
}

#[test]
fn a_member_that_routers_do_not_hear_costs_no_flow() {
    by_both(Harm::Unrouted, 5).iter().for_each(|runs| assert_bar(runs));
}

#[test]
fn a_member_that_is_told_to_end_loses_no_packet() {
    by_both(Harm::Drained, 10).iter().for_each(|runs| assert_drained(runs));
}

/// People go on for `before`, and while something is done that takes as long at most.
pub fn calmly(world: &mut World, before: Duration, deed: impl FnOnce(&mut World)) -> Seen {
    let capture = world.capture();
    let traffic = Traffic::start(world, MANY, before * 2);
    let begun = traffic.end() - before;
    begun.sleep_until();
    deed(world);
    let over = Moment::now();
    assert!(over < traffic.end(), "it took longer than the traffic");
    let seen = traffic.finish(begun, over);
    assert_alive(world, &seen, true);
    capture.finish(&world.logs());
    seen
}

/// Each member in turn is drained, ends, and is started again.
fn upgraded(world: &mut World) -> Seen {
    calmly(world, UPGRADE * MEMBERS.len() as u32, |world| {
        for member in 0..MEMBERS.len() {
            let out = world.hub_command(member, &["drain"]);
            assert!(out.status.success(), "{}", told(&out));
            world.signal(member, Signal::TERM);
            world.restart(member);
            world.wait_until_ready();
        }
    })
}

#[test]
fn a_rolling_upgrade_is_not_noticed() {
    repeated(Setup::default(), "upgraded", 4, upgraded).iter().for_each(assert_unnoticed);
}

#[test]
fn what_the_traffic_does_by_itself() {
    assert_stayed(&runs(Setup::default(), Harm::None, 5));
}
