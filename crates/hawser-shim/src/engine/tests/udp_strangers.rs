//! What those can do with UDP who are not the peer of a flow: no more than with UDP over IP, and less against others.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_scion::EndpointAddr;

use super::sim::{CLIENT, SERVER, Sim};
use super::udp::end;
use crate::compress::{Compression, Datagrams, Offload};
use crate::engine::control::{Control, Said, parse};
use crate::engine::{Drop, Heard, MOST_PEERS, TCP_PEERS, UDP_LIMITS};
use crate::route::{Addresses, InterfaceIndex};
use crate::udp::Content;
use crate::udp::samples::packet;

const PORT: u16 = 53;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A whole datagram, with a definition of this id.
fn whole(from: SocketAddr, to: SocketAddr, data: &[u8], id: u8) -> Vec<u8> {
    let (mut compression, mut datagrams) = (Compression::new(4), Datagrams::default());
    let packet = packet(from, to, data);
    let Content::Datagram(datagram) = Content::of(&packet) else { panic!("it is one") };
    let mut random = || u64::from_be_bytes([id; 8]);
    let now = hawser_core::units::Time::ZERO;
    compression
        .shrink_datagram(now, &packet, &datagram, Offload::default(), 9000, &mut random, &mut datagrams)
        .unwrap();
    datagrams.iter().next().unwrap().to_vec()
}

/// The client's host, and a port that none of its connections has.
fn impostor() -> EndpointAddr {
    let mut end: EndpointAddr = CLIENT.parse().unwrap();
    end.host.set_port(6666);
    end
}

/// Somebody elsewhere, and the address that clients there have.
fn stranger(number: u32) -> (EndpointAddr, SocketAddr) {
    let ip = std::net::Ipv4Addr::from_bits(0x0b00_0000 + number);
    let end: EndpointAddr = format!("3-ff00:0:330,{ip}:31000").parse().unwrap();
    let addresses = Addresses::of(end, None, InterfaceIndex::new(1).unwrap()).unwrap();
    let mut from = end;
    from.host.set_port(40_000);
    (from, SocketAddr::new(addresses.ipv6.unwrap().into(), 4000))
}

fn server() -> SocketAddr {
    end(1, 0, true, PORT)
}

fn send(sim: &mut Sim, host: usize, from: SocketAddr, to: SocketAddr, data: &[u8]) {
    sim.send_packet(host, u8::from(host == 0), &mut packet(from, to, data), Offload::default());
}

#[test]
fn addresses_of_others_are_refused() {
    let mut sim = Sim::new(1);
    let (from, address) = stranger(1);
    let client = end(0, 1, true, 4000);
    let table = [
        ("another's source", from, whole(client, server(), b"x", 1), Drop::Foreign),
        ("for nobody here", from, whole(address, end(0, 0, true, PORT), b"x", 1), Drop::Foreign),
        ("cut short", from, whole(address, server(), b"xyz", 1)[..40].to_vec(), Drop::Malformed),
        ("an id that nobody gave", from, vec![0x81, 1, 2, 3, 4, 5, 6, 7, 8, 9], Drop::UnknownContext),
        (
            "an acknowledgment of nothing",
            from,
            Control::of(Said::Knows(crate::compress::ContextId([1; 6]))).bytes().to_vec(),
            Drop::UnknownContext,
        ),
    ];
    for (name, from, datagram, why) in table {
        assert_eq!(sim.forge(1, from, &datagram), Heard::default(), "{name}");
        assert_eq!(
            sim.snapshot(1).counters.dropped(why),
            1 + u64::from(name.starts_with("for") || name.ends_with("nothing")),
            "{name}"
        );
    }
    assert!(sim.snapshot(1).peers.is_empty() && sim.overhear(1).is_empty());
}

