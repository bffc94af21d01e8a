//! TCP links: streams come, carry records, are full, break, and prove themselves or end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::links::{Got, address, assert_numbered, numbered, receive, to};
use crate::support::{Namespace, PATIENCE};
use hawser_net::link::tcp::{StreamNews, TcpLink, TcpOpts};
use hawser_net::link::{Link, LinkError, RecvBatch, Refusal, Route, SendBatch};

fn opts(local: &str, listens: bool) -> TcpOpts {
    let (congestion, tls_name) = (Some("cubic".to_owned()), None);
    TcpOpts {
        local: address(local),
        interface: None,
        mark: None,
        listens,
        congestion,
        tls: false,
        tls_name,
        sizes: 1..=1480,
    }
}

fn open(host: &Namespace, opts: TcpOpts) -> TcpLink {
    host.run(|| TcpLink::bind(opts)).expect("a link")
}

/// What a link received and told within a moment.
#[derive(Default)]
struct Seen {
    got: Vec<Got>,
    news: Vec<StreamNews>,
}

/// Serves both links until this holds.
fn serve(links: [&mut TcpLink; 2], what: &str, mut holds: impl FnMut(&[Seen; 2]) -> bool) -> [Seen; 2] {
    let (end, mut seen, mut batch) = (Instant::now() + PATIENCE, [Seen::default(), Seen::default()], RecvBatch::new());
    let [one, two] = links;
    while !holds(&seen) {
        assert!(Instant::now() < end, "waited in vain for {what}");
        for (link, seen) in [&mut *one, &mut *two].into_iter().zip(&mut seen) {
            link.on_timer();
            loop {
                link.recv(&mut batch).expect("receive");
                for run in batch.runs() {
                    let (remote, local, ecn) = (run.remote, run.local, run.ecn);
                    seen.got.extend(run.singles().map(|bytes| Got { remote, local, ecn, bytes: bytes.to_vec() }));
                }
                if !link.has_more() {
                    break;
                }
            }
            seen.news.extend(std::iter::from_fn(|| link.news()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    seen
}

/// Two links with a stream from the first to the second, over loopback; the address of the second as the first calls
/// it.
fn joined(host: &Namespace, tls: bool) -> (TcpLink, TcpLink, SocketAddr) {
    let mut listening = open(host, TcpOpts { tls, ..opts("127.0.0.1:4920", true) });
    let calling = open(host, TcpOpts { tls, ..opts("127.0.0.1:0", false) });
    let remote = listening.local_addr();
    let mut calling = call(host, calling, remote);
    serve([&mut calling, &mut listening], "a stream", |seen| seen[0].news.contains(&StreamNews::Up(remote)));
    (calling, listening, remote)
}

/// Asks for room, and so calls.
fn call(host: &Namespace, mut link: TcpLink, remote: SocketAddr) -> TcpLink {
    host.run(move || {
        assert!(!link.has_room(remote));
        link
    })
}

#[test]
fn records_cross_both_ways_whole_and_in_order_plain_and_inside_tls() {
    for tls in [false, true] {
        let host = Namespace::new();
        let (mut a, mut b, remote) = joined(&host, tls);
        let outcome = a.send(&mut numbered(to(remote), 100, 1400)).expect("send");
        assert_eq!(outcome.sent_bytes, 140_000, "what the socket does not take, the link keeps");
        let _ = a.send(&mut numbered(to(remote), 3, 60)).expect("send");
        let seen = serve([&mut a, &mut b], "datagrams", |seen| seen[1].got.len() >= 103);
        assert_numbered(&seen[1].got[..100], 100, 1400);
        assert_numbered(&seen[1].got[100..], 3, 60);
        assert!(seen[0].news.iter().any(|news| matches!(news, StreamNews::Room(room) if room.room > 0)));
        let back = Route { remote: seen[1].got[0].remote, ..to(remote) };
        assert!(b.has_room(back.remote));
        let _ = b.send(&mut numbered(back, 50, 1480)).expect("send");
        let seen = serve([&mut a, &mut b], "answers", |seen| seen[0].got.len() >= 50);
        assert_numbered(&seen[0].got, 50, 1480);
        assert_eq!(seen[0].got[0].remote, remote);
    }
}

#[test]
fn a_full_stream_has_no_room_until_the_other_side_reads() {
    let host = Namespace::new();
    let (mut a, mut b, remote) = joined(&host, false);
    let mut sent = 0;
    while a.has_room(remote) {
        let _ = a.send(&mut numbered(to(remote), 40, 1400)).expect("send");
        sent += 40;
        assert!(sent < 100_000, "the other side's kernel takes no more than its buffer");
        while a.news().is_some() {}
    }
    let roomy = |news: &StreamNews| matches!(news, StreamNews::Room(room) if room.room > 0);
    let seen = serve([&mut a, &mut b], "all datagrams and room", |seen| {
        seen[1].got.len() >= sent && seen[0].news.last().is_some_and(roomy)
    });
    assert_eq!(seen[1].got.len(), sent);
    assert!(a.has_room(remote));
}

#[test]
fn a_stream_that_breaks_is_told_of_and_what_was_for_it_is_refused() {
    let host = Namespace::new();
    let (mut a, b, remote) = joined(&host, false);
    drop(b);
    let mut other = open(&host, opts("127.0.0.2:4920", true));
    let down = |seen: &[Seen; 2]| seen[0].news.contains(&StreamNews::Down(remote));
    serve([&mut a, &mut other], "the stream to break", down);
    let mut batch: SendBatch = numbered(to(remote), 2, 100);
    let _ = a.send(&mut batch).expect("send");
    assert_eq!((batch.is_empty(), batch.failures()[0].reason), (true, Refusal::Broken));
    // It is called again, and answered once somebody listens.
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    // Not at once: the last call was a moment ago.
    std::thread::sleep(Duration::from_millis(300));
    let mut a = call(&host, a, remote);
    serve([&mut a, &mut b], "a new stream", |seen| seen[0].news.contains(&StreamNews::Up(remote)));
}

#[test]
fn a_malformed_record_ends_the_stream_after_those_before_it() {
    let host = Namespace::new();
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    let mut idle = open(&host, opts("127.0.0.1:0", false));
    for bad in [[0, 0], [5, 201]] {
        let mut stream = host.run(|| TcpStream::connect("127.0.0.1:4920")).expect("a connection");
        stream.write_all(&[&[0, 2, 7, 7, 0, 1, 9][..], &bad].concat()).expect("it is taken");
        let seen = serve([&mut idle, &mut b], "datagrams and the end", |seen| {
            seen[1].news.iter().any(|news| matches!(news, StreamNews::Down(_)))
        });
        let got: Vec<_> = seen[1].got.iter().map(|got| got.bytes.clone()).collect();
        assert_eq!(got, [vec![7, 7], vec![9]]);
        let mut rest = Vec::new();
        // Reset, where the kernel still had something unread.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
}

#[test]
fn a_record_may_come_in_pieces() {
    let host = Namespace::new();
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    let mut idle = open(&host, opts("127.0.0.1:0", false));
    let mut stream = host.run(|| TcpStream::connect("127.0.0.1:4920")).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    for (piece, datagrams) in [(&[0][..], 0), (&[3, 1], 0), (&[2], 0), (&[3, 0, 1, 8, 0], 2), (&[1, 9], 1)] {
        stream.write_all(piece).expect("it is taken");
        std::thread::sleep(Duration::from_millis(20));
        let mut rounds = 0;
        let seen = serve([&mut idle, &mut b], "a piece", |seen| {
            rounds += 1;
            seen[1].got.len() >= datagrams && rounds > 5
        });
        assert_eq!(seen[1].got.len(), datagrams, "{piece:?}");
    }
}

#[test]
fn a_stranger_that_writes_without_pause_is_read_once_and_others_have_their_turn() {
    const CALLS_MAX: usize = 10;
    let host = Namespace::new();
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    let mut stream = host.run(|| TcpStream::connect("127.0.0.1:4920")).expect("a connection");
    let records = [&[0, 26][..], &[7; 26]].concat().repeat(40_000);
    let stranger = std::thread::spawn(move || while stream.write_all(&records).is_ok() {});
    let (end, mut batch, mut got) = (Instant::now() + PATIENCE, RecvBatch::new(), 0);
    while got < 8 << 20 {
        assert!(Instant::now() < end, "waited in vain for a flood: {got} bytes");
        let mut calls = 0;
        loop {
            b.recv(&mut batch).expect("receive");
            (got, calls) = (got + batch.bytes_held(), calls + 1);
            if !b.has_more() {
                break;
            }
            assert!(calls < CALLS_MAX, "it goes on for as long as the stranger does");
        }
        // More than one look takes is there again.
        std::thread::sleep(Duration::from_millis(1));
    }
    // The stream is reset, and so the stranger ends.
    drop(b);
    stranger.join().expect("the stranger did not panic");
}

#[test]
fn what_a_stream_brought_beyond_a_batch_is_told_of_by_the_descriptor() {
    let host = Namespace::new();
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    let mut stream = host.run(|| TcpStream::connect("127.0.0.1:4920")).expect("a connection");
    // Each longer than the one before: each is a run.
    let records: Vec<u8> = (1..=100_u8).flat_map(|size| [vec![0, size], vec![size; size.into()]].concat()).collect();
    stream.write_all(&records).expect("it is taken");
    let (got, _) = receive(&mut b, 100);
    assert!((1..=100).eq(got.iter().map(|got| got.bytes.len())), "{got:?}");
    assert!(!b.has_more());
}

#[test]
fn what_tls_opened_does_not_wait_for_more_to_come() {
    let host = Namespace::new();
    let (mut a, mut b, remote) = joined(&host, true);
    // Among them are some that are a little more than one look takes of a stream.
    for count in 40..72 {
        let _ = a.send(&mut numbered(to(remote), count, 1400)).expect("send");
        let seen = serve([&mut a, &mut b], "all that was sent", |seen| seen[1].got.len() >= count);
        assert_numbered(&seen[1].got, count, 1400);
        b.prove(seen[1].got[0].remote);
    }
}

#[test]
fn only_so_many_wait_for_their_proof_and_only_so_long() {
    let host = Namespace::new();
    let mut b = open(&host, opts("127.0.0.1:4920", true));
    let mut idle = open(&host, opts("127.0.0.1:0", false));
    let connect = || host.run(|| TcpStream::connect("127.0.0.1:4920")).expect("a connection");
    let mut proven = connect();
    proven.write_all(&[0, 1, 7]).expect("it is taken");
    let seen = serve([&mut idle, &mut b], "a datagram", |seen| !seen[1].got.is_empty());
    b.prove(seen[1].got[0].remote);
    let start = Instant::now();
    let waiting: Vec<_> = (0..hawser_net::link::tcp::PENDING_MAX + 1).map(|_| connect()).collect();
    let ended = |stream: &TcpStream| {
        stream.set_nonblocking(true).expect("an option");
        !matches!((&*stream).read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let mut count = 0;
    serve([&mut idle, &mut b], "one too many to end", |_| {
        count = waiting.iter().filter(|stream| ended(stream)).count();
        count > 0
    });
    assert_eq!(count, 1);
    serve([&mut idle, &mut b], "all to end", |_| waiting.iter().all(ended));
    let lived = start.elapsed();
    assert!(lived > Duration::from_millis(1_900) && lived < PATIENCE, "{lived:?}");
    assert!(!ended(&proven), "a stream that proved itself stays");
}

#[test]
fn a_link_that_cannot_be_opened_says_why() {
    let host = Namespace::new();
    let _taken = host.run(|| TcpListener::bind("127.0.0.1:4920")).expect("a listener");
    let error = host.run(|| TcpLink::bind(opts("127.0.0.1:4920", true))).expect_err("it is taken");
    assert!(matches!(error, LinkError::Bind { .. }), "{error}");
    let unknown = TcpOpts { congestion: Some("nobodys".to_owned()), ..opts("127.0.0.1:0", false) };
    let error = host.run(|| TcpLink::bind(unknown)).expect_err("no such congestion control");
    assert!(matches!(error, LinkError::Congestion { .. }), "{error}");
    let nowhere = TcpOpts { interface: Some("nowhere".to_owned()), ..opts("127.0.0.1:0", false) };
    let error = host.run(|| TcpLink::bind(nowhere)).expect_err("no such interface");
    assert!(matches!(error, LinkError::NoInterface { .. }), "{error}");
}
