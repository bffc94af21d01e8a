//! Workers seal and open what one thread would, in its order, and a worker that panics is no secret.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use crate::portals::{Buffer, Portal, connected, packet};
use hawser_core::beside::Unsealed;
use hawser_core::packet::Offload;
use hawser_core::session::Transmit;
use hawser_core::units::{Ecn, Time};
use hawser_net::link::{Datagrams, Ecn as NetEcn};
use hawser_net::workers::{self, Task, Workers};
use proptest::prelude::*;

/// A round may take this long on a busy machine before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(20);
/// Rounds of a millisecond in which a thousand packets leave.
const DRAIN: usize = 50;

/// Gives `count` packets to a portal, the first of which has this number.
fn feed(now: Time, portal: &mut Portal, first: u16, count: u16) {
    for number in first..first + count {
        let packet = packet(number);
        portal.endpoint.read_buffer()[..packet.len()].copy_from_slice(&packet);
        portal.endpoint.handle_inner(now, packet.len(), Offload::default());
    }
}

/// All that a portal has to say, as it is sealed later.
fn said(now: Time, portal: &mut Portal) -> Vec<(Transmit, Vec<u8>, Option<Unsealed>)> {
    let mut buffer = Buffer(vec![0; 65_536]);
    let mut said = Vec::new();
    while let Some((transmit, unsealed)) = portal.endpoint.poll_unsealed(now, &mut buffer) {
        said.push((transmit, buffer.0[..transmit.len].to_vec(), unsealed));
    }
    said
}

/// Tasks of a few datagrams each, so that there are many.
fn tasks<'a>(bytes: &'a mut [u8], how: &Unsealed, datagrams: usize) -> impl Iterator<Item = Task<'a>> {
    let parts = bytes.chunks_mut(how.stride() * datagrams);
    parts.enumerate().map(move |(at, part)| Task::Seal(part, how.after(at * datagrams)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn packets_come_in_their_order_however_many_threads_work(
        count in 1..4usize,
        rounds in prop::collection::vec((1..200u16, 1..20usize), 1..6),
    ) {
        let mut workers = Workers::start(count).expect("threads start");
        let (mut local, mut remote, mut now) = connected();
        let mut fed = 0;
        // What windows and pacing held back goes in the rounds without new packets.
        for (packets, datagrams) in rounds.into_iter().chain(std::iter::repeat_n((0, 1), DRAIN)) {
            now = now + Duration::from_millis(1);
            local.endpoint.handle_timeout(now, &mut local.delivered);
            remote.endpoint.handle_timeout(now, &mut remote.delivered);
            feed(now, &mut local, fed, packets);
            fed += packets;
            let mut batches = said(now, &mut local);
            workers.round(|round| {
                for (_, bytes, how) in &mut batches {
                    let Some(how) = how else { continue };
                    for task in tasks(bytes, how, datagrams) {
                        if round.is_full() {
                            round.next();
                        }
                        round.push(task);
                    }
                }
            });
            arrive(now, &mut workers, &mut local, &mut remote, &mut batches);
            for (transmit, mut bytes, how) in said(now, &mut remote) {
                how.iter().for_each(|how| how.seal(&mut bytes));
                let (link, from) = (local.link_at(transmit.remote), remote.address(transmit.link));
                for datagram in bytes.chunks_mut(transmit.segment_size) {
                    let Portal { endpoint, delivered, .. } = &mut local;
                    endpoint.handle_datagram(now, link, from, None, Ecn::NotEct, datagram, delivered);
                }
            }
        }
        let numbers: Vec<u16> = remote.delivered.0.iter().map(|packet| u16::from_be_bytes([packet[28], packet[29]])).collect();
        prop_assert_eq!(numbers, (0..fed).collect::<Vec<_>>());
        let forged = remote.endpoint.snapshot(now).drops.iter().any(|(_, dropped)| dropped > 0);
        prop_assert!(!forged, "nothing is dropped");
    }
}

/// Batches arrive at `to`, opened by workers.
fn arrive(
    now: Time,
    workers: &mut Workers,
    from: &mut Portal,
    to: &mut Portal,
    batches: &mut [(Transmit, Vec<u8>, Option<Unsealed>)],
) {
    for (transmit, bytes, _) in batches {
        let (link, remote) = (to.link_at(transmit.remote), from.address(transmit.link));
        let Portal { endpoint, delivered, .. } = to;
        workers.round(|round| {
            let opener = endpoint.opener(now, bytes);
            let segment_size = transmit.segment_size;
            let run = Datagrams { remote, local: None, ecn: NetEcn::NotEct, segment_size, bytes, header: 0 };
            workers::open(run, opener).for_each(|task| round.push(task));
            while let Some(task) = round.next() {
                let Task::Open(opened) = task else { panic!("only these were hung up") };
                let (run, openings) = opened.split();
                for opened in run.singles().zip(openings) {
                    endpoint.handle_opened(now, link, remote, None, Ecn::NotEct, opened, delivered);
                }
            }
        });
    }
}

#[test]
fn a_panic_in_a_worker_ends_the_round_loudly_and_hangs_nobody() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut local, _, now) = connected();
        feed(now, &mut local, 0, 100);
        let how = said(now, &mut local).into_iter().find_map(|(_, _, how)| how).expect("a batch of data");
        let mut workers = Workers::start(2).expect("threads start");
        for _ in 0..50 {
            // Too short to be sealed: whoever takes it panics.
            let (mut short, mut rest) = ([0u8; 3], vec![[0u8; 200]; 20]);
            let round = catch_unwind(AssertUnwindSafe(|| {
                workers.round(|round| {
                    round.push(Task::Seal(&mut short, how.clone()));
                    rest.iter_mut().for_each(|bytes| round.push(Task::Seal(&mut bytes[..how.stride()], how.clone())));
                });
            }));
            let said = round.expect_err("the round panics");
            assert_eq!(said.downcast_ref::<&str>(), Some(&"a worker panicked"));
        }
        // The next round is a round like any other.
        let mut bytes = [0; 200];
        workers.round(|round| round.push(Task::Seal(&mut bytes[..how.stride()], how.clone())));
        drop(workers);
        tell.send(bytes).expect("somebody waits");
    });
    let sealed = told.recv_timeout(PATIENCE).expect("the rounds end");
    assert_ne!(sealed, [0; 200]);
}
