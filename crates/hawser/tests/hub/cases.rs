//! The harm, case by case, and what may come of it. Each is done to the member that is active, so that they take turns.

use std::time::Duration;

use hawser_lab::hub::outward;
use hawser_wire::Moment;
use rustix::process::Signal;
use serde::Serialize;

use crate::figures;
use crate::owners::Owned;
use crate::traffic::{Many, Noticed, Traffic};
use crate::world::{Routing, Setup, World};

/// From the traffic's beginning to the harm, how long the harm lasts where it ends, and until the traffic does.
const BEFORE: Duration = Duration::from_secs(2);
/// The same where it is judged by what the traffic does by itself in as long a time (`Noticed::gap_before_ms`).
const LONG_BEFORE: Duration = Duration::from_millis(4500);
const LASTS: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(5);
/// Streams from the home, and conversations beside them. Of 300 streams each would have less than a packet a round trip
/// by these links, and some rest for longer than they are looked at.
const FLOWS: Many = Many { streams: 20, conversations: 280 };
/// What it takes to drain a member, to start it anew, and to wait for it, with room.
const UPGRADE: Duration = Duration::from_secs(6);
/// What the harm may cost on a machine with nothing beside; and where the better announcement has to come by FRR's
/// queues, since nobody withdraws the old one, or a second silence is waited for.
const GAP_MAX_MS: u64 = 400;
const LATE_GAP_MAX_MS: u64 = 700;
/// What a drained member may cost beyond what the same traffic costs by itself: 20 ms, which drains with nothing beside
/// keep (crates/hawser-hub/README.md), and as much again for a machine that is not ours alone.
const DRAIN_GAP_MAX_MS: f64 = 40.0;
/// Packets for each ms of a gap, of 20 calls with one each 20 ms; and what is rounded away for each call.
const DATAGRAMS_PER_MS: f64 = 1.0;
const ROUNDED: f64 = 40.0;

/// One run of a case. Plain data.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The member that was active before, and the one after.
    before: usize,
    after: usize,
    #[serde(flatten)]
    noticed: Noticed,
    /// Packets of the home's that the harmed member gave the router after it was let go on.
    stale: u64,
    #[serde(flatten)]
    owned: Owned,
    load: f64,
}

