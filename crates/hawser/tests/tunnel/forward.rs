//! Ports of the remote portal's address that lead to the client behind the local one.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use crate::home::{CLIENT, HUB, Home, WORLD, run};
use crate::talk::{tcp_by, udp_by};

/// One port to another, and some that keep their numbers.
const FORWARDS: &str = "[[forward]]\nport = 8080\nprotocols = [\"tcp\", \"udp\"]\nto = \"192.168.8.2:80\"\n\
    [[forward]]\nport = \"6000-6010\"\nprotocols = [\"tcp\", \"udp\"]\nto = \"fd08::2\"\n";
/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn at(host: &str, port: u16) -> SocketAddr {
    SocketAddr::new(host.parse().expect("an address"), port)
}

fn forwarding(home: &Home, forwards: &str) {
    home.edit("remote.toml", "[nat]\nmasquerade = \"eth0\"\n", &format!("[nat]\nmasquerade = \"eth0\"\n{forwards}"));
}

#[test]
fn who_calls_a_forwarded_port_reaches_the_client_and_is_known_by_his_own_address() {
    let home = Home::new("fwd");
    let before = home.footprints();
    forwarding(&home, FORWARDS);
    let (mut local, mut remote) = home.start_both();
    let ways = [(at(HUB[0], 8080), at(CLIENT[0], 80), WORLD[0]), (at(HUB[1], 6004), at(CLIENT[1], 6004), WORLD[1])];
    for (called, there, caller) in ways {
        let caller: IpAddr = caller.parse().expect("an address");
        assert_eq!(tcp_by(&home.world, &home.client, called, there), caller, "tcp to {called}");
        assert_eq!(udp_by(&home.world, &home.client, called, there), caller, "udp to {called}");
    }
    // What is not forwarded does not get in, and the portal's own port is its own.
    let refused = home.world.run(|| TcpStream::connect_timeout(&at(HUB[0], 81), PATIENCE)).expect("the namespace");
    assert!(refused.is_err(), "another port");
    let other = home.world.run(|| TcpStream::connect_timeout(&at(HUB[1], 8080), PATIENCE)).expect("the namespace");
    assert!(other.is_err(), "the port of the other IP version");
    for portal in [&mut local, &mut remote] {
        portal.signal(Signal::TERM);
        assert!(portal.wait().success(), "{}", portal.log());
    }
    home.assert_same(&before, "after both were told to end");
}

/// Says something, and hears it from the other end.
fn echo(caller: &mut TcpStream, called: &mut TcpStream, what: &[u8]) {
    let mut heard = vec![0; what.len()];
    caller.write_all(what).expect("it can be said");
    called.read_exact(&mut heard).expect("it is heard");
    called.write_all(&heard).expect("it can be answered");
    caller.read_exact(&mut heard).expect("the answer is heard");
    assert_eq!(heard, what);
}

#[test]
fn a_reload_adds_and_removes_forwards_and_keeps_connections() {
    let home = Home::new("fwdr");
    forwarding(&home, FORWARDS);
    let (_local, remote) = home.start_both();
    let listener =
        home.client.run(|| TcpListener::bind(at(CLIENT[0], 80))).expect("the namespace").expect("a listener");
    let connect = || home.world.run(|| TcpStream::connect_timeout(&at(HUB[0], 8080), PATIENCE)).expect("the namespace");
    let mut caller = connect().expect("a connection");
    let (mut called, _) = listener.accept().expect("it comes");
    for stream in [&caller, &called] {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    }
    echo(&mut caller, &mut called, b"before");
    // Another port leads there, and the old one nowhere.
    home.edit("remote.toml", "port = 8080", "port = 8081");
    remote.signal(Signal::HUP);
    remote.wait_for_log("configuration read again: changed sections=\"forward\"");
    assert!(run(&home.remote, "nft", "list ruleset").contains("dport 8081"));
    echo(&mut caller, &mut called, b"after the reload");
    let there = at(CLIENT[0], 80);
    drop(listener);
    let caller_of = |port| udp_by(&home.world, &home.client, at(HUB[0], port), there).to_string();
    assert_eq!(caller_of(8081), WORLD[0]);
    assert!(connect().is_err(), "what was forwarded is not any more");
    echo(&mut caller, &mut called, b"and goes on");
}
