//! The form with threads and queues.

use std::time::{Duration, Instant};

use hawser_scion::conn::threaded::{QueueOpts, ThreadedConn};
use hawser_scion::conn::{ConnOpts, Pace, RecvError, SendError};

use crate::support::{PATIENCE, Pair, number_of, numbered, on, until};

#[test]
fn single_packets_leave_in_batches_and_arrive_in_order() {
    const PACKETS: u32 = 20_000;
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    let conn = ThreadedConn::new(conn, QueueOpts::default()).expect("threads");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..PACKETS {
                conn.send(&numbered(number, 200)).expect("send");
            }
        });
        let mut next = 0;
        while next < PACKETS {
            let got = socket.recv_batch(Some(PATIENCE), |datagram| {
                assert_eq!(number_of(datagram.payload), next);
                next += 1;
            });
            assert!(got.expect("receive") > 0, "waited in vain for packet {next}");
        }
        socket.send_to(b"answer", conn.get_ref().local()).expect("send");
        assert_eq!(conn.recv(&mut [0; 10], Some(PATIENCE)).expect("receive"), 6);
    });
    let none = conn.recv(&mut [0; 10], Some(Duration::from_millis(10)));
    assert!(matches!(none, Err(RecvError::TimedOut)), "{none:?}");
}

#[test]
fn a_full_queue_says_so_or_has_the_caller_wait() {
    let pair = Pair::new();
    // 100 ms for each packet, and so a batch has one.
    let pace = Some(Pace::bits_per_second(100_000));
    let (conn, _socket) = pair.both(|host| ConnOpts { pace, ..on(host) }, false);
    let queues = QueueOpts { send_batches: 3, ..QueueOpts::default() };
    let conn = ThreadedConn::new(conn, queues).expect("threads");
    let payload = [0; 1206];
    let mut queued = 0;
    let full = loop {
        match conn.try_send(&payload) {
            Ok(()) => queued += 1,
            Err(error) => break error,
        }
        assert!(queued < 100, "the queue has no end");
    };
    assert!(matches!(full, SendError::Full { .. }), "{full}");
    assert!(queued >= 3, "as many as there are batches: {queued}");
    let began = Instant::now();
    for _ in 0..4 {
        conn.send(&payload).expect("room in the end");
    }
    assert!(began.elapsed() > Duration::from_millis(250), "there was room: {:?}", began.elapsed());
}

#[test]
fn what_nobody_takes_is_dropped_and_counted() {
    const PACKETS: u64 = 500;
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    let local = conn.local();
    let queues = QueueOpts { receive_packets: 100, ..QueueOpts::default() };
    let conn = ThreadedConn::new(conn, queues).expect("threads");
    conn.send(b"hello").expect("send");
    socket.recv_from(&mut [0; 10], Some(PATIENCE)).expect("receive");
    for number in 0..PACKETS {
        socket.send_to(&numbered(number as u32, 100), local).expect("send");
    }
    until("all to come", || (conn.get_ref().stats().received_packets == PACKETS).then_some(()));
    let mut payload = [0; 100];
    let mut taken = 0;
    while conn.recv(&mut payload, Some(Duration::from_millis(50))).is_ok() {
        assert_eq!(u64::from(number_of(&payload)), taken, "the newest are dropped");
        taken += 1;
    }
    assert_eq!((taken, conn.dropped()), (50, PACKETS - 50), "half of the queue is the takers' side");
}

#[test]
fn dropping_the_connection_sends_what_waits() {
    let pair = Pair::new();
    let (conn, socket) = pair.both(on, false);
    let conn = ThreadedConn::new(conn, QueueOpts::default()).expect("threads");
    for number in 0..600 {
        conn.send(&numbered(number, 1000)).expect("send");
    }
    drop(conn);
    let mut next = 0;
    while next < 600 {
        let got = socket.recv_batch(Some(PATIENCE), |datagram| {
            assert_eq!(number_of(datagram.payload), next);
            next += 1;
        });
        assert!(got.expect("receive") > 0, "waited in vain for packet {next}");
    }
}
