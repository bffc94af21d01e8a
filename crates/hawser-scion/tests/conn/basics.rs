//! Packets of all shapes, by all calls.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hawser_scion::conn::{
    AsyncConn, AsyncSocket, Carried, ConnOpts, Finding, OpenError, Pace, PathTable, PortRange, PushError, RecvError,
    RouteError, ScionConn, ScionSocket, SendError, TcpPackets,
};
use hawser_scion::packet::{FlowId, Template};
use hawser_scion::{Dataplane, EndpointAddr};

use crate::support::{PATIENCE, Pair, SIX_HOURS, here, in_as, number_of, numbered, on, path, until};

/// Receives `count` numbered payloads, in order; the longest run of one length is not looked at.
fn receive_all(socket: &ScionSocket, count: u32, bytes: usize) -> EndpointAddr {
    let (mut next, mut from) = (0, None);
    while next < count {
        let got = socket.recv_batch(Some(PATIENCE), |datagram| {
            assert_eq!((number_of(datagram.payload), datagram.payload.len()), (next, bytes));
            assert_eq!(*from.get_or_insert(datagram.source), datagram.source);
            next += 1;
        });
        assert!(got.expect("receive") > 0, "waited in vain for packet {next}");
    }
    from.expect("packets came")
}

#[test]
fn batches_arrive_whole_and_are_answered_over_both_families_in_trains_and_one_by_one() {
    let pair = Pair::new();
    for v6 in [false, true] {
        for trains in [true, false] {
            let (conn, socket) = pair.both(|host| ConnOpts { trains, ..on(host) }, v6);
            for bytes in [4, 700, 1200, conn.max_payload()] {
                let mut next = 0;
                while next < 300 {
                    let sent = conn.send_batch(|batch| {
                        while next < 300 && batch.copy(&numbered(next, bytes)).is_ok() {
                            next += 1;
                        }
                    });
                    assert!(sent.expect("send").packets > 0);
                }
                assert_eq!(receive_all(&socket, 300, bytes), conn.local());
            }
            socket.send_to(b"answer", conn.local()).expect("send");
            let mut answer = [0; 16];
            assert_eq!(conn.recv(&mut answer, Some(PATIENCE)).expect("receive"), 6);
            assert_eq!(&answer[..6], b"answer");
            let (ours, theirs) = (conn.stats(), socket.stats());
            assert_eq!((ours.sent_packets, theirs.received_packets), (1200, 1200));
            assert_eq!((theirs.malformed, theirs.bad_checksum, ours.refused_packets), (0, 0, 0));
        }
    }
}

#[test]
fn a_payload_longer_than_the_path_takes_is_refused_with_the_maximum() {
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    assert_eq!(conn.max_payload(), 1472 - 12 - 24 - 8, "Ethernet, without the headers");
    let error = conn.send(&[0; 1429]).expect_err("too long");
    assert!(matches!(error, SendError::TooLong { bytes: 1429, max: 1428, .. }), "{error}");
    let _ = conn
        .send_batch(|batch| {
            assert_eq!(batch.copy(&[0; 1429]), Err(PushError::TooLong { bytes: 1429, max: 1428 }));
            assert_eq!(batch.push(3, |payload| payload.fill(7)), Ok(()));
        })
        .expect("the rest goes");
    let mut payload = [0; 2];
    let short = socket.recv_from(&mut payload, Some(PATIENCE));
    assert!(matches!(short, Err(RecvError::TooShort { bytes: 3, room: 2 })), "{short:?}");
    let mut payload = [0; 3];
    assert_eq!(socket.recv_from(&mut payload, Some(PATIENCE)).expect("again").0, 3);
    assert_eq!(payload, [7; 3]);
    let none = socket.recv_from(&mut payload, Some(Duration::from_millis(20)));
    assert!(matches!(none, Err(RecvError::TimedOut)), "{none:?}");
}

#[test]
fn a_packet_of_somebody_else_for_another_port_or_changed_on_the_way_is_counted_and_passed_over() {
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    let stranger = pair.socket(&pair.far, on("10.9.0.2:0"));
    stranger.send_to(b"hello", conn.local()).expect("send");
    let raw = pair.far.run(|| UdpSocket::bind("10.9.0.2:0")).expect("the namespace").expect("a socket");
    let send_raw = |to: EndpointAddr, change: usize| {
        let template = Template::new(socket.local(), to, &Dataplane::Empty, FlowId::default()).expect("a template");
        let mut packet = vec![5; template.headroom() + 100];
        template.finish(&mut packet);
        if change > 0 {
            packet[change] ^= 1;
        }
        raw.send_to(&packet, conn.local().host).expect("send");
    };
    send_raw(here("10.9.0.1:9"), 0);
    send_raw(in_as("1-ff00:0:111", &conn.local().host.to_string()), 0);
    send_raw(conn.local(), 80);
    send_raw(conn.local(), 5);
    send_raw(conn.local(), 0);
    let mut payload = [0; 1500];
    assert_eq!(conn.recv(&mut payload, Some(PATIENCE)).expect("the good one"), 100);
    let stats = conn.stats();
    assert_eq!((stats.strangers, stats.misdirected, stats.bad_checksum, stats.malformed), (1, 2, 1, 1), "{stats:?}");
}

