//! Datagrams of UDP across two engines.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::units::Time;
use hawser_scion::EndpointAddr;

use super::sim::{CLIENT, ROOM, SERVER, Sim};
use super::talk::{address, longest_gap};
use crate::compress::Offload;
use crate::engine::replies::{Refusal, refuse};
use crate::engine::{Drop, Notice, Reason};
use crate::flow::{Protocol, State};
use crate::route::{Addresses, DEFAULT_RANGE, InterfaceIndex};
use crate::translate::Layer4;
use crate::udp::samples::{completed, may_be_cut, packet, partial};
use crate::udp::{Content, fragment};

const PORT: u16 = 53;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An end of the client's (from its first egress), or of the server's.
pub fn end(host: usize, interface: u8, v6: bool, port: u16) -> SocketAddr {
    if v6 {
        return SocketAddr::new(address(host, interface), port);
    }
    let shim: EndpointAddr = [CLIENT, SERVER][host].parse().unwrap();
    let addresses = Addresses::of(shim, Some(DEFAULT_RANGE), InterfaceIndex::new(interface).unwrap());
    SocketAddr::new(addresses.unwrap().ipv4.unwrap().into(), port)
}

fn client(port: u16) -> SocketAddr {
    end(0, 1, true, port)
}

fn server() -> SocketAddr {
    end(1, 0, true, PORT)
}

fn send(sim: &mut Sim, host: usize, from: SocketAddr, to: SocketAddr, data: &[u8]) {
    sim.send_packet(host, u8::from(host == 0), &mut packet(from, to, data), Offload::default());
}

/// What came for a host since the last time.
fn came(sim: &mut Sim, host: usize) -> Vec<(u8, Vec<u8>)> {
    std::mem::take(&mut sim.outer[host].delivered)
        .into_iter()
        .map(|(interface, packet)| (interface.get(), packet))
        .collect()
}

fn state(sim: &Sim, host: usize) -> Vec<(Protocol, State)> {
    let flows = sim.snapshot(host).connections.into_iter().flat_map(|connection| connection.flows);
    flows.map(|flow| (flow.key.protocol, flow.state)).collect()
}

/// A question and its answer, and one more of each, so that both ends know each other.
fn talked(sim: &mut Sim, port: u16) {
    for _ in 0..2 {
        send(sim, 0, client(port), server(), b"question");
        sim.run(ms(50));
        send(sim, 1, server(), client(port), b"answer");
        sim.run(ms(50));
    }
    came(sim, 0);
    came(sim, 1);
    sim.notices();
}

#[test]
fn a_question_and_its_answer_cross_by_ipv6_and_ipv4_from_where_they_were_asked() {
    for v6 in [true, false] {
        let mut sim = Sim::new(2);
        let (client, server) = (end(0, 1, v6, 4000), end(1, 0, v6, PORT));
        for (round, expected) in [State::Answered, State::Established].into_iter().enumerate() {
            send(&mut sim, 0, client, server, b"question");
            sim.run(ms(50));
            assert_eq!(came(&mut sim, 1), [(0, packet(client, server, b"question"))], "{round}");
            send(&mut sim, 1, server, client, b"answer");
            sim.run(ms(50));
            assert_eq!(came(&mut sim, 0), [(1, packet(server, client, b"answer"))], "{round}");
            assert_eq!(
                [state(&sim, 0), state(&sim, 1)],
                [vec![(Protocol::Udp, expected)], vec![(Protocol::Udp, expected)]]
            );
        }
        assert!(sim.notices().iter().any(|notice| matches!(notice, Notice::Opened(_))), "once it is a talk");
        let compression = sim.snapshot(0).peers[0].compression;
        assert_eq!((compression.whole, compression.compact), (1, 1));
        sim.run(Duration::from_secs(301));
        for host in [0, 1] {
            assert_eq!(sim.snapshot(host).connections, []);
            assert!(sim.snapshot(host).counters.drops().all(|(_, count)| count == 0));
        }
    }
}

