//! Whole flows, their connections, limits, forgeries, and a storm of them.

use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::units::Time;

use super::*;
use crate::mptcp::samples::{CLIENT, Draft, SERVER};
use crate::mptcp::{Flags, Key, Token};

/// No flow of UDP is in these tests.
const NO_UDP: Limits = Limits { flows: 1, half_open: 1 };
const KEY: [u8; 8] = [1; 8];
const OTHER: [u8; 8] = [2; 8];
const SYN_ACK: Flags = Flags(0x12);
const FIN_ACK: Flags = Flags(0x11);

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn table() -> FlowTable {
    FlowTable::new(Limits { flows: 4096, half_open: 1024 }, NO_UDP)
}

/// Shows segments that a client here sends, and answers to them.
struct Host {
    table: FlowTable,
    now: Time,
}

impl Host {
    fn new(table: FlowTable) -> Self {
        Self { table, now: at(1000) }
    }

    fn show(&mut self, direction: Direction, draft: &Draft) -> Result<Observed, Refused> {
        let packet = draft.packet();
        self.table.observe(self.now, direction, &Segment::parse(&packet).unwrap())
    }

    fn out(&mut self, draft: &Draft) -> State {
        self.show(Direction::Out, draft).unwrap().state
    }

    fn incoming(&mut self, draft: &Draft) -> State {
        self.show(Direction::In, draft).unwrap().state
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.table.expire(self.now, |_, _| {});
    }
}

/// A segment of this host's client at this port.
fn there(port: u16, flags: Flags, sequence: u32, acknowledgment: u32) -> Draft {
    let from = SocketAddr::new(CLIENT.parse::<SocketAddr>().unwrap().ip(), port);
    Draft { from, flags, sequence, acknowledgment, ..Draft::default() }
}

/// The answer of the server to it.
fn back(port: u16, flags: Flags, sequence: u32, acknowledgment: u32) -> Draft {
    let Draft { from, to, .. } = there(port, flags, sequence, acknowledgment);
    Draft { from: to, to: from, flags, sequence, acknowledgment, ..Draft::default() }
}

fn capable(keys: &[[u8; 8]]) -> Vec<u8> {
    [&[0x01, 0x01][..], &keys.concat()].concat()
}

fn join(token: Token) -> Vec<u8> {
    [&[0x10, 2][..], &token.0.to_be_bytes(), &[0; 4]].concat()
}

/// A connection of MPTCP from here, established.
fn open(host: &mut Host, port: u16, keys: [[u8; 8]; 2]) -> FlowId {
    assert_eq!(host.out(&there(port, Flags::SYN, 99, 0).says(&capable(&[]))), State::Opening);
    assert_eq!(host.incoming(&back(port, SYN_ACK, 499, 100).says(&capable(&keys[1..]))), State::Answered);
    assert_eq!(host.out(&there(port, Flags::ACK, 100, 500).says(&capable(&keys))), State::Established);
    host.show(Direction::Out, &there(port, Flags::ACK, 100, 500)).unwrap().flow
}

/// Closes it in order.
fn close(host: &mut Host, port: u16) {
    assert_eq!(host.out(&there(port, FIN_ACK, 100, 500)), State::HalfClosed(Direction::Out));
    assert_eq!(host.incoming(&back(port, FIN_ACK, 500, 101)), State::Closing);
    assert_eq!(host.out(&there(port, Flags::ACK, 101, 501)), State::Ended(End::Closed));
}

#[test]
fn a_flow_closed_by_both_ends_leaves_nothing() {
    let mut host = Host::new(table());
    let id = open(&mut host, 4000, [KEY, OTHER]);
    assert_eq!(host.table.connections().count(), 1);
    close(&mut host, 4000);
    assert_eq!(host.incoming(&back(4000, FIN_ACK, 500, 101)), State::Ended(End::Closed), "it may come again");
    host.wait(Duration::from_secs(2));
    assert!(host.table.get(id).is_none());
    assert_eq!(host.table.entries(), 0);
    assert_eq!((host.table.counters().opened, host.table.counters().freed), (1, 1));
}

