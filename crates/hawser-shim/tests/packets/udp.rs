//! UDP by the kernel's sockets: questions and answers, trains, and what both cost.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use hawser_shim::engine::Drop;
use hawser_shim::flow::{self, State};

use socket2::Protocol;

use super::host::{Host, PATIENCE, pair};
use super::{connect, listen, transfer};

/// Data of a datagram, and of a train of them (udp(7), `UDP_SEGMENT`: 64 at most).
const DATAGRAM: usize = 1200;
const TRAIN: usize = DATAGRAM * 40;
/// Questions whose round trips are looked at.
const QUESTIONS: usize = 400;
/// `SOL_UDP` and `UDP_SEGMENT`. Source: linux/udp.h.
const SOL_UDP: i32 = 17;
const UDP_SEGMENT: i32 = 103;

/// A socket that is bound to no address, of this one's IP version, at this port.
fn any(host: &Host, like: SocketAddr, port: u16) -> UdpSocket {
    let any = if like.is_ipv6() { "[::]" } else { "0.0.0.0" };
    let socket = host.namespace.run(|| UdpSocket::bind(format!("{any}:{port}"))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Has the kernel cut what is sent into datagrams, as late as it can.
fn cut(socket: &UdpSocket) {
    let size = DATAGRAM as libc::c_int;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value is an integer of the length that is said.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), SOL_UDP, UDP_SEGMENT, (&raw const size).cast(), len) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Answers what comes until nothing does for long, whoever asks.
fn echo(socket: UdpSocket) -> std::thread::JoinHandle<()> {
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..len], from).unwrap();
        }
    })
}

/// The median round trip.
fn median(client: &UdpSocket) -> Duration {
    let mut buffer = [0; 64];
    let mut times: Vec<Duration> = (0..QUESTIONS)
        .map(|_| {
            let began = Instant::now();
            client.send(&[7; 32]).unwrap();
            client.recv(&mut buffer).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            began.elapsed() - Duration::from_millis(1)
        })
        .collect();
    times.sort_unstable();
    times[QUESTIONS / 2]
}

#[test]
fn questions_of_connected_and_free_sockets_are_answered_from_where_they_went() {
    let [near, far] = pair();
    for (v6, port) in [(true, 7100), (false, 7101)] {
        let server = far.server(v6, port);
        let serving = echo(any(&far, server, port));
        // One socket for two servers, and two sockets for one.
        let other = far.server(v6, port + 100);
        let other_serving = echo(any(&far, other, port + 100));
        let free = any(&near, server, 0);
        for to in [server, other, server] {
            free.send_to(b"question", to).unwrap();
            let mut buffer = [0; 64];
            let (len, from) = free.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..len], from), (&b"question"[..], to));
        }
        let connected = any(&near, server, 0);
        connected.connect(server).unwrap();
        for _ in 0..3 {
            connected.send(b"question").unwrap();
            assert_eq!(connected.recv(&mut [0; 64]).unwrap(), 8, "a connected socket hears its server alone");
        }
        let flows: Vec<_> = near.snapshot().connections.into_iter().flat_map(|one| one.flows).collect();
        assert!(flows.iter().all(|one| one.key.protocol == flow::Protocol::Udp));
        assert!(flows.iter().any(|flow| flow.state == State::Established && flow.key.remote == server));
        drop((serving, other_serving));
    }
    for host in [near, far] {
        let wrong = [Drop::Malformed, Drop::Foreign, Drop::Unproven, Drop::UnknownContext];
        assert_eq!(wrong.map(|why| host.snapshot().counters.dropped(why)), [0; 4]);
        host.handle.stop().unwrap();
    }
}

