//! A hub's peer and members: who is told what, who forwards, and what a member's death costs.

use hawser_core::congestion::Kind;
use hawser_core::drops::DropReason;
use hawser_core::endpoint::{Event, Standing};
use hawser_core::resequence::Sink;
use hawser_core::rules::{Rules, Treatment};
use hawser_core::scheduler;
use hawser_core::session::Reach;
use hawser_core::units::{PeerId, Time};
use hawser_core::wire::{HubFrame, HubFrameType};
use hawser_sim::host::ping::{Echo, Ping};
use hawser_sim::hub;
use hawser_sim::hub::case::{Case, FAULTS, Fault, Outcome};
use hawser_sim::net::link;
use hawser_sim::portal::Recipe;
use hawser_sim::situation::{address, second};
use hawser_sim::tcp::Transfer;
use hawser_sim::tcp::hosts::{ReceiverHost, SenderHost};
use hawser_sim::world::{HostId, LOCAL, REMOTE, Setup};
use hawser_sim::{World, judge};
use std::time::Duration;

/// The seeds of each fault: the example `hub` takes more.
const SEEDS: std::ops::Range<u64> = 100..104;
/// Where the old member's packets filled the links as the new one began, and the far link was taken for the near one; or
/// one of two like links had more of them.
const FULL: [u64; 5] = [144, 192, 68, 95, 152];
/// Where claims over a suspect path left nothing of its quota for the challenges that bring it back.
const STARVED: [u64; 3] = [24, 70, 244];
/// No ping is away for longer where the peer moves, ms; nor, in a planned move, for this much longer than without one.
const GAP: f64 = 300.0;
const PLANNED_GAP: f64 = 20.0;
/// In no tenth of a second after a drain does more than one ping of ten take this much longer than before, ms, in the
/// median case.
const MOVE_DELAY: f64 = 12.0;
const PEER: PeerId = PeerId(0);

/// Two portals with two links and a session, each in a hub or not.
fn portals(in_hub: [bool; 2]) -> World {
    let recipes = [LOCAL, REMOTE].map(|side| Recipe { in_hub: in_hub[side], ..Recipe::of(side, Kind::Bbr) });
    let links = vec![link(20.0, 20.0), link(20.0, 60.0)];
    let mut world = World::new(Setup { seed: 1, links, recipes, clocks: None, both_initiate: false });
    world.run_until(second(1.0));
    world
}

fn said(world: &World, side: usize) -> Vec<HubFrame> {
    let said = |(_, event): &(Time, Event)| match event {
        Event::HubSaid { frame, .. } => Some(*frame),
        _ => None,
    };
    world.portals[side].told.iter().filter_map(said).collect()
}

fn say(world: &mut World, side: usize, frame: HubFrame, reach: Reach) -> bool {
    let portal = &mut world.portals[side];
    let known = portal.endpoint.say_to_hub(portal.clock.show(world.now), PEER, frame, reach);
    world.settle(side);
    known
}

fn frame(kind: HubFrameType, byte: u8) -> HubFrame {
    HubFrame::new(kind, &[byte]).expect("a byte")
}

#[test]
fn claims_go_to_who_knows_them_alone() {
    for in_hub in [[true, true], [true, false], [false, true], [false, false]] {
        let mut world = portals(in_hub);
        let claim = frame(HubFrameType::Claim, 7);
        assert_eq!(say(&mut world, LOCAL, claim, Reach::Best), in_hub == [true, true], "{in_hub:?}");
        world.run_until(second(1.2));
        assert_eq!(said(&world, REMOTE), if in_hub == [true, true] { vec![claim] } else { vec![] });
        let named =
            |side: usize| world.portals[side].told.iter().any(|(_, told)| matches!(told, Event::OtherVersion { .. }));
        assert!(!named(LOCAL) && !named(REMOTE), "a hub makes no other version");
    }
}

