//! From what the engine says to the document, and to log lines.

use std::time::{Duration, Instant};

use hawser_scion::{Fingerprint, InterfaceId, IsdAs, PathInterface};

use super::build::{About, document};
use super::*;
use crate::config::parse;
use crate::engine::{
    ConnSnapshot, ConnectionSnapshot, Counters, FlowSnapshot, Notice, Opened, Passed, PathSnapshot, PathState, Snapshot,
};
use crate::flow::{Direction, End, FlowKey, INTERVALS, Protocol, Role, State};
use crate::mptcp::Token;
use crate::route::{InterfaceIndex, ScionHost};

const PEER_AS: &str = "1-ff00:0:120";
const PEER: &str = "1-ff00:0:120,10.120.0.10:31000";
const TOKEN: Token = Token(0x5eed_c0de);

fn isd_as(text: &str) -> IsdAs {
    text.parse().expect("it is an AS")
}

/// By this many interfaces of one link, or two where `middle` is an AS between.
fn path(out: u16, middle: bool) -> Fingerprint {
    let interface = |text, id| PathInterface { isd_as: isd_as(text), id: InterfaceId(id) };
    let (first, last) = (interface("1-ff00:0:110", out), interface(PEER_AS, 9));
    let between = [interface("1-ff00:0:130", 1), interface("1-ff00:0:130", 2)];
    let between = if middle { &between[..] } else { &[] };
    Fingerprint::new([&[first], between, &[last]].concat())
}

fn key(interface: u8) -> FlowKey {
    FlowKey {
        protocol: Protocol::Tcp,
        local: format!("192.0.2.{interface}:40000").parse().expect("it is one"),
        remote: "198.51.100.7:443".parse().expect("it is one"),
    }
}

fn flow(interface: u8, role: Role, path: Option<Fingerprint>, sent: u64, recent: u64) -> FlowSnapshot {
    FlowSnapshot {
        key: key(interface),
        role,
        state: State::Established,
        asked: Direction::Out,
        interface: InterfaceIndex::new(interface).expect("it is one"),
        age: Duration::from_secs(20),
        remote: Some(PEER.parse().expect("it is one")),
        mtu: path.as_ref().map(|_| 1472),
        path,
        max_segment: Some(1298),
        moves: 0,
        sent: Passed { packets: 10, bytes: sent, retransmissions: 2, recent, ..Passed::default() },
        received: Passed { retransmissions: 1, ..Passed::default() },
    }
}

fn peer() -> ScionHost {
    let end: hawser_scion::EndpointAddr = PEER.parse().expect("it is one");
    end.into()
}

fn connection(flows: Vec<FlowSnapshot>) -> ConnectionSnapshot {
    let age = Duration::from_secs(20);
    ConnectionSnapshot { token: Some(TOKEN), asked: Direction::Out, peer: peer(), age, flows }
}

fn known(path: Fingerprint, state: PathState) -> PathSnapshot {
    let conn = ConnSnapshot {
        remote: PEER.parse().expect("it is one"),
        flows: 1,
        round_trip: Some(Duration::from_millis(12)),
        loss: None,
        sent_packets: 1,
        sent_bytes: 1,
        received_packets: 1,
        received_bytes: 1,
    };
    PathSnapshot {
        isd_as: isd_as(PEER_AS),
        length: path.interfaces().len() / 2 + 1,
        path,
        mtu: 1472,
        expiry: None,
        latency: Some(Duration::from_millis(5)),
        state,
        sharability: 0,
        conns: vec![conn],
    }
}

fn about() -> About {
    let config =
        parse("[shim]\nlocal = \"1-ff00:0:110,10.110.0.10:31000\"\negress = 2\n", "t.toml").expect("it is right");
    About::of(&config, config.end(isd_as("1-ff00:0:110")))
}

fn snapshot(connections: Vec<ConnectionSnapshot>) -> Snapshot {
    let paths = vec![known(path(1, true), PathState::Live), known(path(2, false), PathState::Dead)];
    Snapshot { connections, paths, counters: Counters::default(), ..Snapshot::default() }
}

