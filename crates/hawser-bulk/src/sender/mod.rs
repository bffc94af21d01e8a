//! The sending end of a session, from the handshake's keys on.
//!
//! ```text
//!             ANSWER of every file          RESULT of every file, or nothing is left to send
//!  Offering ---------------------> Sending -----------------------------------------------> Closing --> Ended
//!     |                               |  the keys have sealed enough, all has arrived: Ended (Rekey)
//!     +------- silence 5 s, no path, CLOSE, a broken rule: Ended --------------------------------------^
//! ```
//!
//! 0. [`Call`]: the handshake.
//! 1. [`Sender::new`] offers the files; [`Sender::load`] and [`Sender::tell_digest`] bring what was read of them.
//! 2. [`Sender::handle_datagram`] (`inbound.rs`): acknowledgements, control messages.
//! 3. [`Sender::handle_timeout`]: losses, silences, probes.
//! 4. [`Sender::poll_transmit`] (`outbound.rs`): what a path sends next; [`Sender::seal`] writes it.
//! 5. [`Sender::poll_event`], [`Sender::poll_timeout`]: what happened, and when it is to be called again.

mod call;
mod inbound;
mod marks;
mod outbound;
mod path;
pub(crate) mod queue;
mod rate;

use std::collections::VecDeque;
use std::time::Duration;

use hawser_core::congestion::pacer::Pacer;
use hawser_core::handshake::{REKEY_AFTER_PACKETS, TransportKeys};
use hawser_core::units::{ByteCount, PacketNumber, PathId, Rate, Time};

use crate::digest::Digest;
use crate::layout::{BlockId, ChunkId, FileInfo, Layout, LayoutError};
use crate::stream::{Incoming, Outgoing};
use crate::wire::{CHUNK_OVERHEAD, Have, Message, Reason, Verdict};
use path::{Fate, SendPath};
use queue::Queue;

pub use call::{Call, Called};
pub use inbound::Heard;
pub use outbound::Packet;
pub use path::{PathCounts, PathState};
pub use rate::Law;

/// Nothing at all came for so long: the session has ended. Twenty probes of a path were lost by then.
pub const SILENCE: Duration = Duration::from_secs(5);
/// Paths of one session at most: as many labels a receiver makes.
pub const MOST_PATHS: usize = 16;
/// Times that a CLOSE goes by each path: nobody acknowledges it.
const CLOSES: u8 = 3;
/// How long nothing may have come before a mark asks for an acknowledgement.
const KEEPALIVE: Duration = Duration::from_secs(1);

/// What a session is begun with. Plain data.
#[derive(Clone, Debug)]
pub struct SendPlan {
    /// The files, in order.
    pub files: Vec<FileInfo>,
    /// Bytes of payload that each path takes.
    pub payloads: Vec<usize>,
    /// Which path the handshake went, and how long it took.
    pub answered: (usize, Duration),
    /// How fast.
    pub law: Law,
    /// A ceiling over all paths.
    pub ceiling: Option<Rate>,
    /// Datagrams that the keys may seal.
    pub most_datagrams: u64,
    /// What chance decides.
    pub seed: u64,
}

/// Why a session ended. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Every file has its result.
    Done,
    /// Nothing came for [`SILENCE`].
    Silent,
    /// The keys have sealed enough: another handshake, and it goes on.
    Rekey,
    /// No path carries a chunk any more.
    NoPath,
    /// The receiver closed it.
    Closed(Reason),
    /// The receiver broke a rule of the protocol.
    Protocol,
}

/// Something that happened. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A file is taken, with what is there already; or not.
    Answered(usize, Verdict, Have),
    /// A file is done with.
    Result(usize, Verdict),
    /// A path's state changed.
    Path(usize, PathState),
    /// The session has ended.
    Ended(End),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    Offering,
    Sending,
    Closing(End),
    Ended,
}

/// The sending end. Offers its files at first; one thread owns it.
#[derive(Debug)]
pub struct Sender {
    keys: TransportKeys,
    phase: Phase,
    paths: Vec<SendPath>,
    /// The states that were told.
    told: Vec<PathState>,
    queue: Queue,
    /// Chunks of blocks below this one may be sent.
    limit: u32,
    out: Outgoing,
    into: Incoming,
    /// The largest number of each path's that was opened.
    largest: Vec<Option<PacketNumber>>,
    ceiling: Option<Pacer>,
    sealed: u64,
    most_datagrams: u64,
    /// Blocks that are still to be read.
    to_load: u32,
    /// When marks last asked for an acknowledgement.
    asked_at: Time,
    /// Verdicts on files: when taken, and at last.
    answers: Vec<Option<Verdict>>,
    results: Vec<Option<Verdict>>,
    heard_at: Time,
    closes: Vec<u8>,
    events: VecDeque<Event>,
}

