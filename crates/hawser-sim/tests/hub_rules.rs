//! Rules, repairs, order and tiers where a hub's member dies or is drained: all of it begins anew at the new owner,
//! without a hole.
//!
//! Four flows each way, of which rules treat three: one is repaired, one has fixed shares, one goes by two paths at
//! once. Two links may lose packets, a third one is a spare tier.

use hawser_core::rules::{Rule, RuleId, Rules, Treatment};
use hawser_core::scheduler::Kind;
use hawser_core::session::{PathSnapshot, SessionSnapshot};
use hawser_core::units::{ByteCount, Time};
use hawser_sim::host::flow::{Ledger, Plan, Sink, Source};
use hawser_sim::hub::{Act, Setup, World};
use hawser_sim::judge;
use hawser_sim::net::link;
use hawser_sim::situation::{address, second};
use hawser_sim::world::{LOCAL, REMOTE};
use ipnet::IpNet;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

const SEEDS: std::ops::Range<u64> = 300..304;
/// When traffic begins, the member goes, and traffic ends, seconds; what is late is there two seconds later.
const BEGINS: f64 = 2.0;
const GOES: f64 = 8.0;
const ENDS: f64 = 14.0;
/// The member that owns at first, and the one that does from then on.
const OLD: usize = 0;
const NEW: usize = 1;
/// A flow: Mbit/s and bytes a packet, 200 a second.
const FLOW: (f64, usize) = (0.32, 200);
/// The first flow's hosts; the others' follow.
const HOSTS: u8 = 20;
/// Flows by their numbers: the first is repaired, the last as without rules.
const SHARED: usize = 1;
const REDUNDANT: usize = 2;
/// What near links lose, where they do.
const LOSS: f64 = 0.02;
/// Where packets are lost, a few come out of order anyway: four of 20,000 as situations have it (A_FEW), and as many
/// for schedulers that copy.
const FEW: usize = 8;
/// In this time after a move two members may still bring what belongs together: the longest that a gap is waited for;
/// a planned move is over sooner (hawser-hub, LINGER_MOST).
const BESIDE: Duration = Duration::from_secs(3);
/// Rules cost no flow a gap that is longer by more than this, ms: a retransmission on the far link; where the member dies
/// two of them, for a link that rules use beside the nearest has two datagrams to be overdue (`Presence::overdue_at`).
const MORE: f64 = 60.0;
/// Repairs of 800 packets, of which there is one for eight where 0.5 % are lost, and packets that these bring back, of
/// 16 that are lost: less than half of what is to be expected.
const REPAIRS: u64 = 50;
const BROUGHT_BACK: u64 = 3;
/// What the spare link carries in four seconds: keepalives. A single flow has 160 kB.
const QUIET: ByteCount = ByteCount(8_000);

/// What is tried. A plain value.
#[derive(Copy, Clone, Debug)]
struct Case {
    seed: u64,
    act: Act,
    ruled: bool,
    loss: f64,
}

/// What came of it, to the server and back.
#[derive(Debug)]
struct Seen {
    moves: usize,
    lost: [u64; 2],
    /// Packets behind a later one of their flow: within `BESIDE` after the move, and at any other time.
    late: [(usize, usize); 2],
    /// The longest gap of any flow, ms.
    gap: [f64; 2],
    /// Repairs that the new owner's session sent, and packets that these brought back, four seconds after the move.
    repairs: [u64; 2],
    brought_back: [u64; 2],
    /// Bytes of the flow with shares, and of the redundant one, by near link.
    shares: [[u64; 2]; 2],
    redundant: [[u64; 2]; 2],
    /// What the spare link carried, by the new owner's session.
    spare: [ByteCount; 2],
}

/// The host of a flow that begins on `from`, at both ends.
fn host(from: usize, flow: usize) -> u8 {
    HOSTS + (2 * flow + from) as u8
}

