//! Two hosts with a line between them, the far one with a bypass.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hawser_wire::{End, Namespace, veth};

use crate::xdp::{Attached, Bypass, Counters, Wanted, detach, status};

/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The interface's name at both ends, and the hosts' addresses.
pub const LINE: &str = "v0";
pub const NEAR: [&str; 2] = ["10.9.0.1", "fd09::1"];
pub const FAR: [&str; 2] = ["10.9.0.2", "fd09::2"];
/// Bytes that a socket holds, so that a late reader loses nothing.
const SOCKET_BUFFER: usize = 8 << 20;

/// The sender, and the host with the bypass, which is detached when this drops.
pub struct Hosts {
    pub near: Namespace,
    pub far: Namespace,
}

impl Hosts {
    pub fn new(tag: &str) -> Hosts {
        let (near, far) = (namespace(&format!("{tag}n")), namespace(&format!("{tag}f")));
        let end = |namespace: &Namespace, [v4, v6]: [&str; 2]| {
            End::new(namespace, LINE, &[&format!("{v4}/24"), &format!("{v6}/64")])
        };
        veth(&end(&near, NEAR), &end(&far, FAR), 1500).expect("a line");
        Hosts { near, far }
    }

    pub fn attach(&self, wanted: Wanted) -> Attached {
        self.at_far(|| Bypass::load().and_then(|mut bypass| bypass.attach(LINE, wanted, false))).expect("it attaches")
    }

    pub fn at_far<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.far.run(work).expect("the namespace is there")
    }

    pub fn at_near<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.near.run(work).expect("the namespace is there")
    }

    pub fn counters(&self) -> Counters {
        self.at_far(|| status().expect("a status").counters)
    }

    /// Datagrams that the far host found corrupt, of both families (proc_net_snmp).
    pub fn checksum_errors(&self) -> u64 {
        self.at_far(|| {
            let snmp = fs::read_to_string("/proc/thread-self/net/snmp").expect("counters");
            let mut udp = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
            let (names, values) = (udp.next().expect("names"), udp.next().expect("values"));
            let mut pairs = names.split(' ').zip(values.split(' '));
            let (_, v4) = pairs.find(|(name, _)| *name == "InCsumErrors").expect("the kernel counts them");
            let snmp6 = fs::read_to_string("/proc/thread-self/net/snmp6").expect("counters");
            let v6 = snmp6.lines().find_map(|line| line.strip_prefix("Udp6InCsumErrors")).expect("counted too");
            [v4, v6].map(|count| count.trim().parse::<u64>().expect("a number")).iter().sum()
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let detached = self.far.run(|| detach(&[]));
        if !std::thread::panicking() {
            detached.expect("the namespace is there").expect("it detaches");
        }
    }
}

pub fn namespace(tag: &str) -> Namespace {
    Namespace::new(tag).expect("this test makes network namespaces: run it as root")
}

/// A socket bound to an address of the calling thread's namespace, that does not wait for ever.
pub fn bound(address: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a socket");
    let buffer = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER);
    buffer.expect("a large buffer");
    socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
    socket
}

/// The next datagram.
pub fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut room = vec![0; 1 << 16];
    let len = socket.recv(&mut room).expect("a datagram in time");
    room.truncate(len);
    room
}

/// Nothing waits in the socket. What was sent before is there already: a veth delivers before `send` returns, or soon
/// after.
pub fn assert_nothing(socket: &UdpSocket) {
    socket.set_nonblocking(true).expect("no waiting");
    let got = socket.recv(&mut [0; 4096]);
    assert!(matches!(&got, Err(error) if error.kind() == io::ErrorKind::WouldBlock), "something came: {got:?}");
    socket.set_nonblocking(false).expect("waiting");
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
