//! Packets as they cross, and what happens to those that do not.

use std::time::Duration;

use super::KEYS;
use super::sim::{ROOM, Sim};
use super::talk::{Flow, PAYLOAD, address, connect, talk};
use crate::compress::{Compression, Offload};
use crate::engine::{Notice, Reason, Sent};
use crate::mptcp::samples::Draft;
use crate::mptcp::{Flags, Key, Segment, TcpOption};

fn drops(sim: &Sim, host: usize) -> Vec<(&'static str, u64)> {
    let counters = sim.snapshot(host).counters;
    counters.drops().filter(|(_, count)| *count > 0).map(|(why, count)| (why.name(), count)).collect()
}

#[test]
fn what_is_delivered_is_what_was_sent_and_nothing_is_dropped() {
    let mut sim = Sim::new(3);
    let mut flows = connect(&mut sim, 2, KEYS);
    for host in [0, 1] {
        let arrived = talk(&mut sim, &mut flows, host, Duration::from_secs(1));
        assert!(arrived.iter().all(|flow| flow.len() > 190), "{:?}", arrived.iter().map(Vec::len).collect::<Vec<_>>());
    }
    for host in [0, 1] {
        assert_eq!(drops(&sim, host), []);
        let ours =
            sim.outer[host].delivered.iter().map(|(interface, packet)| (interface, Segment::parse(packet).unwrap()));
        for (interface, segment) in ours {
            assert_eq!(segment.destination.ip(), address(host, interface.get()));
        }
    }
    let snapshot = sim.snapshot(0);
    let flow = &snapshot.connections[0].flows[0];
    assert!(flow.received.bytes.abs_diff(flow.sent.bytes) <= 4 * PAYLOAD as u64, "both talked alike");
    assert_eq!(flow.sent.bytes % PAYLOAD as u64, 0);
    assert!((flow.received.share - 1.0 / 3.0).abs() < 0.01, "{}", flow.received.share);
    assert_eq!(flow.sent.intervals.iter().sum::<u64>(), flow.sent.recent);
}

#[test]
fn the_largest_segment_is_what_the_path_takes_at_both_ends() {
    let mut sim = Sim::new(1);
    sim.set_room(0, 1100);
    connect(&mut sim, 0, KEYS);
    for host in [0, 1] {
        let packet = sim.outer[host].delivered.iter().map(|(_, packet)| Segment::parse(packet).unwrap());
        let said: Vec<_> = packet.flat_map(|segment| segment.options().collect::<Vec<_>>()).collect();
        assert!(said.contains(&TcpOption::MaximumSegmentSize(Compression::max_segment(1100))), "host {host}: {said:?}");
    }
}

#[test]
fn a_segment_that_is_too_large_is_cut_where_it_can_be_and_this_host_told_of_the_size() {
    let mut sim = Sim::new(1);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(100));
    sim.run(Duration::from_millis(50));
    sim.outer.iter_mut().for_each(|outer| outer.delivered.clear());
    let large = Draft { payload: (0..3000_u32).map(|at| (at % 251) as u8).collect(), ..flows[0].says(0, Flags::ACK) };
    sim.send_packet(0, 1, &mut large.packet(), Offload { partial: true, segment: None });
    sim.run(Duration::from_millis(50));
    let is_icmp = |(_, packet): &&(_, Vec<u8>)| packet[6] == 58;
    let told = sim.outer[0].delivered.iter().find(is_icmp).expect("an answer").1.clone();
    assert_eq!(told[40], 2, "packet too big");
    let mtu = u32::from_be_bytes([told[44], told[45], told[46], told[47]]);
    assert_eq!(mtu, u32::from(Compression::max_segment(ROOM)) + 60);
    let pieces = sim.outer[1].delivered.iter().map(|(_, packet)| Segment::parse(packet).unwrap());
    let lengths: Vec<(u32, u32)> =
        pieces.map(|segment| (segment.sequence.0 - large.sequence, segment.payload)).collect();
    assert_eq!(lengths.iter().map(|(_, len)| len).sum::<u32>(), 3000, "{lengths:?}");
    assert_eq!((lengths[0].0, lengths[1].0), (0, lengths[0].1));
    // With its checksum made it cannot be cut.
    sim.send_packet(0, 1, &mut large.packet(), Offload::default());
    assert_eq!(drops(&sim, 0), [("too_large", 1)]);
}

#[test]
fn a_train_becomes_datagrams_of_one_length() {
    let mut sim = Sim::new(1);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(100));
    sim.run(Duration::from_millis(50));
    let train = Draft { payload: vec![1; 10_500], ..flows[0].says(0, Flags::ACK) };
    sim.send_packet(0, 1, &mut train.packet(), Offload { partial: true, segment: Some(1000) });
    let lengths: Vec<usize> = sim.overhear(0).iter().map(Vec::len).collect();
    assert_eq!(lengths, [[1019; 10].as_slice(), &[519]].concat());
}

#[test]
fn what_this_host_may_not_send_is_refused_and_counted() {
    let mut sim = Sim::new(1);
    let flow = Flow::new(1, 5001);
    let stranger = Draft { from: "[fd00::1]:1".parse().unwrap(), ..flow.says(0, Flags::SYN) };
    sim.send(0, 1, &stranger);
    let nowhere = Draft { to: "[fd00::1]:1".parse().unwrap(), ..flow.says(0, Flags::SYN) };
    sim.send(0, 1, &nowhere);
    let itself = Draft { to: std::net::SocketAddr::new(address(0, 0), 1), ..flow.says(0, Flags::SYN) };
    sim.send(0, 1, &itself);
    sim.send(0, 1, &flow.says(0, Flags::RST));
    let mut other = flow.says(0, Flags::ACK).packet();
    other[6] = 47;
    sim.send_packet(0, 1, &mut other, Offload::default());
    sim.send_packet(0, 1, &mut [0x45, 0, 0], Offload::default());
    assert_eq!(drops(&sim, 0), [("other_protocol", 2), ("no_route", 2), ("not_ours", 1), ("stray", 1)]);
    let answers: Vec<(u8, u8)> = sim.outer[0].delivered.iter().map(|(_, packet)| (packet[40], packet[41])).collect();
    assert_eq!(answers, [(1, 0), (1, 0), (1, 1)], "no route, twice; and prohibited");
    assert!(sim.overhear(0).is_empty() && sim.snapshot(0).connections.is_empty());
}

