//! Paths die, and flows go elsewhere.

use std::time::Duration;

use hawser_scion::conn::DeadPart;

use super::KEYS;
use super::sim::{Sim, path};
use super::talk::{connect, longest_gap, talk};
use crate::engine::{Notice, PathState, Reason};
use crate::mptcp::{Flags, Segment};

/// The least patience twice, a round trip, and a tick of the sweep or two.
const NOTICED: Duration = Duration::from_millis(600);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_flow_leaves_a_cut_path_for_an_unused_one_whoever_sends() {
    for sender in [0, 1] {
        let mut sim = Sim::new(3);
        let mut flows = connect(&mut sim, 1, KEYS);
        talk(&mut sim, &mut flows, sender, secs(3));
        sim.links[0].is_cut = true;
        let from = sim.now;
        let arrived = talk(&mut sim, &mut flows, sender, secs(3));
        let gap = longest_gap(&arrived[0], from, sim.now);
        assert!(gap <= NOTICED, "host {sender} sends: a gap of {gap:?}");
        assert!(longest_gap(&arrived[1], from, sim.now) < Duration::from_millis(50), "the other path is as it was");
        assert_eq!(sim.uses()[&5001], 2);
        let moved = sim.notices().into_iter().find_map(|notice| match notice {
            Notice::Moved { from, to, because, .. } => Some((from, to, because)),
            _ => None,
        });
        assert_eq!(moved, Some((sim.paths[0].interfaces.clone(), sim.paths[2].interfaces.clone(), Reason::Silence)));
        let counters = sim.snapshot(0).counters;
        assert_eq!((counters.died(Reason::Silence), counters.moved(Reason::Silence)), (1, 1));
    }
}

#[test]
fn without_another_path_a_subflow_is_given_up_and_comes_back_with_its_path() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 1, KEYS);
    talk(&mut sim, &mut flows, 0, secs(1));
    sim.notices();
    sim.links[1].is_cut = true;
    talk(&mut sim, &mut flows, 0, secs(2));
    let lost = sim.notices().into_iter().filter_map(|notice| match notice {
        Notice::Lost { token, key } => Some((token, key.local.port())),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [(KEYS[0].token(), 5002)], "told once");
    // The manager has the kernel destroy it.
    let reset = flows[1].says(0, Flags::RST);
    sim.outer[1].delivered.clear();
    sim.send(0, 2, &reset);
    sim.run(Duration::from_millis(50));
    let ends = |packet: &[u8]| {
        let segment = Segment::parse(packet).expect("it is one");
        segment.flags.has(Flags::RST) && segment.source.port() == 5002
    };
    assert!(sim.outer[1].delivered.iter().any(|(_, packet)| ends(packet)), "by the path that works");
    flows.truncate(1);
    sim.links[1].is_cut = false;
    talk(&mut sim, &mut flows, 0, secs(3));
    let notices = sim.notices();
    assert!(notices.iter().any(|notice| matches!(notice, Notice::Back { .. })), "{notices:?}");
    let room = Notice::Room { token: KEYS[0].token(), free: 1 };
    assert_eq!(notices.iter().rfind(|notice| matches!(notice, Notice::Room { .. })), Some(&room));
}

#[test]
fn with_all_paths_cut_for_ten_seconds_the_last_flow_stays_and_goes_on() {
    for sender in [0, 1] {
        let mut sim = Sim::new(2);
        let mut flows = connect(&mut sim, 0, KEYS);
        talk(&mut sim, &mut flows, sender, secs(1));
        sim.links.iter_mut().for_each(|link| link.is_cut = true);
        talk(&mut sim, &mut flows, sender, secs(10));
        assert!(sim.notices().iter().all(|notice| !matches!(notice, Notice::Lost { .. })), "nothing is given up");
        // The one it was on comes back alone, or the other.
        sim.links[1].is_cut = false;
        let from = sim.now;
        let arrived = talk(&mut sim, &mut flows, sender, secs(4));
        let gap = longest_gap(&arrived[0], from, sim.now);
        assert!(gap <= Duration::from_millis(1700), "host {sender} sends: {gap:?} after the path is back");
        assert_eq!(sim.uses()[&5001], 1);
    }
}