impl Sender {
    /// Step 1: offers files. The chunk follows from the path that takes least.
    ///
    /// # Errors
    /// [`LayoutError`]: no file, no path, or what is no offer.
    pub fn new(now: Time, keys: TransportKeys, plan: &SendPlan) -> Result<Sender, LayoutError> {
        let layout = layout_of(plan)?;
        let chunk = layout.chunk();
        let datagram = ByteCount((chunk + CHUNK_OVERHEAD) as u64);
        let mut paths: Vec<SendPath> = (0..plan.payloads.len().min(MOST_PATHS) as u32)
            .map(|id| {
                let id = PathId(id);
                SendPath::new(id, keys.send.label(id), plan.law, datagram, plan.seed ^ u64::from(id.0) << 32, now)
            })
            .collect();
        let (first, round_trip) = plan.answered;
        if let Some(path) = paths.get_mut(first) {
            path.answered(now, round_trip);
        }
        let mut out = Outgoing::default();
        out.say(&Message::Offer { chunk: chunk as u16, files: plan.files.iter().cloned().map(Ok).collect() });
        let ceiling = plan.ceiling.map(|rate| {
            let mut pacer = Pacer::new(datagram);
            pacer.set_rate(rate);
            pacer
        });
        Ok(Sender {
            phase: Phase::Offering,
            told: vec![PathState::Untried; paths.len()],
            queue: Queue::new(layout),
            limit: 0,
            out,
            into: Incoming::default(),
            largest: vec![None; paths.len()],
            ceiling,
            sealed: 0,
            most_datagrams: plan.most_datagrams.min(REKEY_AFTER_PACKETS),
            to_load: 0,
            asked_at: now,
            answers: vec![None; plan.files.len()],
            results: vec![None; plan.files.len()],
            heard_at: now,
            closes: vec![0; paths.len()],
            events: VecDeque::new(),
            keys,
            paths,
        })
    }

    /// Whether another block should be read now.
    pub fn wants_block(&self) -> bool {
        self.phase == Phase::Sending && self.queue.wants_block()
    }

    /// Step 1: a block was read. Blocks come in order, without those that are there already.
    pub fn load(&mut self, block: BlockId, bytes: Vec<u8>) {
        self.to_load = self.to_load.saturating_sub(1);
        self.queue.load(block, bytes);
    }

    /// Memory of a block that has arrived.
    pub fn take_free(&mut self) -> Option<Vec<u8>> {
        self.queue.take_free()
    }

    /// Step 1: all of a file was read, and it has this digest.
    pub fn tell_digest(&mut self, file: usize, digest: Digest) {
        self.out.say(&Message::Digest(file as u16, digest));
    }

    /// A path takes no more than these bytes now: if that is less than a chunk's datagram, it is closed.
    pub fn handle_payload(&mut self, now: Time, path: usize, payload: usize) {
        if payload < self.queue_datagram()
            && let Some(path) = self.paths.get_mut(path)
        {
            path.close(now, |fate| take(&mut self.queue, fate));
        }
        self.look();
    }

    /// A router says that a path is dead: what it has under way goes to the others, and it is probed.
    pub fn handle_dead(&mut self, now: Time, path: usize) {
        if let Some(path) = self.paths.get_mut(path) {
            path.give_up(now, &mut |fate| take(&mut self.queue, fate));
        }
        self.look();
    }

    /// Ends the session from this end; the receiver is told.
    pub fn stop(&mut self) {
        self.close(End::Closed(Reason::Stopped));
    }

    /// Step 3.
    pub fn handle_timeout(&mut self, now: Time) {
        self.out.on_timeout(now);
        for at in 0..self.paths.len() {
            let alone =
                !self.paths.iter().enumerate().any(|(other, path)| other != at && path.state == PathState::Active);
            let queue = &mut self.queue;
            self.paths[at].on_timeout(now, alone, |fate| take(queue, fate));
        }
        if now >= self.next_question() {
            self.asked_at = now;
            self.paths.iter_mut().for_each(SendPath::ask_mark);
        }
        if now.since(self.heard_at) >= SILENCE {
            self.end(End::Silent);
        }
        self.look();
    }

    /// When marks ask for an acknowledgement, where nothing else does.
    fn next_question(&self) -> Time {
        self.heard_at.max(self.asked_at) + KEEPALIVE
    }

