//! Which paths flows get.

use std::collections::BTreeMap;
use std::time::Duration;

use hawser_scion::conn::DeadPart;
use hawser_scion::select::Criterion;
use hawser_scion::{Fingerprint, Path};

use super::KEYS;
use super::sim::{ROOM, SERVER, Sim, path};
use super::talk::{Flow, PAYLOAD, address, connect, talk};
use crate::engine::conns::{Conn, MOST_CONNS};
use crate::engine::health::Health;
use crate::engine::{Drop, Notice, PeerId};
use crate::mptcp::{Flags, MptcpOption, Segment};
use crate::translate::Layer4;

fn used(sim: &Sim) -> Vec<usize> {
    sim.uses().into_values().collect()
}

#[test]
fn each_flow_of_a_connection_has_a_path_of_its_own_and_room_is_told() {
    let mut sim = Sim::new(3);
    let flows = connect(&mut sim, 2, KEYS);
    assert_eq!(sim.uses(), BTreeMap::from([(5001, 0), (5002, 1), (5003, 2)]));
    let rooms = sim.notices().into_iter().filter_map(|notice| match notice {
        Notice::Room { token, free } => Some((token, free)),
        _ => None,
    });
    let rooms = rooms.collect::<Vec<_>>();
    assert_eq!(rooms, [(KEYS[0].token(), 2), (KEYS[0].token(), 1), (KEYS[0].token(), 0)]);
    let snapshot = sim.snapshot(0);
    assert_eq!(snapshot.connections.len(), 1, "{:?}", snapshot.connections);
    assert_eq!(snapshot.connections[0].flows.len(), flows.len());
    assert_eq!(snapshot.connections[0].token, Some(KEYS[0].token()));
}

#[test]
fn each_path_counts_what_it_carried_both_ways() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 1, KEYS);
    for host in [0, 1] {
        talk(&mut sim, &mut flows, host, Duration::from_secs(1));
    }
    for path in sim.snapshot(0).paths {
        let conn = &path.conns[0];
        let least = u64::try_from(PAYLOAD).expect("a length") * 190;
        assert!(conn.sent_packets > 380 && conn.received_packets > 380, "{conn:?}");
        assert!(conn.sent_bytes > least && conn.received_bytes > least, "{conn:?}");
    }
}

#[test]
fn another_connection_begins_with_the_best_path_again() {
    let mut sim = Sim::new(3);
    connect(&mut sim, 1, KEYS);
    let mut other = Flow::new(1, 6001);
    assert!(other.open(&mut sim, [&[], &[], &[]]));
    assert_eq!(sim.uses()[&6001], 0);
}

#[test]
fn every_criterion_has_its_order() {
    // Lengths, MTUs, latencies and bandwidths that differ; 0 and 1 share an interface.
    let paths = || {
        let mut paths = vec![path(0, &[10]), path(1, &[10, 20]), path(2, &[30, 40, 50]), path(3, &[60, 70, 80, 90])];
        for (path, (mtu, ms, kbit)) in
            paths.iter_mut().zip([(1300, 40, 10), (1472, 30, 20), (1400, 20, 40), (1350, 10, 30)])
        {
            path.mtu = mtu;
            path.latency.fill(Some(Duration::from_millis(ms)));
            path.bandwidth.fill(Some(kbit));
        }
        paths
    };
    let table = [
        (Criterion::Length, vec![0, 1, 2]),
        (Criterion::Mtu, vec![1, 2, 3]),
        (Criterion::Latency, vec![3, 0, 2]),
        (Criterion::Bandwidth, vec![2, 3, 1]),
    ];
    for (select, expected) in table {
        let mut sim = Sim::with(paths(), select);
        connect(&mut sim, 2, KEYS);
        let uses = used(&sim);
        let latency = |at: usize| sim.paths[at].announced_latency().unwrap();
        match select {
            // Latency is that of all parts together.
            Criterion::Latency => assert!(uses.is_sorted_by_key(|at| latency(*at)), "{uses:?}"),
            _ => assert_eq!(uses, expected, "{select}"),
        }
    }
}

#[test]
fn by_sharability_the_paths_of_a_connection_share_as_little_as_can_be() {
    let paths = vec![path(0, &[10]), path(1, &[10]), path(2, &[10, 20]), path(3, &[30, 40]), path(4, &[50, 60])];
    let mut sim = Sim::with(paths, Criterion::Sharability);
    connect(&mut sim, 2, KEYS);
    assert_eq!(used(&sim), [0, 3, 4]);
    let shared: usize =
        sim.snapshot(0).paths.iter().filter(|path| !path.conns.is_empty()).map(|path| path.sharability).sum();
    assert_eq!(shared, 0);
}