#[test]
fn a_socket_that_takes_nothing_loses_packets_and_they_are_counted() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 0, KEYS);
    for (says, name) in [(Sent::Full, "socket_full"), (Sent::Refused, "refused")] {
        sim.outer[0].says = Some(says);
        let data = flows[0].data(0);
        flows[0].send(&mut sim, 0, &data);
        assert!(drops(&sim, 0).contains(&(name, 1)), "{:?}", drops(&sim, 0));
    }
    sim.outer[0].says = Some(Sent::Expired);
    let data = flows[0].data(0);
    flows[0].send(&mut sim, 0, &data);
    assert_eq!(sim.uses()[&5001], 1, "a path that expired is left");
    sim.outer[0].refuses_to_open = true;
    let mut sim = Sim::new(1);
    sim.outer[0].refuses_to_open = true;
    sim.send(0, 1, &Flow::new(1, 6000).says(0, Flags::SYN));
    assert_eq!(drops(&sim, 0), [("refused", 1)]);
    assert_eq!(sim.snapshot(0).peers, []);
}

#[test]
fn a_path_that_expired_dies_once_however_many_packets_stay_on_it() {
    let mut sim = Sim::new(1);
    let mut flows = connect(&mut sim, 0, KEYS);
    sim.outer[0].says = Some(Sent::Expired);
    for _ in 0..3 {
        let data = flows[0].data(0);
        flows[0].send(&mut sim, 0, &data);
    }
    let told = sim.notices().iter().filter(|notice| matches!(notice, Notice::Died { .. })).count();
    assert_eq!((told, sim.snapshot(0).counters.died(Reason::Gone)), (1, 1));
    assert_eq!(drops(&sim, 0), [("refused", 3)]);
}

#[test]
fn after_a_restart_of_either_end_its_flows_go_on() {
    for host in [0, 1] {
        let mut sim = Sim::new(2);
        let mut flows = connect(&mut sim, 0, KEYS);
        talk(&mut sim, &mut flows, 0, Duration::from_millis(200));
        sim.restart(host);
        // What is lost, TCP sends again: with the same numbers.
        for _ in 0..3 {
            flows[0].next[0] -= PAYLOAD as u32;
            let again = flows[0].data(0);
            flows[0].send(&mut sim, 0, &again);
            sim.run(Duration::from_millis(50));
        }
        let arrived = talk(&mut sim, &mut flows, 0, Duration::from_secs(1));
        assert!(arrived[0].len() > 150, "host {host}: {}", arrived[0].len());
        let back = talk(&mut sim, &mut flows, 1, Duration::from_secs(1));
        assert!(back[0].len() > 150, "host {host}, back: {}", back[0].len());
    }
}

#[test]
fn five_hundred_connections_a_second_leave_nothing() {
    let mut sim = Sim::new(2);
    for round in 0..2000_u64 {
        let port = 10_000 + u16::try_from(round).unwrap();
        let mut flow = Flow::new(1, port);
        let keys = [Key(round.to_be_bytes()), Key((!round).to_be_bytes())];
        let syn = flow.says(0, Flags::SYN).says(&[0x01, 0x01]);
        let answer = |flow: &Flow| flow.says(1, super::talk::SYN_ACK).says(&[&[0x01, 0x01][..], &keys[1].0].concat());
        sim.links.iter_mut().for_each(|link| link.delay = Duration::from_micros(100));
        flow.send(&mut sim, 0, &syn);
        sim.run(Duration::from_micros(200));
        let answer = answer(&flow);
        flow.send(&mut sim, 1, &answer);
        sim.run(Duration::from_micros(200));
        let last = flow.says(0, Flags::ACK).says(&[&[0x01, 0x01][..], &keys[0].0, &keys[1].0].concat());
        flow.send(&mut sim, 0, &last);
        for host in [0, 1] {
            sim.run(Duration::from_micros(400));
            let fin = flow.says(host, super::talk::FIN_ACK);
            flow.send(&mut sim, host, &fin);
        }
        sim.run(Duration::from_micros(400));
        let last = flow.says(0, Flags::ACK);
        flow.send(&mut sim, 0, &last);
        sim.run(Duration::from_micros(400));
    }
    for host in [0, 1] {
        assert_eq!(drops(&sim, host), []);
        assert!(sim.engines[host].lanes.len() < 2000, "{} places at once", sim.engines[host].lanes.len());
    }
    let closed = sim.notices().iter().filter(|notice| matches!(notice, Notice::Closed { .. })).count();
    assert_eq!(closed, 2000);
    sim.run(Duration::from_secs(5));
    for host in [0, 1] {
        let engine = &sim.engines[host];
        assert_eq!(engine.lanes.iter().flatten().count() + engine.table.flows().count() + engine.told.len(), 0);
    }
    sim.run(Duration::from_secs(70));
    for host in [0, 1] {
        let snapshot = sim.snapshot(host);
        assert_eq!((snapshot.connections.len(), snapshot.peers.len(), sim.engines[host].conns.len()), (0, 0, 0));
    }
}