#[test]
fn subflows_of_both_ends_join_by_tokens() {
    let mut host = Host::new(table());
    let main = open(&mut host, 4000, [KEY, OTHER]);
    let connection = host.table.get(main).unwrap().connection.unwrap();
    let tokens = [Direction::In, Direction::Out].map(|joins| host.table.connection(connection).unwrap().token(joins));
    assert_eq!(tokens, [Some(Key(KEY).token()), Some(Key(OTHER).token())]);
    let ours = host.show(Direction::Out, &there(4001, Flags::SYN, 1, 0).says(&join(Key(OTHER).token()))).unwrap().flow;
    let theirs = host.show(Direction::In, &back(4002, Flags::SYN, 1, 0).says(&join(Key(KEY).token()))).unwrap().flow;
    assert_eq!(host.table.connection(connection).unwrap().flows, [main, ours, theirs]);
    let roles = [main, ours, theirs].map(|id| host.table.get(id).unwrap().role);
    assert_eq!(roles, [Role::Main, Role::Subflow, Role::Subflow]);
    close(&mut host, 4000);
    host.wait(Duration::from_secs(2));
    assert_eq!(host.table.connection(connection).unwrap().flows, [ours, theirs], "it lives on in its subflows");
}

#[test]
fn a_forged_token_is_counted_and_changes_nothing() {
    let mut host = Host::new(table());
    open(&mut host, 4000, [KEY, OTHER]);
    let before = host.table.entries();
    let refused = host.show(Direction::In, &back(4001, Flags::SYN, 1, 0).says(&join(Token(7))));
    assert_eq!(refused, Err(Refused::UnknownToken(Token(7))));
    let elsewhere = back(4003, Flags::SYN, 1, 0).says(&join(Token(7))).packet();
    let elsewhere = Segment::parse(&elsewhere).unwrap();
    let mut lenient = table();
    let joined = lenient.observe_among(host.now, Direction::In, &elsewhere, Mains::Anywhere).unwrap().flow;
    assert_eq!(lenient.get(joined).map(|flow| (flow.role, flow.connection)), Some((Role::Subflow, None)));
    let other_way = host.show(Direction::In, &back(4001, Flags::SYN, 1, 0).says(&join(Key(OTHER).token())));
    assert_eq!(other_way, Err(Refused::UnknownToken(Key(OTHER).token())), "that is the peer's own");
    assert_eq!((host.table.entries(), host.table.counters().unknown_tokens), (before, 2));
    let ours = host.show(Direction::Out, &there(4001, Flags::SYN, 1, 0).says(&join(Token(7)))).unwrap().flow;
    let ours = host.table.get(ours).unwrap();
    assert_eq!((ours.role, ours.connection), (Role::Subflow, None), "of a connection from before the table");
}

#[test]
fn one_token_at_two_peers_is_told_apart_by_the_peer() {
    let mut host = Host::new(table());
    let first = open(&mut host, 4000, [KEY, OTHER]);
    let elsewhere = |draft: Draft| {
        let [from, to] = [draft.from, draft.to].map(|end| match end.to_string().as_str() {
            SERVER => "10.9.0.1:80".parse().unwrap(),
            _ => end,
        });
        Draft { from, to, ..draft }
    };
    host.out(&elsewhere(there(4000, Flags::SYN, 99, 0).says(&capable(&[]))));
    host.incoming(&elsewhere(back(4000, SYN_ACK, 499, 100).says(&capable(&[OTHER]))));
    let connection = host.table.get(first).unwrap().connection;
    let token = Key(OTHER).token();
    let joins = [(there(5000, Flags::SYN, 1, 0), true), (elsewhere(there(5001, Flags::SYN, 1, 0)), false)];
    for (draft, is_first) in joins {
        let flow = host.show(Direction::Out, &draft.says(&join(token))).unwrap().flow;
        let joined = host.table.get(flow).unwrap().connection;
        assert_eq!(joined == connection, is_first);
        assert!(joined.is_some());
    }
}