#[test]
fn by_health_what_was_measured_counts() {
    let mut sim = Sim::with((0..2).map(|k| path(k, &[])).collect(), Criterion::Health);
    sim.links[0].delay = Duration::from_millis(80);
    let mut flows = connect(&mut sim, 1, KEYS);
    super::talk::talk(&mut sim, &mut flows, 0, Duration::from_secs(3));
    let measured: Vec<_> = sim.snapshot(0).paths.iter().map(|path| path.conns[0].round_trip.unwrap()).collect();
    assert!(measured[0] > 3 * measured[1], "{measured:?}");
    let mut other = Flow::new(1, 6001);
    assert!(other.open(&mut sim, [&[], &[], &[]]));
    assert_eq!(sim.uses()[&6001], 1, "the faster one comes first now");
}

#[test]
fn a_subflow_without_a_path_of_its_own_is_reset_at_once_with_a_reason() {
    let mut sim = Sim::new(1);
    connect(&mut sim, 0, KEYS);
    sim.outer[0].delivered.clear();
    let mut join = Flow::new(2, 5002);
    assert!(!join.open_join(&mut sim, KEYS[1]));
    let (interface, packet) = sim.outer[0].delivered.first().expect("an answer");
    let reset = Segment::parse(packet).unwrap();
    assert_eq!((interface.get(), reset.destination.ip()), (2, address(0, 2)));
    assert!(reset.flags.has(Flags::RST) && reset.mptcp().flatten().any(|one| matches!(one, MptcpOption::Reset { .. })));
    assert!(sim.snapshot(0).counters.dropped(Drop::NoPathLeft) > 0);
}

#[test]
fn a_first_packet_waits_for_paths_and_goes_when_they_are_known() {
    let mut sim = Sim::unknowing(vec![path(0, &[])], Criterion::Length);
    let flow = Flow::new(1, 5001);
    sim.send(0, 1, &flow.says(0, Flags::SYN));
    sim.run(Duration::from_millis(300));
    let server = SERVER.parse::<hawser_scion::EndpointAddr>().unwrap().isd_as;
    assert_eq!((sim.outer[0].asked.clone(), sim.outer[1].delivered.len()), (vec![server], 0));
    sim.tell_paths(vec![path(0, &[])]);
    sim.run(Duration::from_millis(50));
    assert_eq!(sim.outer[1].delivered.len(), 1);
    assert!(sim.outer[0].delivered.is_empty(), "nothing was refused");
}

#[test]
fn where_there_are_no_paths_this_host_is_told_at_once() {
    let mut sim = Sim::unknowing(vec![path(0, &[])], Criterion::Length);
    sim.send(0, 1, &Flow::new(1, 5001).says(0, Flags::SYN));
    sim.tell_paths(Vec::new());
    assert_eq!(sim.outer[0].delivered.len(), 1, "unreachable");
    sim.send(0, 1, &Flow::new(1, 5001).says(0, Flags::SYN));
    assert_eq!(sim.outer[0].delivered.len(), 2, "again, without waiting");
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::NoPath), 2);
    assert_eq!(sim.snapshot(0).connections, []);
}

#[test]
fn a_packet_waits_no_longer_than_a_daemon_may_take() {
    let mut sim = Sim::unknowing(vec![path(0, &[])], Criterion::Length);
    for port in 0..300 {
        sim.send(0, 1, &Flow::new(1, 5000 + port).says(0, Flags::SYN));
    }
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::Waiting), 44, "256 wait");
    sim.run(Duration::from_secs(8));
    assert_eq!(sim.outer[0].delivered.len(), 256);
}

/// The same paths with hop fields that last longer.
fn renewed(paths: &[Path]) -> Vec<Path> {
    paths.iter().map(|path| Path { expiry: path.expiry + Duration::from_secs(3600), ..path.clone() }).collect()
}

#[test]
fn renewed_paths_are_followed_and_forgotten_ones_forgotten() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 1, KEYS);
    let renewed = renewed(&sim.paths);
    sim.tell_paths(renewed.clone());
    assert_eq!(sim.outer[0].followed, 2);
    sim.tell_paths(renewed);
    assert_eq!(sim.outer[0].followed, 2, "nothing is new");
    flows.iter_mut().for_each(|flow| flow.close(&mut sim));
    sim.run(Duration::from_secs(700));
    assert_eq!(sim.outer[0].forgotten.len(), 1);
    assert_eq!((sim.snapshot(0).paths, sim.snapshot(0).peers), (vec![], vec![]));
    assert_eq!(sim.engines[0].next_deadline(), None, "nothing is to be done");
}

