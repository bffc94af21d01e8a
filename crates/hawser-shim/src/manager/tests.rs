//! The book of connections, on virtual time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::flow::{FlowKey, Protocol};
use crate::kernel::{Connected, Event, Lost, Subflow, SubflowEvent};
use crate::mptcp::{AddressId, Token};
use crate::route::{Addresses, RouteTable, Side, Target};

const TOKEN: Token = Token(7);
/// The server, reached by the shim.
const SERVER: &str = "[fc00::99]:80";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Four egresses, and a map with a server of either kind of side by side.
fn places() -> Places {
    let egress = |number: u8| Addresses {
        ipv6: Some(format!("fc00::{number}").parse().expect("an address")),
        ipv4: Some([100, 64, 0, number].into()),
    };
    let end = "1-ff00:0:120,10.0.0.9:31000".parse().expect("an endpoint");
    let entry = |to: &str, side| (to.parse().expect("a network"), None, Protocol::Tcp, Target { end, side });
    let entries = [entry("192.0.2.1/32", Side::Subflows), entry("192.0.2.2/32", Side::Main)];
    let routes = Arc::new(RouteTable::new("100.64.0.0/10".parse().ok(), entries));
    Places { egress: (1..=4).map(egress).collect(), routes, ordinary: vec![(ip("192.0.2.2"), ip("10.0.0.1"))] }
}

/// A book that has heard of a connection between these.
fn book(local: &str, remote: &str) -> (Book, Instant) {
    let mut book = Book::default();
    book.learn(places());
    let now = Instant::now();
    book.hear(&established(local, remote, false), now);
    (book, now)
}

fn established(local: &str, remote: &str, is_server: bool) -> Event {
    Event::Established(Connected { token: TOKEN, local: address(local), remote: address(remote), is_server })
}

fn subflow(local: &str, remote: &str) -> SubflowEvent {
    SubflowEvent {
        token: TOKEN,
        subflow: Subflow { local: address(local), remote: address(remote) },
        local_id: AddressId(0),
        remote_id: AddressId(0),
        backup: false,
        interface: None,
    }
}

/// The ids of addresses that subflows are to be opened from.
fn created(acts: &[Act]) -> Vec<u8> {
    let id = |act: &Act| match act {
        Act::Create { id, .. } => id.0,
        Act::Destroy { .. } => panic!("{act:?}"),
    };
    acts.iter().map(id).collect()
}

#[test]
fn each_further_egress_gets_a_subflow_as_far_as_there_is_room() {
    for (room, want) in [(0, vec![]), (1, vec![2]), (3, vec![2, 3, 4]), (9, vec![2, 3, 4])] {
        let (mut book, now) = book("[fc00::1]:4000", SERVER);
        assert_eq!(book.due(now), [], "nobody said that there is room");
        book.room(TOKEN, room);
        let acts = book.due(now);
        assert_eq!(created(&acts), want, "{room}");
        assert_eq!(book.due(now), [], "once asked for is enough");
        if let Some(Act::Create { local, remote, .. }) = acts.first() {
            assert_eq!((*local, *remote), (ip("fc00::2"), address(SERVER)));
        }
    }
}

#[test]
fn room_that_is_told_while_subflows_are_on_their_way_is_not_used_twice() {
    let (mut book, now) = book("[fc00::1]:4000", SERVER);
    book.room(TOKEN, 2);
    assert_eq!(created(&book.due(now)), [2, 3]);
    for free in [1, 0] {
        book.room(TOKEN, free);
        assert_eq!(book.due(now), [], "the packet thread counts them one by one");
    }
    book.hear(&Event::SubflowEstablished(subflow("[fc00::2]:1", SERVER)), now);
    book.hear(&Event::SubflowEstablished(subflow("[fc00::3]:1", SERVER)), now);
    assert_eq!(book.due(now), []);
    book.room(TOKEN, 1);
    assert_eq!(created(&book.due(now)), [4], "a path more");
}

#[test]
fn room_may_be_told_before_the_kernel_tells_of_the_connection() {
    let mut book = Book::default();
    book.learn(places());
    let now = Instant::now();
    book.room(TOKEN, 5);
    book.room(TOKEN, 1);
    book.hear(&established("100.64.0.1:4000", "100.64.9.16:80", false), now);
    assert_eq!(created(&book.due(now)), [2]);
}

#[test]
fn connections_of_others_and_servers_are_left_alone() {
    let table = [
        ("10.0.0.1:4000", "198.51.100.1:80", false),
        ("[fc00::1]:4000", SERVER, true),
        ("10.0.0.1:4000", "192.0.2.1:80", true),
        ("10.0.0.1:4000", "192.0.2.2:80", false),
    ];
    for (local, remote, is_server) in table {
        let mut book = Book::default();
        book.learn(places());
        let now = Instant::now();
        book.room(TOKEN, 3);
        book.hear(&established(local, remote, is_server), now);
        assert!(book.is_empty(), "{local} {remote}");
        assert_eq!(book.due(now), []);
    }
}