/// Sends trains with a pause between two; says how many datagrams came, how long that took, and what the process worked
/// meanwhile.
fn blast(
    sender: &UdpSocket,
    receiver: &UdpSocket,
    trains: usize,
    pause: Option<Duration>,
) -> (usize, Duration, Duration) {
    let receiver = receiver.try_clone().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    let counting = std::thread::spawn(move || {
        let (mut came, mut last) = (0, Instant::now());
        let mut buffer = vec![0; 2048];
        while let Ok((len, _)) = receiver.recv_from(&mut buffer) {
            assert!(len == DATAGRAM && buffer[..len].iter().all(|byte| *byte == buffer[0]), "{len} bytes");
            (came, last) = (came + 1, Instant::now());
        }
        (came, last)
    });
    let data: Vec<u8> = (0..TRAIN).map(|at| (at / DATAGRAM) as u8).collect();
    let (began, worked) = (Instant::now(), work());
    for _ in 0..trains {
        sender.send(&data).unwrap();
        pause.into_iter().for_each(std::thread::sleep);
    }
    let (came, last) = counting.join().unwrap();
    (came, last.duration_since(began), work() - worked)
}

/// What this process has worked: both shims, and both ends.
fn work() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn said(what: &str, bytes: usize, took: Duration, worked: Duration) {
    let mbit = (bytes * 8) as f64 / took.as_secs_f64() / 1e6;
    println!("{what}: {mbit:.0} Mbit/s, {:.2} processor seconds a GB", worked.as_secs_f64() * 1e9 / bytes as f64);
}

#[test]
fn trains_arrive_whole_beside_what_tcp_takes() {
    const TRAINS: usize = 400;
    let [near, far] = pair();
    for v6 in [true, false] {
        let server = far.server(v6, 7200);
        let receiver = any(&far, server, 7200);
        let sender = any(&near, server, 0);
        sender.connect(server).unwrap();
        // Both ends know each other before the measurement.
        let mut buffer = vec![0; 2048];
        for _ in 0..2 {
            sender.send(b"hello").unwrap();
            let (len, from) = receiver.recv_from(&mut buffer).unwrap();
            receiver.send_to(&buffer[..len], from).unwrap();
            sender.recv(&mut buffer).unwrap();
        }
        cut(&sender);
        let sent = TRAINS * TRAIN / DATAGRAM;
        // Nothing holds a sender of UDP back but itself: a receiver's buffer has 212,992 bytes by default.
        let (came, took, worked) = blast(&sender, &receiver, TRAINS, Some(Duration::from_millis(1)));
        said(&format!("udp, ipv6 {v6}, a train a millisecond, {came} of {sent}"), came * DATAGRAM, took, worked);
        assert!(came * 2 > sent, "{came} of {sent} came");
        let (came, took, worked) = blast(&sender, &receiver, 4 * TRAINS, None);
        said(&format!("udp, ipv6 {v6}, unpaced, {came} of {}", 4 * sent), came * DATAGRAM, took, worked);
        let address = far.server(v6, 7201);
        let listener = listen(&far, address, Protocol::TCP);
        let client = connect(&near, address, Protocol::TCP).unwrap();
        let worked = work();
        let took = transfer(client, listener.accept().unwrap().0, 64 << 20);
        said(&format!("tcp, ipv6 {v6}"), 64 << 20, took, work() - worked);
    }
    let whole: u64 = near.snapshot().peers.iter().map(|peer| peer.compression.whole).sum();
    assert!(whole < 200, "{whole} went whole: the others are compact");
}

#[test]
fn a_question_takes_little_longer_than_without_the_shim() {
    let [near, far] = pair();
    let by_shim = far.server(true, 7300);
    let by_veth: SocketAddr = "10.9.0.2:7301".parse().unwrap();
    let serving = [echo(any(&far, by_shim, 7300)), echo(any(&far, by_veth, 7301))];
    let [shim, veth] = [by_shim, by_veth].map(|to| {
        let client = any(&near, to, 0);
        client.connect(to).unwrap();
        client
    });
    let rounds: Vec<(Duration, Duration)> = (0..3).map(|_| (median(&shim), median(&veth))).collect();
    println!("median round trips, by the shim and by the veth: {rounds:?}");
    let least = rounds.iter().map(|(shim, _)| *shim).min().unwrap();
    assert!(least < Duration::from_millis(20), "{least:?}");
    drop(serving);
}