#[test]
fn without_an_answer_of_mptcp_a_flow_is_plain() {
    let mut host = Host::new(table());
    host.out(&there(4000, Flags::SYN, 99, 0).says(&capable(&[])));
    host.incoming(&back(4000, SYN_ACK, 499, 100));
    let id = host.show(Direction::Out, &there(4000, Flags::ACK, 100, 500)).unwrap().flow;
    let flow = host.table.get(id).unwrap();
    assert_eq!((flow.role, flow.connection, flow.state), (Role::Plain, None, State::Established));
    assert_eq!(host.table.connections().count(), 0);
}

#[test]
fn a_reset_ends_a_flow_and_a_forged_one_does_not() {
    let mut host = Host::new(table());
    open(&mut host, 4000, [KEY, OTHER]);
    assert_eq!(host.incoming(&back(4000, Flags::RST, 500 + (1 << 31), 0)), State::Established, "far from the window");
    assert_eq!(host.incoming(&back(4000, FIN_ACK, 500 + (1 << 31), 0)), State::Established, "a FIN alike");
    assert_eq!(host.incoming(&back(4000, Flags::ACK, 500, 99_999)), State::Established, "it never was sent");
    assert_eq!(host.out(&there(4000, Flags::ACK, 100, 500)), State::Established);
    assert_eq!(host.incoming(&back(4000, Flags::RST, 500, 0)), State::Ended(End::Reset(Direction::In)));
    host.wait(Duration::from_secs(2));
    assert_eq!(host.table.entries(), 0);
    host.out(&there(4001, Flags::SYN, 99, 0));
    let refusal = |acknowledgment| back(4001, Flags::RST.with(Flags::ACK), 0, acknowledgment);
    assert_eq!(host.incoming(&refusal(55)), State::Opening, "it answers nothing that was asked");
    assert_eq!(host.incoming(&refusal(100)), State::Ended(End::Reset(Direction::In)));
}

#[test]
fn silent_flows_are_freed_each_in_its_time() {
    let mut host = Host::new(table());
    host.out(&there(4000, Flags::SYN, 99, 0));
    open(&mut host, 4001, [KEY, OTHER]);
    let left = |host: &Host| host.table.flows().map(|(_, flow)| flow.key.local.port()).collect::<Vec<_>>();
    host.wait(Duration::from_secs(129));
    assert_eq!(left(&host), [4000, 4001]);
    assert!(host.table.next_deadline().is_some_and(|due| due > host.now));
    host.wait(Duration::from_secs(2));
    assert_eq!(left(&host), [4001]);
    host.wait(Duration::from_secs(7000));
    host.out(&there(4001, Flags::ACK, 100, 500));
    host.wait(Duration::from_secs(7000));
    assert_eq!(left(&host), [4001], "it has spoken");
    host.wait(Duration::from_secs(500));
    assert_eq!((left(&host), host.table.entries(), host.table.next_deadline()), (vec![], 0, None));
}

#[test]
fn ends_are_used_again_by_a_new_flow() {
    let mut host = Host::new(table());
    let old = open(&mut host, 4000, [KEY, OTHER]);
    let challenged = host.show(Direction::Out, &there(4000, Flags::SYN, 7777, 0)).unwrap();
    assert_eq!((challenged.flow, challenged.state), (old, State::Established), "a SYN does not end what lives");
    close(&mut host, 4000);
    let new = open(&mut host, 4000, [OTHER, KEY]);
    assert_ne!(old, new);
    assert!(host.table.get(old).is_none());
    let abandoned = host.show(Direction::Out, &there(4001, Flags::SYN, 1, 0)).unwrap().flow;
    let again = host.show(Direction::Out, &there(4001, Flags::SYN, 1, 0)).unwrap().flow;
    let anew = host.show(Direction::Out, &there(4001, Flags::SYN, 9, 0)).unwrap().flow;
    assert_eq!((abandoned == again, abandoned == anew), (true, false));
}