#[test]
fn who_forges_a_live_flow_is_delivered_as_by_ip_and_turns_nothing() {
    let mut sim = Sim::new(1);
    let client = end(0, 1, true, 4000);
    for _ in 0..3 {
        send(&mut sim, 0, client, server(), b"question");
        sim.run(ms(50));
        send(&mut sim, 1, server(), client, b"answer");
        sim.run(ms(50));
    }
    let way = |sim: &Sim| sim.snapshot(1).connections[0].flows[0].remote;
    let before = way(&sim);
    sim.outer[0].delivered.clear();
    assert!(!sim.forge(1, impostor(), &whole(client, server(), b"forged", 0x66)).keep);
    assert_eq!(way(&sim), before);
    send(&mut sim, 1, server(), client, b"answer");
    sim.run(ms(50));
    assert_eq!(sim.outer[0].delivered.len(), 1, "the answer goes where it went");
    // Where the peer is silent, it may have begun anew: it is believed until who knows more says something.
    sim.run(Duration::from_secs(2));
    sim.forge(1, impostor(), &whole(client, server(), b"forged", 0x67));
    assert_eq!(way(&sim), Some(impostor()));
    send(&mut sim, 0, client, server(), b"question");
    sim.run(ms(50));
    assert_eq!(way(&sim), before);
}

#[test]
fn a_forged_beginning_turns_no_flow_but_its_own() {
    let mut sim = Sim::new(2);
    let (client, other) = (end(0, 1, true, 4000), end(0, 1, true, 4001));
    for _ in 0..3 {
        send(&mut sim, 0, client, server(), b"question");
        sim.run(ms(50));
        send(&mut sim, 1, server(), client, b"answer");
        sim.run(ms(50));
    }
    let from = sim.snapshot(1).connections[0].flows[0].remote.unwrap();
    // What goes by the forger's path comes to nobody.
    sim.know_way(1, from, 1);
    sim.links[1].is_cut = true;
    sim.outer[0].delivered.clear();
    assert!(sim.forge(1, from, &whole(other, server(), b"forged", 0x66)).keep, "its own answers go there");
    assert!(!sim.forge(1, from, &whole(client, server(), b"forged", 0x67)).keep, "a talk stays where it is");
    send(&mut sim, 1, server(), client, b"answer");
    send(&mut sim, 1, server(), other, b"answer");
    sim.run(ms(50));
    assert_eq!(sim.outer[0].delivered.len(), 1);
}

#[test]
fn a_stranger_gets_no_more_than_came_from_there_until_it_answers_a_probe() {
    for is_real in [false, true] {
        let mut sim = Sim::new(1);
        let (from, address) = stranger(1);
        let question = whole(address, server(), &[1; 40], 1);
        assert!(sim.forge(1, from, &question).keep);
        sim.know_way(1, from, 0);
        send(&mut sim, 1, server(), address, &[2; 1200]);
        let sent = sim.overhear(1);
        assert!(sent.iter().map(Vec::len).sum::<usize>() <= question.len(), "{sent:02x?}");
        let Some(Said::Probe(nonce)) = sent.iter().find_map(|datagram| parse(datagram)) else { panic!("it is asked") };
        if is_real {
            let before = sim.overhear(1).len();
            sim.forge(1, from, Control::of(Said::Answer(nonce)).bytes());
            let sent = sim.overhear(1).split_off(before);
            assert_eq!(sent.len(), 1, "the answer that waited");
            assert!(sent[0].ends_with(&[2; 1200]));
            send(&mut sim, 1, server(), address, &[3; 1200]);
            assert_eq!(sim.overhear(1).len(), before + 2, "and others do not wait any more");
        } else {
            let wrong = Control::of(Said::Answer(crate::engine::health::Nonce(7)));
            sim.forge(1, from, wrong.bytes());
            sim.run(Duration::from_secs(2));
            let counters = sim.snapshot(1).counters;
            assert_eq!((counters.dropped(Drop::Unproven), counters.dropped(Drop::UnknownEcho)), (1, 1));
            send(&mut sim, 1, server(), address, b"short");
            assert!(sim.said[1] <= question.len(), "{} bytes for {}", sim.said[1], question.len());
        }
    }
}