#[test]
fn a_claim_goes_by_the_best_path_or_by_all_and_its_answer_comes_back_by_the_same() {
    for (reach, copies) in [(Reach::Best, 1), (Reach::All, 2)] {
        let mut world = portals([true, true]);
        say(&mut world, LOCAL, frame(HubFrameType::Claim, 1), reach);
        say(&mut world, LOCAL, frame(HubFrameType::Claim, 2), reach);
        world.run_until(second(1.2));
        assert_eq!(said(&world, REMOTE).len(), 2 * copies, "each is said once on each path");
        say(&mut world, REMOTE, frame(HubFrameType::ClaimAck, 3), Reach::Back);
        world.run_until(second(1.4));
        assert_eq!(said(&world, LOCAL), vec![frame(HubFrameType::ClaimAck, 3); copies]);
        say(&mut world, REMOTE, frame(HubFrameType::ClaimAck, 4), Reach::Back);
        world.run_until(second(1.6));
        assert_eq!(said(&world, LOCAL).len(), copies + 1, "without a question it goes by the best");
    }
}

#[test]
fn the_newest_of_what_was_not_said_yet_is_said() {
    let mut world = portals([true, true]);
    let portal = &mut world.portals[LOCAL];
    let now = portal.clock.show(world.now);
    for byte in [1, 2, 3] {
        portal.endpoint.say_to_hub(now, PEER, frame(HubFrameType::Claim, byte), Reach::Best);
    }
    world.settle(LOCAL);
    world.run_until(second(1.2));
    assert_eq!(said(&world, REMOTE), [frame(HubFrameType::Claim, 3)]);
}

#[derive(Default)]
struct Got(usize);

impl Sink for Got {
    fn deliver(&mut self, _: &[u8], _: bool) {
        self.0 += 1;
    }
}

/// A ping each 20 ms from the local side; the remote one answers.
fn pinged(world: &mut World) -> HostId {
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    world.add_host(REMOTE, ends[REMOTE], Echo::default());
    let ping = Ping::new(ends[LOCAL], ends[REMOTE], Duration::from_millis(20), second(1.0), second(3.0));
    world.add_host(LOCAL, ends[LOCAL], ping)
}

fn stand(world: &mut World, standing: Standing) -> usize {
    let (mut got, now) = (Got::default(), world.now);
    let portal = &mut world.portals[REMOTE];
    portal.endpoint.set_standing(portal.clock.show(now), PEER, standing, &mut got);
    got.0
}

#[test]
fn a_member_holds_what_may_be_its_own_in_a_moment_and_drops_the_rest() {
    let mut world = portals([true, true]);
    let ping = pinged(&mut world);
    world.run_until(second(1.5));
    let drops = |world: &World| world.portals[REMOTE].endpoint.snapshot(world.now).drops.of(DropReason::NotOwner);
    assert_eq!((stand(&mut world, Standing::Held), drops(&world)), (0, 0));
    world.run_until(second(1.7));
    let held = stand(&mut world, Standing::Served);
    assert!((9..=11).contains(&held), "{held} pings of 200 ms waited, and are forwarded");
    assert_eq!(stand(&mut world, Standing::Refused), 0);
    world.run_until(second(2.0));
    let refused = drops(&world);
    assert!((14..=16).contains(&refused), "{refused} pings of 300 ms came for nobody");
    assert_eq!(stand(&mut world, Standing::Held), 0, "what was dropped is gone");
    world.run_until(second(2.9));
    let late = stand(&mut world, Standing::Served);
    assert!((24..=26).contains(&late), "{late} pings of the last half second are forwarded, no older ones");
    assert_eq!(drops(&world) + late as u64, refused + 45, "those are counted");
    world.run_until(second(3.5));
    let unanswered = world.host::<Ping>(ping).round_trips.iter().filter(|trip| trip.is_none()).count();
    assert_eq!(unanswered as u64, refused + 45 + held as u64, "what is delivered here goes to no host");
}

#[test]
fn what_came_by_both_links_while_it_was_held_is_forwarded_once() {
    let mut world = portals([true, true]);
    let twice = Treatment { scheduler: scheduler::Kind::Redundant, ..Treatment::default() };
    let portal = &mut world.portals[LOCAL];
    portal.endpoint.set_rules(portal.clock.show(world.now), Rules::new(Vec::new(), twice));
    pinged(&mut world);
    world.run_until(second(1.5));
    stand(&mut world, Standing::Held);
    world.run_until(second(1.7));
    let held = stand(&mut world, Standing::Served);
    assert!((9..=11).contains(&held), "{held} of ten pings");
}

