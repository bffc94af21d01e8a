//! What those can do who are not the peer of a flow: nothing that they could not with TCP over IP.

use std::time::Duration;

use hawser_scion::EndpointAddr;

use super::KEYS;
use super::sim::{CLIENT, Sim};
use super::talk::{Flow, connect, longest_gap, talk};
use crate::compress::{Compression, Datagrams, Offload};
use crate::engine::control::{Control, Said};
use crate::engine::health::Nonce;
use crate::engine::{Drop, Heard, LIMITS};
use crate::mptcp::Flags;
use crate::mptcp::samples::Draft;

/// A host that has flows with nobody here.
const STRANGER: &str = "3-ff00:0:330,10.0.0.3:7777";

fn stranger() -> EndpointAddr {
    STRANGER.parse().unwrap()
}

/// The client's host, and a port that none of its connections has.
fn impostor() -> EndpointAddr {
    let mut end: EndpointAddr = CLIENT.parse().unwrap();
    end.host.set_port(6666);
    end
}

/// A whole datagram of a segment, with a definition.
fn whole(draft: &Draft) -> Vec<u8> {
    let (mut compression, mut datagrams) = (Compression::new(1), Datagrams::default());
    let mut random = || 0x6666_6666_6666_6666;
    compression
        .shrink(hawser_core::units::Time::ZERO, &draft.packet(), Offload::default(), 9000, &mut random, &mut datagrams)
        .unwrap();
    datagrams.iter().next().unwrap().to_vec()
}

#[test]
fn noise_is_counted_and_answered_with_nothing() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 1, KEYS);
    sim.run(Duration::from_secs(1));
    let counted = |sim: &Sim| {
        let counters = sim.snapshot(1).counters;
        counters.drops().map(|(_, count)| count).sum::<u64>() + counters.echoes
    };
    let (before, counted_before) = (sim.snapshot(1).connections, counted(&sim));
    let mut random = 1_u64;
    for round in 0..20_000_usize {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise: Vec<u8> = (0..round % 90).map(|at| (random >> (at % 57)) as u8 ^ at as u8).collect();
        for from in [stranger(), impostor()] {
            let heard = sim.forge(1, from, &noise);
            assert!(!heard.keep, "{noise:?}");
        }
    }
    let after = sim.snapshot(1);
    assert_eq!((after.connections.len(), after.peers.len()), (before.len(), 1));
    assert_eq!(counted(&sim) - counted_before, 40_000);
    assert!(sim.overhear(1).is_empty(), "nothing is answered");
    let (from, arrived) = (sim.now, talk(&mut sim, &mut flows, 0, Duration::from_secs(1)));
    assert!(longest_gap(&arrived[0], from, sim.now) < Duration::from_millis(50), "flows beside it do not notice");
}

#[test]
fn forged_segments_change_nothing_and_turn_no_flow() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 0, KEYS);
    talk(&mut sim, &mut flows, 0, Duration::from_millis(100));
    let real = flows[0].says(0, Flags::ACK);
    let far = 1 << 28;
    let draft = |change: &dyn Fn(&mut Draft)| {
        let mut draft = real.clone();
        change(&mut draft);
        draft
    };
    let join = |token: u32| [&[0x10, 2][..], &token.to_be_bytes(), &[0; 4]].concat();
    let mut other = Flow::new(2, 7000).says(0, Flags::SYN);
    other = other.says(&join(0xdead_beef));
    let table = [
        (stranger(), real.clone(), Drop::Foreign),
        (impostor(), draft(&|draft| draft.to.set_ip("fc00::7".parse().unwrap())), Drop::Foreign),
        (impostor(), draft(&|draft| draft.sequence = draft.sequence.wrapping_add(far)), Drop::Implausible),
        (impostor(), draft(&|draft| draft.acknowledgment = draft.acknowledgment.wrapping_add(far)), Drop::Implausible),
        (impostor(), draft(&|draft| draft.acknowledgment += 1), Drop::Implausible),
        (impostor(), other, Drop::UnknownToken),
        (impostor(), Flow::new(1, 7001).says(0, Flags::ACK), Drop::Stray),
    ];
    for (from, forged, why) in table {
        let before = (sim.snapshot(1).counters.dropped(why), sim.snapshot(1).connections);
        assert_eq!(sim.forge(1, from, &whole(&forged)), Heard::default(), "{why:?}");
        assert_eq!((sim.snapshot(1).counters.dropped(why), sim.snapshot(1).connections), (before.0 + 1, before.1));
    }
    assert_eq!(sim.snapshot(1).peers.len(), 1);
    assert_eq!(sim.snapshot(1).peers[0].flows, 1);
    let arrived = talk(&mut sim, &mut flows, 1, Duration::from_secs(1));
    assert!(arrived[0].len() > 190, "answers go where they went");
}

#[test]
fn headers_alone_teach_a_way_back_only_of_a_flow_that_there_is() {
    let mut sim = Sim::new(1);
    let flows = connect(&mut sim, 0, KEYS);
    for (flow, keep) in [(Flow::new(1, 7001), false), (flows[0], true)] {
        let mut headers = whole(&flow.says(0, Flags::ACK));
        headers[0] |= 0x08;
        assert_eq!(sim.forge(1, impostor(), &headers), Heard { keep, echo: None }, "port {}", flow.port);
    }
}

