//! The harm, case by case, and what may come of it. Each is done to the member that is active, so that they take turns.

use std::time::Duration;

use hawser_lab::hub::outward;
use hawser_wire::Moment;
use rustix::process::Signal;
use serde::Serialize;

use crate::figures;
use crate::owners::{Capture, Owned};
use crate::traffic::{Many, Noticed, Seen, Traffic};
use crate::world::{MEMBERS, Setup, World, told};

/// From the traffic's beginning to the harm, how long the harm lasts where it ends, and until the traffic does.
const BEFORE: Duration = Duration::from_secs(2);
/// The same where it is judged by what the traffic does by itself in as long a time (`Noticed::gap_before_ms`).
const LONG_BEFORE: Duration = Duration::from_millis(4500);
const LASTS: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// What each home has: the first one 300 connections up, of which each as a stream would have less than a packet a round
/// trip by these links, and some rest for longer than they are looked at; the other one less of all.
const MANY: [Many; 2] =
    [Many { streams: 20, conversations: 280, calls: 20 }, Many { streams: 5, conversations: 45, calls: 5 }];
/// What it takes to drain a member, to start it anew, and to wait for it, with room.
const UPGRADE: Duration = Duration::from_secs(8);
/// What the harm may cost; and where the better announcement has to come by FRR's queues, since nobody withdraws the old
/// one, or a second silence is waited for.
pub const GAP_MAX_MS: u64 = 400;
const LATE_GAP_MAX_MS: u64 = 700;
/// What a drained member may cost beyond what the same traffic costs by itself: 20 ms, which drains with nothing beside
/// keep (crates/hawser-hub/README.md), and as much again for a machine that is not ours alone.
const DRAIN_GAP_MAX_MS: f64 = 40.0;
/// Packets for each ms of a gap, of a call with one each 20 ms; and what is rounded away for it.
const DATAGRAMS_PER_MS: f64 = 1.0 / 20.0;
const ROUNDED: f64 = 2.0;

/// One run of a case. Plain data.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The members that the harm was done to.
    harmed: Vec<usize>,
    /// The member that was active before, and the one after, for each home.
    before: [usize; 2],
    after: [usize; 2],
    #[serde(flatten)]
    seen: Seen,
    /// Packets of the homes' that the harmed member gave the router after it was let go on.
    stale: u64,
    #[serde(flatten)]
    owned: Option<Owned>,
    load: f64,
}

impl Run {
    /// Whether the harm was done to the member that a home was with.
    fn is_hit(&self, home: usize) -> bool {
        self.harmed.contains(&self.before[home])
    }
}

/// What is done to the first home's active member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// kill -9 of its process; its machine, and FRR there, go on.
    Killed,
    /// The same of it and of its standby, at once.
    BothKilled,
    /// All that its machine sends, and all that comes, is lost.
    Silent,
    /// Its process is stopped (SIGSTOP), and let go on.
    Stopped,
    /// The way of one of the home's links to it is cut, both ways.
    LinkCut,
    /// What homes send to it is lost; or what it sends to homes.
    Deaf,
    Mute,
    /// What the routing daemons of its machine and of the router say to each other is lost.
    Unrouted,
    /// SIGTERM: it drains, and ends.
    Drained,
    /// Nothing: what the traffic does by itself.
    None,
}

impl Harm {
    /// To whom it is done.
    fn on(self, world: &World) -> Vec<usize> {
        let active = world.active(0);
        if self == Self::BothKilled { vec![active, world.holding(0, "standby")] } else { vec![active] }
    }

    fn begin(self, world: &World, members: &[usize]) {
        let member = members[0];
        let [own, _] = outward(member);
        let (to, from) = (format!("ip daddr {own}"), format!("ip saddr {own}"));
        match self {
            Self::Killed | Self::BothKilled => {
                members.iter().for_each(|member| world.signal(*member, Signal::KILL));
            }
            Self::Silent => world.silence(member, true),
            Self::Stopped => world.signal(member, Signal::STOP),
            Self::LinkCut => {
                world.lose(&[format!("ip saddr 192.0.1.1 {to}"), format!("ip daddr 192.0.1.1 {from}")]);
            }
            Self::Deaf => world.lose(&[to]),
            Self::Mute => world.lose(&[from]),
            Self::Unrouted => world.unroute(member),
            Self::Drained => world.signal(member, Signal::TERM),
            Self::None => {}
        }
    }

