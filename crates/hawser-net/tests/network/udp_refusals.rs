//! UDP links in network namespaces: what is refused, by whom, and that the link goes on.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use crate::forged;
use crate::support::links::{address, assert_numbered, numbered, on, open, receive, to};
use crate::support::{Namespace, narrowed, until};
use hawser_net::link::udp::{UdpLink, UdpOpts};
use hawser_net::link::{Link, LinkError, LinkFinding, RecvBatch, Refusal, SendBatch};
use rustix::thread::CapabilitySet;

#[test]
fn what_is_too_big_is_told_and_the_rest_goes() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    near.address("fd01::1/64", "v0");
    far.address("fd01::2/64", "v1");
    for (here, there, headroom) in [("10.1.0.1:0", "10.1.0.2:4920", 28), ("[fd01::1]:0", "[fd01::2]:4920", 48)] {
        let mut a = open(&near, on(here));
        let mut b = open(&far, on(there));
        assert_eq!(a.headroom(), headroom);
        let fits = 1500 - headroom;
        let mut batch = SendBatch::new();
        for (count, size) in [(1, fits + 1), (3, fits + 1), (2, fits)] {
            let run = batch.push_run(to(b.local_addr()), size, count * size, |room| room.len());
            run.expect("room");
        }
        let outcome = a.send(&mut batch).expect("send");
        assert!(batch.is_empty() && !outcome.segmentation_lost, "{here}");
        assert!(a.segmentation());
        assert_eq!(outcome.sent_bytes, 2 * fits);
        let sizes: Vec<usize> = batch.failures().iter().map(|f| f.segment_size).collect();
        // The single and the train of its size are one train.
        assert_eq!(sizes, [fits + 1], "{here}");
        let failure = batch.failures()[0];
        assert_eq!((failure.reason, failure.bytes), (Refusal::TooBig, 4 * (fits + 1)));
        assert_eq!(receive(&mut b, 2).0.len(), 2);
        while a.next_error().expect("the error queue").is_some() {}
    }
}

#[test]
fn routers_say_why_and_the_link_goes_on() {
    let (near, _router, far) = narrowed();
    let mut a = open(&near, on("10.1.0.1:0"));
    let mut b = open(&far, on("10.2.0.2:4920"));
    let closed = address("10.2.0.2:9");
    for (remote, size, reason, mtu) in [
        (b.local_addr(), 1400, Refusal::TooBig, Some(1300)),
        (closed, 100, Refusal::PortClosed, None),
        (address("10.9.0.1:9"), 100, Refusal::Unreachable, None),
    ] {
        let _ = a.send(&mut numbered(to(remote), 1, size)).expect("send");
        let error = until(&mut a, "an error", |a| a.next_error().expect("the error queue"));
        assert_eq!((error.remote, error.reason, error.mtu), (remote, reason, mtu));
        assert!(error.from.is_some());
        // Neither sending nor receiving trips over what is pending.
        let outcome = a.send(&mut numbered(to(b.local_addr()), 2, 100)).expect("send");
        assert_eq!(outcome.sent_bytes, 200);
        receive(&mut b, 2);
        assert_eq!(a.recv(&mut RecvBatch::new()).expect("receive"), 0);
    }
}

#[test]
fn an_error_of_one_remote_does_not_cost_another_its_datagram() {
    let host = Namespace::new();
    let mut a = open(&host, on("127.0.0.1:0"));
    let mut b = open(&host, on("127.0.0.1:0"));
    let _ = a.send(&mut numbered(to(address("127.0.0.1:9")), 1, 10)).expect("send");
    // On loopback the refusal is back before the call returns; the next call is hit by it.
    let mut batch = numbered(to(b.local_addr()), 1, 10);
    let outcome = a.send(&mut batch).expect("send");
    assert_eq!((outcome.sent_bytes, batch.failures().len()), (10, 0));
    receive(&mut b, 1);
    let error = a.next_error().expect("the error queue").expect("an error");
    assert_eq!(error.reason, Refusal::PortClosed);
}