/// Rules by the source of each flow, whichever way it goes: the number of a flow's is twice its own, and its side's.
fn rules() -> Rules {
    let usual = Treatment::default();
    let by = |scheduler| Treatment { scheduler, ..usual };
    let treatments = [Treatment { fec: true, ..usual }, by(Kind::Weighted), by(Kind::Redundant)];
    let of = |flow: usize, from: usize| Rule {
        source: Some(IpNet::from(IpAddr::from(address(from, host(from, flow))))),
        treatment: treatments[flow],
        ..Rule::default()
    };
    Rules::new((0..treatments.len()).flat_map(|flow| [LOCAL, REMOTE].map(|from| of(flow, from))).collect(), usual)
}

/// As `rules` numbers them.
fn rule(from: usize, flow: usize) -> RuleId {
    RuleId((2 * flow + from) as u16 + 1)
}

fn begin(world: &mut World, from: usize, flow: usize) -> Rc<RefCell<Ledger>> {
    let (ends, ledger) =
        ([LOCAL, REMOTE].map(|side| address(side, host(from, flow))), Rc::<RefCell<Ledger>>::default());
    let plan = Plan { from: second(BEGINS), until: second(ENDS), ..Plan::steady(FLOW.0, FLOW.1) };
    world.add_host(from, ends[from], Source::new(plan, ends[from], ends[1 - from], Rc::clone(&ledger)));
    world.add_host(1 - from, ends[1 - from], Sink(Rc::clone(&ledger)));
    ledger
}

fn run(&Case { seed, act, ruled, loss }: &Case) -> Seen {
    let beyond = [Duration::from_millis(1), Duration::from_millis(2)];
    let near = |trip: f64| (link(20.0, trip).loss(loss), beyond);
    let links = vec![near(20.0), near(30.0), (link(20.0, 100.0).metric(1), beyond)];
    let rules = if ruled { rules() } else { Rules::default() };
    let mut world = World::new(Setup { seed, links, rules });
    let ways = [LOCAL, REMOTE].map(|from| [0, 1, 2, 3].map(|flow: usize| begin(&mut world, from, flow)));
    world.at(second(GOES), act);
    world.run_until(second(GOES + 1.0));
    let spared = spare(&world);
    world.run_until(second(GOES + 5.0));
    let sessions = world.sessions(NEW).map(|session| session.expect("it carries the packets"));
    let spare = [0, 1].map(|end: usize| ByteCount(spare(&world)[end].0.saturating_sub(spared[end].0)));
    world.run_until(second(ENDS + 2.0));
    let by_rule = |flow: usize| [LOCAL, REMOTE].map(|from| carried(&sessions[from], rule(from, flow)));
    let moved = world.moved.first().map_or(Time::ZERO, |(at, _)| *at);
    Seen {
        moves: world.moved.len(),
        lost: ways.each_ref().map(|flows| flows.iter().map(|flow| missing(&flow.borrow())).sum()),
        late: ways.each_ref().map(|flows| {
            let late: Vec<Time> = flows.iter().flat_map(|flow| flow.borrow().out_of_order()).collect();
            let beside = late.iter().filter(|at| (moved..moved + BESIDE).contains(*at)).count();
            (beside, late.len() - beside)
        }),
        gap: ways.each_ref().map(|flows| flows.iter().map(|flow| gap(&flow.borrow())).fold(0.0, f64::max)),
        repairs: sessions.each_ref().map(|session| session.fec.repairs),
        // Those of one end come back at the other.
        brought_back: [&sessions[REMOTE], &sessions[LOCAL]].map(|session| session.fec.repaired),
        shares: by_rule(SHARED),
        redundant: by_rule(REDUNDANT),
        spare,
    }
}

fn missing(flow: &Ledger) -> u64 {
    assert_eq!(flow.corrupt, 0);
    flow.sent() - flow.arrivals.len() as u64
}

fn gap(flow: &Ledger) -> f64 {
    flow.longest_gap(second(GOES - 0.1), second(ENDS)).as_secs_f64() * 1e3
}