/// A peer with two links of 20 and 40 ms round trip, two members, and pings from one side to the other this often,
/// until then.
fn hub(from: usize, every: f64, until: f64) -> (hub::World, HostId) {
    hub_of(2, from, every, until)
}

/// The same with this many members.
fn hub_of(members: usize, from: usize, every: f64, until: f64) -> (hub::World, HostId) {
    let beyond = [Duration::from_millis(1), Duration::from_millis(2)];
    let links = vec![(link(20.0, 20.0), beyond), (link(20.0, 40.0), beyond)];
    let mut world = hub::World::with_members(members, hub::Setup { seed: 5, links, rules: Rules::default() });
    let (ends, to) = ([LOCAL, REMOTE].map(|side| address(side, 10)), 1 - from);
    world.add_host(to, ends[to], Echo::default());
    let ping = Ping::new(ends[from], ends[to], Duration::from_secs_f64(every), second(1.0), second(until));
    let ping = world.add_host(from, ends[from], ping);
    (world, ping)
}

#[test]
fn moves_at_will_there_and_back_lose_nothing() {
    let (mut world, ping) = hub(LOCAL, 0.01, 13.0);
    let moves = [3.0, 6.0, 9.0];
    moves.iter().for_each(|at| world.at(second(*at), hub::Act::Move));
    world.run_until(second(14.0));
    assert_eq!((world.moved.len(), world.epochs()), (3, 4));
    assert!(world.moved.iter().all(|(_, moved)| moved.planned));
    let ping: &Ping = world.host(ping);
    assert_eq!(ping.lost(second(13.0)), 0);
    let longest = ping.longest_gap(second(2.0), second(13.0));
    assert!(longest < Duration::from_millis(60), "{longest:?}");
}

/// Which two drain, and when: the first member owns, the second stands by, the third is a spare one.
#[test]
fn two_members_that_drain_leave_the_peer_to_the_third_and_nothing_is_lost() {
    for drains in [[(12.0, 1), (15.0, 0)], [(12.0, 0), (15.0, 1)], [(12.0, 0), (12.0, 1)], [(12.0, 1), (12.001, 0)]] {
        let (mut world, ping) = hub_of(3, LOCAL, 0.01, 21.0);
        drains.iter().for_each(|(at, member)| world.at(second(*at), hub::Act::Drain(*member)));
        world.run_until(second(22.0));
        let (last, planned) = (world.moved.last(), world.moved.iter().all(|(_, moved)| moved.planned));
        let (at, moved) = last.unwrap_or_else(|| panic!("{drains:?}: nobody moves"));
        assert_eq!((moved.to.peer, planned), (PeerId(2), true), "{drains:?}: {:?}", world.moved);
        // A member that is told to end waits for so long (hawser-portal, DRAIN_MOST).
        assert!(*at < second(drains[1].0 + 5.0), "{drains:?}: {:?}", world.moved);
        assert_eq!(world.host::<Ping>(ping).lost(second(21.0)), 0, "{drains:?}");
    }
}

#[test]
fn where_routers_choose_a_member_that_lost_its_place_the_peer_moves_there() {
    let (mut world, ping) = hub_of(3, LOCAL, 0.01, 45.0);
    // The third stands by while the second is away, and does not know that it does no longer.
    world.at(second(5.0), hub::Act::Kill(1));
    world.at(second(8.0), hub::Act::Start(1));
    world.at(second(40.0), hub::Act::Unroute(0, true));
    world.run_until(second(46.0));
    let moved: Vec<_> = world.moved.iter().map(|(at, moved)| (*at, moved.to.peer)).collect();
    assert!(matches!(moved[..], [(at, PeerId(1 | 2))] if at > second(40.0) && at < second(41.0)), "{moved:?}");
    let lost = world.host::<Ping>(ping).lost(second(45.0));
    assert!(lost < 50, "{lost} of a hundred a second");
}

