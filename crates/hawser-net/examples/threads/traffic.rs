//! Traffic of one case through two cores, and what each spends for it.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_core::endpoint::Endpoint;
use hawser_core::packet::Coalescer;
use hawser_core::session::{Buffers, Transmit};
use hawser_core::units::{Ecn, LinkId, Time};
use hawser_net::link::{Datagrams, Ecn as NetEcn};
use hawser_net::workers::{self, Task, Workers};

use super::case::Case;
use super::sums::{Sums, timed};
use super::support::{Portal, connected};

/// A batch has this room; a round this many batches (as in the portal's `transmit`), and a batch that was received this
/// many runs.
const BATCH_ROOM: usize = 65_536;
const BATCHES: usize = 8;
/// Rounds of the sender in a turn.
const ROUNDS: usize = 4;
/// Bytes that may be under way between generator and sink.
const UNDER_WAY: usize = 4 << 20;
/// From one turn to the next, of virtual time.
const TURN: Duration = Duration::from_micros(500);
/// Turns before any is counted: congestion control finds its rate.
const WARM_UP: usize = 100;

/// Who seals and opens.
pub enum How<'a> {
    /// The core itself, as portals of one thread do.
    Alone,
    /// The same thread, but behind the core, so that it can be timed.
    Apart,
    /// These, and the same thread where it has time.
    With(&'a mut Workers),
}

/// Two portals under the load of a case. Connected at first; one owner.
pub struct Traffic {
    case: Case,
    local: Portal,
    remote: Portal,
    now: Time,
    packet: Vec<u8>,
    /// Packets that were fed, and that arrived.
    fed: u32,
    arrived: u32,
    room: Vec<u8>,
    wire: Vec<Run>,
    home: Coalescer,
}

/// Datagrams on the wire.
struct Run {
    to: SocketAddr,
    remote: SocketAddr,
    segment_size: usize,
    bytes: Vec<u8>,
}

/// The room that is not written yet.
struct Free<'a>(&'a mut [u8]);

impl Buffers for Free<'_> {
    fn spare(&mut self, _: LinkId, _: SocketAddr) -> Option<&mut [u8]> {
        self.0.get_mut(..BATCH_ROOM)
    }
}

impl Traffic {
    pub fn new(case: Case) -> Self {
        let (local, remote, now) = connected();
        let (room, wire) = (vec![0; BATCH_ROOM * (BATCHES + 1)], Vec::new());
        let home = Coalescer::new(true);
        Traffic { case, local, remote, now, packet: case.packet(), fed: 0, arrived: 0, room, wire, home }
    }

    /// Runs for so long, and gives what `out` and `in` cost.
    ///
    /// # Panics
    /// If anything was lost or overtook.
    pub fn run(mut self, how: &mut How<'_>, length: Duration) -> [Sums; 2] {
        (0..WARM_UP).for_each(|_| self.turn(how, &mut Default::default(), true));
        let (start, before) = (Instant::now(), self.arrived);
        let mut sums: [Sums; 2] = Default::default();
        while start.elapsed() < length {
            self.turn(how, &mut sums, true);
        }
        sums.iter_mut().for_each(|sums| sums.packets = f64::from(self.arrived - before));
        let until = self.now + Duration::from_secs(2);
        while self.arrived < self.fed && self.now < until {
            self.turn(how, &mut Default::default(), false);
        }
        assert_eq!(self.arrived, self.fed, "packets that arrived, of those that were fed");
        sums
    }

    /// Some rounds of the sender, what it sent at the receiver, and acknowledgements back.
    fn turn(&mut self, how: &mut How<'_>, [out, home]: &mut [Sums; 2], feeds: bool) {
        let now = self.now;
        for _ in 0..ROUNDS {
            if feeds {
                self.feed(out);
            }
            speak(now, &mut self.local, &mut self.room, &mut self.wire, how, out);
        }
        self.now = now + TURN / 2;
        self.arrive(how, home);
        speak(self.now, &mut self.remote, &mut self.room, &mut self.wire, how, home);
        self.now = now + TURN;
        listen(self.now, &mut self.local, &mut self.wire, how, out, &mut self.home);
        out.time(|_| self.local.endpoint.handle_timeout(self.now, &mut self.home));
        home.time(|_| self.remote.endpoint.handle_timeout(self.now, &mut self.home));
    }

    /// A round's worth of packets comes from the host.
    fn feed(&mut self, sums: &mut Sums) {
        let Traffic { case, local, packet, fed, .. } = self;
        let (at, step) = case.numbering();
        let count = BATCHES * BATCH_ROOM / (case.train * 1_500);
        for _ in 0..count {
            if (*fed - self.arrived) as usize * case.bytes > UNDER_WAY {
                return;
            }
            packet[at..at + 4].copy_from_slice(&fed.wrapping_mul(step).to_be_bytes());
            local.endpoint.read_buffer()[..packet.len()].copy_from_slice(packet);
            let start = Instant::now();
            local.endpoint.handle_inner(self.now, packet.len(), case.offload());
            let took = start.elapsed().as_nanos() as f64;
            (sums.wall, sums.processor) = (sums.wall + took, sums.processor + took);
            *fed += case.train as u32;
        }
    }