#[test]
fn one_socket_asks_many_ports_and_one_server_answers_many_clients() {
    let mut sim = Sim::new(1);
    for port in 1..=20 {
        send(&mut sim, 0, client(4000), end(1, 0, true, port), &[port as u8]);
        send(&mut sim, 0, client(5000 + port), server(), &[port as u8]);
    }
    sim.run(ms(50));
    assert_eq!(came(&mut sim, 1).len(), 40);
    for port in 1..=20 {
        send(&mut sim, 1, end(1, 0, true, port), client(4000), &[port as u8]);
        send(&mut sim, 1, server(), client(5000 + port), &[port as u8]);
    }
    sim.run(ms(50));
    let expected: Vec<_> = (1..=20)
        .flat_map(|port| {
            let data = [port as u8];
            [packet(end(1, 0, true, port), client(4000), &data), packet(server(), client(5000 + port), &data)]
        })
        .collect();
    assert_eq!(came(&mut sim, 0).into_iter().map(|(_, packet)| packet).collect::<Vec<_>>(), expected);
}

#[test]
fn a_server_that_answers_from_another_address_is_heard_as_the_one_that_was_asked() {
    for v6 in [true, false] {
        let mut sim = Sim::new(1);
        let (client, asked) = (end(0, 1, v6, 4000), end(1, 0, v6, PORT));
        // A socket that is bound to no address: the kernel takes that of the first egress.
        let answers_from = end(1, 1, v6, PORT);
        send(&mut sim, 0, client, asked, b"question");
        sim.run(ms(50));
        assert_eq!(came(&mut sim, 1), [(0, packet(client, asked, b"question"))]);
        for is_partial in [false, true] {
            let answer = packet(answers_from, client, b"answer");
            let mut answer = if is_partial { partial(answer) } else { answer };
            sim.send_packet(1, 1, &mut answer, Offload { partial: is_partial, segment: None });
            sim.run(ms(50));
            let (interface, packet_) = came(&mut sim, 0).remove(0);
            let packet_ = if is_partial { completed(packet_) } else { packet_ };
            assert_eq!((interface, packet_), (1, packet(asked, client, b"answer")));
        }
        // It may have connected that socket: from then on it hears nothing for another address.
        send(&mut sim, 0, client, asked, b"again");
        sim.run(ms(50));
        assert_eq!(came(&mut sim, 1), [(1, packet(client, answers_from, b"again"))]);
        assert_eq!(sim.snapshot(1).connections.len(), 1);
    }
}

