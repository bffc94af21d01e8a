//! The manager against connections of MPTCP as they are: two namespaces joined by two links that stand for egresses.

use std::net::SocketAddr;
use std::sync::Arc;

use hawser_net::netcfg::Change;
use hawser_shim::config::PathManager;
use hawser_shim::flow::{FlowKey, Protocol};
use hawser_shim::kernel::{Event, Subflow};
use hawser_shim::manager::{Input, Inputs, Manager, Places, Prepared, prepare};
use hawser_shim::mptcp::Token;
use hawser_shim::route::{Addresses, RouteTable, Side, Target};
use hawser_wire::Namespace;

use super::support::{Heard, PORT, Pair, ip, say, subflow};

/// The client's addresses, as if they were those of two egresses.
fn places(routes: RouteTable) -> Places {
    let egress = |text: &str| Addresses { ipv6: None, ipv4: Some(text.parse().unwrap()) };
    Places { egress: vec![egress("10.1.0.1"), egress("10.2.0.1")], routes: Arc::new(routes), ordinary: Vec::new() }
}

/// Sets what a shim sets, without a journal: the namespace goes with the test.
fn set(namespace: &Namespace, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Sysctl { key, value } => namespace.run(|| key.write(value)).unwrap().unwrap(),
            Change::MptcpLimits(limits) => super::support::manager(namespace).set_limits(*limits).unwrap(),
            Change::MptcpEndpoint(endpoint) => super::support::manager(namespace).add(endpoint).unwrap(),
            other => panic!("{other}"),
        }
    }
}

fn prepared(pair: &Pair, wanted: PathManager) -> Prepared {
    // The server is reached by its second link from the second address.
    let route = |namespace: &Namespace, arguments: &str| {
        assert!(namespace.command("ip").args(arguments.split(' ')).status().unwrap().success());
    };
    route(&pair.client, "rule add from 10.2.0.1 lookup 7");
    route(&pair.client, "route add default via 10.2.0.2 dev b table 7");
    route(&pair.server, "route add 10.2.0.1/32 dev b src 10.1.0.2");
    let egress = places(RouteTable::default()).egress;
    let prepared = pair.client.run(|| prepare(wanted, &egress)).unwrap();
    assert_eq!(prepared.manager, Some(wanted), "this kernel has it all");
    set(&pair.client, &prepared.clients);
    set(&pair.server, &prepared.servers);
    prepared
}

fn manager(pair: &Pair, routes: RouteTable) -> (Manager, Inputs) {
    pair.client.run(|| Manager::start(places(routes))).unwrap().unwrap()
}

fn token(heard: &mut Heard) -> Token {
    heard.until("established connection", |event| match event {
        Event::Established(connected) => Some(connected.token),
        _ => None,
    })
}

fn closed(heard: &mut Heard, which: Subflow) {
    heard.until("closed subflow", |event| match event {
        Event::SubflowClosed(at, _) => (at.subflow == which).then_some(()),
        _ => None,
    });
}

#[test]
fn a_path_more_is_a_subflow_more_and_one_without_a_path_ends_and_comes_back() {
    let pair = Pair::new();
    prepared(&pair, PathManager::Userspace);
    let mut heard = Heard::of(&pair.client);
    let (_manager, inputs) = manager(&pair, RouteTable::default());
    let (near, far, _listener) = pair.connect();
    let token = token(&mut heard);
    inputs.tell(Input::Room(token, 1));
    let made = subflow(&mut heard, "10.2.0.1");
    assert_eq!(made.remote.ip(), ip("10.1.0.2"), "to where the connection goes");

    inputs.tell(Input::Lost(token, FlowKey { protocol: Protocol::Tcp, local: made.local, remote: made.remote }));
    closed(&mut heard, made);
    inputs.tell(Input::Room(token, 1));
    let again = heard.until("subflow made again", |event| match event {
        Event::SubflowEstablished(at) if at.subflow.local.ip() == ip("10.2.0.1") && at.subflow != made => {
            Some(at.subflow)
        }
        _ => None,
    });

    // The first flow can end too, as long as another lives, and come back from its address.
    let first = Subflow { local: near.local_addr().unwrap(), remote: near.peer_addr().unwrap() };
    inputs.tell(Input::Lost(token, FlowKey { protocol: Protocol::Tcp, local: first.local, remote: first.remote }));
    closed(&mut heard, first);
    inputs.tell(Input::Room(token, 1));
    heard.until("first address again", |event| match event {
        Event::SubflowEstablished(at) => (at.subflow.local.ip() == first.local.ip()).then_some(()),
        _ => None,
    });
    assert_eq!(again.remote, made.remote);
    say(near.try_clone().unwrap(), far.try_clone().unwrap());
    say(far, near);
}

#[test]
fn without_room_a_connection_keeps_its_one_flow() {
    let pair = Pair::new();
    prepared(&pair, PathManager::Userspace);
    let mut heard = Heard::of(&pair.client);
    let (manager, inputs) = manager(&pair, RouteTable::default());
    let streams = pair.connect();
    let first = token(&mut heard);
    inputs.tell(Input::Room(first, 0));
    // The manager does one thing after the other: when it has ended it has done what it was told.
    drop(manager);
    drop(streams);
    heard.until("end of the connection", |event| (*event == Event::Closed(first)).then_some(()));
    assert!(!heard.any(|event| matches!(event, Event::SubflowEstablished(_))));
}

#[test]
fn the_map_gives_a_connection_over_the_internet_subflows_by_every_egress() {
    let pair = Pair::new();
    prepared(&pair, PathManager::Userspace);
    let mut heard = Heard::of(&pair.client);
    let end = "1-ff00:0:120,10.1.0.2:31000".parse().unwrap();
    let target = Target { end, side: Side::Subflows };
    let routes = RouteTable::new(None, [("10.1.0.2/32".parse().unwrap(), None, Protocol::Tcp, target)]);
    let mut places = places(routes);
    // The first link is the internet now, and the second the only egress.
    places.egress.remove(0);
    let _manager = pair.client.run(|| Manager::start(places)).unwrap().unwrap();
    let (near, far, _listener) = pair.connect();
    assert_eq!(subflow(&mut heard, "10.2.0.1").remote, SocketAddr::new(ip("10.1.0.2"), PORT));
    say(near, far);
}

#[test]
fn the_kernels_own_path_manager_opens_subflows_from_every_egress() {
    let pair = Pair::new();
    let prepared = prepared(&pair, PathManager::Kernel);
    assert_eq!(prepared.clients.len(), 3, "limits, and an endpoint for each egress: {:?}", prepared.clients);
    let mut heard = Heard::of(&pair.client);
    let (near, far, _listener) = pair.connect();
    assert_eq!(subflow(&mut heard, "10.2.0.1").remote.ip(), ip("10.1.0.2"));
    say(near, far);
}

#[test]
fn without_mptcp_connections_have_one_path() {
    let namespace = Namespace::new("shim-none").unwrap();
    namespace.set_sysctl("mptcp/enabled", "0").unwrap();
    let prepared = namespace.run(|| prepare(PathManager::Userspace, &[])).unwrap();
    assert_eq!(prepared, Prepared { manager: None, clients: Vec::new(), servers: Vec::new() });
}