/// The peer's own part of the time over which a member's peers come back is 5 ms here.
#[test]
fn a_peer_goes_back_to_its_first_member_once_that_was_there_for_five_minutes_and_loses_nothing() {
    for members in [2, 3] {
        let (mut world, ping) = hub_of(members, LOCAL, 1.0, 400.0);
        for (at, act) in [(20.0, hub::Act::Kill(0)), (30.0, hub::Act::Start(0))] {
            world.at(second(at), act);
        }
        let standby = |world: &hub::World| world.pair.status().standby.peer;
        world.run_until(second(29.0));
        assert_eq!(standby(&world), PeerId(if members == 3 { 2 } else { 0 }), "the first is away");
        world.run_until(second(90.0));
        assert_eq!((standby(&world), world.moved.len()), (PeerId(0), 1), "it stands by again");
        world.run_until(second(330.0));
        assert_eq!(world.moved.len(), 1, "{:?}", world.moved);
        world.run_until(second(401.0));
        let [(_, away), (at, back)] = world.moved[..] else { panic!("{:?}", world.moved) };
        assert_eq!((away.planned, back.planned, back.to.peer), (false, true, PeerId(0)));
        assert!(at < second(390.0), "{:?}", world.moved);
        assert_eq!(standby(&world), PeerId(1));
        let trips = &world.host::<Ping>(ping).round_trips;
        assert!(trips.iter().skip(60).all(Option::is_some), "{members} members: {trips:?}");
    }
}

#[test]
fn a_member_that_fails_again_and_again_gets_the_peer_back_ever_later_and_not_before_it_stays() {
    let (mut world, _) = hub(LOCAL, 1.0, 1300.0);
    // When the first member dies, to start ten seconds later, and how many moves there were at a later time.
    let lives = [(20.0, 200.0, 1), (200.0, 505.0, 1), (600.0, 1195.0, 3)];
    for (dies, _, _) in lives {
        world.at(second(dies), hub::Act::Kill(0));
        world.at(second(dies + 10.0), hub::Act::Start(0));
    }
    for (dies, until, moves) in lives {
        world.run_until(second(until));
        assert_eq!(world.moved.len(), moves, "it died at {dies} s: {:?}", world.moved);
    }
    world.run_until(second(1301.0));
    let moved: Vec<_> = world.moved.iter().map(|(_, moved)| (moved.to.peer, moved.planned)).collect();
    let [first, other] = [0, 1].map(PeerId);
    assert_eq!(moved, [(other, false), (first, true), (other, false), (first, true)]);
}

#[test]
fn a_new_owner_that_stops_soon_after_a_planned_move_is_left_for_the_old_one_as_soon_as_any() {
    for later in [0.1, 0.3, 0.6, 0.9, 1.2, 2.5] {
        let (mut world, ping) = hub(LOCAL, 0.01, 10.0);
        for (at, act) in [(3.0, hub::Act::Move), (3.0 + later, hub::Act::Freeze(1)), (7.0, hub::Act::Thaw(1))] {
            world.at(second(at), act);
        }
        world.run_until(second(11.0));
        let planned: Vec<bool> = world.moved.iter().map(|(_, moved)| moved.planned).collect();
        assert_eq!(planned, [true, false], "{later} s");
        let gap = world.host::<Ping>(ping).longest_gap(second(2.0), second(10.0));
        assert!(gap < Duration::from_secs_f64(GAP / 1e3), "{later} s: {gap:?}");
    }
}

/// Little is due at a member of one peer that pings once a second: a stop of a second may end before anything is. It
/// begins just before a ping, which the peer still sends there.
#[test]
fn a_quiet_member_that_is_stopped_for_a_second_forwards_nothing_of_what_waited_for_it() {
    for stopped in [4.92, 4.95, 4.99] {
        let (mut world, _) = hub(LOCAL, 1.0, 9.0);
        for (at, act) in [(stopped, hub::Act::Freeze(0)), (stopped + 1.0, hub::Act::Thaw(0))] {
            world.at(second(at), act);
        }
        world.run_until(second(stopped));
        let before = (world.lapses(0), world.drops(0).of(DropReason::NotOwner));
        assert_eq!((before, world.moved.len()), ((0, 0), 0), "{stopped} s");
        world.run_until(second(9.5));
        assert_eq!((world.moved.len(), world.lapses(0)), (1, 1), "{stopped} s: it noticed");
        assert!(world.drops(0).of(DropReason::NotOwner) > 0, "{stopped} s: the ping of 5 s waited for it");
    }
}

