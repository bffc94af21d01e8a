//! Conversations between two namespaces: both sides speak, and the one that is called says by which address it was.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use hawser_wire::traffic::Ping;

use crate::lab::ms;

/// Said by each side over TCP, in bytes: many windows' worth of full segments.
const SPEECH: usize = 2 << 20;
/// How long a side may be silent on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(10);
const PORT: u16 = 7000;
/// A datagram is said again after this time.
const AGAIN: Duration = Duration::from_millis(200);
const DATAGRAM: &[u8] = b"are you there?";

/// A socket bound in a namespace. Where its address is in use, it waits for it: a child that another test is just starting
/// has this process's sockets, the last one of that address too, until it runs its program.
pub fn bound<T: Send>(namespace: &Namespace, bind: impl Fn() -> io::Result<T> + Sync) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match namespace.run(&bind).expect("the namespace") {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < end => sleep(GLANCE),
            socket => return socket.expect("a socket"),
        }
    }
}

/// All protocols; gives the address by which `to` knows `from`, which is the same for all.
pub fn talk(from: &Namespace, to: &Namespace, destination: &str) -> String {
    let destination: IpAddr = destination.parse().expect("it is written in the test");
    let report = Ping { from: from.clone(), destination, interval: ms(20), duration: ms(300) }.run().expect("a ping");
    assert!(
        report.lost() == 0 && !report.echoes.is_empty(),
        "ping {destination}: {} of {}",
        report.lost(),
        report.sent.len()
    );
    let heard = [tcp(from, to, destination), udp(from, to, destination)];
    assert_eq!(heard[0], heard[1], "tcp and udp to {destination}");
    heard[0].to_string()
}

/// Both sides send at once as much as they can.
pub fn tcp(from: &Namespace, to: &Namespace, destination: IpAddr) -> IpAddr {
    let address = SocketAddr::new(destination, PORT);
    tcp_by(from, to, address, address)
}

/// The same, where who calls `address` is led to `there`.
pub fn tcp_by(from: &Namespace, to: &Namespace, address: SocketAddr, there: SocketAddr) -> IpAddr {
    let listener = bound(to, || TcpListener::bind(there));
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (stream, peer) = accept(&listener);
            speak(&stream, "the one that is called");
            peer.ip()
        });
        let stream = from.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("the namespace");
        speak(&stream.unwrap_or_else(|error| panic!("call {address}: {error}")), "the caller");
        server.join().expect("no panic")
    })
}

fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    listener.set_nonblocking(true).expect("a listener");
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((stream, peer)) => {
                stream.set_nonblocking(false).expect("a stream");
                return (stream, peer);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(GLANCE),
            Err(error) => panic!("accept: {error}"),
        }
        assert!(Instant::now() < end, "nobody calls");
    }
}

fn speak(stream: &TcpStream, who: &str) {
    rustix::net::sockopt::set_tcp_congestion(stream, "cubic").expect("the kernel has cubic");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut to, speech) = (stream, vec![7; SPEECH]);
            to.write_all(&speech).unwrap_or_else(|error| panic!("{who} speaks: {error}"));
            to.shutdown(Shutdown::Write).expect("it has spoken");
        });
        let (mut from, mut heard) = (stream, Vec::new());
        from.read_to_end(&mut heard).unwrap_or_else(|error| panic!("{who} has heard {} bytes: {error}", heard.len()));
        assert_eq!(heard.len(), SPEECH, "{who}");
    });
}

/// A question and its answer.
pub fn udp(from: &Namespace, to: &Namespace, destination: IpAddr) -> IpAddr {
    let address = SocketAddr::new(destination, PORT);
    udp_by(from, to, address, address)
}

/// The same, where who asks at `address` is led to `there`.
pub fn udp_by(from: &Namespace, to: &Namespace, address: SocketAddr, there: SocketAddr) -> IpAddr {
    let destination = address.ip();
    let any = |port| SocketAddr::new(if destination.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, port);
    let bind = |namespace: &Namespace, address: SocketAddr, wait| {
        let socket = bound(namespace, || UdpSocket::bind(address));
        socket.set_read_timeout(Some(wait)).expect("a timeout");
        socket
    };
    let server = bind(to, there, PATIENCE);
    let client = bind(from, any(0), AGAIN);
    thread::scope(|scope| {
        let answering = scope.spawn(move || {
            let (length, peer) = server.recv_from(&mut [0; 64]).expect("a question");
            server.send_to(&DATAGRAM[..length], peer).expect("an answer");
            peer.ip()
        });
        let end = Instant::now() + PATIENCE;
        loop {
            client.send_to(DATAGRAM, address).expect("it is sent");
            if client.recv(&mut [0; 64]).is_ok_and(|length| length == DATAGRAM.len()) || answering.is_finished() {
                return answering.join().expect("no panic");
            }
            assert!(Instant::now() < end, "no answer from {address}");
        }
    })
}