#[test]
fn what_a_router_says_is_heeded_at_once() {
    let paths = vec![path(0, &[10]), path(1, &[10]), path(2, &[20])];
    let mut sim = Sim::with(paths, hawser_scion::select::Criterion::Length);
    let mut flows = connect(&mut sim, 0, KEYS);
    let dead = DeadPart::External(sim.paths[0].interfaces.interfaces()[1]);
    let now = sim.now;
    let Sim { engines, outer, .. } = &mut sim;
    engines[0].handle_dead_part(now, dead, &mut outer[0]);
    assert_eq!(sim.uses()[&5001], 2, "not the other one that crosses it");
    let states: Vec<_> = sim.snapshot(0).paths.iter().map(|path| path.state).collect();
    assert_eq!(states, [PathState::Dead, PathState::Dead, PathState::Live]);
    assert_eq!(sim.snapshot(0).counters.died(Reason::Scmp), 1);
    talk(&mut sim, &mut flows, 0, secs(2));
    assert_eq!(sim.snapshot(0).counters.back, 1, "it was not dead: it answers probes");
}

#[test]
fn what_a_router_says_of_an_idle_connection_is_not_taken_for_the_one_that_has_its_place() {
    let paths = vec![path(0, &[10]), path(1, &[10]), path(2, &[20])];
    let mut sim = Sim::with(paths, hawser_scion::select::Criterion::Length);
    let mut flows = connect(&mut sim, 1, KEYS);
    flows[1].close(&mut sim);
    sim.run(secs(5));
    // There are no more descriptors: the flow moves when the idle one is closed.
    sim.outer[0].most_conns = Some(2);
    let dead = DeadPart::External(sim.paths[0].interfaces.interfaces()[1]);
    let now = sim.now;
    let Sim { engines, outer, .. } = &mut sim;
    engines[0].handle_dead_part(now, dead, &mut outer[0]);
    assert_eq!(sim.uses()[&5001], 2);
    let states: Vec<_> = sim.snapshot(0).paths.iter().map(|path| path.state).collect();
    assert_eq!(states, [PathState::Dead, PathState::Dead, PathState::Live]);
    assert_eq!(sim.snapshot(0).counters.died(Reason::Scmp), 1);
}

#[test]
fn a_path_that_is_gone_is_left_where_there_is_another() {
    let mut sim = Sim::new(2);
    connect(&mut sim, 0, KEYS);
    let left = sim.paths[1].clone();
    sim.tell_paths(vec![left]);
    assert_eq!(sim.uses()[&5001], 1);
    assert_eq!(sim.snapshot(0).counters.moved(Reason::Gone), 1);
}

#[test]
fn a_path_that_works_again_is_used_although_it_is_not_listed_yet() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, secs(1));
    sim.links[0].is_cut = true;
    talk(&mut sim, &mut flows, 0, secs(2));
    assert_eq!(sim.uses()[&5001], 1);
    // The daemon was asked meanwhile, and leaves out what a router spoke of.
    let listed = sim.paths[1].clone();
    sim.tell_paths(vec![listed]);
    sim.links[0].is_cut = false;
    talk(&mut sim, &mut flows, 0, secs(2));
    sim.links[1].is_cut = true;
    let from = sim.now;
    let arrived = talk(&mut sim, &mut flows, 0, secs(3));
    let gap = longest_gap(&arrived[0], from, sim.now);
    assert!(gap <= NOTICED, "a gap of {gap:?}");
    assert_eq!(sim.uses()[&5001], 0);
}

#[test]
fn an_idle_connection_asks_nothing_and_dies_of_nothing() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 1, KEYS);
    talk(&mut sim, &mut flows, 0, secs(1));
    sim.run(secs(2));
    let probes = sim.snapshot(0).counters.probes;
    sim.run(secs(600));
    assert_eq!(sim.snapshot(0).counters.probes, probes);
    assert!(sim.notices().iter().all(|notice| !matches!(notice, Notice::Died { .. })));
}

#[test]
fn a_slow_full_path_is_not_dead() {
    let mut sim = Sim::new(2);
    sim.links[0].rate = Some(2_500_000);
    sim.links[0].delay = Duration::from_millis(100);
    let mut flows = connect(&mut sim, 0, KEYS);
    // 2.1 Mbit/s of 2.5: what is sent waits in a queue now and then.
    let arrived = talk(&mut sim, &mut flows, 0, secs(5));
    assert!(arrived[0].len() > 700, "{}", arrived[0].len());
    assert_eq!(sim.snapshot(0).counters.died(Reason::Silence), 0);
}
