//! TUN devices that tell packets apart by their marks, in network namespaces: which queue takes what.

use std::io::{IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::support::{Namespace, PATIENCE};
use hawser_net::netcfg::{Mark, MarkMatch};
use hawser_net::tun::{
    GsoKind, READ_BUFFER_BYTES, Received, Tun, TunError, TunOpts, VnetHdr, WriteOutcome, is_device_gone,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use socket2::SockRef;

const ALL: u32 = u32::MAX;
/// The queues of the tests: 0 takes the one mark, 1 all marks with a 2 in the third digit.
const MARKS: [(u32, u32); 2] = [(0x10, ALL), (0x200, 0xf00)];
/// A look at the queues takes so long at most, in nanoseconds.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

fn marks() -> Vec<MarkMatch> {
    MARKS.map(|(mark, mask)| MarkMatch { mark: Mark(mark), mask }).to_vec()
}

/// A device `tun0` with the queues of the tests, or a plain one; up, with the addresses 10.5.0.`host`/24 and
/// fd05::`host`/64.
fn device(namespace: &Namespace, host: u8, marks: Vec<MarkMatch>) -> Tun {
    let made = namespace.run(move || Tun::create_marked("tun%d", &TunOpts::default(), &marks));
    let tun = made.expect("a device (this test needs root, and /dev/net/tun)");
    assert_eq!(tun.name(), "tun0");
    assert!(tun.findings().is_empty() && tun.features().udp_segmentation, "it has every offload");
    namespace.ip("link set tun0 up");
    namespace.address(&format!("10.5.0.{host}/24"), "tun0");
    namespace.address(&format!("fd05::{host}/64"), "tun0");
    tun
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Waits a moment for any queue, then reads all of them: `None` is what bears none of the marks.
fn look(tun: &mut Tun, mut seen: impl FnMut(Option<usize>, Received, &[u8])) {
    let mut queues = vec![PollFd::new(&*tun, PollFlags::IN)];
    queues.extend(tun.marked().map(|(_, queue)| PollFd::from_borrowed_fd(queue, PollFlags::IN)));
    poll(&mut queues, Some(&GLANCE)).expect("poll");
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    let places = tun.marked().len();
    for queue in [None].into_iter().chain((0..places).map(Some)) {
        loop {
            let received = match queue {
                None => tun.read(&mut buffer),
                Some(place) => tun.read_marked(place, &mut buffer),
            };
            let Some(received) = received.expect("read") else { break };
            seen(queue, received, &buffer[..received.len]);
        }
    }
}

/// The queue by which the packet comes whose payload is this.
fn queue_of(tun: &mut Tun, payload: &[u8]) -> Option<usize> {
    let end = Instant::now() + PATIENCE;
    let mut found = None;
    while found.is_none() {
        assert!(Instant::now() < end, "waited in vain for {payload:?}");
        // The host's own multicasts may come between.
        look(tun, |queue, _, packet| {
            if packet.ends_with(payload) {
                found = Some(queue);
            }
        });
    }
    found.expect("it was waited for")
}

#[test]
fn a_marked_packet_comes_by_the_queue_of_its_mark() {
    let host = Namespace::new();
    let mut tun = device(&host, 1, marks());
    assert!(tun.marked().map(|(mark, _)| mark).eq(marks()));
    let table = [
        (0, None),
        (0x10, Some(0)),
        (0x11, None),
        (0x8000_0010, None),
        (0x200, Some(1)),
        (0xffff_f2ff, Some(1)),
        (0x300, None),
    ];
    for (from, to) in [("10.5.0.1:0", "10.5.0.2:7"), ("[fd05::1]:0", "[fd05::2]:7")] {
        for (mark, queue) in table {
            let payload = format!("mark {mark:#x} to {to}").into_bytes();
            let sent = payload.clone();
            host.run(move || {
                let socket = UdpSocket::bind(address(from)).expect("a socket");
                SockRef::from(&socket).set_mark(mark).expect("a mark");
                socket.send_to(&sent, address(to)).expect("send");
            });
            assert_eq!(queue_of(&mut tun, &payload), queue, "mark {mark:#x} to {to}");
        }
    }
    assert_eq!(tun.malformed(), 0);
}

#[test]
fn a_packet_that_nftables_marked_on_its_way_through_comes_by_the_queue_of_its_mark() {
    let (client, host) = (Namespace::new(), Namespace::new());
    client.veth("v0", "10.1.0.1/24", &host, "v1", "10.1.0.2/24");
    client.ip("route add default via 10.1.0.2");
    let mut tun = device(&host, 1, marks());
    // A thread sees its own namespace's half of /proc/sys/net.
    host.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).expect("forwarding");
    let rules = "add table inet t; add chain inet t forward { type filter hook forward priority 0; }; \
                 add rule inet t forward udp dport 16 meta mark set 0x10; \
                 add rule inet t forward udp dport 512 meta mark set meta mark or 0x200";
    let said = host.run(move || Command::new("nft").arg(rules).output().expect("nft runs (package nftables)"));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    for (port, queue) in [(16, Some(0)), (512, Some(1)), (9, None)] {
        let payload = format!("to port {port}").into_bytes();
        let sent = payload.clone();
        client.run(move || {
            let socket = UdpSocket::bind(address("10.1.0.1:0")).expect("a socket");
            socket.send_to(&sent, ("10.5.0.2", port)).expect("send");
        });
        assert_eq!(queue_of(&mut tun, &payload), queue, "port {port}");
    }
}

/// Writes to each of two devices what the other reads; what came of trains from the first, and by which queues.
fn join(mut a: Tun, mut b: Tun, stop: &AtomicBool) -> Vec<(Option<usize>, Received)> {
    let mut trains = Vec::new();
    let pass_on = |to: &mut Tun, header: &VnetHdr, packet: &[u8]| {
        let outcome = to.write(header, &[IoSlice::new(packet)]).expect("write");
        assert_eq!(outcome, WriteOutcome::Written);
    };
    while !stop.load(Ordering::Relaxed) {
        look(&mut a, |queue, received, packet| {
            if received.header.gso != GsoKind::None {
                trains.push((queue, received));
            }
            pass_on(&mut b, &received.header, packet);
        });
        look(&mut b, |_, received, packet| pass_on(&mut a, &received.header, packet));
    }
    trains
}

#[test]
fn a_marked_stream_comes_in_trains_by_the_queue_of_its_mark() {
    for (listen, mark, queue, kind) in [
        ("10.5.0.2:5000", 0x10, Some(0), GsoKind::TcpV4),
        ("[fd05::2]:5000", 0x2ff, Some(1), GsoKind::TcpV6),
        ("10.5.0.2:5000", 0x20, None, GsoKind::TcpV4),
    ] {
        const BULK: usize = 1 << 20;
        let (near, far) = (Namespace::new(), Namespace::new());
        let (a, b) = (device(&near, 1, marks()), device(&far, 2, Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let joined = thread::spawn(move || join(a, b, &stopped));
        let listen = address(listen);
        let listener = far.run(move || TcpListener::bind(listen)).expect("a listener");
        let connected = near.run(move || {
            let socket = socket2::Socket::new(socket2::Domain::for_address(listen), socket2::Type::STREAM, None)?;
            socket.set_mark(mark)?;
            socket.connect(&listen.into())?;
            Ok::<_, std::io::Error>(TcpStream::from(socket))
        });
        let mut stream = connected.expect("a stream");
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
        stop.store(true, Ordering::Relaxed);
        let trains = joined.join().expect("the devices were joined");
        assert!(
            trains.iter().all(|(by, train)| (*by, train.header.gso) == (queue, kind)),
            "mark {mark:#x}: {trains:?}"
        );
        let longest = trains.iter().map(|(_, train)| train.len).max();
        assert!(longest > Some(10_000), "{longest:?}");
    }
}

#[test]
fn a_device_with_queues_for_marks_is_taken_and_goes_as_any_other() {
    let host = Namespace::new();
    let mut tun = device(&host, 1, marks());
    let again = |marks: Vec<MarkMatch>| host.run(move || Tun::create_marked("tun0", &TunOpts::default(), &marks));
    for more in [marks(), Vec::new()] {
        let error = again(more).expect_err("taken");
        assert!(matches!(error, TunError::InUse { .. }), "{error}");
    }
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    assert_eq!(tun.read_marked(1, &mut buffer).expect("read"), None);
    host.ip("link del tun0");
    let error = tun.read_marked(1, &mut buffer).expect_err("no device");
    assert!(is_device_gone(&error), "{error}");
    drop(tun);
    // A child of another test has the descriptors too, between its fork and exec.
    let end = Instant::now() + PATIENCE;
    while let Err(error) = again(marks()) {
        assert!(Instant::now() < end, "{error}");
        thread::sleep(std::time::Duration::from_millis(10));
    }
}