/// Numbered datagrams one way, each 20 ms as a call's are; says when which arrived.
fn stream(sim: &mut Sim, host: usize, time: Duration) -> Vec<(Time, u32)> {
    let (from, to) = if host == 0 { (client(4000), server()) } else { (server(), client(4000)) };
    let end = sim.now + time;
    let mut arrived = Vec::new();
    came(sim, 1 - host);
    while sim.now < end {
        let number = u32::try_from(sim.now.as_nanos() / 1_000_000).unwrap();
        let data = [&number.to_be_bytes()[..], &[7; 160]].concat();
        send(sim, host, from, to, &data);
        sim.run(ms(20));
        for (_, packet) in came(sim, 1 - host) {
            let Content::Datagram(datagram) = Content::of(&packet) else { continue };
            let number = packet[datagram.payload_at()..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            arrived.extend(number.map(|number| (sim.now, number)));
        }
    }
    arrived
}

/// How often a number comes after a larger one.
fn turns(arrived: &[(Time, u32)]) -> usize {
    arrived.windows(2).filter(|two| two[1].1 < two[0].1).count()
}

#[test]
fn a_flow_that_goes_one_way_leaves_a_cut_path_whoever_sends_and_only_once() {
    for sender in [0, 1] {
        let mut sim = Sim::new(3);
        sim.links[1].delay = ms(30);
        talked(&mut sim, 4000);
        stream(&mut sim, sender, Duration::from_secs(3));
        sim.links[0].is_cut = true;
        let from = sim.now;
        let arrived = stream(&mut sim, sender, Duration::from_secs(5));
        let times: Vec<Time> = arrived.iter().map(|(time, _)| *time).collect();
        let gap = longest_gap(&times, from, sim.now);
        // Who listens alone probes each second, and waits 400 ms for the answer.
        let most = if sender == 0 { 600 } else { 1600 };
        assert!(gap <= ms(most), "host {sender} sends: a gap of {gap:?}");
        assert_eq!(sim.uses()[&4000], 1);
        assert!(turns(&arrived) <= 1, "{} times", turns(&arrived));
        assert_eq!(sim.snapshot(0).counters.moved(Reason::Silence), 1);
        // The path comes back: nobody goes back for that.
        sim.links[0].is_cut = false;
        let arrived = stream(&mut sim, sender, Duration::from_secs(3));
        assert_eq!((turns(&arrived), sim.uses()[&4000]), (0, 1));
    }
}

#[test]
fn what_is_late_does_not_turn_the_way_back_and_forth() {
    let mut sim = Sim::new(2);
    sim.links[0].delay = ms(300);
    talked(&mut sim, 4000);
    // Datagrams are still under way by the slow path when the flow moves to the quick one.
    for _ in 0..20 {
        send(&mut sim, 0, client(4000), server(), b"late");
        sim.run(ms(5));
    }
    let gone = vec![sim.paths[1].clone()];
    sim.tell_paths(gone);
    sim.run(ms(50));
    let moved: Vec<_> = sim.snapshot(1).connections.iter().map(|one| one.flows[0].remote).collect();
    for _ in 0..20 {
        sim.run(ms(20));
        let now: Vec<_> = sim.snapshot(1).connections.iter().map(|one| one.flows[0].remote).collect();
        assert_eq!(now, moved);
    }
}

/// The server's shim is told of the paths that it asked for.
fn tell_server(sim: &mut Sim) {
    let client_as = CLIENT.parse::<EndpointAddr>().unwrap().isd_as;
    if sim.outer[1].asked.contains(&client_as) {
        sim.outer[1].asked.clear();
        sim.tell_paths_to(1, client_as);
    }
}

#[test]
fn a_restart_of_either_shim_costs_a_flow_half_a_second_at_most() {
    for (restarted, sender) in [(0, 0), (1, 0), (1, 1)] {
        let mut sim = Sim::new(2);
        talked(&mut sim, 4000);
        stream(&mut sim, sender, Duration::from_secs(2));
        sim.restart(restarted);
        let from = sim.now;
        if restarted == sender {
            stream(&mut sim, sender, ms(20));
            tell_server(&mut sim);
        }
        let arrived = stream(&mut sim, sender, Duration::from_secs(3));
        let times: Vec<Time> = arrived.iter().map(|(time, _)| *time).collect();
        let gap = longest_gap(&times, from, sim.now);
        assert!(gap <= ms(600), "{restarted} began anew, {sender} sends: {gap:?}");
        // And the other way, too, as the next datagram goes.
        let (from, to) = if sender == 0 { (server(), client(4000)) } else { (client(4000), server()) };
        send(&mut sim, 1 - sender, from, to, b"back");
        sim.run(ms(600));
        send(&mut sim, 1 - sender, from, to, b"back");
        sim.run(ms(100));
        let back = came(&mut sim, sender).into_iter().filter(|(_, packet)| packet.ends_with(b"back")).count();
        assert!(back >= 1, "{restarted} began anew, {sender} sent");
    }
}

#[test]
fn a_client_that_only_listens_is_found_again_after_its_shim_began_anew() {
    let mut sim = Sim::new(2);
    talked(&mut sim, 4000);
    stream(&mut sim, 1, Duration::from_secs(2));
    sim.restart(0);
    let from = sim.now;
    let mut times = Vec::new();
    for _ in 0..6 {
        // The server's shim asks for paths to the client, which it needed none of before.
        tell_server(&mut sim);
        times.extend(stream(&mut sim, 1, Duration::from_secs(2)).into_iter().map(|(time, _)| time));
    }
    let gap = longest_gap(&times, from, sim.now);
    assert!(gap <= Duration::from_secs(8), "{gap:?}");
    assert!(times.last().is_some_and(|last| sim.now.since(*last) < ms(100)), "it goes on");
}

#[test]
fn who_listens_alone_can_be_reached_for_as_long_as_its_path_is_renewed() {
    let mut sim = Sim::new(1);
    talked(&mut sim, 4000);
    for round in 0..4 {
        let from = sim.now;
        let arrived = stream(&mut sim, 1, Duration::from_secs(2));
        assert!(arrived.len() >= 98, "{round}: {}", arrived.len());
        // It has said nothing but which context it knows.
        sim.expire_ways(1, from);
    }
}

/// The kind and code of ICMP, and the MTU that it tells.
fn told(packet: &[u8]) -> (u8, u8, u16) {
    let at = if packet[0] >> 4 == 4 { 20 } else { 40 };
    (packet[at], packet[at + 1], u16::from_be_bytes([packet[at + 6], packet[at + 7]]))
}

#[test]
fn what_is_too_large_is_refused_with_the_size_that_fits() {
    let refusals = [(true, (2, 0, ROOM - 1)), (false, (3, 4, ROOM - 1))];
    for (v6, refusal) in refusals {
        let mut sim = Sim::new(1);
        let (client, server) = (end(0, 1, v6, 4000), end(1, 0, v6, PORT));
        send(&mut sim, 0, client, server, &[1; 1400]);
        let said: Vec<_> = came(&mut sim, 0).iter().map(|(_, packet)| told(packet)).collect();
        assert_eq!(said, [refusal]);
        assert_eq!(sim.snapshot(0).counters.dropped(Drop::TooLarge), 1);
        // A datagram of just that size goes.
        let fits = usize::from(ROOM - 1) - if v6 { 48 } else { 28 };
        send(&mut sim, 0, client, server, &vec![1; fits]);
        sim.run(ms(50));
        assert_eq!(came(&mut sim, 1), [(0, packet(client, server, &vec![1; fits]))]);
    }
}

#[test]
fn what_routers_may_fragment_is_fragmented_and_so_is_what_has_no_checksum_yet() {
    let mut sim = Sim::new(1);
    let (client, server) = (end(0, 1, false, 4000), end(1, 0, false, PORT));
    for is_partial in [false, true] {
        let whole = may_be_cut(packet(client, server, &[1; 1450]), 77);
        let mut sent = if is_partial { partial(whole.clone()) } else { whole.clone() };
        sim.send_packet(0, 1, &mut sent, Offload { partial: is_partial, segment: None });
        sim.run(ms(50));
        let mut expected = Vec::new();
        fragment(&whole, usize::from(ROOM) - 1, |header, data| expected.push((0, [&header[..], data].concat())));
        assert_eq!(came(&mut sim, 1), expected);
    }
    assert!(sim.snapshot(0).counters.drops().all(|(_, count)| count == 0));
}

#[test]
fn fragments_of_the_kernel_follow_the_first_of_them() {
    let mut sim = Sim::new(1);
    let (client, server) = (end(0, 1, false, 4000), end(1, 0, false, PORT));
    let whole = may_be_cut(packet(client, server, &[1; 4000]), 77);
    let mut pieces = Vec::new();
    fragment(&whole, 1300, |header, data| pieces.push([&header[..], data].concat()));
    for piece in &pieces {
        sim.send_packet(0, 1, &mut piece.clone(), Offload::default());
    }
    sim.run(ms(50));
    assert_eq!(came(&mut sim, 1).into_iter().map(|(_, packet)| packet).collect::<Vec<_>>(), pieces);
    assert_eq!(sim.snapshot(1).connections[0].flows[0].received.packets, pieces.len() as u64);
    // One that nobody knows the beginning of is nobody's.
    let mut stray = pieces[1].clone();
    stray[4] = 99;
    crate::udp::samples::fix_header(&mut stray);
    sim.send_packet(0, 1, &mut stray, Offload::default());
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::Stray), 1);
    // Those of a path that takes less are told of it, where they may not be cut.
    let mut large = pieces[0].clone();
    large.extend([0; 120]);
    let len = large.len() as u16;
    large[2..4].copy_from_slice(&len.to_be_bytes());
    large[6] |= 0x40;
    crate::udp::samples::fix_header(&mut large);
    sim.send_packet(0, 1, &mut large, Offload::default());
    assert_eq!(came(&mut sim, 0).iter().map(|(_, packet)| told(packet)).collect::<Vec<_>>(), [(3, 4, ROOM - 1)]);
}