#[test]
fn segments_of_tcp_come_to_those_sockets_that_take_them_whatever_their_port() {
    let pair = Pair::new();
    let main = pair.socket(&pair.far, on("10.9.0.2:0"));
    let taking = |tcp| pair.socket(&pair.far, ConnOpts { tcp, ..on("10.9.0.2:0") });
    let [taken, only] = [TcpPackets::Taken, TcpPackets::Only].map(taking);
    for again in [false, true] {
        let mut segment = numbered(5, 1000);
        (segment[0], segment[1], segment[2], segment[3], segment[12]) = (0x7a, 0xbc, 0x1f, 0x90, 5 << 4);
        for (socket, tcp, datagram) in [(&main, 0, 1), (&taken, 40, 1), (&only, 40, 0)] {
            let conn = pair.conn(&pair.near, on("10.9.0.1:0"), socket.local(), Arc::new(PathTable::default()));
            let sent = conn.send_batch(|batch| {
                let max = batch.max_payload() + 8;
                let too_long = Err(PushError::TooLong { bytes: max + 1, max });
                assert_eq!(batch.copy_tcp(&vec![0; max + 1], 0), too_long);
                (0..40).for_each(|_| batch.copy_tcp(&segment, u8::from(again)).expect("room"));
                batch.copy(b"datagram").expect("room");
            });
            assert_eq!(sent.expect("send").packets, 41);
            let (mut seen, begun) = ([0, 0], Instant::now());
            while seen != [tcp, datagram] || begun.elapsed() < Duration::from_millis(50) {
                assert!(begun.elapsed() < PATIENCE, "{seen:?}");
                let _ = socket.recv_batch(Some(Duration::from_millis(50)), |datagram| match datagram.carried {
                    Carried::Tcp => {
                        assert_eq!((datagram.source.host.port(), datagram.payload.len()), (0x7abc, 1000));
                        assert_eq!(
                            (&datagram.payload[..16], &datagram.payload[18..]),
                            (&segment[..16], &segment[18..])
                        );
                        assert_eq!(datagram.packet.header().traffic_class(), u8::from(again));
                        seen[0] += 1;
                    }
                    Carried::Udp => {
                        assert_eq!((datagram.source, datagram.payload), (conn.local(), &b"datagram"[..]));
                        seen[1] += 1;
                    }
                });
            }
            assert_eq!(seen, [tcp, datagram]);
        }
        assert_eq!((main.stats().misdirected, only.stats().misdirected), if again { (80, 2) } else { (40, 1) });
    }
}

#[test]
fn a_segment_that_was_changed_or_cut_short_is_counted() {
    let pair = Pair::new();
    let socket = pair.socket(&pair.far, ConnOpts { tcp: TcpPackets::Taken, ..on("10.9.0.2:0") });
    let raw = pair.near.run(|| UdpSocket::bind("10.9.0.1:0")).expect("the namespace").expect("a socket");
    let template = Template::new(here("10.9.0.1:1"), socket.local(), &Dataplane::Empty, FlowId::default());
    let template = template.expect("a template");
    let mut packet = vec![0; template.tcp_headroom() + 30];
    template.finish_tcp(&mut packet, 0);
    let mut changed = packet.clone();
    changed[60] ^= 1;
    let mut cut = packet[..template.tcp_headroom() + 19].to_vec();
    cut[7] = 19;
    for bytes in [&changed, &cut, &packet] {
        raw.send_to(bytes, socket.local().host).expect("send");
    }
    let mut taken = 0;
    until("the whole one", || {
        let _ = socket.recv_batch(Some(Duration::from_millis(50)), |_| taken += 1);
        (taken > 0).then_some(())
    });
    let stats = socket.stats();
    assert_eq!((taken, stats.bad_checksum, stats.malformed), (1, 1, 1), "{stats:?}");
}

#[test]
fn checksums_are_not_looked_at_when_that_is_switched_off() {
    let pair = Pair::new();
    let (conn, socket) = pair.both(|host| ConnOpts { verify: false, ..on(host) }, false);
    let template =
        Template::new(socket.local(), conn.local(), &Dataplane::Empty, FlowId::default()).expect("a template");
    let mut packet = vec![5; template.headroom() + 100];
    template.finish(&mut packet);
    packet[80] ^= 1;
    let raw = pair.far.run(|| UdpSocket::bind("10.9.0.2:0")).expect("the namespace").expect("a socket");
    raw.send_to(&packet, conn.local().host).expect("send");
    assert_eq!(conn.recv(&mut [0; 1500], Some(PATIENCE)).expect("receive"), 100);
}

