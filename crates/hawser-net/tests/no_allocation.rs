//! In steady state the packet path allocates nothing: counted by the global allocator, per thread.

#[path = "../../hawser-core/tests/support/allocations.rs"]
mod allocations;
mod support;

use std::io::IoSlice;
use std::net::SocketAddr;

use allocations::allocations_of;
use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Ecn, Link, RecvBatch, Route, SendBatch};
use hawser_net::tun::{READ_BUFFER_BYTES, Tun, TunOpts, WriteOutcome};
use support::{Namespace, until};

#[test]
fn the_counter_counts() {
    assert_eq!(allocations_of(|| drop(std::hint::black_box(vec![1_u8; 9]))), 1);
    assert_eq!(allocations_of(|| ()), 0);
}

#[test]
fn sending_and_receiving_allocate_nothing() {
    let host = Namespace::new();
    let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let open = move || UdpLink::bind(UdpOpts::new(local)).expect("a link");
    let (mut a, mut b) = (host.run(open), host.run(open));
    let nobody: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let (mut sending, mut receiving) = (SendBatch::new(), RecvBatch::new());
    let (mut received, mut told) = (0, 0);
    let allocations = allocations_of(|| {
        for round in 0..50 {
            for (remote, size) in [(b.local_addr(), 1452), (nobody, 100), (b.local_addr(), 60)] {
                let route = Route { remote, source: None, ecn: Ecn::Ect0 };
                for _ in 0..20 {
                    sending.push(route, size, |room| room.len()).expect("room");
                }
            }
            let outcome = a.send(&mut sending).expect("send");
            assert!(!outcome.blocked && sending.is_empty(), "round {round}");
            while b.recv(&mut receiving).expect("receive") > 0 {
                received += receiving.runs().map(|run| run.singles().len()).sum::<usize>();
            }
            while a.next_error().expect("the error queue").is_some() {
                told += 1;
            }
        }
    });
    assert_eq!(received, 50 * 40);
    assert!(told > 0, "the closed port was told of");
    assert_eq!(allocations, 0);
}

#[test]
fn reading_and_writing_allocate_nothing() {
    const PACKETS: usize = 50;
    let host = Namespace::new();
    let made = host.run(|| Tun::create("tun%d", &TunOpts::default()));
    let mut tun = made.expect("a device (this test needs root, and /dev/net/tun)");
    host.ip("link set tun0 up");
    host.address("10.5.0.1/24", "tun0");
    let local: SocketAddr = "10.5.0.1:0".parse().expect("an address");
    let mut link = host.run(move || UdpLink::bind(UdpOpts::new(local))).expect("a link");
    let route = Route { remote: "10.5.0.2:9".parse().expect("an address"), source: None, ecn: Ecn::NotEct };
    let mut sending = SendBatch::new();
    let mut buffer = vec![0; READ_BUFFER_BYTES];
    let mut read = 0;
    let allocations = allocations_of(|| {
        for _ in 0..PACKETS {
            sending.push_run(route, 1200, 12_000, |room| room.len()).expect("room");
            let _ = link.send(&mut sending).expect("send");
            let received = until(&mut tun, "the train", |tun| tun.read(&mut buffer).expect("read"));
            let parts = [IoSlice::new(&buffer[..received.len])];
            let outcome = tun.write(&received.header, &parts).expect("write");
            assert_eq!(outcome, WriteOutcome::Written);
            read += usize::from(received.len > 12_000);
        }
    });
    assert!(read > PACKETS / 2, "{read} trains were read");
    assert_eq!(allocations, 0);
}
