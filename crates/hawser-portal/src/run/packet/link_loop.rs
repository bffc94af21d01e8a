//! The link loop: batches of datagrams from a link to the core, and what was said of those sent.
//!
//! 1. Errors first: they are what keeps the descriptor ready. 2. A link that was full takes the rest of its batch.
//! 3. A batch is received, or a few where they are small; each datagram goes to the core, opened by workers where there
//!    are any, and what comes home to the coalescer.

use hawser_core::alias::Alias;
use hawser_core::beside::Opening;
use hawser_core::endpoint::{Endpoint, Verdict};
use hawser_core::packet::Coalescer;
use hawser_core::units::{Ecn, Time};
use hawser_net::link::{Datagrams, Link, PathError, Quoted, RecvBatch, Refusal};
use hawser_net::workers::{self, Task, Workers};
use rustix::event::PollFlags;

use super::any_link::AnyLink;
use super::load::Meter;
use super::moderation::Moderation;
use super::socket::LinkSocket;
use super::{Parts, RunError, tun_loop};
use crate::run::clock::Clock;
use crate::run::messages::Report;

/// Datagrams taken from a link in one round, where there are this many: a batch holds few of those that the kernel does
/// not merge. A message that brings none, as strangers can send, counts as one.
const DATAGRAMS_PER_ROUND: usize = 64;
/// A batch of fewer bytes is opened by the packet thread alone: 11 datagrams, which take 3 µs with AES-128-GCM.
const SHARED_FROM: usize = 16 * 1024;
/// Errors taken off a link in one round.
const ERRORS_PER_ROUND: usize = 16;
/// What came home is written to TUN when its buffers hold this much, in bytes, even amid a round.
const HOME_MAX: usize = 1 << 20;

/// The socket of this place among the plans is ready for what `flags` say. Whether there may be more to receive at
/// once.
pub fn on_ready(parts: &mut Parts, index: usize, flags: PollFlags) -> Result<bool, RunError> {
    let now = parts.clock.now();
    if flags.intersects(PollFlags::ERR | PollFlags::HUP) {
        take_errors(parts, index, now);
    }
    if flags.contains(PollFlags::OUT)
        && let Some(socket) = parts.sockets.get_mut(index)
    {
        socket.on_writable(now);
    }
    if !flags.contains(PollFlags::IN) {
        return Ok(false);
    }
    let more = one_round(|| receive(parts, index));
    if parts.sockets[index].link.as_ref().is_some_and(AnyLink::has_word) {
        let now = parts.clock.now();
        take_errors(parts, index, now);
    }
    if parts.home.bytes_held() > HOME_MAX {
        tun_loop::flush(parts)?;
    }
    Ok(more)
}

/// Step 3: batches, while there may be more and the round is not over; whether there still may be.
fn one_round(mut receive: impl FnMut() -> (bool, usize)) -> bool {
    let mut taken = 0;
    loop {
        let (more, count) = receive();
        taken += count;
        if !more || taken >= DATAGRAMS_PER_ROUND {
            return more;
        }
    }
}

/// Step 3, one batch: whether there may be more at once, and what it counts in the round.
fn receive(parts: &mut Parts, index: usize) -> (bool, usize) {
    let Parts { clock, endpoint, home, sockets, received, moderation, load, hub, workers, .. } = parts;
    let Some((socket, link)) = sockets.get_mut(index).and_then(split) else { return (false, 0) };
    let came = link.recv(received);
    let now = clock.now();
    if let Err(error) = came {
        sockets[index].fail(now, &error);
        return (false, 0);
    }
    if let Some(hub) = hub {
        hub.before_batch(now, endpoint, home);
    }
    let meter = Meter::start(load, *clock);
    let mut intake = Intake { now, socket, link, clock: *clock, endpoint, home, moderation, meter, datagrams: 0 };
    match workers.as_mut().filter(|_| received.bytes_held() >= SHARED_FROM) {
        None => received.runs().for_each(|run| intake.take(run, std::iter::repeat(Opening::default()))),
        Some(workers) => intake.take_opened(received, workers),
    }
    let count = count(received, intake.datagrams);
    // A stream may have brought more than a batch holds, without filling it.
    (received.is_full() || sockets[index].has_more(), count)
}

/// What a batch counts, of which this many were datagrams for the core.
fn count(received: &RecvBatch, datagrams: usize) -> usize {
    datagrams.max(received.messages())
}

/// What datagrams of a batch are given to. Lives for a batch; it borrows all.
struct Intake<'a> {
    now: Time,
    socket: About,
    link: &'a mut AnyLink,
    clock: Clock,
    endpoint: &'a mut Endpoint,
    home: &'a mut Coalescer,
    moderation: &'a mut Moderation,
    meter: Meter,
    datagrams: usize,
}