#[test]
fn several_threads_send_and_receive_on_one_connection() {
    const THREADS: u32 = 4;
    const EACH: u32 = 2000;
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    let seen = std::sync::Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (conn, seen, socket) = (&conn, &seen, &socket);
            scope.spawn(move || {
                let mut own = conn.sender().expect("a sender");
                for number in thread * EACH..(thread + 1) * EACH {
                    let payload = numbered(number, 100);
                    // Half of them through the lock that all share.
                    if thread % 2 == 0 {
                        conn.send(&payload).expect("send");
                    } else {
                        let _ = own.send_batch(|batch| batch.copy(&payload).expect("room")).expect("send");
                    }
                }
            });
            scope.spawn(move || {
                let all = (THREADS * EACH) as usize;
                while seen.lock().expect("no panic").len() < all {
                    let got = socket.recv_batch(Some(Duration::from_millis(500)), |datagram| {
                        assert!(seen.lock().expect("no panic").insert(number_of(datagram.payload)), "received twice");
                    });
                    got.expect("receive");
                }
            });
        }
    });
    assert_eq!(seen.into_inner().expect("no panic"), (0..THREADS * EACH).collect());
}

#[test]
fn a_socket_answers_along_the_path_a_packet_came_by() {
    let pair = Pair::new();
    // No router between them: the packet comes with its path as it was sent.
    let server = pair.socket(&pair.far, ConnOpts::new(in_as("1-ff00:0:120", "10.9.0.2:31001")));
    let client = here("10.9.0.1:31000");
    let unknown = server.send_to(b"?", client).expect_err("no way to it yet");
    assert!(matches!(unknown, SendError::Route(RouteError::NoPath { .. })), "{unknown}");
    let table = PathTable::default();
    table.set(server.local().isd_as, vec![path(7, server.local().host, SIX_HOURS)]);
    let conn = pair.conn(&pair.near, ConnOpts::new(client), server.local(), Arc::new(table));
    for round in 0..3_u8 {
        conn.send(&[round; 10]).expect("send");
        let mut payload = [0; 100];
        let (bytes, from) = server.recv_from(&mut payload, Some(PATIENCE)).expect("receive");
        assert_eq!((bytes, from), (10, client));
        server.send_to(&payload[..bytes], from).expect("send");
        let mut back = Vec::new();
        conn.recv_batch(Some(PATIENCE), |datagram| {
            back = datagram.payload.to_vec();
            let there = path(7, server.local().host, SIX_HOURS).dataplane;
            let (came, went) = (datagram.packet.dataplane().as_bytes(), there.as_bytes());
            // Two hops, the other way round.
            assert_eq!((&came[12..24], &came[24..36]), (&went[24..36], &went[12..24]));
        })
        .expect("receive");
        assert_eq!(back, [round; 10]);
    }
}

#[test]
fn a_socket_that_is_told_to_learns_no_way_back_and_can_answer_all_the_same() {
    let pair = Pair::new();
    let server = pair.socket(&pair.far, ConnOpts::new(in_as("1-ff00:0:120", "10.9.0.2:31001")));
    let client = here("10.9.0.1:31000");
    let way = path(7, server.local().host, SIX_HOURS);
    let along = || ScionConn::along(ConnOpts::new(client), server.local(), &way);
    let conn = pair.near.run(along).expect("the namespace").expect("a connection");
    for learns in [false, true] {
        conn.send(b"probe").expect("send");
        until("the packet", || {
            let got = server.try_recv_batch_if(|datagram| {
                server.answer(datagram, b"answer").expect("answer");
                learns
            });
            (got.expect("receive") > 0).then_some(())
        });
        let mut answer = [0; 100];
        let bytes = conn.recv(&mut answer, Some(PATIENCE)).expect("an answer");
        assert_eq!(&answer[..bytes], b"answer");
        assert_eq!(server.max_payload(client).is_ok(), learns, "a way is known where it was learned");
    }
    assert!(server.flush().expect("nothing is left over"));
}

#[test]
fn a_wrong_address_is_told_when_the_socket_is_opened() {
    let pair = Pair::new();
    let open = |opts: ConnOpts| {
        let open = || ScionSocket::bind(opts, Arc::new(PathTable::default()));
        pair.near.run(open).expect("the namespace").expect_err("refused")
    };
    assert!(matches!(open(on("0.0.0.0:0")), OpenError::Unspecified { .. }));
    assert!(matches!(open(ConnOpts::new(in_as("1-0", "10.9.0.1:0"))), OpenError::Unspecified { .. }));
    assert!(matches!(open(on("10.9.0.9:0")), OpenError::Link(_)));
    let to = |destination: EndpointAddr| {
        let open = || ScionConn::open(on("10.9.0.1:0"), destination, Arc::new(PathTable::default()));
        pair.near.run(open).expect("the namespace").expect_err("no way").to_string()
    };
    assert_eq!(to(in_as("1-0", "10.9.0.2:1")), "send to 1-0,10.9.0.2:1: 1-0 is no single AS");
    assert!(to(in_as("1-2", "10.9.0.2:1")).contains("no path to 1-2"));
}