#[test]
fn an_idle_peers_first_packet_waits_for_an_echo_in_either_direction() {
    for from in [LOCAL, REMOTE] {
        let (mut world, ping) = hub(from, 15.0, 60.0);
        world.run_until(second(62.0));
        let trips = &world.host::<Ping>(ping).round_trips;
        let longest = trips.iter().map(|trip| trip.unwrap_or(Duration::MAX)).max();
        assert_eq!((trips.len(), world.epochs(), world.moved.len()), (4, 1, 0));
        assert!(longest < Some(Duration::from_millis(80)), "{longest:?}: its own round trip, and one to be asked in");
    }
}

#[test]
fn a_far_peer_hears_of_a_death_from_the_standby_that_its_packets_come_to() {
    let links = vec![(link(20.0, 400.0), [Duration::from_millis(1); 2])];
    let mut world = hub::World::new(hub::Setup { seed: 5, links, rules: Rules::default() });
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    world.add_host(LOCAL, ends[LOCAL], Echo::default());
    let ping = Ping::new(ends[REMOTE], ends[LOCAL], Duration::from_millis(10), second(2.0), second(9.0));
    world.add_host(REMOTE, ends[REMOTE], ping);
    world.at(second(5.0), hub::Act::Kill(0));
    world.run_until(second(9.0));
    let [(at, _)] = world.moved[..] else { panic!("{:?}", world.moved) };
    let after = at.since(second(5.0));
    assert!(after < Duration::from_millis(900), "{after:?}: by its own silence it takes 1.04 s");
}

#[test]
fn a_dead_standby_changes_nothing_and_is_the_standby_once_it_is_back() {
    // Its session died with it: that shows at its next claim, or where the owner dies before, in its own silence.
    for (owner_dies, bound) in [(16.5, 700.0), (20.0, GAP)] {
        let (mut world, ping) = hub(LOCAL, 0.01, 25.0);
        for (at, act) in [(13.0, hub::Act::Kill(1)), (15.0, hub::Act::Start(1)), (owner_dies, hub::Act::Kill(0))] {
            world.at(second(at), act);
        }
        world.run_until(second(26.0));
        assert_eq!(world.moved.len(), 1);
        let (ping, harm): (&Ping, _) = (world.host(ping), second(owner_dies - 0.1));
        assert!(ping.longest_gap(second(2.0), harm) < Duration::from_millis(40), "nobody noticed");
        let gap = ping.longest_gap(harm, second(25.0));
        assert!(gap < Duration::from_secs_f64(bound / 1e3), "{owner_dies} s: {gap:?}");
    }
}

#[test]
fn an_owner_is_claimed_as_seldom_by_a_far_peer_that_says_little() {
    let links = vec![(link(20.0, 60.0), [Duration::from_millis(1); 2]), (link(20.0, 80.0), [Duration::ZERO; 2])];
    let mut world = hub::World::new(hub::Setup { seed: 5, links, rules: Rules::default() });
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    world.add_host(REMOTE, ends[REMOTE], Echo::default());
    let ping = Ping::new(ends[LOCAL], ends[REMOTE], Duration::from_millis(100), second(1.0), second(40.0));
    world.add_host(LOCAL, ends[LOCAL], ping);
    world.run_until(second(5.0));
    let before = [0, 1].map(|member| world.claims(member));
    world.run_until(second(39.0));
    let claims = [0, 1].map(|member| world.claims(member) - before[member]);
    assert_eq!(claims, [20, 2], "each 1.7 s, and each 17 s");
    assert_eq!(world.lapses(0), 0, "no lease was over");
}

