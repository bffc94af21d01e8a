//! UDP links in network namespaces: trains, marks, addresses and interfaces.

use std::net::{IpAddr, SocketAddr};

use crate::support::Namespace;
use crate::support::links::{address, assert_numbered, numbered, on, open, receive, to};
use hawser_net::link::{Ecn, Link, LinkError, Refusal, Route};

#[test]
fn trains_arrive_as_runs_over_loopback() {
    let host = Namespace::new();
    for local in ["127.0.0.1:0", "[::1]:0"] {
        let (mut a, mut b) = (open(&host, on(local)), open(&host, on(local)));
        let mut batch = numbered(to(b.local_addr()), 100, 1452);
        let outcome = a.send(&mut batch).expect("send");
        assert!(batch.is_empty() && !outcome.blocked && !outcome.segmentation_lost);
        assert_eq!(outcome.sent_bytes, 145_200);
        let (got, longest) = receive(&mut b, 100);
        assert_numbered(&got, 100, 1452);
        assert_eq!(longest, 44, "65,000 bytes of 1452 are one run");
        assert!(got.iter().all(|got| got.remote == a.local_addr()));
        assert_eq!((a.kernel_drops(), b.kernel_drops()), (0, 0));
    }
}

#[test]
fn trains_arrive_as_runs_over_veth_with_a_short_tail() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let mut a = open(&near, on("10.1.0.1:0"));
    let mut b = open(&far, on("10.1.0.2:4920"));
    let mut batch = numbered(to(b.local_addr()), 30, 1400);
    batch.push(to(b.local_addr()), 7, |room| room.len()).expect("room");
    let _ = a.send(&mut batch).expect("send");
    let (got, longest) = receive(&mut b, 31);
    assert_numbered(&got[..30], 30, 1400);
    assert_eq!(got[30].bytes.len(), 7);
    assert_eq!(longest, 31);
}

#[test]
fn marks_and_the_address_that_was_asked_cross() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    far.address("10.1.0.3/24", "v1");
    near.address("fd01::1/64", "v0");
    far.address("fd01::2/64", "v1");
    far.address("fd01::3/64", "v1");
    for (here, wildcard, second) in
        [("10.1.0.1:0", "0.0.0.0:4920", "10.1.0.3"), ("[fd01::1]:0", "[::]:4920", "fd01::3")]
    {
        let second: IpAddr = second.parse().expect("an address");
        let mut asking = open(&near, on(here));
        let mut listening = open(&far, on(wildcard));
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            let mut route = to(SocketAddr::new(second, 4920));
            route.ecn = ecn;
            let _ = asking.send(&mut numbered(route, 3, 100)).expect("send");
            let (got, _) = receive(&mut listening, 3);
            for got in &got {
                assert_eq!((got.ecn, got.local), (ecn, Some(second)));
                assert_eq!(got.remote, asking.local_addr());
            }
            let answer = Route { remote: got[0].remote, source: got[0].local, ecn };
            let _ = listening.send(&mut numbered(answer, 2, 100)).expect("send");
            let (got, _) = receive(&mut asking, 2);
            assert_eq!(got[0].remote, SocketAddr::new(second, 4920));
            assert_eq!(got[1].ecn, ecn);
        }
    }
}

#[test]
fn two_links_reach_one_address_by_their_own_routes() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("dsl", "10.1.0.1/24", &far, "r1", "10.1.0.2/24");
    near.veth("lte", "10.2.0.1/24", &far, "r2", "10.2.0.2/24");
    far.address("198.51.100.7/32", "lo");
    near.ip("route add 198.51.100.7/32 via 10.1.0.2 dev dsl metric 1");
    near.ip("route add 198.51.100.7/32 via 10.2.0.2 dev lte metric 2");
    let mut hub = open(&far, on("198.51.100.7:4920"));
    for (interface, source) in [("dsl", "10.1.0.1"), ("lte", "10.2.0.1")] {
        let mut opts = on("0.0.0.0:0");
        opts.interface = Some(interface.to_owned());
        opts.mark = Some(0x4920);
        let mut link = open(&near, opts);
        assert!(link.interface_index().is_some());
        let _ = link.send(&mut numbered(to(hub.local_addr()), 1, 100)).expect("send");
        let (got, _) = receive(&mut hub, 1);
        assert_eq!(got[0].remote.ip().to_string(), source, "{interface}");
        let back = to(got[0].remote);
        let _ = hub.send(&mut numbered(back, 1, 100)).expect("send");
        receive(&mut link, 1);
    }
}

#[test]
fn without_trains_every_datagram_goes_by_itself() {
    let host = Namespace::new();
    let mut opts = on("127.0.0.1:0");
    opts.segmentation = false;
    let (mut a, mut b) = (open(&host, opts), open(&host, on("127.0.0.1:0")));
    assert!(!a.segmentation());
    let mut batch = numbered(to(b.local_addr()), 90, 1200);
    let outcome = a.send(&mut batch).expect("send");
    assert_eq!(outcome.sent_bytes, 90 * 1200);
    let (got, longest) = receive(&mut b, 90);
    assert_numbered(&got, 90, 1200);
    assert_eq!(longest, 1);
}

#[test]
fn an_interface_made_anew_is_opened_anew() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let mut opts = on("0.0.0.0:4921");
    opts.interface = Some("v0".to_owned());
    let mut a = open(&near, opts);
    let first = a.interface_index();
    let (mut a, same) = near.run(move || {
        let reopened = a.reopen().expect("reopen");
        (a, reopened)
    });
    assert!(!same, "nothing changed");
    near.ip("link del v0");
    let (mut a, error) = near.run(move || {
        let error = a.reopen().expect_err("no interface");
        (a, error)
    });
    assert!(matches!(error, LinkError::NoInterface { .. }), "{error}");
    let mut batch = numbered(to(address("10.1.0.2:4920")), 1, 10);
    let _ = a.send(&mut batch).expect("send");
    assert!(matches!(batch.failures()[0].reason, Refusal::NoDevice | Refusal::Unreachable), "{:?}", batch.failures());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let (mut a, anew) = near.run(move || {
        let reopened = a.reopen().expect("reopen");
        (a, reopened)
    });
    assert!(anew && a.interface_index() != first);
    assert_eq!(a.local_addr().port(), 4921);
    let mut b = open(&far, on("10.1.0.2:4920"));
    let _ = a.send(&mut numbered(to(b.local_addr()), 1, 10)).expect("send");
    receive(&mut b, 1);
}