#[test]
fn a_train_becomes_datagrams_that_come_as_such() {
    let mut sim = Sim::new(1);
    talked(&mut sim, 4000);
    let data: Vec<u8> = (0..5000).map(|at| at as u8).collect();
    let mut train = partial(packet(client(4000), server(), &data));
    sim.send_packet(0, 1, &mut train, Offload { partial: true, segment: Some(1200) });
    sim.run(ms(50));
    let expected: Vec<_> = data.chunks(1200).map(|piece| (0, packet(client(4000), server(), piece))).collect();
    let came: Vec<_> =
        came(&mut sim, 1).into_iter().map(|(interface, packet)| (interface, completed(packet))).collect();
    assert_eq!(came, expected);
}

#[test]
fn where_tcp_is_layer_4_datagrams_go_as_ever() {
    for layer4 in [[Layer4::Tcp, Layer4::Tcp], [Layer4::Tcp, Layer4::Udp]] {
        let mut sim = Sim::over(2, layer4);
        talked(&mut sim, 4000);
        assert!(stream(&mut sim, 0, ms(500)).len() >= 22);
        assert!(stream(&mut sim, 1, ms(500)).len() >= 22);
        for host in [0, 1] {
            assert!(sim.snapshot(host).counters.drops().all(|(_, count)| count == 0));
            assert!(sim.outer[host].tcp_ports.is_empty());
        }
    }
}