/// 10,000 forged errors a second, for a datagram to nobody: every call of the socket would fail.
#[test]
fn forged_errors_cost_no_datagram_and_are_ignored_for_a_while() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let mut a = open(&near, on("10.1.0.1:0"));
    let mut b = open(&far, on("10.1.0.2:4920"));
    let (SocketAddr::V4(ours), SocketAddr::V4(theirs)) = (a.local_addr(), address("192.0.2.9:9")) else {
        panic!("IPv4")
    };
    let messages: Vec<Vec<u8>> = [forged::FRAGMENTATION_NEEDED, forged::PORT_UNREACHABLE]
        .map(|kind| forged::message(kind, ours, theirs, 600, &[7; 9]))
        .to_vec();
    let forger = std::thread::spawn(move || {
        far.run(move || forged::flood(ours, &messages, 10_000, Duration::from_secs(2)));
        far
    });
    let (start, mut sent, mut told, mut ignored) = (Instant::now(), 0, 0, false);
    while start.elapsed() < Duration::from_secs(2) {
        let mut batch = numbered(to(b.local_addr()), 4, 1_400);
        let outcome = a.send(&mut batch).expect("send");
        assert_eq!(batch.failures(), &[], "what is said of others is not believed");
        assert_eq!(outcome.sent_bytes, 4 * 1_400);
        sent += 4;
        receive(&mut b, 4);
        while let Some(error) = a.next_error().expect("the error queue") {
            assert_eq!(error.remote, address("192.0.2.9:9"));
            assert_eq!(error.quoted.expect("a quote").as_bytes(), [7; 9]);
            told += 1;
        }
        ignored |= a.ignores_icmp();
        std::thread::sleep(Duration::from_micros(200));
    }
    let _far = forger.join().expect("the forger");
    // A burst each time that it hears again, and what comes between.
    assert!(ignored && told > 0 && told < 4 * 64, "{told} errors read beside {sent} datagrams");
    // What is really too big is still told, ICMP ignored or not.
    let mut batch = numbered(to(b.local_addr()), 1, 1_473);
    assert_eq!(a.send(&mut batch).expect("send").sent_bytes, 0);
    assert_eq!(batch.failures()[0].reason, Refusal::TooBig);
    // And a genuine router is heard again.
    std::thread::sleep(Duration::from_millis(1_100));
    let _ = a.send(&mut numbered(to(address("10.1.0.2:9")), 1, 10)).expect("send");
    let error = until(&mut a, "an error", |a| {
        let _ = a.recv(&mut RecvBatch::new());
        a.next_error().expect("the error queue")
    });
    assert_eq!((error.reason, error.remote), (Refusal::PortClosed, address("10.1.0.2:9")));
}

#[test]
fn no_route_and_no_such_source_are_reasons() {
    let host = Namespace::new();
    let mut a = open(&host, on("0.0.0.0:0"));
    let mut batch = SendBatch::new();
    let lost = to(address("192.0.2.1:9"));
    let mut foreign = to(address("127.0.0.1:9"));
    foreign.source = Some("192.0.2.77".parse().expect("an address"));
    for route in [lost, foreign] {
        batch.push(route, 10, |room| room.len()).expect("room");
    }
    let outcome = a.send(&mut batch).expect("send");
    assert_eq!(outcome.sent_bytes, 0);
    let reasons: Vec<Refusal> = batch.failures().iter().map(|f| f.reason).collect();
    assert_eq!(reasons[0], Refusal::Unreachable);
    // The kernel's word for a source that is not its own changed over time.
    assert!(matches!(reasons[1..], [Refusal::Unreachable | Refusal::Other(libc::EINVAL)]), "{reasons:?}");
}