#[test]
fn what_fails_or_ends_is_opened_again_after_a_pause_that_grows() {
    let (mut book, now) = book("[fc00::1]:4000", SERVER);
    book.room(TOKEN, 1);
    assert_eq!(created(&book.due(now)), [2]);
    book.failed(TOKEN, AddressId(2), now);
    assert_eq!(created(&book.due(now)), [3], "another address may do better");
    book.failed(TOKEN, AddressId(3), now);
    assert_eq!(created(&book.due(now)), [4]);
    book.failed(TOKEN, AddressId(4), now);
    assert_eq!(book.due(now), []);
    assert_eq!(book.wakes(now), Some(FIRST_PAUSE));
    let later = now + FIRST_PAUSE;
    assert_eq!(created(&book.due(later)), [2]);
    book.hear(&Event::SubflowEstablished(subflow("[fc00::2]:1", SERVER)), later);
    book.hear(&Event::SubflowClosed(subflow("[fc00::2]:1", SERVER), Lost::default()), later);
    assert_eq!(book.due(later), [], "its room is the packet thread's to tell");
    book.room(TOKEN, 3);
    assert_eq!(created(&book.due(later)), [3, 4]);
    book.hear(&Event::SubflowEstablished(subflow("[fc00::3]:1", SERVER)), later);
    book.hear(&Event::SubflowEstablished(subflow("[fc00::4]:1", SERVER)), later);
    assert_eq!(created(&book.due(later + 2 * FIRST_PAUSE)), [2]);
}

#[test]
fn what_is_never_answered_is_given_up() {
    let (mut book, now) = book("[fc00::1]:4000", SERVER);
    book.room(TOKEN, 1);
    assert_eq!(created(&book.due(now)), [2]);
    assert_eq!(book.wakes(now), Some(ANSWERED_WITHIN));
    book.room(TOKEN, 1);
    let later = now + ANSWERED_WITHIN;
    assert_eq!(created(&book.due(later)), [3]);
}

#[test]
fn a_subflow_without_a_path_is_ended_and_a_connection_that_ended_is_forgotten() {
    let (mut book, now) = book("[::ffff:100.64.0.1]:4000", "[::ffff:100.64.9.16]:80");
    let main =
        FlowKey { protocol: Protocol::Tcp, local: address("100.64.0.1:4000"), remote: address("100.64.9.16:80") };
    book.lost(TOKEN, FlowKey { protocol: Protocol::Tcp, local: address("100.64.0.2:4000"), ..main });
    assert_eq!(book.due(now), [], "there is no such subflow");
    book.lost(TOKEN, main);
    let Subflow { local, remote } = subflow("[::ffff:100.64.0.1]:4000", "[::ffff:100.64.9.16]:80").subflow;
    assert_eq!(
        book.due(now),
        [Act::Destroy { token: TOKEN, subflow: Subflow { local, remote } }],
        "as the kernel has it"
    );
    book.hear(
        &Event::SubflowClosed(subflow("[::ffff:100.64.0.1]:4000", "[::ffff:100.64.9.16]:80"), Lost::default()),
        now,
    );
    book.room(TOKEN, 1);
    let acts = book.due(now);
    assert_eq!(created(&acts), [2], "the first address rests");
    assert!(matches!(acts[0], Act::Create { local, .. } if local == ip("100.64.0.2")));
    book.hear(&Event::Closed(TOKEN), now);
    assert!(book.is_empty());
    assert_eq!(book.due(now + Duration::from_secs(100)), []);
}

#[test]
fn a_subflow_can_be_lost_before_the_kernel_tells_that_it_is_there() {
    let (mut book, now) = book("[fc00::1]:4000", SERVER);
    book.room(TOKEN, 1);
    assert_eq!(created(&book.due(now)), [2]);
    let subflow = subflow("[fc00::2]:1", SERVER).subflow;
    book.lost(TOKEN, FlowKey { protocol: Protocol::Tcp, local: address("[fc00::3]:1"), remote: subflow.remote });
    book.lost(TOKEN, FlowKey { protocol: Protocol::Tcp, local: subflow.local, remote: subflow.remote });
    assert_eq!(book.due(now), [Act::Destroy { token: TOKEN, subflow }], "of what was asked for alone");
}

#[test]
fn beside_the_internet_each_egress_gets_a_subflow_whether_there_is_a_path_or_not() {
    let (mut book, now) = book("10.0.0.1:4000", "192.0.2.1:80");
    assert_eq!(created(&book.due(now)), [1, 2, 3, 4]);
    let one = subflow("100.64.0.1:1", "192.0.2.1:80");
    book.hear(&Event::SubflowClosed(one, Lost::default()), now);
    assert_eq!(book.due(now), []);
    assert_eq!(created(&book.due(now + FIRST_PAUSE)), [1]);
}

#[test]
fn beside_scion_the_ordinary_address_gets_a_subflow_that_takes_no_room() {
    let (mut book, now) = book("100.64.0.1:4000", "192.0.2.2:80");
    let acts = book.due(now);
    let want = Act::Create { token: TOKEN, id: ORDINARY, local: ip("10.0.0.1"), remote: address("192.0.2.2:80") };
    assert_eq!(acts, [want]);
    book.room(TOKEN, 1);
    assert_eq!(created(&book.due(now)), [2]);
    let beside = subflow("10.0.0.1:1", "192.0.2.2:80");
    book.hear(&Event::SubflowEstablished(beside), now);
    book.hear(&Event::SubflowClosed(beside, Lost::default()), now);
    assert_eq!(created(&book.due(now + FIRST_PAUSE)), [ORDINARY.0]);
}

#[test]
fn missed_events_make_it_forget_what_may_be_wrong() {
    let (mut book, now) = book("[fc00::1]:4000", SERVER);
    assert_eq!(book.len(), 1);
    book.forget();
    book.room(TOKEN, 3);
    assert_eq!(book.due(now), []);
}