#[test]
fn an_idle_client_can_be_reached_after_its_path_was_renewed() {
    for layer4 in [Layer4::Udp, Layer4::Tcp] {
        let mut sim = Sim::over(1, [layer4; 2]);
        let mut flows = connect(&mut sim, 0, KEYS);
        sim.run(Duration::from_secs(10));
        let now = sim.now;
        let renewed = renewed(&sim.paths);
        sim.tell_paths(renewed);
        sim.run(Duration::from_millis(50));
        sim.expire_ways(1, now);
        let before = sim.outer[0].delivered.len();
        let data = flows[0].data(1);
        flows[0].send(&mut sim, 1, &data);
        sim.run(Duration::from_millis(50));
        let arrived = (sim.outer[0].delivered.len() - before, sim.snapshot(1).counters.dropped(Drop::Refused));
        assert_eq!(arrived, (1, 0), "{layer4:?}");
    }
}

/// Connections of others, all of them in use, until there are as many as may be.
fn crowd(sim: &mut Sim) {
    let (engine, idle_since) = (&mut sim.engines[0], sim.now);
    let to = "3-ff00:0:330,10.0.0.3:31000".parse().unwrap();
    while engine.conns.len() < MOST_CONNS {
        let (peer, path, health, passed) = (PeerId(usize::MAX), path(0, &[]), Health::default(), Default::default());
        engine.conns.insert(Conn { peer, to, path, room: ROOM, flows: 1, idle_since, health, passed });
    }
}

#[test]
fn an_idle_connection_makes_room_for_another_one_to_the_same_peer() {
    for is_full in [false, true] {
        let mut sim = Sim::new(2);
        connect(&mut sim, 0, KEYS)[0].close(&mut sim);
        sim.run(Duration::from_secs(5));
        let left = sim.paths[1].clone();
        sim.tell_paths(vec![left]);
        if is_full {
            crowd(&mut sim);
        } else {
            // There are no more descriptors.
            sim.outer[0].most_conns = Some(1);
        }
        let mut other = [Flow::new(1, 6001)];
        assert!(other[0].open(&mut sim, [&[], &[], &[]]), "is full: {is_full}");
        let arrived = talk(&mut sim, &mut other, 0, Duration::from_millis(500));
        let snapshot = sim.snapshot(0);
        assert!(arrived[0].len() > 90, "is full: {is_full}");
        assert_eq!((used(&sim), snapshot.peers.len(), snapshot.peers[0].flows), (vec![1], 1, 1), "is full: {is_full}");
        assert!(snapshot.counters.drops().all(|(_, count)| count == 0), "is full: {is_full}");
    }
}

#[test]
fn a_path_that_cannot_be_used_costs_no_idle_connection() {
    let mut sim = Sim::new(2);
    connect(&mut sim, 0, KEYS)[0].close(&mut sim);
    sim.run(Duration::from_secs(5));
    let left = sim.paths[1].clone();
    sim.tell_paths(vec![left]);
    sim.outer[0].refuses_to_open = true;
    assert!(!Flow::new(1, 6001).open(&mut sim, [&[], &[], &[]]));
    let open: Vec<_> = sim.engines[0].conns.iter().map(|(_, conn)| conn.fingerprint().clone()).collect();
    assert_eq!(open, [sim.paths[0].interfaces.clone()]);
}

#[test]
fn an_idle_connection_that_is_probed_makes_room_last() {
    let mut sim = Sim::new(4);
    let mut flows = connect(&mut sim, 2, KEYS);
    flows[1..].iter_mut().for_each(|flow| flow.close(&mut sim));
    sim.run(Duration::from_secs(5));
    let dead = DeadPart::External(sim.paths[1].interfaces.interfaces()[0]);
    let (now, Sim { engines, outer, .. }) = (sim.now, &mut sim);
    engines[0].handle_dead_part(now, dead, &mut outer[0]);
    sim.outer[0].most_conns = Some(3);
    let left = sim.paths[3].clone();
    sim.tell_paths(vec![left]);
    assert_eq!(used(&sim), [3]);
    let place = |path: &Fingerprint| sim.paths.iter().position(|one| one.interfaces == *path);
    let open: Vec<_> = sim.engines[0].conns.iter().filter_map(|(_, conn)| place(conn.fingerprint())).collect();
    assert_eq!(open, [0, 1, 3], "not the dead one: its peer has a flow, which may come back to it");
}