#[test]
fn a_kernel_that_refuses_trains_is_believed_once_and_for_good() {
    let host = Namespace::new();
    let (mut a, mut b) = (open(&host, on("127.0.0.1:0")), open(&host, on("127.0.0.1:0")));
    // Without checksums the kernel cannot cut trains, and says EINVAL as one too old does.
    let one = 1_i32;
    // SAFETY: the socket is open, and the kernel reads one `int` that outlives the call.
    let set = unsafe {
        libc::setsockopt(
            a.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const one).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
    for (told, left) in [(true, false), (false, false)] {
        let mut batch = numbered(to(b.local_addr()), 60, 1200);
        let outcome = a.send(&mut batch).expect("send");
        assert_eq!(outcome.segmentation_lost, told);
        assert_eq!(a.segmentation(), left);
        assert_eq!((outcome.sent_bytes, batch.failures()), (60 * 1200, &[][..]));
        let (got, longest) = receive(&mut b, 60);
        assert_numbered(&got, 60, 1200);
        assert_eq!(longest, 1);
    }
}

#[test]
fn a_full_socket_keeps_the_rest_and_drops_are_counted() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let mut small = on("10.1.0.2:4920");
    small.receive_buffer = 100_000;
    let mut opts = on("10.1.0.1:0");
    opts.send_buffer = 20_000;
    let (mut a, mut b) = (open(&near, opts), open(&far, small));
    let to_b = to(b.local_addr());
    let mut sent = 0;
    for _ in 0..8 {
        let mut batch = numbered(to_b, 150, 1400);
        while !batch.is_empty() {
            let before = batch.pending_bytes();
            let outcome = a.send(&mut batch).expect("send");
            assert_eq!(before - outcome.sent_bytes, batch.pending_bytes());
            assert_eq!(outcome.blocked, !batch.is_empty());
            sent += outcome.sent_bytes / 1400;
        }
    }
    assert_eq!(sent, 8 * 150);
    let mut batch = RecvBatch::new();
    let mut got = 0;
    let drained = |b: &mut UdpLink, batch: &mut RecvBatch, got: &mut usize| {
        while b.recv(batch).expect("receive") > 0 {
            *got += batch.runs().map(|run| run.singles().len()).sum::<usize>();
        }
    };
    drained(&mut b, &mut batch, &mut got);
    assert!(got < sent, "{got} of {sent}");
    // The count comes with the next datagram that is not lost.
    let _ = a.send(&mut numbered(to_b, 1, 1400)).expect("send");
    receive(&mut b, 1);
    assert!(b.kernel_drops() > 0);
}

#[test]
fn a_link_that_cannot_be_opened_says_why() {
    let host = Namespace::new();
    let mut opts = on("127.0.0.1:0");
    opts.interface = Some("none0".to_owned());
    let error = host.run(|| UdpLink::bind(opts)).expect_err("no interface");
    assert_eq!(error.to_string(), "open link: there is no interface none0");
    let taken = open(&host, on("127.0.0.1:0"));
    for local in [taken.local_addr(), address("192.0.2.1:0")] {
        let error = host.run(move || UdpLink::bind(UdpOpts::new(local))).expect_err("no address");
        assert!(matches!(error, LinkError::Bind { .. }), "{error}");
    }
}

#[test]
fn without_privileges_a_link_is_worse_or_says_what_it_needs() {
    let host = Namespace::new();
    host.run(|| {
        let mut sets = rustix::thread::capabilities(None).expect("capabilities");
        sets.effective.remove(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
        rustix::thread::set_capabilities(None, sets).expect("fewer capabilities");
    });
    let mut opts = on("127.0.0.1:0");
    opts.receive_buffer = 1 << 30;
    let link = open(&host, opts.clone());
    let [LinkFinding::SmallBuffer { which, wanted, got, .. }] = link.findings() else {
        panic!("one small buffer, not {:?}", link.findings());
    };
    assert_eq!((*which, *wanted), ("receive", 1 << 30));
    assert!(*got < *wanted, "{got}");
    opts.mark = Some(1);
    let error = host.run(|| UdpLink::bind(opts)).expect_err("not permitted");
    assert!(matches!(error, LinkError::NotPermitted { step: "set mark", .. }), "{error}");
}