#[test]
fn a_forged_beginning_turns_no_flow_but_its_own() {
    let mut sim = Sim::new(2);
    let mut flows = connect(&mut sim, 0, KEYS);
    let client = sim.snapshot(1).connections[0].flows[0].remote.unwrap();
    // What goes by the forger's path comes to nobody.
    sim.know_way(1, client, 1);
    sim.links[1].is_cut = true;
    let begins = Flow::new(1, 7001).says(0, Flags::SYN);
    assert!(sim.forge(1, client, &whole(&begins)).keep, "its own answers go there");
    let begins_anew = flows[0].says(0, Flags::SYN);
    sim.forge(1, client, &whole(&begins_anew));
    let arrived = talk(&mut sim, &mut flows, 1, Duration::from_secs(1));
    assert!(arrived[0].len() > 190, "{}", arrived[0].len());
}

#[test]
fn a_host_that_crashed_begins_its_flows_anew_by_another_way_and_nobody_does_for_one_that_lives() {
    for lives in [true, false] {
        let mut sim = Sim::new(1);
        let flow = connect(&mut sim, 0, KEYS)[0];
        let way = |sim: &Sim| sim.snapshot(1).connections[0].flows[0].remote;
        let before = way(&sim);
        if !lives {
            sim.restart(0);
        }
        let syn = whole(&flow.says(0, Flags::SYN));
        for at in [0, 900, 1000] {
            assert_eq!(way(&sim), before, "{at} ms");
            assert!(sim.forge(1, impostor(), &syn).keep || lives, "its way is kept");
            sim.run(Duration::from_millis(if at == 0 { 900 } else { 100 }));
        }
        assert_eq!(way(&sim), if lives { before } else { Some(impostor()) });
    }
}

#[test]
fn a_subflow_whose_main_flow_goes_elsewhere_is_for_the_kernel_to_judge() {
    let mut sim = Sim::new(1);
    let real: std::net::SocketAddr = "[fd00::80]:80".parse().unwrap();
    let join = [&[0x10, 2][..], &0xdead_beef_u32.to_be_bytes(), &[0; 4]].concat();
    let syn = Flow::new(2, 7000).says(0, Flags::SYN).says(&join);
    let mut own = sim.engines[1].own.clone();
    assert!(!sim.forge(1, impostor(), &whole(&Draft { to: real, ..syn.clone() })).keep, "it is nobody's");
    own = own.with(real.ip());
    sim.engines[1].set_own(own);
    assert!(sim.forge(1, impostor(), &whole(&Draft { to: real, ..syn.clone() })).keep);
    assert!(!sim.forge(1, impostor(), &whole(&syn)).keep, "at the shim's own addresses the main flow would be known");
    let counters = sim.snapshot(1).counters;
    assert_eq!((counters.dropped(Drop::Foreign), counters.dropped(Drop::UnknownToken)), (1, 1));
}

#[test]
fn probes_of_strangers_are_not_answered_and_answers_that_nobody_awaits_are_nothing() {
    let mut sim = Sim::new(1);
    connect(&mut sim, 0, KEYS);
    let probe = Control::of(Said::Probe(Nonce(7)));
    let answer = Control::of(Said::Answer(Nonce(7)));
    assert_eq!(sim.forge(1, stranger(), probe.bytes()), Heard::default());
    assert_eq!(sim.forge(1, stranger(), answer.bytes()), Heard::default());
    assert_eq!(sim.forge(1, stranger(), &[0xff, 1]), Heard::default());
    let counters = sim.snapshot(1).counters;
    let counted = [Drop::StrangeProbe, Drop::UnknownEcho, Drop::Malformed].map(|why| counters.dropped(why));
    assert_eq!(counted, [1, 1, 1]);
    let heard = sim.forge(1, impostor(), probe.bytes());
    assert_eq!(heard, Heard { keep: false, echo: Some(answer) }, "a peer's is, and teaches nothing");
}

#[test]
fn who_asks_without_end_pushes_out_nobody_who_goes_on() {
    let mut sim = Sim::new(1);
    let mut flows = connect(&mut sim, 0, KEYS);
    for port in 0..u16::try_from(LIMITS.half_open).unwrap() + 500 {
        let syn = Flow::new(1, 20_000 + port).says(0, Flags::SYN);
        assert!(sim.forge(1, impostor(), &whole(&syn)).keep);
        // What is defined here has one id: each is of another flow, and only the first definition counts.
    }
    let engine = &sim.engines[1];
    let lanes = engine.lanes.iter().flatten().count();
    assert_eq!(lanes, usize::try_from(LIMITS.half_open).unwrap() + 1, "the oldest made room");
    assert_eq!(engine.table.flows().count(), lanes);
    let mut later = Flow::new(2, 9000);
    assert!(later.open(&mut sim, [&[], &[], &[]]), "who is answered within a round trip gets through");
    let arrived = talk(&mut sim, &mut flows, 0, Duration::from_millis(500));
    assert!(arrived[0].len() > 90);
    sim.run(Duration::from_secs(140));
    assert_eq!(sim.engines[1].lanes.iter().flatten().count(), 2, "they are forgotten in time");
}

#[test]
fn data_of_flows_that_there_never_were_makes_no_lasting_state() {
    let mut sim = Sim::new(1);
    connect(&mut sim, 0, KEYS);
    for port in 0..5000 {
        let data = Flow::new(1, 20_000 + port).data(0);
        sim.forge(1, impostor(), &whole(&data));
    }
    let lanes = |sim: &Sim| sim.engines[1].lanes.iter().flatten().count();
    assert!(lanes(&sim) <= usize::try_from(LIMITS.half_open).unwrap() + 1, "{}", lanes(&sim));
    sim.run(Duration::from_secs(140));
    assert_eq!(lanes(&sim), 1);
    assert_eq!(sim.engines[1].peers.iter().map(|(_, peer)| peer.compression.flows()).sum::<usize>(), 1);
}