impl Intake<'_> {
    /// A run, with what came of opening each of its datagrams before.
    fn take(&mut self, run: Datagrams<'_>, openings: impl Iterator<Item = Opening>) {
        // A socket with one address needs no telling which.
        let local = run.local.filter(|_| self.socket.answers_from_several);
        let (now, id, remote, ecn) = (self.now, self.socket.id, run.remote, Ecn::from_bits(run.ecn as u8));
        let mut proven = false;
        for opened in run.singles().zip(openings) {
            self.moderation.count(1, opened.0.len());
            self.datagrams += 1;
            let verdict = self.endpoint.handle_opened(now, id, remote, local, ecn, opened, self.home);
            proven |= verdict == Verdict::OfSession;
        }
        self.meter.charge(self.clock, self.endpoint);
        if proven {
            self.link.prove(remote);
        }
    }

    /// All runs of a batch: workers open those behind while the core has those before.
    fn take_opened(&mut self, received: &mut RecvBatch, workers: &mut Workers) {
        workers.round(|round| {
            for mut run in received.runs() {
                let opener = run.first().and_then(|datagram| self.endpoint.opener(self.now, datagram));
                for task in workers::open(run, opener) {
                    if round.is_full() {
                        self.take_task(round.next());
                    }
                    round.push(task);
                }
            }
            while self.take_task(round.next()) {}
        });
    }

    /// Whether there was one.
    fn take_task(&mut self, task: Option<Task<'_>>) -> bool {
        let Some(Task::Open(opened)) = task else { return false };
        let (run, openings) = opened.split();
        self.take(run, openings);
        true
    }
}

/// What is needed of a socket while its link is borrowed.
struct About {
    id: hawser_core::units::LinkId,
    answers_from_several: bool,
}

fn split(socket: &mut LinkSocket) -> Option<(About, &mut AnyLink)> {
    let answers_from_several = socket.place.is_some_and(|place| place.local.ip().is_unspecified());
    let about = About { id: socket.plan.id, answers_from_several };
    socket.link.as_mut().map(|link| (about, link))
}

/// Step 1. Routers' words are hints, as anyone may forge them: only a smaller MTU is followed, where it quotes a
/// datagram of ours, and that a SCION path is broken; the core tests either.
fn take_errors(parts: &mut Parts, index: usize, now: Time) {
    let Parts { endpoint, sockets, reports, lost, .. } = parts;
    let Some(socket) = sockets.get_mut(index) else { return };
    for _ in 0..ERRORS_PER_ROUND {
        let Some(link) = &mut socket.link else { return };
        let headroom = link.headroom();
        match link.next_error() {
            Ok(Some(error)) => {
                tracing::debug!(link = socket.plan.name, ?error, "router said");
                let quoted = error.quoted.as_ref().map(Quoted::as_bytes);
                let size = refused_size(&error, headroom);
                if size.is_some_and(|size| endpoint.handle_hint(socket.plan.id, error.remote, size, quoted)) {
                    continue;
                }
                let broken = error.reason == Refusal::Unreachable && Alias::of(&error.remote).is_some();
                if broken && endpoint.handle_broken(now, socket.plan.id, error.remote, quoted.unwrap_or_default()) {
                    let _ = reports.send(Report::Broken(error.remote));
                } else {
                    lost.icmp_ignored += 1;
                }
            }
            Ok(None) => return,
            Err(error) => return socket.fail(now, &error),
        }
    }
}

/// The smallest datagram that is too long, where the error says so.
fn refused_size(error: &PathError, headroom: usize) -> Option<u16> {
    let mtu = error.mtu.filter(|_| error.reason == Refusal::TooBig)?;
    let carried = usize::try_from(mtu).ok()?.checked_sub(headroom)?;
    u16::try_from(carried + 1).ok()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use hawser_net::link::RUNS_PER_BATCH;
    use hawser_net::link::udp::{UdpLink, UdpOpts};

    use super::*;

    #[test]
    fn empty_datagrams_end_a_round_as_others_do() {
        let mut link = UdpLink::bind(UdpOpts::new("127.0.0.1:0".parse().expect("an address"))).expect("a link");
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for _ in 0..2_000 {
            stranger.send_to(&[], link.local_addr()).expect("it is taken");
        }
        let (mut batch, mut gone) = (RecvBatch::new(), 0);
        let more = one_round(|| {
            assert_eq!(link.recv(&mut batch).expect("receive"), 0);
            gone += batch.messages();
            (batch.is_full(), count(&batch, 0))
        });
        assert!(more, "the rest waits for the next round");
        assert!((DATAGRAMS_PER_ROUND..DATAGRAMS_PER_ROUND + RUNS_PER_BATCH).contains(&gone), "{gone}");
    }

    #[test]
    fn a_router_that_names_an_mtu_names_the_first_size_that_is_too_long() {
        let remote = "192.0.2.1:4920".parse().expect("an address");
        let error = |reason, mtu| PathError { remote, reason, mtu, from: None, quoted: None };
        for (reason, mtu, size) in [
            (Refusal::TooBig, Some(1400), Some(1373)),
            (Refusal::TooBig, None, None),
            (Refusal::TooBig, Some(20), None),
            (Refusal::PortClosed, Some(1400), None),
        ] {
            assert_eq!(refused_size(&error(reason, mtu), 28), size, "{reason:?} {mtu:?}");
        }
    }
}
