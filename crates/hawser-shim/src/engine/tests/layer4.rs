//! TCP as SCION's layer 4: what crosses, over which paths, who takes none, and what strangers can do.

use std::time::Duration;

use hawser_scion::EndpointAddr;

use super::KEYS;
use super::sim::{CLIENT, ROOM, SERVER, Sim};
use super::talk::{Flow, PAYLOAD, address, connect, longest_gap, talk};
use crate::compress::{Compression, Datagrams, Offload};
use crate::engine::Drop;
use crate::mptcp::samples::Draft;
use crate::mptcp::{Flags, Segment, TcpOption};
use crate::translate::{self, Layer4, OuterPort, cut};

const BOTH: [Layer4; 2] = [Layer4::Tcp; 2];
/// A host that has flows with nobody here.
const STRANGER: &str = "3-ff00:0:330,10.0.0.3:7777";

fn drops(sim: &Sim, host: usize) -> Vec<(&'static str, u64)> {
    let counters = sim.snapshot(host).counters;
    counters.drops().filter(|(_, count)| *count > 0).map(|(why, count)| (why.name(), count)).collect()
}

fn lanes(sim: &Sim, host: usize) -> usize {
    sim.engines[host].lanes.iter().flatten().count()
}

/// One of the two hosts, or another, with this port.
fn end(host: &str, port: u16) -> EndpointAddr {
    let mut end: EndpointAddr = host.parse().unwrap();
    end.host.set_port(port);
    end
}

/// A segment as it crosses.
fn bare(draft: &Draft) -> Vec<u8> {
    let mut out = Datagrams::default();
    cut(&draft.packet(), Offload::default(), 9000, OuterPort(draft.from.port()), &mut out).unwrap();
    out.iter().next().unwrap().to_vec()
}

#[test]
fn each_subflow_crosses_by_a_path_and_a_port_of_its_own_and_both_ends_see_their_own_addresses() {
    let mut sim = Sim::over(3, BOTH);
    let mut flows = connect(&mut sim, 2, KEYS);
    for host in [0, 1] {
        let arrived = talk(&mut sim, &mut flows, host, Duration::from_secs(1));
        assert!(arrived.iter().all(|flow| flow.len() > 190), "{:?}", arrived.iter().map(Vec::len).collect::<Vec<_>>());
    }
    let mut links: Vec<usize> = sim.uses().into_values().collect();
    links.sort_unstable();
    assert_eq!((links, drops(&sim, 0), drops(&sim, 1)), (vec![0, 1, 2], vec![], vec![]));
    let mut ports: Vec<u16> = flows.iter().map(|flow| flow.seen.port()).collect();
    ports.dedup();
    assert_eq!(ports.len(), 3, "the server tells them apart");
    assert!(flows.iter().all(|flow| flow.seen.ip() == address(0, 1)), "by their ports alone");
    for host in [0, 1] {
        for (interface, packet) in &sim.outer[host].delivered {
            let segment = Segment::parse(packet).unwrap();
            assert_eq!(segment.destination.ip(), address(host, interface.get()));
        }
    }
    let data = sim.outer[1].delivered.iter().filter(|(_, packet)| packet.ends_with(&[7; PAYLOAD])).count();
    assert!(data >= 3 * 190, "{data} whole payloads");
    let snapshot = sim.snapshot(1);
    assert_eq!(snapshot.connections.len(), 1, "subflows are known by their token");
}

#[test]
fn no_datagram_crosses_but_probes() {
    let mut sim = Sim::over(1, BOTH);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(500));
    let data = flows[0].data(0);
    flows[0].send(&mut sim, 0, &data);
    let on_way = sim.overhear(0);
    assert!(on_way.iter().any(|bytes| bytes.len() == 20 + PAYLOAD), "a header of TCP, and nothing more");
    let peers = sim.engines.iter().flat_map(|engine| engine.peers.iter());
    assert!(peers.into_iter().all(|(_, peer)| peer.compression.flows() == 0), "nobody keeps a context");
}

#[test]
fn the_largest_segment_has_what_headers_do_not_take() {
    let mut sim = Sim::over(1, BOTH);
    sim.set_room(0, 1100);
    connect(&mut sim, 0, KEYS);
    for host in [0, 1] {
        let packet = sim.outer[host].delivered.iter().map(|(_, packet)| Segment::parse(packet).unwrap());
        let said: Vec<_> = packet.flat_map(|segment| segment.options().collect::<Vec<_>>()).collect();
        assert!(said.contains(&TcpOption::MaximumSegmentSize(1088)), "host {host}: {said:?}");
    }
    assert_eq!((translate::max_segment(1100), Compression::max_segment(1100)), (1088, 1078));
}