/// What each end sent by the spare link to the new owner, or from it: the link is of a tier of its own.
fn spare(world: &World) -> [ByteCount; 2] {
    world.sessions(NEW).map(|session| {
        let paths = session.map_or_else(Vec::new, |session| session.paths);
        ByteCount(paths.iter().filter(|path| path.metric > 0).map(|path| path.tx_bytes.0).sum())
    })
}

/// What a session sent of a rule's packets by each of the two near links.
fn carried(session: &SessionSnapshot, rule: RuleId) -> [u64; 2] {
    let near = session.paths.iter().filter(|path| path.metric == 0);
    let of =
        |path: &PathSnapshot| path.by_rule.iter().filter(|(id, _)| *id == rule).map(|(_, bytes)| bytes.0).sum::<u64>();
    let mut both: Vec<u64> = near.map(of).collect();
    both.resize(2, 0);
    [both[0], both[1]]
}

fn outcomes(act: Act, ruled: bool, loss: f64) -> Vec<Seen> {
    let cases: Vec<Case> = SEEDS.map(|seed| Case { seed, act, ruled, loss }).collect();
    let seen = judge::each(&cases, run);
    cases.iter().zip(&seen).for_each(|(case, seen)| println!("{case:?}: {seen:?}"));
    seen
}

/// What holds whether a member dies or is drained: with rules, and without them.
fn assert_no_hole(ruled: &[Seen], plain: &[Seen], more: f64) {
    let worst = |all: &[Seen], way: usize| all.iter().map(|seen| seen.gap[way]).fold(0.0, f64::max);
    for way in [LOCAL, REMOTE] {
        let (with, without) = (worst(ruled, way), worst(plain, way));
        assert!(with <= without + more, "{way}: {with} ms with rules, {without} without");
    }
    for seen in ruled {
        assert_eq!((seen.moves, seen.lost[LOCAL]), (1, 0), "{seen:?}");
        for way in [LOCAL, REMOTE] {
            let (repairs, brought_back) = (seen.repairs[way], seen.brought_back[way]);
            assert!(repairs >= REPAIRS && brought_back >= BROUGHT_BACK, "{seen:?}");
            for [one, other] in [seen.shares[way], seen.redundant[way]] {
                let ratio = one as f64 / other as f64;
                assert!((0.5..2.0).contains(&ratio), "both near links carry as much: {seen:?}");
            }
            assert!(seen.spare[way] <= QUIET, "the spare tier rests: {seen:?}");
            assert!(seen.late[way].1 <= FEW, "in order, but what is lost twice: {seen:?}");
        }
    }
}

#[test]
fn where_a_member_dies_repairs_shares_and_tiers_begin_anew_without_a_hole() {
    let act = Act::Kill(OLD);
    assert_no_hole(&outcomes(act, true, LOSS), &outcomes(act, false, LOSS), 2.0 * MORE);
}

#[test]
fn where_a_member_is_drained_they_do_so_too_and_nothing_is_lost_either_way() {
    let act = Act::Drain(OLD);
    let [ruled, plain] = [true, false].map(|ruled| outcomes(act, ruled, LOSS));
    assert_no_hole(&ruled, &plain, MORE);
    ruled.iter().chain(&plain).for_each(|seen| assert_eq!(seen.lost, [0, 0], "{seen:?}"));
}

#[test]
fn flows_keep_their_order_whatever_rules_say_of_them() {
    for act in [Act::Kill(OLD), Act::Drain(OLD)] {
        for seen in outcomes(act, true, 0.0) {
            assert_eq!((seen.moves, seen.lost[LOCAL]), (1, 0), "{act:?}: {seen:?}");
            assert_eq!(seen.late.map(|(_, other)| other), [0, 0], "in order but for the move, {act:?}: {seen:?}");
            // What a dead one may not have forwarded is before what follows; one that is drained goes on beside.
            let dies = matches!(act, Act::Kill(_));
            assert!(!dies || seen.late[LOCAL].0 == 0, "{seen:?}");
        }
    }
}
