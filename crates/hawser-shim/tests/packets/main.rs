//! Two packet threads with TUN devices and SCION sockets, and the kernel's TCP between them.

mod host;
mod udp;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hawser_scion::conn::PortRange;
use hawser_shim::engine::{Drop, Notice};
use hawser_shim::flow::{Direction, Role};
use hawser_shim::translate::Layer4;
use socket2::{Domain, Protocol, Socket, Type};

use host::{Host, PATIENCE, pair, pair_over};

/// A socket of MPTCP or TCP, with CUBIC: the kernel's default here is another.
fn socket(address: SocketAddr, protocol: Protocol) -> Socket {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol)).unwrap();
    socket.set_tcp_congestion(b"cubic").unwrap();
    socket
}

fn listen(host: &Host, address: SocketAddr, protocol: Protocol) -> TcpListener {
    let bind = || {
        let socket = socket(address, protocol);
        socket.set_reuse_address(true).unwrap();
        socket.bind(&address.into()).unwrap();
        socket.listen(64).unwrap();
        TcpListener::from(socket)
    };
    host.namespace.run(bind).unwrap()
}

fn connect(host: &Host, address: SocketAddr, protocol: Protocol) -> std::io::Result<TcpStream> {
    let open = || {
        let socket = socket(address, protocol);
        socket.connect_timeout(&address.into(), PATIENCE)?;
        Ok(TcpStream::from(socket))
    };
    host.namespace.run(open).unwrap()
}

/// Sends this many bytes and has the other end count what is right of them; says how long it took.
fn transfer(mut from: TcpStream, mut to: TcpStream, bytes: usize) -> Duration {
    let began = Instant::now();
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    let block: Vec<u8> = (0..1 << 18).map(|at: usize| (at % 251) as u8).collect();
    let expected = block.clone();
    let reader = std::thread::spawn(move || {
        let mut read = vec![0; expected.len()];
        for _ in 0..bytes / expected.len() {
            to.read_exact(&mut read).unwrap();
            assert!(read == expected, "what arrives is what was sent");
        }
    });
    for _ in 0..bytes / block.len() {
        from.write_all(&block).unwrap();
    }
    reader.join().unwrap();
    began.elapsed()
}

#[test]
fn tcp_and_mptcp_cross_both_ways_and_leave_nothing() {
    const BYTES: usize = 32 << 20;
    let [near, far] = pair();
    for (port, v6, protocol) in
        [(7000, true, Protocol::TCP), (7001, false, Protocol::TCP), (7002, true, Protocol::MPTCP)]
    {
        let address = far.server(v6, port);
        let listener = listen(&far, address, protocol);
        let client = connect(&near, address, protocol).unwrap();
        let (server, _) = listener.accept().unwrap();
        let up = transfer(client.try_clone().unwrap(), server.try_clone().unwrap(), BYTES);
        let down = transfer(server, client, BYTES);
        let gbit = |took: Duration| (BYTES * 8) as f64 / took.as_secs_f64() / 1e9;
        println!("{protocol:?} over {address}: {:.2} Gbit/s up, {:.2} down", gbit(up), gbit(down));
        let opened = near.until("flow", |notice| match notice {
            Notice::Opened(opened) => Some(opened.clone()),
            _ => None,
        });
        assert_eq!((opened.key.remote, opened.asked), (address, Direction::Out));
        assert_eq!(opened.role == Role::Main, protocol == Protocol::MPTCP);
        for host in [&near, &far] {
            let (sent, received) = host.until("end of the flow", |notice| match notice {
                Notice::Closed { sent, received, .. } => Some((*sent, *received)),
                _ => None,
            });
            assert!(sent >= BYTES as u64 && received >= BYTES as u64, "{sent} sent, {received} received");
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while near.snapshot().counters.freed < 3 || far.snapshot().counters.freed < 3 {
        assert!(Instant::now() < deadline, "flows are freed");
        std::thread::sleep(Duration::from_millis(100));
    }
    for host in [near, far] {
        let snapshot = host.snapshot();
        println!("{:?}", snapshot.counters.drops().filter(|(_, count)| *count > 0).collect::<Vec<_>>());
        assert_eq!(snapshot.connections, []);
        host.handle.stop().unwrap();
    }
}

#[test]
fn with_tcp_as_layer_4_segments_come_to_the_shims_port_and_to_the_dispatchers() {
    const BYTES: usize = 8 << 20;
    // A shim's port that is not dispatched is reached by the dispatcher's, inside the AS as by a router.
    for dispatched in [None, Some(PortRange { first: 32_000, last: 32_100 })] {
        let [near, far] = pair_over(Layer4::Tcp, dispatched);
        let listener = listen(&far, "[::]:7000".parse().unwrap(), Protocol::MPTCP);
        for (v6, protocol) in [(true, Protocol::TCP), (false, Protocol::TCP), (true, Protocol::MPTCP)] {
            let client = connect(&near, far.server(v6, 7000), protocol).unwrap();
            let (server, _) = listener.accept().unwrap();
            transfer(client.try_clone().unwrap(), server.try_clone().unwrap(), BYTES);
            transfer(server, client, BYTES);
        }
        for host in [near, far] {
            let counters = host.snapshot().counters;
            let wrong = [Drop::Layer4, Drop::Damaged, Drop::Implausible, Drop::Malformed, Drop::Foreign];
            assert_eq!(wrong.map(|why| counters.dropped(why)), [0; 5]);
            host.handle.stop().unwrap();
        }
    }
}

#[test]
fn what_leads_nowhere_fails_at_once() {
    let [near, _far] = pair();
    let began = Instant::now();
    let refused = connect(&near, "[fc00::1]:80".parse().unwrap(), Protocol::TCP).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable), "{refused}");
    let refused = connect(&near, "100.64.77.0:80".parse().unwrap(), Protocol::TCP).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(near.snapshot().counters.dropped(Drop::NoRoute), 2);
}