#[test]
fn a_port_of_the_dispatched_range_is_taken_and_another_is_told_of() {
    let pair = Pair::new();
    let dispatched = Some(PortRange { first: 31_000, last: 31_001 });
    let opts = |host: &str| ConnOpts { dispatched, ..on(host) };
    let first = pair.socket(&pair.near, opts("10.9.0.1:0"));
    let second = pair.socket(&pair.near, opts("10.9.0.1:0"));
    let ports = BTreeSet::from([first.local().host.port(), second.local().host.port()]);
    assert_eq!(ports, BTreeSet::from([31_000, 31_001]));
    let full = || ScionSocket::bind(opts("10.9.0.1:0"), Arc::new(PathTable::default()));
    let full = pair.near.run(full).expect("the namespace").expect_err("no port is free");
    assert!(full.to_string().ends_with("no port from 31000 to 31001 is free"), "{full}");
    let outside = pair.socket(&pair.near, opts("10.9.0.1:4920"));
    let finding = Finding::NotDispatched { port: 4920, first: 31_000, last: 31_001 };
    assert!(outside.findings().contains(&finding), "{:?}", outside.findings());
    assert!(!first.findings().contains(&finding));
}

#[test]
fn a_pace_is_kept() {
    let pair = Pair::new();
    let pace = Some(Pace::bits_per_second(80_000_000));
    let (conn, socket) = pair.both(|host| ConnOpts { pace, ..on(host) }, false);
    let began = std::time::Instant::now();
    let mut packets = 0;
    while packets < 2000 {
        packets += conn.send_batch(|batch| while batch.copy(&[1; 956]).is_ok() {}).expect("send").packets;
    }
    // 2000 packets of 1000 bytes take 0.2 s; a busy machine may be slower.
    assert!(began.elapsed() >= Duration::from_millis(190), "{:?}", began.elapsed());
    let mut got = 0;
    while got < packets {
        let more = socket.recv_batch(Some(PATIENCE), |_| ()).expect("receive");
        assert!(more > 0, "lost some of {packets}");
        got += more;
    }
}

#[test]
fn nobody_there_is_told_by_the_kernel() {
    let pair = Pair::new();
    let conn = pair.conn(&pair.near, on("10.9.0.1:0"), here("10.9.0.2:9"), Arc::new(PathTable::default()));
    conn.send(b"?").expect("send");
    let event = until("an event", || {
        conn.recv_batch(Some(Duration::from_millis(50)), |_| ()).expect("receive");
        conn.next_event()
    });
    assert!(format!("{event:?}").contains("PortClosed"), "{event:?}");
    conn.send(b"?").expect("the socket works on");
}

#[test]
fn tasks_of_a_runtime_wait_without_a_thread() {
    let pair = Pair::new();
    let dispatched = None;
    let (conn, socket) = pair.both(|host| ConnOpts { dispatched, send_buffer: 20_000, ..on(host) }, false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let conn = AsyncConn::new(conn).expect("a watched connection");
        let socket = AsyncSocket::new(socket).expect("a watched socket");
        let send = async {
            let mut next = 0;
            while next < 2000 {
                let sent = conn.send_batch(|batch| {
                    while next < 2000 && batch.copy(&numbered(next, 1200)).is_ok() {
                        next += 1;
                    }
                });
                assert!(!sent.await.expect("send").left_over);
                tokio::task::yield_now().await;
            }
            let mut answer = [0; 8];
            assert_eq!(conn.recv(&mut answer).await.expect("receive"), 4);
        };
        let receive = async {
            let mut next = 0;
            let mut payload = [0; 1500];
            // One by one: what was received in one go is handed out without the descriptor's help.
            while next < 1000 {
                let (bytes, _) = socket.recv_from(&mut payload).await.expect("receive");
                assert_eq!(number_of(&payload[..bytes]), next);
                next += 1;
            }
            while next < 2000 {
                let received = socket.recv_batch(|datagram| {
                    assert_eq!(number_of(datagram.payload), next);
                    next += 1;
                });
                received.await.expect("receive");
            }
            socket.send_to(b"done", conn.get_ref().local()).await.expect("send");
        };
        let both = async { tokio::join!(send, receive) };
        tokio::time::timeout(PATIENCE, both).await.expect("in time");
    });
}
