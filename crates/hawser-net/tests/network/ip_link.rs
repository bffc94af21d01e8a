//! IP links in network namespaces: no ports, less overhead, and all else as over UDP.

use std::net::SocketAddr;

use crate::support::links::{address, assert_numbered, on, receive, to};
use crate::support::{Namespace, narrowed, until};
use hawser_net::link::ip::{IpLink, IpProtocol};
use hawser_net::link::udp::UdpOpts;
use hawser_net::link::{Ecn, Link, RecvBatch, Refusal, Route, SendBatch};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// What a datagram begins with: the filter lets nothing else through.
const DATA: u8 = 0x40;
/// Both IP versions: the near address, the far one, and the headers of a packet in bytes.
const VERSIONS: [(&str, &str, usize); 2] = [("10.1.0.1:0", "10.1.0.2:0", 20), ("[fd01::1]:0", "[fd01::2]:0", 40)];

fn hosts() -> (Namespace, Namespace) {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    near.address("fd01::1/64", "v0");
    far.address("fd01::2/64", "v1");
    (near, far)
}

fn open(namespace: &Namespace, opts: UdpOpts) -> IpLink {
    namespace.run(|| IpLink::bind(opts, IpProtocol::EXPERIMENT)).expect("a link")
}

/// Datagrams that begin as they must, each then filled with its number.
fn datagrams(route: Route, count: usize, size: usize) -> SendBatch {
    let mut batch = SendBatch::new();
    for n in 0..count {
        let seal = |room: &mut [u8]| {
            room.fill(n as u8);
            room[0] = DATA;
            size
        };
        batch.push(route, size, seal).expect("room");
    }
    batch
}

#[test]
fn full_datagrams_cross_with_their_marks_and_nothing_but_ip_headers() {
    let (near, far) = hosts();
    for (here, there, headroom) in VERSIONS {
        let (mut a, mut b) = (open(&near, on(here)), open(&far, on(there)));
        assert_eq!((a.headroom(), a.local_addr()), (headroom, address(here)));
        let size = 1500 - headroom;
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            let route = Route { ecn, ..to(b.local_addr()) };
            let outcome = a.send(&mut datagrams(route, 20, size)).expect("send");
            assert_eq!(outcome.sent_bytes, 20 * size);
            let (mut got, _) = receive(&mut b, 20);
            for (n, got) in got.iter_mut().enumerate() {
                assert_eq!((got.ecn, got.remote, got.bytes[0]), (ecn, a.local_addr(), DATA));
                assert_eq!(got.local, Some(b.local_addr().ip()));
                got.bytes[0] = n as u8;
            }
            assert_numbered(&got, 20, size);
        }
        // What is longer than the way out carries is told, and the rest goes.
        let mut batch = datagrams(to(b.local_addr()), 1, size + 1);
        let _ = a.send(&mut batch).expect("send");
        assert_eq!(batch.failures()[0].reason, Refusal::TooBig);
        let _ = a.send(&mut datagrams(to(b.local_addr()), 1, 9)).expect("send");
        assert_eq!(receive(&mut b, 1).0[0].bytes.len(), 9);
    }
}

#[test]
fn a_socket_for_all_addresses_says_which_was_asked_and_answers_from_it() {
    let (near, far) = hosts();
    far.address("10.1.0.3/24", "v1");
    far.address("fd01::3/64", "v1");
    for (here, all, second) in [("10.1.0.1:0", "0.0.0.0:0", "10.1.0.3:0"), ("[fd01::1]:0", "[::]:0", "[fd01::3]:0")] {
        let mut opts = on(all);
        opts.interface = Some("v1".to_owned());
        let (mut asking, mut listening) = (open(&near, on(here)), open(&far, opts));
        let _ = asking.send(&mut datagrams(to(address(second)), 1, 100)).expect("send");
        let (got, _) = receive(&mut listening, 1);
        assert_eq!(got[0].local, Some(address(second).ip()));
        let answer = Route { remote: got[0].remote, source: got[0].local, ecn: Ecn::Ect0 };
        let _ = listening.send(&mut datagrams(answer, 1, 100)).expect("send");
        assert_eq!(receive(&mut asking, 1).0[0].remote, address(second));
    }
}

#[test]
fn what_others_say_in_the_same_protocol_is_dropped_by_the_kernel() {
    let (near, far) = hosts();
    for (here, there, _) in VERSIONS {
        let (mut a, mut b) = (open(&near, on(here)), open(&far, on(there)));
        let remote: SocketAddr = b.local_addr();
        let stranger = near.run(move || {
            let protocol = Some(Protocol::from(i32::from(IpProtocol::EXPERIMENT.number())));
            Socket::new(Domain::for_address(remote), Type::RAW, protocol).expect("a raw socket")
        });
        for first in [0x00, 0x41, 0x50, 0xff] {
            stranger.send_to(&[first; 64], &SockAddr::from(remote)).expect("it goes");
        }
        stranger.send_to(&[], &SockAddr::from(remote)).expect("it goes");
        let _ = a.send(&mut datagrams(to(remote), 1, 64)).expect("send");
        let (got, _) = receive(&mut b, 1);
        assert_eq!((got.len(), got[0].bytes[0]), (1, DATA), "{here}");
        let mut batch = RecvBatch::new();
        assert_eq!((b.recv(&mut batch).expect("receive"), batch.truncated()), (0, 0));
    }
}

#[test]
fn routers_say_what_they_carry() {
    let (near, _router, far) = narrowed();
    let (mut a, mut b) = (open(&near, on("10.1.0.1:0")), open(&far, on("10.2.0.2:0")));
    let _ = a.send(&mut datagrams(to(b.local_addr()), 1, 1400)).expect("send");
    let error = until(&mut a, "an error", |a| a.next_error().expect("the error queue"));
    assert_eq!((error.remote, error.reason, error.mtu), (b.local_addr(), Refusal::TooBig, Some(1300)));
    let outcome = a.send(&mut datagrams(to(b.local_addr()), 2, 100)).expect("send");
    assert_eq!(outcome.sent_bytes, 200);
    receive(&mut b, 2);
}
