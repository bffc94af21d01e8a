//! Threads that seal and open beside the packet thread: `[portal] threads`.

use std::net::UdpSocket;
use std::time::Duration;

use hawser_portal::api::Status;
use hawser_wire::Namespace;
use rustix::process::Signal;

use crate::at_rest::at_rest;
use crate::attacks::hellos;
use crate::lab::{self, LOCAL, Lab, Portal, REMOTE, ms, parse};

/// Numbered datagrams in each direction, and the bytes of one.
const DATAGRAMS: u32 = 4_000;
const DATAGRAM: usize = 1_200;
/// Of them on their way at once: more than a worker is asked for, less than a socket's receive buffer holds.
const WINDOW: u32 = 64;
/// A datagram that takes longer is lost.
const LOST_AFTER: Duration = Duration::from_secs(3);
/// Least received in a transfer, in bytes: far below what any machine does in its time, far above a few first windows.
const TRANSFER_MIN: u64 = 5_000_000;

fn socket(namespace: &Namespace, address: &str) -> UdpSocket {
    let bind = || UdpSocket::bind((address, 0));
    let socket = namespace.run(bind).expect("the namespace can be entered").expect("a socket");
    socket.set_read_timeout(Some(LOST_AFTER)).expect("an option");
    socket
}

/// Sends numbered datagrams, and asserts that each comes, in its place.
fn assert_ordered(from: &UdpSocket, to: &UdpSocket) {
    let destination = to.local_addr().expect("it is bound");
    let (mut sent, mut bytes) = (0u32, [0; DATAGRAM]);
    for number in 0..DATAGRAMS {
        // A window at a time: what is behind each other makes batches.
        if number == sent {
            for next in sent..(sent + WINDOW).min(DATAGRAMS) {
                bytes[..4].copy_from_slice(&next.to_be_bytes());
                from.send_to(&bytes, destination).expect("it is sent");
            }
            sent += WINDOW;
        }
        let len = to.recv(&mut bytes).unwrap_or_else(|error| panic!("datagram {number}: {error}"));
        assert_eq!((len, u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])), (DATAGRAM, number));
    }
}

/// Workers of a portal that did something.
fn at_work(status: &Status) -> usize {
    status.worker_busy_s.iter().filter(|busy| **busy > 0.0).count()
}

fn workers(portal: &Portal) -> usize {
    hellos::threads(portal).iter().filter(|(name, _)| name.contains("hawser-worker")).count()
}

#[test]
fn packets_keep_their_order_with_threads_that_seal_and_open_beside() {
    for threads in [2, 3] {
        let lab = Lab::new(&format!("thr{threads}"), "");
        let before = at_rest(|| lab.traces());
        for name in ["local.toml", "remote.toml"] {
            lab.edit(name, "[portal]\n", &format!("[portal]\nthreads = {threads}\n"));
        }
        let (mut local, mut remote) = lab.start_both();
        assert_eq!([&local, &remote].map(workers), [threads - 1; 2]);
        let (here, there) = (socket(&lab.local, LOCAL), socket(&lab.remote, REMOTE));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_ordered(&here, &there));
            let (back, home) = (socket(&lab.remote, REMOTE), socket(&lab.local, LOCAL));
            assert_ordered(&back, &home);
        });
        for (from, to, address) in [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)] {
            let transfer = lab::transfer(from, to, parse(&format!("{address}:5001")), ms(700));
            let got = transfer.run().expect("a transfer").total_bytes();
            assert!(got > TRANSFER_MIN, "{got} bytes to {address}");
        }
        for portal in [&local, &remote] {
            let status = portal.wait_for("workers at work", |status| at_work(status) == threads - 1);
            assert_eq!(status.worker_busy_s.len(), threads - 1);
            assert_eq!(status.drops.get("forged").copied().unwrap_or(0), 0);
        }
        // Sessions live on over a reload; how many threads there are is known at the start.
        lab.edit("local.toml", &format!("threads = {threads}"), "threads = 1");
        local.signal(Signal::HUP);
        local.wait_for_log("restart");
        lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(300)).run().expect("a ping"));
        assert_eq!(workers(&local), threads - 1);
        for portal in [&mut local, &mut remote] {
            portal.signal(Signal::TERM);
            assert!(portal.wait().success(), "{}", portal.log());
        }
        assert_eq!(lab.traces(), before, "{}", local.log());
    }
}
