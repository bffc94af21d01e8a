//! A UDP link whose socket is full: nothing is lost, nothing is tried in vain, and what waited goes in its order.

use std::time::{Duration, Instant};

use crate::support::links::{assert_numbered, numbered, on, open, receive, to};
use crate::support::{Namespace, PATIENCE};
use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Link, Refusal, SendBatch};
use rustix::event::{PollFd, PollFlags, poll};

/// Bytes that the sockets of these tests may have under way: the kernel doubles it, and counts its own overhead.
const SMALL_BUFFER: usize = 8_192;
/// What the way out of these tests carries, and holds in its queue.
const SLOW: &str = "tbf rate 16mbit burst 70000 limit 4mb";

/// Waits until the socket takes more.
fn until_writable(link: &UdpLink) {
    let timeout = PATIENCE.try_into().expect("a short time");
    let ready = poll(&mut [PollFd::new(link, PollFlags::OUT)], Some(&timeout)).expect("poll");
    assert_eq!(ready, 1, "the socket never takes more");
}

#[test]
fn a_batch_that_a_full_socket_leaves_over_goes_when_there_is_room() {
    for (segmentation, size) in [(true, 1_200), (false, 1_200), (true, 1_472)] {
        let (near, far) = (Namespace::new(), Namespace::new());
        near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
        near.run(|| {
            std::process::Command::new("tc").args("qdisc add dev v0 root".split(' ')).args(SLOW.split(' ')).status()
        })
        .map(|status| assert!(status.success(), "tc: {status}"))
        .expect("iproute2 is installed");
        let mut opts = on("10.1.0.1:0");
        (opts.send_buffer, opts.segmentation) = (SMALL_BUFFER, segmentation);
        let mut a = open(&near, opts);
        let mut b = open(&far, on("10.1.0.2:4920"));
        let mut batch = numbered(to(b.local_addr()), 170, size);
        let (mut sent, mut in_vain, mut waits) = (0, 0, 0);
        let began = Instant::now();
        loop {
            let outcome = a.send(&mut batch).expect("send");
            assert_eq!(batch.failures(), [], "nothing is given up");
            sent += outcome.sent_bytes;
            in_vain += u32::from(waits > 0 && outcome.sent_bytes == 0);
            assert_eq!(outcome.blocked, !batch.is_empty());
            assert_eq!(batch.pending_bytes(), 170 * size - sent, "what did not go is there");
            if batch.is_empty() {
                break;
            }
            waits += 1;
            assert!(began.elapsed() < PATIENCE, "{waits} waits");
            until_writable(&a);
        }
        assert!(waits > 1, "the socket was never full: {waits}");
        assert_eq!(in_vain, 0, "of {waits} times that it was said to be writable");
        let (got, _) = receive(&mut b, 170);
        assert_numbered(&got, 170, size);
    }
}

#[test]
fn a_queue_below_that_is_full_is_told_and_costs_no_wait() {
    let (near, far) = (Namespace::new(), Namespace::new());
    near.veth("v0", "10.1.0.1/24", &far, "v1", "10.1.0.2/24");
    let tc = "qdisc add dev v0 root tbf rate 1mbit burst 5000 limit 5000";
    let status = near.run(move || std::process::Command::new("tc").args(tc.split(' ')).status());
    assert!(status.expect("iproute2 is installed").success());
    let mut opts = on("10.1.0.1:0");
    opts.segmentation = false;
    let mut a = open(&near, opts);
    let b = open(&far, on("10.1.0.2:4920"));
    let mut batch: SendBatch = numbered(to(b.local_addr()), 100, 1_200);
    let began = Instant::now();
    let outcome = a.send(&mut batch).expect("send");
    assert!(!outcome.blocked && batch.is_empty() && began.elapsed() < Duration::from_secs(1));
    let refused: usize = batch.failures().iter().map(|failure| failure.bytes).sum();
    assert!(batch.failures().iter().all(|failure| failure.reason == Refusal::NoBuffers), "{:?}", batch.failures());
    assert!(refused > 0, "the queue was never full");
    assert_eq!(outcome.sent_bytes + refused, 120_000, "each datagram is told of: sent or refused");
    println!("{} sent, {refused} refused in {} failures", outcome.sent_bytes, batch.failures().len());
}