#[test]
fn a_closed_port_is_told_as_by_ip() {
    for v6 in [true, false] {
        let mut sim = Sim::new(1);
        let (client, server) = (end(0, 1, v6, 4000), end(1, 0, v6, PORT));
        send(&mut sim, 0, client, server, b"question");
        sim.run(ms(50));
        let (_, asked) = came(&mut sim, 1).remove(0);
        let mut refusal = Vec::new();
        assert!(refuse(&asked, Refusal::Unreachable, &mut refusal));
        // By whom it was for: its port is closed (RFC 792: 3, 3; RFC 4443 section 3.1: 4).
        let at = if v6 { 40 } else { 20 };
        (refusal[at], refusal[at + 1]) = if v6 { (1, 4) } else { (3, 3) };
        sim.send_packet(1, 0, &mut refusal.clone(), Offload::default());
        // It is longer than the question, and waits for a probe's answer.
        sim.run(ms(100));
        assert_eq!(came(&mut sim, 0), [(1, refusal.clone())]);
        // Of a flow that nobody knows it is nothing.
        let ports = at + 8 + at;
        refusal[ports] ^= 1;
        sim.send_packet(1, 0, &mut refusal, Offload::default());
        sim.run(ms(100));
        assert_eq!((came(&mut sim, 0), sim.snapshot(1).counters.dropped(Drop::OtherProtocol)), (vec![], 1));
    }
}

#[test]
fn datagrams_wait_for_paths_as_segments_do_and_leave_them_room() {
    let mut sim = Sim::unknowing(vec![super::sim::path(0, &[])], hawser_scion::select::Criterion::Length);
    for port in 0..100 {
        send(&mut sim, 0, client(5000 + port), server(), b"early");
    }
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::Waiting), 36);
    let paths = sim.paths.clone();
    sim.tell_paths(paths);
    sim.run(ms(50));
    assert_eq!(came(&mut sim, 1).len(), 64);
    // Where nobody is, programs are told.
    let nobody = SocketAddr::new("fc00::7".parse().unwrap(), PORT);
    send(&mut sim, 0, client(4000), nobody, b"hello");
    assert_eq!(came(&mut sim, 0).iter().map(|(_, packet)| told(packet).0).collect::<Vec<_>>(), [1]);
    let group = SocketAddr::new("ff02::fb".parse().unwrap(), 5353);
    send(&mut sim, 0, client(5353), group, b"everybody");
    assert_eq!(came(&mut sim, 0), [], "nobody answers what is for all");
}