/// What is done to the active member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// kill -9 of its process; its machine, and FRR there, go on.
    Killed,
    /// The same of it and of its standby, at once.
    BothKilled,
    /// All that its machine sends, and all that comes, is lost.
    Silent,
    /// Its process is stopped (SIGSTOP), and let go on.
    Stopped,
    /// One link's way to it is cut, both ways.
    LinkCut,
    /// What the home sends to it is lost; or what it sends to the home.
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
    fn begin(self, world: &World, member: usize) {
        let [own, _] = outward(member);
        let (to, from) = (format!("ip daddr {own}"), format!("ip saddr {own}"));
        match self {
            Self::Killed => world.signal(member, Signal::KILL),
            Self::BothKilled => {
                [member, world.holding("standby")].iter().for_each(|member| world.signal(*member, Signal::KILL));
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

fn run(world: &mut World, harm: Harm) -> Run {
    let (before, standby) = (world.active(), world.holding("standby"));
    world.forwarded(before);
    let capture = world.capture();
    let calm = if harm.is_calm() { LONG_BEFORE } else { BEFORE };
    let traffic = Traffic::start(world, FLOWS, calm + AFTER);
    let begun = Moment::now() + calm;
    begun.sleep_until();
    if world.translates() {
        assert!(world.flows(standby) >= FLOWS.all(), "the standby knows {} flows", world.flows(standby));
    }
    harm.begin(world, before);
    (begun + LASTS).sleep_until();
    let counted = world.forwarded(before);
    harm.end(world, before);
    let end = traffic.end();
    let noticed = traffic.finish(begun, if harm.is_calm() { begun + LASTS } else { end });
    let stale = world.forwarded(before) - counted;
    let after = world.active();
    if noticed.flows_that_died > 0 || harm.is_calm() && !is_whole(&noticed) {
        world.tell();
    }
    assert_eq!(noticed.flows_that_died, 0, "{harm:?}: {noticed:?}");
    if harm.ends_it() {
        world.restart(before);
    }
    if harm == Harm::BothKilled {
        world.restart(standby);
    }
    world.wait_until_ready();
    let owned = capture.finish(&world.logs());
    Run { before, after, noticed, stale, owned, load: figures::load() }
}

/// All runs of a case, kept.
fn runs(setup: impl Into<Setup>, harm: Harm, usual: u64) -> Vec<Run> {
    repeated(setup.into(), &format!("{harm:?}"), usual, |world| run(world, harm))
}

/// Does it as often as usual, or as HAWSER_HUB_RUNS says, in one world. All that came of it is kept.
fn repeated<R: Serialize>(setup: Setup, what: &str, usual: u64, once: impl Fn(&mut World) -> R) -> Vec<R> {
    let mut world = World::new(setup);
    let count =
        std::env::var("HAWSER_HUB_RUNS").map_or(usual, |text| text.parse().expect("HAWSER_HUB_RUNS is a number"));
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(once(&mut world));
        figures::keep(&format!("{what} {setup}").to_lowercase(), &all);
    }
    all
}

/// Each run moved, and nobody noticed more than this.
fn assert_moved(runs: &[Run], gap_max_ms: u64) {
    for run in runs {
        assert_ne!(run.before, run.after, "it moved: {run:?}");
        assert!(run.noticed.gap_ms <= gap_max_ms as f64, "{run:?}");
    }
}

fn assert_stayed(runs: &[Run]) {
    runs.iter().for_each(|run| assert_eq!(run.before, run.after, "there was no need to move: {run:?}"));
}

/// What goes out is lost nowhere; what comes back, for no longer than the gap.
fn assert_losses(runs: &[Run]) {
    for Run { noticed, .. } in runs {
        assert_eq!(noticed.lost_up, 0, "{noticed:?}");
        let held = noticed.call_gap_down_ms.max(noticed.gap_ms) * DATAGRAMS_PER_MS + ROUNDED;
        assert!(noticed.lost_down as f64 <= held, "{noticed:?}");
    }
}

/// Whether nothing is lost.
fn is_whole(noticed: &Noticed) -> bool {
    (noticed.lost_up, noticed.lost_down, noticed.pings_lost) == (0, 0, 0)
}

/// A planned move: nothing is lost, and no ping waits for much longer than with nobody moving.
fn assert_unnoticed(noticed: &Noticed) {
    assert!(is_whole(noticed), "{noticed:?}");
    assert!(noticed.gap_ms <= noticed.gap_before_ms + DRAIN_GAP_MAX_MS, "{noticed:?}");
}

fn a_killed_member(setup: impl Into<Setup>) {
    let runs = runs(setup, Harm::Killed, 20);
    assert_moved(&runs, GAP_MAX_MS);
    assert_losses(&runs);
}

#[test]
fn a_member_that_is_killed_costs_no_flow() {
    a_killed_member(Routing::Watched);
}

#[test]
fn a_member_that_is_killed_costs_no_flow_with_frr() {
    a_killed_member(Routing::Frr);
}

#[test]
fn a_member_that_is_killed_costs_no_flow_where_members_translate() {
    for routing in [Routing::Watched, Routing::Frr] {
        a_killed_member(Setup { nat: true, ..routing.into() });
    }
}

#[test]
fn active_and_standby_killed_at_once_cost_no_flow_where_there_is_a_third() {
    for routing in [Routing::Watched, Routing::Frr] {
        let runs = runs(Setup { members: 3, ..routing.into() }, Harm::BothKilled, 5);
        assert_moved(&runs, LATE_GAP_MAX_MS);
    }
}

#[test]
fn a_silent_machine_costs_no_flow() {
    for routing in [Routing::Watched, Routing::Frr] {
        assert_moved(&runs(routing, Harm::Silent, 5), GAP_MAX_MS);
    }
}

#[test]
fn a_member_that_is_stopped_and_let_go_on_forwards_nothing_as_owner() {
    for routing in [Routing::Watched, Routing::Frr] {
        let runs = runs(routing, Harm::Stopped, 5);
        assert_moved(&runs, if routing == Routing::Frr { LATE_GAP_MAX_MS } else { GAP_MAX_MS });
        runs.iter().for_each(|run| assert_eq!(run.stale, 0, "it had packets in hand, and gave them away: {run:?}"));
    }
}

#[test]
fn one_links_way_to_the_active_member_is_the_bonds_own_affair() {
    assert_stayed(&runs(Routing::Watched, Harm::LinkCut, 3));
}

#[test]
fn a_partition_one_way_costs_no_flow() {
    for harm in [Harm::Deaf, Harm::Mute] {
        assert_moved(&runs(Routing::Watched, harm, 10), GAP_MAX_MS);
    }
}

#[test]
fn a_member_that_routers_do_not_hear_costs_no_flow() {
    let runs = runs(Routing::Frr, Harm::Unrouted, 5);
    assert_moved(&runs, GAP_MAX_MS);
    assert_losses(&runs);
}

#[test]
fn a_member_that_is_told_to_end_loses_no_packet() {
    for routing in [Routing::Watched, Routing::Frr] {
        let runs = runs(routing, Harm::Drained, 10);
        assert_moved(&runs, GAP_MAX_MS);
        runs.iter().for_each(|run| assert_unnoticed(&run.noticed));
    }
}

/// Each member in turn is drained, ends, and is started again, while people go on. They went on for as long before.
fn upgraded(world: &mut World) -> Noticed {
    let members = world.network.members.len();
    let capture = world.capture();
    let longest = UPGRADE * members as u32;
    let traffic = Traffic::start(world, FLOWS, longest * 2);
    let begun = Moment::now() + longest;
    begun.sleep_until();
    for member in 0..members {
        let out = world.hub_command(member, &["drain"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        world.signal(member, Signal::TERM);
        world.restart(member);
        world.wait_until_ready();
    }
    let over = Moment::now();
    assert!(over < traffic.end(), "the upgrade took longer than the traffic");
    let noticed = traffic.finish(begun, over);
    capture.finish(&world.logs());
    if !is_whole(&noticed) {
        world.tell();
    }
    noticed
}

#[test]
fn a_rolling_upgrade_is_not_noticed() {
    for routing in [Routing::Watched, Routing::Frr] {
        for members in [2, 3] {
            let setup = Setup { members, ..routing.into() };
            for noticed in repeated(setup, "upgraded", 3, upgraded) {
                assert_eq!(noticed.flows_that_died, 0, "{noticed:?}");
                assert_unnoticed(&noticed);
            }
        }
    }
}

#[test]
fn what_the_traffic_does_by_itself() {
    assert_stayed(&runs(Routing::Watched, Harm::None, 10));
}