#[test]
fn trains_are_cut_and_so_is_what_is_too_large_where_it_can_be() {
    let mut sim = Sim::over(1, BOTH);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(100));
    sim.run(Duration::from_millis(50));
    let train = Draft { payload: vec![1; 2500], ..flows[0].says(0, Flags::ACK) };
    sim.send_packet(0, 1, &mut train.packet(), Offload { partial: true, segment: Some(1000) });
    let lengths: Vec<usize> = sim.overhear(0).iter().map(Vec::len).collect();
    assert_eq!(lengths, [1020, 1020, 520]);
    sim.run(Duration::from_millis(50));
    sim.outer.iter_mut().for_each(|outer| outer.delivered.clear());
    let large = Draft { payload: (0..3000_u32).map(|at| (at % 251) as u8).collect(), ..flows[0].says(0, Flags::ACK) };
    sim.send_packet(0, 1, &mut large.packet(), Offload { partial: true, segment: None });
    sim.run(Duration::from_millis(50));
    let told = sim.outer[0].delivered.iter().find(|(_, packet)| packet[6] == 58).expect("an answer").1.clone();
    let mtu = u32::from_be_bytes([told[44], told[45], told[46], told[47]]);
    assert_eq!((told[40], mtu), (2, u32::from(translate::max_segment(ROOM)) + 60), "packet too big");
    let arrived: Vec<u8> = sim.outer[1].delivered.iter().flat_map(|(_, packet)| packet[60..].to_vec()).collect();
    assert_eq!(arrived, large.payload);
    // With its checksum made it cannot be cut; with a wrong one it does not go.
    sim.send_packet(0, 1, &mut large.packet(), Offload::default());
    let mut wrong = flows[0].data(0).packet();
    *wrong.last_mut().unwrap() ^= 1;
    sim.send_packet(0, 1, &mut wrong, Offload::default());
    assert_eq!(drops(&sim, 0), [("too_large", 1), ("damaged", 1)]);
}

#[test]
fn a_host_without_the_option_takes_none_and_one_with_it_takes_datagrams_too() {
    let mut sim = Sim::over(1, [Layer4::Tcp, Layer4::Udp]);
    let mut flow = Flow::new(1, 5001);
    assert!(!flow.open(&mut sim, [&[], &[], &[]]));
    // Beside the probes of the path, which are no flow's here.
    let refused = sim.snapshot(1).counters.dropped(Drop::Layer4);
    assert_eq!((refused, sim.outer[1].delivered.len(), lanes(&sim, 1)), (1, 0, 0));
    assert!(sim.overhear(1).is_empty() && sim.snapshot(1).peers.is_empty(), "nothing is answered, nothing kept");
    let mut sim = Sim::over(1, [Layer4::Udp, Layer4::Tcp]);
    let mut flows = connect(&mut sim, 0, KEYS);
    for host in [0, 1] {
        let arrived = talk(&mut sim, &mut flows, host, Duration::from_millis(500));
        assert!(arrived[0].len() > 90);
    }
    assert_eq!(drops(&sim, 1), []);
}

#[test]
fn a_flow_leaves_a_cut_path_and_keeps_its_port_whoever_sends() {
    for sender in [0, 1] {
        let mut sim = Sim::over(3, BOTH);
        let mut flows = connect(&mut sim, 1, KEYS);
        talk(&mut sim, &mut flows, sender, Duration::from_secs(3));
        sim.links[0].is_cut = true;
        let from = sim.now;
        let arrived = talk(&mut sim, &mut flows, sender, Duration::from_secs(3));
        let gap = longest_gap(&arrived[0], from, sim.now);
        assert!(gap <= Duration::from_millis(600), "host {sender} sends: a gap of {gap:?}");
        assert!(longest_gap(&arrived[1], from, sim.now) < Duration::from_millis(50), "the other path is as it was");
        assert_eq!(sim.uses()[&5001], 2);
        assert_eq!((drops(&sim, 0), drops(&sim, 1)), (vec![], vec![]));
    }
}

#[test]
fn after_a_restart_of_the_servers_shim_its_flows_go_on() {
    let mut sim = Sim::over(1, BOTH);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(200));
    sim.restart(1);
    sim.engines[1].opts.layer4 = Layer4::Tcp;
    for host in [0, 1] {
        let arrived = talk(&mut sim, &mut flows, host, Duration::from_secs(1));
        assert!(arrived[0].len() > 150, "host {host}: {}", arrived[0].len());
    }
}

