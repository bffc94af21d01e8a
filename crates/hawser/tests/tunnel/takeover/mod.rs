//! A client behind the local portal has the remote portal's own address, by which the tunnel goes too: one interface,
//! one address.

mod reach;
mod stays;
mod undo;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use hawser_portal::api::PathState;
use hawser_wire::Namespace;
use rustix::process::Signal;

use crate::home::{HUB, Home, WORLD, run};
use crate::lab::{LINKS, Portal, ms, parse, states};
use crate::talk::{bound, talk};

/// How long anything may take to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is waited for what must not come.
const SILENCE: Duration = Duration::from_millis(500);
const SSH: u16 = 22;
/// Of a service that only the client has.
const SERVICE: u16 = 8080;
const LOCAL_LAN: [&str; 2] = ["192.168.8.1", "fd08::1"];

/// The home, with the remote portal's addresses at the client and nothing else of its own there.
fn home(tag: &str) -> Home {
    let home = Home::new(tag);
    home.edit("local.toml", "default_route = true\n[gateway]\nserve = [\"lan0\"]\n", "");
    home.edit("remote.toml", "[nat]\nmasquerade = \"eth0\"\n", "");
    take_over(&home);
    home
}

fn take_over(home: &Home) {
    let [v4, v6] = HUB;
    let addresses = format!("[takeover]\naddress = [\"{v4}\", \"{v6}\"]\n");
    home.edit("local.toml", "[[peer]]", &format!("{addresses}interface = \"lan0\"\n[[peer]]"));
    home.edit("remote.toml", "[[peer]]", &format!("{addresses}[[peer]]"));
    home.edit("remote.toml", "\"10.77.0.2/32\"", &format!("\"10.77.0.2/32\", \"{v4}/32\", \"{v6}/128\""));
    run(&home.client, "ip", "addr flush dev lan0 scope global");
    for ((address, router), (length, family)) in HUB.into_iter().zip(LOCAL_LAN).zip([(32, "-4"), (128, "-6")]) {
        home.client.add_address("lan0", parse(&format!("{address}/{length}"))).expect("an address");
        run(&home.client, "ip", &format!("{family} route replace {router} dev lan0"));
        run(&home.client, "ip", &format!("{family} route replace default via {router} dev lan0"));
    }
}

/// The client and the world reach each other, by the client's own address.
fn assert_client_and_world_talk(home: &Home) {
    for (hub, world) in HUB.into_iter().zip(WORLD) {
        assert_eq!(talk(&home.client, &home.world, world), hub, "the world knows the client by its own address");
        assert_eq!(talk(&home.world, &home.client, hub), world, "the client knows the world by its own");
    }
}

/// Somebody who says `name` to who calls.
fn service(namespace: &Namespace, address: &str, port: u16, name: &'static str) {
    let address = SocketAddr::new(parse(address), port);
    let listener = bound(namespace, || TcpListener::bind(address));
    // It ends with the test.
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(name.as_bytes());
        }
    });
}

/// What a caller is told; an error where nobody answers.
fn call(from: &Namespace, address: &str, port: u16, patience: Duration) -> std::io::Result<String> {
    let address = SocketAddr::new(parse(address), port);
    let mut stream = from.run(|| TcpStream::connect_timeout(&address, patience)).expect("the namespace")?;
    stream.set_read_timeout(Some(patience))?;
    let mut told = String::new();
    stream.read_to_string(&mut told)?;
    Ok(told)
}

fn end(portals: [&mut Portal; 2]) {
    for portal in portals {
        portal.signal(Signal::TERM);
        assert!(portal.wait().success(), "{}", portal.log());
    }
}

/// A connection that nothing has been said on: the caller's side, then the other's.
fn connection(from: &Namespace, to: &Namespace, address: &str) -> [TcpStream; 2] {
    let address = SocketAddr::new(parse(address), 9000);
    let listener = bound(to, || TcpListener::bind(address));
    let ours = from.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("the namespace");
    [ours.expect("a connection"), listener.accept().expect("a call").0]
}

/// It lives: the one that was called speaks first.
fn exchange([ours, theirs]: &mut [TcpStream; 2]) {
    for (from, to) in [(&*theirs, &*ours), (&*ours, &*theirs)] {
        let (mut from, mut to) = (from, to);
        from.write_all(b"still there?").expect("it is sent");
        to.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        to.read_exact(&mut [0; 12]).expect("an older connection lives on");
    }
}
