//! The kernel's path manager, as it is: two namespaces joined by two links, and connections of MPTCP between them.

use std::net::SocketAddr;

use hawser_net::netcfg::NetConfigError;
use hawser_shim::kernel::{Change, Connected, EndpointFlags, Event, MptcpEndpoint, MptcpLimits, Subflows, userspace};
use hawser_shim::mptcp::{AddressId, Token};
use hawser_wire::Namespace;

use super::support::{Heard, PORT, Pair, endpoint, ip, manager, say, subflow};

fn established(heard: &mut Heard) -> Connected {
    heard.until("established connection", |event| match event {
        Event::Established(connected) => Some(*connected),
        _ => None,
    })
}

#[test]
fn endpoints_come_change_and_go() {
    let namespace = Namespace::new("shim-endpoints").unwrap();
    // An endpoint with a port of its own is listened at: its address must be there.
    namespace.add_address("lo", "fd00::9/128".parse().unwrap()).unwrap();
    let manager = manager(&namespace);
    assert_eq!(manager.endpoints().unwrap(), []);
    let first = endpoint("10.9.0.1", EndpointFlags::SUBFLOW | EndpointFlags::BACKUP);
    let second = MptcpEndpoint { port: Some(81), ..endpoint("fd00::9", EndpointFlags::SIGNAL) };
    let mesh = endpoint("10.9.0.3", EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH);
    for added in [first, second, mesh] {
        manager.add(&added).unwrap();
    }
    let there = manager.endpoints().unwrap();
    assert_eq!(there.iter().map(|(_, one)| *one).collect::<Vec<_>>(), [first, second, mesh]);
    let again = manager.add(&first).unwrap_err();
    assert_eq!(again.errno(), Some(libc::EEXIST), "{again}");
    manager.set_flags(there[0].0, &first, EndpointFlags::default()).unwrap();
    assert_eq!(manager.endpoints().unwrap()[0].1.flags, EndpointFlags::SUBFLOW, "a backup no more");
    assert!(manager.remove(&second).unwrap());
    assert!(!manager.remove(&second).unwrap(), "it is gone already");
    assert_eq!(manager.endpoints().unwrap().len(), 2);
    manager.flush().unwrap();
    assert_eq!(manager.endpoints().unwrap(), []);
}

#[test]
fn limits_are_set_and_too_large_ones_refused() {
    let namespace = Namespace::new("shim-limits").unwrap();
    let manager = manager(&namespace);
    let wanted = MptcpLimits { subflows: 8, accepted: 4 };
    manager.set_limits(wanted).unwrap();
    assert_eq!(manager.limits().unwrap(), wanted);
    let error = manager.set_limits(MptcpLimits { subflows: 4096, accepted: 0 }).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL), "{error}");
    assert_eq!(manager.limits().unwrap(), wanted);
}

#[test]
fn the_kernels_own_path_manager_opens_a_subflow_and_tells_of_it() {
    let pair = Pair::new();
    for namespace in [&pair.client, &pair.server] {
        manager(namespace).set_limits(MptcpLimits { subflows: 2, accepted: 2 }).unwrap();
    }
    manager(&pair.client).add(&endpoint("10.2.0.1", EndpointFlags::SUBFLOW)).unwrap();
    manager(&pair.server).add(&endpoint("10.2.0.2", EndpointFlags::SIGNAL)).unwrap();
    let [mut near, mut far] = [&pair.client, &pair.server].map(Heard::of);
    let streams = pair.connect();
    let ours = established(&mut near);
    let theirs = established(&mut far);
    assert_eq!((ours.is_server, theirs.is_server), (false, true));
    assert_eq!((ours.local, ours.remote), (theirs.remote, theirs.local));
    assert_eq!(ours.remote, SocketAddr::new(ip("10.1.0.2"), PORT));
    let announced = near.until("announced address", |event| match event {
        Event::Announced { token, address, .. } => Some((*token, *address)),
        _ => None,
    });
    assert_eq!(announced, (ours.token, SocketAddr::new(ip("10.2.0.2"), PORT)));
    assert_eq!(subflow(&mut far, "10.2.0.1").remote.ip(), ip("10.2.0.1"));
    drop(streams);
    for (heard, token) in [(&mut near, ours.token), (&mut far, theirs.token)] {
        heard.until("closed connection", |event| (*event == Event::Closed(token)).then_some(()));
    }
}

/// Puts connections of this namespace under a path manager in user space.
fn by_hand(namespace: &Namespace) {
    let change = namespace.run(userspace).unwrap().unwrap();
    let Change::Sysctl { key, value } = change else { panic!("{change} is no sysctl") };
    namespace.run(|| key.write(&value)).unwrap().unwrap();
}

#[test]
fn a_subflow_is_created_made_a_backup_and_destroyed_by_hand() {
    let pair = Pair::new();
    by_hand(&pair.client);
    manager(&pair.server).set_limits(MptcpLimits { subflows: 4, accepted: 4 }).unwrap();
    let [mut near, mut far] = [&pair.client, &pair.server].map(Heard::of);
    let (one, other, _listener) = pair.connect();
    let token = established(&mut near).token;
    let hand = pair.client.run(Subflows::open).unwrap().unwrap();
    let remote = SocketAddr::new(ip("10.2.0.2"), PORT);
    hand.create(token, AddressId(5), ip("10.2.0.1"), None, remote).unwrap();
    let made = subflow(&mut near, "10.2.0.1");
    assert_eq!(made.remote, remote);
    hand.set_backup(token, made.local, made.remote, true).unwrap();
    let backup = far.until("change of priority", |event| match event {
        Event::SubflowPriority(at) => Some((at.subflow.remote, at.backup)),
        _ => None,
    });
    assert_eq!(backup, (made.local, true));
    hand.destroy(token, made.local, made.remote).unwrap();
    let closed = near.until("closed subflow", |event| match event {
        Event::SubflowClosed(at, _) => Some(at.subflow),
        _ => None,
    });
    assert_eq!(closed, made);
    say(one, other);
}

#[test]
fn an_address_is_announced_and_removed_by_hand() {
    let pair = Pair::new();
    by_hand(&pair.client);
    let [mut near, mut far] = [&pair.client, &pair.server].map(Heard::of);
    let _streams = pair.connect();
    let (ours, theirs) = (established(&mut near).token, established(&mut far).token);
    let hand = pair.client.run(Subflows::open).unwrap().unwrap();
    hand.announce(ours, AddressId(3), ip("10.2.0.1"), None).unwrap();
    let told = far.until("announced address", |event| match event {
        Event::Announced { token, id, address, .. } => Some((*token, *id, *address)),
        _ => None,
    });
    assert_eq!((told.0, told.1, told.2.ip()), (theirs, AddressId(3), ip("10.2.0.1")));
    hand.remove(ours, AddressId(3)).unwrap();
    let gone = Event::Removed { token: theirs, id: AddressId(3) };
    far.until("removed address", |event| (*event == gone).then_some(()));
}

#[test]
fn an_unknown_connection_is_refused_with_what_was_tried() {
    let namespace = Namespace::new("shim-unknown").unwrap();
    let hand = namespace.run(Subflows::open).unwrap().unwrap();
    let error = hand.remove(Token(0xdead_beef), AddressId(1)).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    assert!(matches!(error, NetConfigError::Kernel { operation: "remove", .. }), "{error:?}");
    assert!(error.to_string().contains("address 1 of mptcp connection deadbeef"), "{error}");
}