#[test]
fn strangers_and_forgers_are_counted_and_turn_no_flow() {
    let mut sim = Sim::over(2, BOTH);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(100));
    sim.run(Duration::from_millis(100));
    let port = flows[0].seen.port();
    let (there, back) = (flows[0].says(0, Flags::ACK), flows[0].says(1, Flags::ACK));
    let there = Draft { from: flows[0].seen, ..there };
    let far = 1 << 28;
    let joins = [&[0x10, 2][..], &0xdead_beef_u32.to_be_bytes(), &[0; 4]].concat();
    let table = [
        (1, end(CLIENT, port), vec![0; 19], Drop::Malformed),
        (1, end(CLIENT, port), bare(&there)[..20].iter().map(|byte| byte | 0xf0).collect(), Drop::Malformed),
        (
            1,
            end(CLIENT, port),
            bare(&Draft { sequence: there.sequence.wrapping_add(far), ..there.clone() }),
            Drop::Implausible,
        ),
        (
            1,
            end(CLIENT, port),
            bare(&Draft { acknowledgment: there.acknowledgment + 1, ..there.clone() }),
            Drop::Implausible,
        ),
        (1, end(STRANGER, port), bare(&there), Drop::Stray),
        (1, end(CLIENT, 1), bare(&Flow::new(2, 1).says(0, Flags::SYN).says(&joins)), Drop::UnknownToken),
        // To the client: from another host or port, or with numbers that are not the flow's.
        (0, end(STRANGER, 80), bare(&back), Drop::Stray),
        (0, end(SERVER, 81), bare(&back), Drop::Stray),
        (
            0,
            end(SERVER, 80),
            bare(&Draft { sequence: back.sequence.wrapping_add(far), ..back.clone() }),
            Drop::Implausible,
        ),
    ];
    for (host, from, segment, why) in table {
        let before = (sim.snapshot(host).counters.dropped(why), sim.snapshot(host).connections);
        assert!(!sim.forge_segment(host, from, &segment), "{why:?} from {from}");
        let after = (sim.snapshot(host).counters.dropped(why), sim.snapshot(host).connections);
        assert_eq!(after, (before.0 + 1, before.1), "{why:?} from {from}");
        assert!(sim.overhear(host).is_empty(), "nothing is answered");
    }
    assert_eq!([0, 1].map(|host| sim.snapshot(host).peers.len()), [1, 1]);
    let arrived = talk(&mut sim, &mut flows, 1, Duration::from_secs(1));
    assert!(arrived[0].len() > 190, "answers go where they went");
}

#[test]
fn a_datagram_in_the_name_of_a_flow_of_the_other_kind_is_dropped() {
    let mut sim = Sim::over(1, BOTH);
    let flows = connect(&mut sim, 0, KEYS);
    let mut out = Datagrams::default();
    // As the client knows the flow.
    let known = Draft { to: flows[0].says(0, Flags::ACK).from, ..flows[0].says(1, Flags::ACK) };
    Compression::new(1).shrink(sim.now, &known.packet(), Offload::default(), 9000, &mut || 1 << 40, &mut out).unwrap();
    let datagram = out.iter().next().unwrap().to_vec();
    assert!(!sim.forge(0, end(SERVER, 31_000), &datagram).keep);
    assert_eq!(drops(&sim, 0), [("layer4", 1)]);
}

#[test]
fn ports_rest_and_are_taken_again_and_closed_when_nobody_wants_them() {
    let mut sim = Sim::over(1, BOTH);
    let mut seen = Vec::new();
    for port in 6000..6003 {
        let mut flow = Flow::new(1, port);
        assert!(flow.open(&mut sim, [&[], &[], &[]]));
        flow.close(&mut sim);
        seen.push(flow.seen.port());
        sim.run(Duration::from_secs(5));
        assert_eq!(lanes(&sim, 0), 0);
    }
    assert_eq!(sim.outer[0].tcp_ports.len(), 3, "none has rested");
    sim.run(Duration::from_secs(60));
    let mut flow = Flow::new(1, 6003);
    assert!(flow.open(&mut sim, [&[], &[], &[]]));
    assert_eq!(flow.seen.port(), seen[0], "the one that rested for longest");
    flow.close(&mut sim);
    sim.run(Duration::from_secs(130));
    assert_eq!((sim.outer[0].tcp_ports.len(), sim.engines[0].ports.is_empty()), (0, true));
    sim.run(Duration::from_secs(70));
    for host in [0, 1] {
        let snapshot = sim.snapshot(host);
        assert_eq!((snapshot.connections.len(), snapshot.peers.len(), sim.engines[host].conns.len()), (0, 0, 0));
    }
    let mut flow = Flow::new(1, 6004);
    sim.outer[0].refuses_to_open = true;
    assert!(!flow.open(&mut sim, [&[], &[], &[]]));
}