#[test]
fn data_of_a_flow_from_before_the_table_is_followed_and_strays_are_not() {
    let mut host = Host::new(table());
    for flags in [Flags::ACK, FIN_ACK, Flags::RST, SYN_ACK] {
        assert_eq!(host.show(Direction::In, &back(4000, flags, 1, 1)), Err(Refused::Stray));
    }
    assert_eq!(host.table.counters().strays, 4);
    let data = Draft { payload: vec![0; 10], ..back(4000, Flags::ACK, 1, 1) };
    assert_eq!(host.incoming(&data), State::Answered, "a peer may say so");
    assert_eq!(host.out(&there(4000, Flags::ACK, 1, 11)), State::Established);
    assert_eq!(
        host.out(&there(4002, Flags::ACK, 1, 1)),
        State::Answered,
        "it may be the last word of one that is over"
    );
    assert_eq!(host.incoming(&Draft { payload: vec![0; 10], ..back(4002, Flags::ACK, 1, 1) }), State::Established);
    let ours = Draft { payload: vec![0; 10], ..there(4001, Flags::ACK, 1, 1) };
    assert_eq!(host.out(&ours), State::Established);
}

#[test]
fn limits_hold_and_flows_that_ended_make_room() {
    let mut host = Host::new(FlowTable::new(Limits { flows: 3, half_open: 1 }, NO_UDP));
    assert_eq!(host.incoming(&back(1, Flags::SYN, 1, 0)), State::Opening);
    assert_eq!(host.incoming(&back(2, Flags::SYN, 1, 0)), State::Opening);
    let (_, key) = host.table.displaced().expect("the older one made room");
    assert_eq!((key.local.port(), host.table.counters().pushed_out), (1, 1));
    open(&mut host, 4000, [KEY, OTHER]);
    open(&mut host, 4001, [OTHER, KEY]);
    assert_eq!(host.show(Direction::Out, &there(4002, Flags::SYN, 1, 0)), Err(Refused::Full));
    assert_eq!(host.table.counters().full, 1);
    close(&mut host, 4000);
    assert_eq!(host.out(&there(4002, Flags::SYN, 1, 0)), State::Opening);
}

#[test]
fn each_flow_of_a_connection_has_its_share() {
    let mut host = Host::new(table());
    let main = open(&mut host, 4000, [KEY, OTHER]);
    let sub = host.show(Direction::Out, &there(4001, Flags::SYN, 1, 0).says(&join(Key(OTHER).token()))).unwrap().flow;
    let connection = host.table.get(main).unwrap().connection.unwrap();
    assert_eq!(host.table.shares(connection, Direction::Out, host.now), [(main, 0.0), (sub, 0.0)]);
    for (port, sequence, len) in [(4000, 100, 300), (4001, 2, 100)] {
        host.out(&Draft { payload: vec![0; len], ..there(port, Flags::ACK, sequence, 500) });
    }
    assert_eq!(host.table.shares(connection, Direction::Out, host.now), [(main, 0.75), (sub, 0.25)]);
    host.wait(Duration::from_secs(9));
    assert_eq!(host.table.shares(connection, Direction::Out, host.now), [(main, 0.0), (sub, 0.0)]);
}

#[test]
fn five_hundred_connections_a_second_for_thirty_seconds_leave_nothing() {
    let mut host = Host::new(table());
    for round in 0..15_000_u64 {
        let port = u16::try_from(1024 + round % 60_000).unwrap();
        let keys = [round.to_be_bytes(), (!round).to_be_bytes()];
        open(&mut host, port, keys);
        close(&mut host, port);
        host.wait(Duration::from_millis(2));
    }
    assert!(host.table.places() <= 1002, "{} at once", host.table.places());
    host.wait(Duration::from_secs(2));
    assert_eq!(host.table.entries(), 0);
    assert_eq!((host.table.counters().opened, host.table.counters().freed), (15_000, 15_000));
}
