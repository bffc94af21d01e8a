//! TUN devices in network namespaces: trains read and written, and what the kernel refuses.

use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Namespace, PATIENCE, until};
use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Ecn, Link, RecvBatch, Route, SendBatch};
use hawser_net::tun::{
    Features, GsoKind, READ_BUFFER_BYTES, Received, Tun, TunError, TunOpts, VnetHdr, WriteOutcome, is_device_gone,
};
use rustix::event::{PollFd, PollFlags, poll};

/// A device named `tun0`, up, with the addresses 10.5.0.`host`/24 and fd05::`host`/64.
fn device(namespace: &Namespace, host: u8) -> Tun {
    let made = namespace.run(|| Tun::create("tun%d", &TunOpts::default()));
    let tun = made.expect("a device (this test needs root, and /dev/net/tun)");
    assert_eq!(tun.name(), "tun0");
    namespace.ip("link set tun0 up");
    namespace.address(&format!("10.5.0.{host}/24"), "tun0");
    namespace.address(&format!("fd05::{host}/64"), "tun0");
    tun
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// What went from one device to the other.
#[derive(Debug, Default)]
struct Seen {
    trains: Vec<Received>,
    refused: usize,
}

/// Writes to each of two devices what the other reads, until told to stop.
fn join(mut a: Tun, mut b: Tun, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    while !stop.load(Ordering::Relaxed) {
        let mut both =
            [PollFd::from_borrowed_fd(a.as_fd(), PollFlags::IN), PollFd::from_borrowed_fd(b.as_fd(), PollFlags::IN)];
        let tick = rustix::time::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        poll(&mut both, Some(&tick)).expect("poll");
        pump(&mut a, &mut b, &mut buffer, &mut seen);
        pump(&mut b, &mut a, &mut buffer, &mut seen);
    }
    seen
}

fn pump(from: &mut Tun, to: &mut Tun, buffer: &mut [u8], seen: &mut Seen) {
    while let Some(received) = from.read(buffer).expect("read") {
        if received.header.gso != GsoKind::None {
            seen.trains.push(received);
        }
        let packet = &buffer[..received.len];
        let (headers, payload) = packet.split_at(usize::from(received.header.hdr_len));
        let parts = [IoSlice::new(headers), IoSlice::new(payload)];
        let outcome = to.write(&received.header, &parts).expect("write");
        seen.refused += usize::from(outcome != WriteOutcome::Written);
    }
}

/// Runs `traffic` between two namespaces joined by two devices, and tells what crossed.
fn between_devices(traffic: impl FnOnce(&Namespace, &Namespace)) -> Seen {
    let (near, far) = (Namespace::new(), Namespace::new());
    let (a, b) = (device(&near, 1), device(&far, 2));
    assert!(a.findings().is_empty() && a.index() > 0);
    let features = a.features();
    assert!(features.checksum && features.tcp_segmentation && features.udp_segmentation);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let joined = thread::spawn(move || join(a, b, &stopped));
    traffic(&near, &far);
    stop.store(true, Ordering::Relaxed);
    joined.join().expect("the devices were joined")
}

#[test]
fn tcp_crosses_in_trains_both_ways_of_the_device() {
    for (listen, kind, headers) in
        [("10.5.0.2:5000", GsoKind::TcpV4, 20 + 32), ("[fd05::2]:5000", GsoKind::TcpV6, 40 + 32)]
    {
        const BULK: usize = 4 << 20;
        let seen = between_devices(|near, far| {
            let listen = address(listen);
            let listener = far.run(move || TcpListener::bind(listen)).expect("a listener");
            let mut stream = near.run(move || TcpStream::connect(listen)).expect("a stream");
            let (mut accepted, _) = listener.accept().expect("a stream");
            let received = thread::spawn(move || {
                let mut bytes = Vec::new();
                accepted.read_to_end(&mut bytes).map(|_| bytes)
            });
            let bulk: Vec<u8> = (0..BULK).map(|n| (n % 251) as u8).collect();
            stream.write_all(&bulk).expect("written");
            drop(stream);
            let bytes = received.join().expect("no panic").expect("received");
            assert!(bytes == bulk, "what was received is what was sent");
        });
        assert_eq!(seen.refused, 0);
        let longest = seen.trains.iter().map(|train| train.len).max();
        assert!(longest > Some(20_000), "{longest:?}");
        for Received { len, header } in seen.trains {
            assert_eq!((header.gso, header.needs_csum), (kind, true));
            assert_eq!(usize::from(header.hdr_len), headers);
            assert_eq!(usize::from(header.csum_start), headers - 32);
            assert_eq!(header.csum_offset, 16);
            assert!(len > headers + usize::from(header.gso_size));
            assert!(headers + usize::from(header.gso_size) <= 1500);
        }
    }
}

#[test]
fn udp_crosses_in_trains_both_ways_of_the_device() {
    for (here, there, headers) in [("10.5.0.1:0", "10.5.0.2:5000", 28), ("[fd05::1]:0", "[fd05::2]:5000", 48)] {
        let seen = between_devices(|near, far| {
            let mut sender = near.run(move || UdpLink::bind(UdpOpts::new(address(here)))).expect("a link");
            let mut receiver = far.run(move || UdpLink::bind(UdpOpts::new(address(there)))).expect("a link");
            let route = Route { remote: receiver.local_addr(), source: None, ecn: Ecn::NotEct };
            let mut batch = SendBatch::new();
            batch.push_run(route, 1200, 12_500, |room| room.len()).expect("room");
            let _ = sender.send(&mut batch).expect("send");
            let mut received = RecvBatch::new();
            let run = until(&mut receiver, "a train", |receiver| {
                receiver.recv(&mut received).expect("receive");
                received.runs().next().map(|run| (run.bytes.len(), run.segment_size))
            });
            assert_eq!(run, (12_500, 1200));
        });
        let [Received { len, header }] = seen.trains[..] else {
            panic!("one train crossed, not {:?}", seen.trains);
        };
        assert_eq!(len, headers + 12_500);
        let expected = VnetHdr {
            needs_csum: true,
            csum_start: headers as u16 - 8,
            csum_offset: 6,
            gso: GsoKind::UdpL4,
            gso_size: 1200,
            hdr_len: headers as u16,
        };
        assert_eq!(header, expected);
    }
}

/// Sum of 16-bit words, as in RFC 1071, not yet inverted.
fn sum(words: &[u8]) -> u16 {
    let words = words.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let total: u32 = words.sum();
    let folded = (total & 0xffff) + (total >> 16);
    (folded + (folded >> 16)) as u16
}

/// IPv4 and UDP headers from 10.5.0.2:7 to 10.5.0.1:`port`, the UDP checksum left to be completed.
fn udp_headers(port: u16, payload: usize) -> [u8; 28] {
    let (source, destination) = ([10, 5, 0, 2], [10, 5, 0, 1]);
    let udp_len = (8 + payload) as u16;
    let mut headers = [0; 28];
    headers[0] = 0x45;
    headers[2..4].copy_from_slice(&(20 + udp_len).to_be_bytes());
    headers[8] = 64;
    headers[9] = 17;
    headers[12..16].copy_from_slice(&source);
    headers[16..20].copy_from_slice(&destination);
    let checksum = !sum(&headers[..20]);
    headers[10..12].copy_from_slice(&checksum.to_be_bytes());
    headers[20..22].copy_from_slice(&7_u16.to_be_bytes());
    headers[22..24].copy_from_slice(&port.to_be_bytes());
    headers[24..26].copy_from_slice(&udp_len.to_be_bytes());
    let mut pseudo = [0; 12];
    pseudo[..4].copy_from_slice(&source);
    pseudo[4..8].copy_from_slice(&destination);
    pseudo[9] = 17;
    pseudo[10..].copy_from_slice(&udp_len.to_be_bytes());
    headers[26..28].copy_from_slice(&sum(&pseudo).to_be_bytes());
    headers
}

fn partial(gso: GsoKind, gso_size: u16) -> VnetHdr {
    VnetHdr {
        needs_csum: true,
        csum_start: 20,
        csum_offset: 6,
        gso,
        gso_size,
        hdr_len: if gso == GsoKind::None { 0 } else { 28 },
    }
}

#[test]
fn a_train_made_by_hand_reaches_a_local_socket() {
    let host = Namespace::new();
    let mut tun = device(&host, 1);
    let mut socket = host.run(|| UdpLink::bind(UdpOpts::new(address("10.5.0.1:0")))).expect("a link");
    let port = socket.local_addr().port();
    for (payload, segment, gso) in
        [(vec![7_u8; 900], 900, GsoKind::None), ((0..30_000).map(|n| n as u8).collect(), 1000, GsoKind::UdpL4)]
    {
        let headers = udp_headers(port, payload.len());
        // As many parts as a coalescer would write: headers, and each segment by itself.
        let mut parts = vec![IoSlice::new(&headers)];
        parts.extend(payload.chunks(segment).map(IoSlice::new));
        let header = partial(gso, segment as u16);
        let outcome = tun.write(&header, &parts).expect("write");
        assert_eq!(outcome, WriteOutcome::Written);
        let mut batch = RecvBatch::new();
        let bytes = until(&mut socket, "the train", |socket| {
            socket.recv(&mut batch).expect("receive");
            let run = batch.runs().next()?;
            assert_eq!((run.remote, run.segment_size), (address("10.5.0.2:7"), segment));
            Some(run.bytes.to_vec())
        });
        assert!(bytes == payload, "{gso:?}");
    }
}

#[test]
fn what_the_kernel_refuses_is_an_outcome() {
    let host = Namespace::new();
    let mut tun = device(&host, 1);
    let headers = udp_headers(9, 4);
    let whole = [IoSlice::new(&headers), IoSlice::new(b"four")];
    let beyond = VnetHdr { csum_start: 4000, ..partial(GsoKind::None, 0) };
    let no_packet = [IoSlice::new(b"\x00\x00")];
    for (name, header, parts) in [
        ("checksum beyond the end", beyond, &whole[..]),
        ("no ip version", VnetHdr::default(), &no_packet[..]),
        ("train without size", partial(GsoKind::UdpL4, 0), &whole[..]),
    ] {
        let outcome = tun.write(&header, parts).expect("write");
        assert_eq!(outcome, WriteOutcome::Refused, "{name}");
    }
    host.ip("link set tun0 down");
    let outcome = tun.write(&partial(GsoKind::None, 0), &whole).expect("write");
    assert_eq!(outcome, WriteOutcome::Down);
    let error = tun.read(&mut [0; 2000]).expect_err("a short buffer");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let many = vec![IoSlice::new(&headers); 200];
    let error = tun.write(&VnetHdr::default(), &many).expect_err("too many parts");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn an_idle_device_has_nothing_and_a_deleted_one_is_gone() {
    let host = Namespace::new();
    let mut tun = device(&host, 1);
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    while tun.read(&mut buffer).expect("read").is_some() {}
    assert_eq!(tun.read(&mut buffer).expect("read"), None);
    assert_eq!(tun.malformed(), 0);
    host.ip("link del tun0");
    let error = tun.read(&mut buffer).expect_err("no device");
    assert!(is_device_gone(&error), "{error}");
    let error = tun.write(&VnetHdr::default(), &[IoSlice::new(&[0x45; 20])]).expect_err("no device");
    assert!(is_device_gone(&error), "{error}");
}

#[test]
fn a_device_without_offloads_brings_finished_packets() {
    let host = Namespace::new();
    let opts = TunOpts { features: Features::default() };
    let made = host.run(move || Tun::create("tun0", &opts));
    let mut tun = made.expect("a device (this test needs root, and /dev/net/tun)");
    assert_eq!(tun.features(), Features::default());
    host.ip("link set tun0 up");
    host.address("10.5.0.1/24", "tun0");
    let mut link = host.run(|| UdpLink::bind(UdpOpts::new(address("10.5.0.1:0")))).expect("a link");
    let route = Route { remote: address("10.5.0.2:5000"), source: None, ecn: Ecn::NotEct };
    let mut batch = SendBatch::new();
    batch.push_run(route, 1000, 4000, |room| room.len()).expect("room");
    let _ = link.send(&mut batch).expect("send");
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    for _ in 0..4 {
        let received = until(&mut tun, "a packet", |tun| {
            // The host's own multicasts may come between.
            let received = tun.read(&mut buffer).expect("read")?;
            (received.len == 1028).then_some(received)
        });
        assert_eq!(received.header, VnetHdr::default());
    }
}

#[test]
fn a_taken_name_is_an_error() {
    let host = Namespace::new();
    let tun = device(&host, 1);
    let error = host.run(|| Tun::create("tun0", &TunOpts::default())).expect_err("taken");
    assert!(matches!(error, TunError::InUse { .. }), "{error}");
    let error = host.run(|| Tun::create("lo", &TunOpts::default())).expect_err("taken");
    assert!(matches!(error, TunError::InUse { .. }), "{error}");
    drop(tun);
    // A child of another test has the descriptor too, between its fork and exec.
    let end = Instant::now() + PATIENCE;
    while let Err(error) = host.run(|| Tun::create("tun0", &TunOpts::default())) {
        assert!(Instant::now() < end, "{error}");
        thread::sleep(Duration::from_millis(10));
    }
}