    /// Step 5: what happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Step 5: when [`Sender::handle_timeout`] is due, or a path may send; never once it has ended.
    pub fn poll_timeout(&mut self, now: Time) -> Time {
        if self.phase == Phase::Ended {
            return Time::NEVER;
        }
        if matches!(self.phase, Phase::Closing(_)) {
            return now;
        }
        let waits = self.queue.has_chunk(self.limit, !self.is_worn());
        let mut due =
            (self.heard_at + SILENCE).min(self.next_question()).min(self.out.deadline().unwrap_or(Time::NEVER));
        for path in &mut self.paths {
            due = due.min(path.deadline().unwrap_or(Time::NEVER));
            if waits && let Err(Some(ready)) = path.may_send(now) {
                due = due.min(ready);
            }
        }
        if waits && let Some(ceiling) = &mut self.ceiling {
            let ready = ceiling.ready_at(now, ceiling.burst());
            if ready > now {
                due = due.min(ready);
            }
        }
        due
    }

    /// Bytes of the files that have arrived in this session.
    pub fn arrived(&self) -> u64 {
        self.queue.arrived_bytes()
    }

    /// Whether all that was read and said has arrived, so that an end is at work: it looks for what is there, hashes or
    /// writes.
    pub fn is_waiting(&self) -> bool {
        self.out.is_done() && self.to_load == 0 && self.queue.is_empty()
    }

    /// Each path's state, smoothed round trip, rate in bit/s, and counts.
    pub fn paths(&self) -> impl Iterator<Item = (PathState, Duration, u64, PathCounts)> + '_ {
        self.paths.iter().map(|path| (path.state, path.rtt.snapshot().smoothed, path.bandwidth(), path.counts))
    }

    /// Bytes of a whole chunk's datagram.
    fn queue_datagram(&self) -> usize {
        self.queue.chunk() + CHUNK_OVERHEAD
    }

    /// What follows from what happened: paths' states, the end of keys and of paths.
    fn look(&mut self) {
        for (at, path) in self.paths.iter().enumerate() {
            if self.told[at] != path.state {
                self.told[at] = path.state;
                self.events.push_back(Event::Path(at, path.state));
            }
        }
        if self.paths.iter().all(|path| path.state == PathState::Closed) {
            self.end(End::NoPath);
        }
        if self.is_worn() && self.queue.is_settled() && self.phase == Phase::Sending {
            self.close(End::Rekey);
        }
    }

    /// The keys have sealed enough: no block is begun any more.
    fn is_worn(&self) -> bool {
        self.sealed >= self.most_datagrams
    }

    fn close(&mut self, end: End) {
        if !matches!(self.phase, Phase::Closing(_) | Phase::Ended) {
            self.phase = Phase::Closing(end);
        }
    }

    fn end(&mut self, end: End) {
        if self.phase != Phase::Ended {
            self.phase = Phase::Ended;
            self.events.push_back(Event::Ended(end));
        }
    }

    /// Whether late chunks are copied: nothing else is to be sent, or may be before they have come.
    fn copies_late_ones(&self) -> bool {
        self.queue.is_stopped(self.limit, self.to_load > 0)
    }

    /// A chunk that another path should have brought by now, for one with room: the end waits for nobody.
    fn late_chunk(&mut self, now: Time, at: usize) -> Option<ChunkId> {
        let by = now + self.paths[at].rtt.snapshot().smoothed;
        for other in (0..self.paths.len()).filter(|other| *other != at) {
            while let Some(chunk) = self.paths[other].later_than(by) {
                if !self.queue.has_arrived(chunk) {
                    self.paths[at].counts.copies += 1;
                    return Some(chunk);
                }
            }
        }
        None
    }
}

/// Where the bytes of a plan's files are.
///
/// # Errors
/// [`LayoutError`].
pub fn layout_of(plan: &SendPlan) -> Result<Layout, LayoutError> {
    let least = plan.payloads.iter().copied().min().unwrap_or(0);
    let chunk = least.saturating_sub(CHUNK_OVERHEAD).min(crate::layout::CHUNKS.end - 1);
    Layout::new(plan.files.iter().map(|file| file.size), chunk)
}

fn take(queue: &mut Queue, fate: Fate) {
    match fate {
        Fate::Arrived(chunk) => queue.on_acked(chunk),
        Fate::Lost(chunk) => queue.return_chunk(chunk),
    }
}

/// Whether every file is settled: it has a result, or was not taken.
fn all_settled(answers: &[Option<Verdict>], results: &[Option<Verdict>]) -> bool {
    answers.iter().zip(results).all(|(answer, result)| match answer {
        None => false,
        Some(Verdict::Good) => result.is_some(),
        Some(_) => true,
    })
}