/// What a download of three seconds brings, to the peer or from it, begun a second after moves of a peer that pings.
fn download_after(moves: &[f64], from: usize) -> u64 {
    let (mut world, _) = hub(LOCAL, 0.2, 19.0);
    moves.iter().for_each(|at| world.at(second(*at), hub::Act::Move));
    let (ends, to) = ([LOCAL, REMOTE].map(|side| address(side, 11)), 1 - from);
    let begins = moves.last().map_or(9.0, |at| at + 1.0);
    let transfer = [Transfer::bulk(second(begins), second(begins + 3.0))];
    world.add_host(from, ends[from], SenderHost::new(ends[from], ends[to], &transfer, 5));
    let receiver = world.add_host(to, ends[to], ReceiverHost::new(ends[to], ends[from], &transfer, 5));
    world.run_until(second(begins + 3.0));
    assert_eq!(world.moved.len(), moves.len());
    world.host::<ReceiverHost>(receiver).receivers[0].bytes_between(second(begins), second(begins + 3.0))
}

#[test]
fn a_move_of_a_peer_with_little_to_say_makes_no_later_download_slower() {
    for from in [LOCAL, REMOTE] {
        let usual = download_after(&[], from);
        for moves in [&[8.0][..], &[5.0, 8.0], &[3.0, 6.0, 9.0]] {
            let after = download_after(moves, from);
            println!("from {from}: {usual} bytes, {after} after {} moves", moves.len());
            assert!(
                after as f64 > 0.85 * usual as f64,
                "from {from}: {usual} bytes, {after} after {} moves",
                moves.len()
            );
        }
    }
}

/// In each of its outcomes flows live, the peer moves where it is to, and no gap is long.
fn good_outcomes(fault: Fault, seeds: impl IntoIterator<Item = u64>) -> Vec<(Case, Outcome)> {
    let cases: Vec<Case> = seeds.into_iter().map(|seed| Case::draw(seed, fault)).collect();
    let outcomes = judge::each(&cases, Case::run);
    let outcomes: Vec<_> = cases.into_iter().zip(outcomes).collect();
    for (case, outcome) in &outcomes {
        assert!(outcome.lives, "{case}: {outcome:?}");
        assert_eq!(outcome.moves, fault.moves(), "{case}: {outcome:?}");
        assert!(fault.moves() == 0 || outcome.gap < GAP, "{case}: {outcome:?}");
    }
    outcomes
}

#[test]
fn whatever_happens_to_the_active_member_flows_live_and_the_gap_is_short() {
    for fault in FAULTS.into_iter().filter(|fault| *fault != Fault::Drained) {
        let more = if fault == Fault::LinksAway { &STARVED[..] } else { &[] };
        good_outcomes(fault, SEEDS.chain(more.iter().copied()));
    }
}

#[test]
fn more_flows_than_a_datagram_has_frames_are_gone_from_a_deaf_member() {
    // That no datagram is refused is looked at by each run.
    let outcome = Case::draw(SEEDS.start, Fault::DeafOwner).with_calls(100).run();
    assert!(outcome.lives && outcome.call_gap[0] < GAP, "{outcome:?}");
}

#[test]
fn a_drained_member_loses_nothing() {
    for (case, outcome) in good_outcomes(Fault::Drained, SEEDS.chain(FULL)) {
        let lost = (outcome.lost, outcome.twice, outcome.pings_lost, outcome.refused);
        assert_eq!(lost, ([0, 0], [0, 0], 0, 0), "{case}: {outcome:?}");
        assert!(outcome.gap < outcome.gap_before + PLANNED_GAP, "{case}: {outcome:?}");
    }
}

#[test]
fn twenty_calls_and_streams_do_not_notice_a_drain() {
    let busy = |seed| Case::draw(seed, Fault::Drained).with_calls(20).with_streams(20);
    let outcomes = judge::each(&(200..220).map(busy).collect::<Vec<_>>(), Case::run);
    for step in 0..outcomes[0].ping_after.len() {
        // Without room for the calls it is above 20 ms at first; where both links look for more at once, 17 later.
        let later: Vec<f64> = outcomes.iter().map(|outcome| outcome.ping_after[step] - outcome.ping).collect();
        assert!(judge::quantile(&later, 0.5) < MOVE_DELAY, "step {step}: {later:?}");
    }
}