    /// What is on the wire arrives, and comes home in order.
    fn arrive(&mut self, how: &mut How<'_>, sums: &mut Sums) {
        let Traffic { case, local, remote, wire, home, arrived, now, .. } = self;
        listen(*now, remote, wire, how, sums, home);
        let (at, step) = case.numbering();
        home.flush(&mut |_, packet| {
            let number = packet[at..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let dropped = || [&*local, &*remote].map(|portal| dropped(*now, portal));
            assert_eq!(number, Some(arrived.wrapping_mul(step)), "the next packet; dropped: {:?}", dropped());
            *arrived += (packet.len() - case.headers()).div_ceil(case.payload()) as u32;
        });
    }
}

/// What a portal dropped, and why.
fn dropped(now: Time, portal: &Portal) -> Vec<(&'static str, u64)> {
    portal.endpoint.snapshot(now).drops.iter().filter(|(_, count)| *count > 0).collect()
}

/// All that a portal has to say goes on the wire.
fn speak(now: Time, from: &mut Portal, room: &mut [u8], wire: &mut Vec<Run>, how: &mut How<'_>, sums: &mut Sums) {
    let mut said = Vec::with_capacity(BATCHES);
    loop {
        said.clear();
        sums.time(|aead| send(now, from, room, how, aead, &mut said));
        let mut rest = &room[..];
        for transmit in &said {
            let (bytes, after) = rest.split_at(transmit.len);
            rest = after;
            let (to, remote) = (transmit.remote, from.address(transmit.link));
            wire.push(Run { to, remote, segment_size: transmit.segment_size, bytes: bytes.to_vec() });
        }
        if said.len() < BATCHES {
            return;
        }
    }
}

/// One round of batches into the room, back to back, sealed.
fn send(now: Time, from: &mut Portal, room: &mut [u8], how: &mut How<'_>, aead: &mut f64, said: &mut Vec<Transmit>) {
    let (endpoint, mut free) = (&mut from.endpoint, Free(room));
    match how {
        How::Alone => {
            while said.len() < BATCHES
                && let Some(transmit) = endpoint.poll_transmit(now, &mut free)
            {
                free.take(&transmit);
                said.push(transmit);
            }
        }
        How::Apart => {
            while said.len() < BATCHES
                && let Some((transmit, unsealed)) = endpoint.poll_unsealed(now, &mut free)
            {
                let batch = free.take(&transmit);
                timed(aead, || unsealed.iter().for_each(|how| how.seal(batch)));
                said.push(transmit);
            }
        }
        How::With(workers) => workers.round(|round| {
            while said.len() < BATCHES
                && let Some((transmit, unsealed)) = endpoint.poll_unsealed(now, &mut free)
            {
                let batch = free.take(&transmit);
                said.push(transmit);
                let Some(how) = unsealed else { continue };
                for task in workers::seal(batch, how) {
                    if round.is_full() {
                        round.next();
                    }
                    round.push(task);
                }
            }
        }),
    }
}

/// What is on the wire arrives at a portal, in batches.
fn listen(now: Time, at: &mut Portal, wire: &mut Vec<Run>, how: &mut How<'_>, sums: &mut Sums, sink: &mut Coalescer) {
    for batch in wire.chunks_mut(BATCHES) {
        sums.time(|aead| receive(now, at, batch, how, aead, sink));
    }
    wire.clear();
}

/// One batch of runs: opened, and told the core.
fn receive(now: Time, at: &mut Portal, batch: &mut [Run], how: &mut How<'_>, aead: &mut f64, sink: &mut Coalescer) {
    let links: Vec<LinkId> = batch.iter().map(|run| at.link_at(run.to)).collect();
    let endpoint = &mut at.endpoint;
    match how {
        How::Alone => {
            for (run, link) in batch.iter_mut().zip(links) {
                for datagram in run.bytes.chunks_mut(run.segment_size) {
                    endpoint.handle_datagram(now, link, run.remote, None, Ecn::NotEct, datagram, sink);
                }
            }
        }
        How::Apart => {
            for (run, link) in batch.iter_mut().zip(links) {
                let opener = endpoint.opener(now, &run.bytes);
                let mut outcomes = Vec::new();
                timed(aead, || {
                    let Some(how) = &opener else { return };
                    outcomes.extend(run.bytes.chunks_mut(run.segment_size).map(|datagram| how.open(datagram)));
                });
                let mut outcomes = outcomes.into_iter();
                for datagram in run.bytes.chunks_mut(run.segment_size) {
                    let opening = opener.as_ref().zip(outcomes.next());
                    let opening = opening.map(|(how, outcome)| how.opening(outcome)).unwrap_or_default();
                    endpoint.handle_opened(now, link, run.remote, None, Ecn::NotEct, (datagram, opening), sink);
                }
            }
        }
        How::With(workers) => workers.round(|round| {
            let mut take = |endpoint: &mut Endpoint, task: Option<Task<'_>>| {
                let Some(Task::Open(opened)) = task else { return false };
                // The bench's links are by address.
                let link = LinkId(u16::from(opened.run.local.is_some()));
                let (run, openings) = opened.split();
                let remote = run.remote;
                for opened in run.singles().zip(openings) {
                    endpoint.handle_opened(now, link, remote, None, Ecn::NotEct, opened, sink);
                }
                true
            };
            for (run, link) in batch.iter_mut().zip(links) {
                let Run { remote, segment_size, ref mut bytes, .. } = *run;
                let opener = endpoint.opener(now, bytes);
                // Where it came to stands for the link.
                let local = (link == LinkId(1)).then_some(remote.ip());
                let run = Datagrams { remote, local, ecn: NetEcn::NotEct, segment_size, bytes, header: 0 };
                for task in workers::open(run, opener) {
                    if round.is_full() {
                        take(endpoint, round.next());
                    }
                    round.push(task);
                }
            }
            while take(endpoint, round.next()) {}
        }),
    }
}

impl<'a> Free<'a> {
    /// The batch that was just written.
    fn take(&mut self, transmit: &Transmit) -> &'a mut [u8] {
        let (batch, rest) = std::mem::take(&mut self.0).split_at_mut(transmit.len);
        self.0 = rest;
        batch
    }
}