    fn end(self, world: &World, member: usize) {
        match self {
            Self::Killed | Self::BothKilled | Self::Drained | Self::None => {}
            Self::Silent => world.silence(member, false),
            Self::Stopped => world.signal(member, Signal::CONT),
            Self::LinkCut | Self::Deaf | Self::Mute => world.lose_no_more(),
            Self::Unrouted => world.route_again(),
        }
    }

    /// A planned move is over within `LASTS`; of the others it is not known when they are.
    fn is_calm(self) -> bool {
        matches!(self, Self::Drained | Self::None)
    }

    /// Its process does not outlive it.
    fn ends_it(self) -> bool {
        matches!(self, Self::Killed | Self::BothKilled | Self::Drained)
    }
}

/// Traffic of both homes, harm in its midst, and what came of it: no flow may die.
pub fn run(world: &mut World, harm: Harm) -> Run {
    let capture = world.capture();
    tried(world, harm, Some(capture))
}

/// The same, with packets and logs looked at or not.
pub fn tried(world: &mut World, harm: Harm, capture: Option<Capture>) -> Run {
    let (harmed, before) = (harm.on(world), [0, 1].map(|home| world.active(home)));
    world.forwarded(harmed[0]);
    let calm = if harm.is_calm() { LONG_BEFORE } else { BEFORE };
    let traffic = Traffic::start(world, MANY, calm + AFTER);
    let begun = traffic.end() - AFTER;
    begun.sleep_until();
    if world.translates() {
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
    let owned = capture.map(|capture| capture.finish(&world.logs()));
    Run { harmed, before, after, seen, stale, owned, load: figures::load() }
}

/// No flow died; where one did, where something is lost that is to be whole, or where nothing came for longer than is
/// allowed anywhere, all logs are shown.
fn assert_alive(world: &World, seen: &Seen, calm: bool) {
    let is_wrong = |noticed: &&Noticed| {
        noticed.flows_that_died > 0 || calm && !is_whole(noticed) || noticed.gap_ms > LATE_GAP_MAX_MS as f64
    };
    if seen.both().iter().any(is_wrong) {
        world.tell();
    }
    seen.both().iter().for_each(|noticed| assert_eq!(noticed.flows_that_died, 0, "{seen:?}"));
}

/// All runs of a case, kept.
fn runs(setup: Setup, harm: Harm, usual: u64) -> Vec<Run> {
    let what = format!("{harm:?}{}", if setup.nat { " nat" } else { "" });
    repeated(setup, &what, usual, |world| run(world, harm))
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

/// Who was with a harmed member moved, nobody else did, and nobody noticed more than this.
pub fn assert_moved(runs: &[Run], gap_max_ms: u64) {
    for run in runs {
        for (home, noticed) in run.seen.both().into_iter().enumerate() {
            assert_eq!(run.before[home] != run.after[home], run.is_hit(home), "it moved where it had to: {run:?}");
            assert!(noticed.gap_ms <= gap_max_ms as f64, "{run:?}");
        }
    }
}

fn assert_stayed(runs: &[Run]) {
    runs.iter().for_each(|run| assert_eq!(run.before, run.after, "there was no need to move: {run:?}"));
}

/// What goes out is lost nowhere; what comes back, for no longer than the gap.
pub fn assert_losses(runs: &[Run]) {
    for (noticed, many) in runs.iter().flat_map(|run| run.seen.both().into_iter().zip(MANY)) {
        assert_eq!(noticed.lost_up, 0, "{noticed:?}");
        let each = noticed.call_gap_down_ms.max(noticed.gap_ms) * DATAGRAMS_PER_MS + ROUNDED;
        assert!(noticed.lost_down as f64 <= each * many.calls as f64, "{noticed:?}");
    }
}

/// Whether nothing is lost.
fn is_whole(noticed: &Noticed) -> bool {
    (noticed.lost_up, noticed.lost_down, noticed.pings_lost) == (0, 0, 0)
}

/// Nothing is lost, and no ping of either home's waits for much longer than with nothing done.
pub fn assert_unnoticed(seen: &Seen) {
    for noticed in seen.both() {
        assert!(is_whole(noticed), "{seen:?}");
        assert!(noticed.gap_ms <= noticed.gap_before_ms + DRAIN_GAP_MAX_MS, "{seen:?}");
    }
}

#[test]
fn a_member_that_is_killed_costs_no_flow() {
    let both = [false, true].map(|nat| runs(Setup { nat, ..Setup::default() }, Harm::Killed, 20));
    for runs in &both {
        assert_moved(runs, GAP_MAX_MS);
        assert_losses(runs);
    }
}

#[test]
fn active_and_standby_killed_at_once_cost_no_flow() {
    assert_moved(&runs(Setup::default(), Harm::BothKilled, 5), LATE_GAP_MAX_MS);
}

#[test]
fn a_silent_machine_costs_no_flow() {
    assert_moved(&runs(Setup::default(), Harm::Silent, 5), GAP_MAX_MS);
}

#[test]
fn a_member_that_is_stopped_and_let_go_on_forwards_nothing_as_owner() {
    let runs = runs(Setup::default(), Harm::Stopped, 5);
    assert_moved(&runs, LATE_GAP_MAX_MS);
    runs.iter().for_each(|run| assert_eq!(run.stale, 0, "it had packets in hand, and gave them away: {run:?}"));
}

#[test]
fn one_links_way_to_the_active_member_is_the_bonds_own_affair() {
    assert_stayed(&runs(Setup::default(), Harm::LinkCut, 3));
}

#[test]
fn a_partition_one_way_costs_no_flow() {
    let both = [Harm::Deaf, Harm::Mute].map(|harm| runs(Setup::default(), harm, 10));
    both.iter().for_each(|runs| assert_moved(runs, GAP_MAX_MS));
}

#[test]
fn a_member_that_routers_do_not_hear_costs_no_flow() {
    let runs = runs(Setup::default(), Harm::Unrouted, 5);
    assert_moved(&runs, GAP_MAX_MS);
    assert_losses(&runs);
}

#[test]
fn a_member_that_is_told_to_end_loses_no_packet() {
    let runs = runs(Setup::default(), Harm::Drained, 20);
    assert_moved(&runs, GAP_MAX_MS);
    runs.iter().for_each(|run| assert_unnoticed(&run.seen));
}

/// People go on for `before`, and while something is done that takes as long at most.
pub fn calmly(world: &mut World, before: Duration, deed: impl FnOnce(&mut World)) -> Seen {
    let traffic = Traffic::start(world, MANY, before * 2);
    let begun = traffic.end() - before;
    begun.sleep_until();
    deed(world);
    let over = Moment::now();
    assert!(over < traffic.end(), "it took longer than the traffic");
    let seen = traffic.finish(begun, over);
    assert_alive(world, &seen, true);
    seen
}

/// Each member in turn is drained, ends, and is started again.
fn upgraded(world: &mut World) -> Seen {
    let capture = world.capture();
    let seen = calmly(world, UPGRADE * MEMBERS.len() as u32, |world| {
        for member in 0..MEMBERS.len() {
            let out = world.hub_command(member, &["drain"]);
            assert!(out.status.success(), "{}", told(&out));
            world.signal(member, Signal::TERM);
            world.restart(member);
            world.wait_until_ready();
        }
    });
    capture.finish(&world.logs());
    seen
}

#[test]
fn a_rolling_upgrade_is_not_noticed() {
    repeated(Setup::default(), "upgraded", 6, upgraded).iter().for_each(assert_unnoticed);
}

#[test]
fn what_the_traffic_does_by_itself() {
    assert_stayed(&runs(Setup::default(), Harm::None, 10));
}