#[test]
fn the_document_says_what_the_engine_has() {
    let flows = vec![
        flow(1, Role::Main, Some(path(1, true)), 3_000, 0),
        flow(2, Role::Subflow, Some(path(2, false)), 1_000, 500),
    ];
    let snapshot = snapshot(vec![connection(flows)]);
    let status = document(&about(), Duration::from_secs(60), 2, &snapshot);
    assert_eq!(status.local, "1-ff00:0:110,10.110.0.10:31000");
    assert_eq!((status.routes, status.uptime_s, status.select.as_str()), (2, 60.0, "sharability"));
    let names: Vec<&str> = status.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["shim-in", "shim1", "shim2"]);
    let [connection] = &status.connections[..] else { panic!("{status:?}") };
    assert_eq!((connection.token.as_deref(), connection.role), (Some("5eedc0de"), ShimRole::Client));
    assert_eq!(connection.peer, "1-ff00:0:120,10.120.0.10");
    assert_eq!(connection.sharability, 1, "the interface of the last AS is crossed twice");
    let [main, subflow] = &connection.flows[..] else { panic!("{connection:?}") };
    assert_eq!((main.role, main.interface, main.share_pct, main.share_now_pct), (FlowRole::Main, 1, 75.0, 0.0));
    assert_eq!((subflow.role, subflow.share_pct, subflow.share_now_pct), (FlowRole::Subflow, 25.0, 100.0));
    assert_eq!((main.tx_bytes, main.rx_bytes), (3_000, 0));
    assert_eq!((main.tx_retransmissions, main.rx_retransmissions), (2, 1));
    let way = main.path.as_ref().expect("it has one");
    assert_eq!(way.hops, "1-ff00:0:110 1>1 1-ff00:0:130 2>9 1-ff00:0:120");
    assert_eq!((way.length, way.mtu, way.sharability, way.alive), (3, Some(1472), 1, true));
    assert_eq!((way.rtt_ms, way.latency_ms), (Some(12.0), Some(5.0)));
    assert!(!subflow.path.as_ref().expect("it has one").alive, "its path is dead");
    let text = serde_json::to_string(&status).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Status>(&text).expect("it reads back"), status);
}

#[test]
fn shares_over_time_are_those_of_each_second() {
    let flow = |interface, sent: [u64; 3], received: u64| {
        let mut flow = flow(interface, Role::Subflow, None, 0, 0);
        flow.sent.intervals[INTERVALS - 3..].copy_from_slice(&sent);
        flow.received.intervals[INTERVALS - 1] = received;
        flow
    };
    let snapshot = snapshot(vec![connection(vec![flow(1, [100, 0, 0], 1_000), flow(2, [300, 0, 0], 0)])]);
    let status = document(&about(), Duration::ZERO, 0, &snapshot);
    let of = |flow: usize| -> Vec<f64> {
        let shares = &status.connections[0].flows[flow].shares;
        shares[INTERVALS - 3..].iter().map(|sample| sample.share_pct).collect()
    };
    assert_eq!((of(0), of(1)), (vec![25.0, 0.0, 100.0], vec![75.0, 0.0, 0.0]));
    assert_eq!(status.connections[0].flows[0].shares[INTERVALS - 1].rate_mbps, 0.008);
}

fn opened(interface: u8, role: Role, path: Option<Fingerprint>) -> Opened {
    let token = (role != Role::Plain).then_some(TOKEN);
    Opened { key: key(interface), asked: Direction::Out, role, token, peer: peer(), path }
}

#[test]
fn a_line_says_how_much_of_a_path_is_shared_with_the_connections_other_flows() {
    let mut log = Log::default();
    let main = log.opened(&opened(1, Role::Main, Some(path(1, true))));
    assert_eq!((main.what, main.number, main.length, main.sharability), ("main flow", 1, Some(3), Some(0)));
    let subflow = log.opened(&opened(2, Role::Subflow, Some(path(2, true))));
    assert_eq!((subflow.what, subflow.number, subflow.sharability), ("subflow", 2, Some(3)));
    let answered = log.opened(&opened(3, Role::Subflow, None));
    assert_eq!((answered.path.as_str(), answered.length, answered.sharability), ("chosen by the peer", None, None));
    let plain = log.opened(&opened(4, Role::Plain, Some(Fingerprint::default())));
    assert_eq!((plain.what, plain.path.as_str(), plain.sharability), ("flow", "within the AS", None));
}

#[test]
fn a_flow_that_moved_counts_with_its_new_path_and_one_that_ended_not_at_all() {
    let (mut log, now) = (Log::default(), Instant::now());
    log.tell(&Notice::Opened(opened(1, Role::Main, Some(path(1, true)))), now);
    let (from, to, because) = (path(1, true), path(1, false), crate::engine::Reason::Scmp);
    log.tell(&Notice::Moved { key: key(1), from, to, because }, now);
    let subflow = log.opened(&opened(2, Role::Subflow, Some(path(2, true))));
    assert_eq!(subflow.sharability, Some(1), "only the last AS's interface is left");
    for interface in [1, 2] {
        let end = Some(End::Closed);
        log.tell(&Notice::Closed { key: key(interface), end, sent: 1, received: 2 }, now);
    }
    assert_eq!(log.remembered(), 0);
}

#[test]
fn the_control_socket_answers_and_is_gone_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shim.sock");
    let flows = vec![flow(1, Role::Main, None, 1, 0)];
    let server = Server::start(&path, about(), || 7, move || Some(snapshot(vec![connection(flows.clone())])));
    let server = server.expect("it starts");
    let status = ask(&path).expect("it answers");
    assert_eq!((status.routes, status.connections.len()), (7, 1));
    let error = Server::start(&path, about(), || 0, || None).expect_err("one is there").to_string();
    assert!(error.contains("another shim is running"), "{error}");
    drop(server);
    assert!(!path.exists());
    let error = ask(&path).expect_err("nobody is there").to_string();
    assert!(error.contains("no shim is running there"), "{error}");
}
