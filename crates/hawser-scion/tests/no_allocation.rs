//! In steady state the calling thread allocates nothing: counted by the global allocator, per thread. Needs root.

#[path = "../../hawser-core/tests/support/allocations.rs"]
mod allocations;
mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use hawser_scion::EndpointAddr;
use hawser_scion::conn::threaded::{QueueOpts, ThreadedConn};
use hawser_scion::conn::{ConnOpts, PathTable, ScionConn, ScionSocket};
use hawser_scion::packet::{dispatched_port, parse};
use hawser_wire::Namespace;

use allocations::allocations_of;
use common::{control, datagram, down, path, template};

/// How long a packet may take.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

/// A connection and a socket at its other end, in one namespace.
fn both() -> (Namespace, ScionConn, ScionSocket) {
    let host = Namespace::new("scion").expect("this test makes network namespaces: run it as root");
    let on = |text: &str| {
        let isd_as = "1-ff00:0:110".parse().expect("an AS");
        ConnOpts::new(EndpointAddr::new(isd_as, text.parse().expect("an address")))
    };
    let table = || Arc::new(PathTable::default());
    let socket = host.run(|| ScionSocket::bind(on("127.0.0.2:0"), table())).expect("the namespace").expect("a socket");
    let to = socket.local();
    let conn = host.run(|| ScionConn::open(on("127.0.0.1:0"), to, table())).expect("the namespace");
    (host, conn.expect("a connection"), socket)
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(black_box(vec![1_u8; 9]))), 1);
    assert_eq!(allocations_of(|| ()), 0);
}

#[test]
fn connections_and_sockets_allocate_nothing_for_a_packet() {
    let (_host, conn, socket) = both();
    let mut payload = [0; 1500];
    let mut round = || {
        for size in [1200, 700, 1] {
            let sent = conn.send_batch(|batch| while batch.packets() < 100 && batch.copy(&payload[..size]).is_ok() {});
            let packets = sent.expect("send").packets;
            let mut got = 0;
            while got < packets {
                got += socket.recv_batch(PATIENCE, |_| ()).expect("receive");
            }
        }
        conn.send(b"one").expect("send");
        let (bytes, from) = socket.recv_from(&mut payload, PATIENCE).expect("receive");
        socket.send_to(&payload[..bytes], from).expect("send");
        assert_eq!(conn.recv(&mut payload, PATIENCE).expect("receive"), 3);
    };
    // The way back is learnt with the first packet.
    round();
    assert_eq!(allocations_of(|| (0..50).for_each(|_| round())), 0);
}

#[test]
fn callers_of_the_form_with_threads_allocate_nothing_for_a_packet() {
    let (_host, conn, socket) = both();
    let to = conn.local();
    let conn = ThreadedConn::new(conn, QueueOpts::default()).expect("threads");
    let mut payload = [0; 1500];
    let mut round = || {
        for _ in 0..300 {
            conn.send(&payload[..500]).expect("send");
        }
        let mut got = 0;
        while got < 300 {
            got += socket.recv_batch(PATIENCE, |_| ()).expect("receive");
        }
        socket.send_to(b"answer", to).expect("send");
        assert_eq!(conn.recv(&mut payload, PATIENCE).expect("receive"), 6);
    };
    round();
    assert_eq!(allocations_of(|| (0..50).for_each(|_| round())), 0);
}

#[test]
fn packets_are_written_and_read_without_allocation() {
    let template = template(&path(&[2, 3, 2], 0));
    let stride = template.headroom() + 1200;
    let mut run = vec![7; stride * 5 + template.headroom() + 10];
    let (echo, error) = (datagram(&path(&[2], 0), b"hello"), control(&down(&datagram(&path(&[2, 2], 1), b"quoted"))));
    let work = || {
        template.finish(&mut run[..stride]);
        template.finish_run(&mut run, stride);
        for bytes in run.chunks(stride).chain([&echo[..], &error]) {
            let packet = parse(bytes).expect("a packet");
            assert!(packet.verify_checksum() && dispatched_port(&packet).is_ok());
            black_box((packet.source(), packet.destination(), packet.upper(), packet.dataplane().expiry()));
        }
    };
    assert_eq!(allocations_of(work), 0);
}