#[test]
fn a_client_whose_answer_is_large_waits_a_round_trip_more_once() {
    let mut sim = Sim::new(1);
    for (port, waits) in [(4000, 40), (4001, 20)] {
        let client = end(0, 1, true, port);
        send(&mut sim, 0, client, server(), b"question");
        sim.run(ms(10));
        sim.outer[0].delivered.clear();
        send(&mut sim, 1, server(), client, &[2; 1200]);
        let asked = sim.now;
        while sim.outer[0].delivered.is_empty() {
            assert!(sim.now.since(asked) < ms(100), "{port}: it comes");
            sim.run(ms(1));
        }
        let took = sim.now.since(asked);
        assert!(took <= ms(waits - 9), "{port}: {took:?}");
    }
}

#[test]
fn floods_push_out_strangers_and_leave_talks_and_tcp_their_room() {
    let mut sim = Sim::new(1);
    let client = end(0, 1, true, 4000);
    for _ in 0..2 {
        send(&mut sim, 0, client, server(), b"question");
        sim.run(ms(50));
        send(&mut sim, 1, server(), client, b"answer");
        sim.run(ms(50));
    }
    // A host has a few, many hosts have many; and then many more.
    for flow in 0..UDP_LIMITS.half_open + 100 {
        let (from, address) = stranger(flow / 64);
        let port = u16::try_from(flow % 64).unwrap() + 1;
        assert!(sim.forge(1, from, &whole(SocketAddr::new(address.ip(), port), server(), b"x", 1)).keep);
    }
    let (from, address) = stranger(UDP_LIMITS.half_open / 64 + 1);
    for port in 100..200 {
        sim.forge(1, from, &whole(SocketAddr::new(address.ip(), port), server(), b"x", 1));
    }
    assert_eq!(sim.snapshot(1).counters.dropped(Drop::Strangers), 100 + 36 - 64);
    let flows = |sim: &Sim| sim.snapshot(1).connections.len();
    assert_eq!(flows(&sim), usize::try_from(UDP_LIMITS.half_open).unwrap() + 1);
    assert_eq!(sim.snapshot(1).counters.pushed_out, 128);
    for number in 1000..6000 {
        let (from, address) = stranger(number);
        assert!(sim.forge(1, from, &whole(address, server(), b"x", 1)).keep, "{number}");
    }
    let snapshot = sim.snapshot(1);
    assert!(snapshot.peers.len() <= MOST_PEERS - TCP_PEERS, "{}", snapshot.peers.len());
    assert!(snapshot.connections.iter().any(|one| one.flows[0].key.remote == client), "who talked is there");
    let server_end: EndpointAddr = SERVER.parse().unwrap();
    assert_ne!(snapshot.peers[0].host.ip, server_end.host.ip());
    let mut tcp = super::talk::Flow::new(1, 6000);
    assert!(tcp.open(&mut sim, [&[], &[], &[]]), "a connection finds room");
    sim.run(Duration::from_secs(310));
    assert!(sim.snapshot(1).connections.iter().all(|one| one.flows[0].key.remote.port() == 6000));
}

#[test]
fn what_this_host_begins_to_whom_nobody_knows_is_bounded() {
    let mut sim = Sim::new(1);
    sim.links[0].is_cut = true;
    for port in 0..3000 {
        send(&mut sim, 0, end(0, 1, true, 10_000 + port), server(), b"hello");
    }
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::Unproven), 3000 - 1024);
    sim.run(ms(500));
    for port in 0..1000 {
        send(&mut sim, 0, end(0, 1, true, 20_000 + port), server(), b"hello");
    }
    assert_eq!(sim.snapshot(0).counters.dropped(Drop::Unproven), 3000 - 1024 + 1000 - 512);
}
