//! The receiving end: handshakes, and the sessions of up to four senders.
//!
//! 1. [`Receiver::handle_datagram`]: a handshake's first message is answered; data is opened by the session and path
//!    whose label it has. 2. [`Receiver::poll_event`]: offers, blocks, digests. 3. [`Receiver::answer`],
//!    [`Receiver::written`],
//!    [`Receiver::result`]: what its owner found out. 4. [`Receiver::poll_transmit`]: what goes back.

mod blocks;
mod path;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use hawser_core::handshake::{PublicKey, Responder, Verdict as HandshakeVerdict};
use hawser_core::units::{PathId, Random, Time};
use hawser_core::wire::handshake::HandshakeIndex;
use hawser_core::wire::{DataHeader, DatagramKind, Label, Reader};

use crate::digest::Digest;
use crate::layout::{BlockId, OfferedFile};
use crate::sender::MOST_PATHS;
use crate::trust::{Trust, offer};
use crate::wire::{ACK_HEAD, Have, MOST_BITMAP, Reason, SEAL_LEN, Verdict};
use session::Session;

pub use blocks::WINDOW;
pub use session::{HALF_OPEN, SILENCE};

/// Senders served at once: 512 MiB of blocks.
pub const MOST_SESSIONS: usize = 4;
/// Handshakes that wait for their first datagram: 16 KiB each, with their labels.
const MOST_HALF_OPEN: usize = 64;
/// Bytes that the longest answer has.
pub const MOST_ANSWER: usize = SEAL_LEN + ACK_HEAD + MOST_BITMAP;

/// A session's name. Never used twice; a plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

/// Something that happened. Plain data.
#[derive(Debug)]
pub enum Event {
    /// A sender offers files: answer it.
    Offer(SessionId, Vec<OfferedFile>),
    /// A block is whole: write it, and say so.
    Block(SessionId, BlockId, Vec<u8>),
    /// A file has this digest.
    Digest(SessionId, usize, Digest),
    /// A session has ended: the sender's reason; none for its silence, or where this end closed it. Told at least once.
    Gone(SessionId, Option<Reason>),
}

/// The receiving end. Without a session at first; one thread owns it. `A` is where answers go.
pub struct Receiver<A> {
    trust: Trust,
    responder: Responder,
    /// By their names, the oldest first.
    sessions: BTreeMap<SessionId, Session<A>>,
    labels: BTreeMap<Label, Vec<(SessionId, PathId)>>,
    next: u64,
    events: VecDeque<Event>,
    /// Handshake answers that wait to be sent.
    answers: VecDeque<(A, Vec<u8>)>,
    scratch: Vec<u8>,
}

impl<A: Copy> Receiver<A> {
    /// Takes files from those whom `trust` lets.
    pub fn new(trust: Trust, has_aes: bool) -> Receiver<A> {
        Receiver {
            responder: Responder::new(trust.answers(), offer(has_aes)),
            trust,
            sessions: BTreeMap::new(),
            labels: BTreeMap::new(),
            next: 0,
            events: VecDeque::new(),
            answers: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// Step 1. `host` is whom cookies are for. Says whether the datagram proved where it comes from, so that the way
    /// back may be learned of it: one that opened, or a handshake's message, which is answered along the way that it
    /// came.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: A,
        host: SocketAddr,
        datagram: &[u8],
        rng: &mut dyn Random,
    ) -> bool {
        match datagram.first().map(|first| DatagramKind::of(*first)) {
            Some(Ok(DatagramKind::Data)) => self.on_data(now, from, datagram).is_some(),
            Some(Ok(DatagramKind::Initiation)) => self.on_initiation(now, from, host, datagram, rng),
            _ => false,
        }
    }

    fn on_data(&mut self, now: Time, from: A, datagram: &[u8]) -> Option<()> {
        let header = DataHeader::decode(&mut Reader::new(datagram)).ok()?;
        let Receiver { sessions, labels, scratch, events, .. } = self;
        for (id, path) in labels.get(&header.label)? {
            let is_full = || sessions.values().filter(|session| session.is_open()).count() >= MOST_SESSIONS;
            if !sessions.get(id)?.is_open() && is_full() {
                continue;
            }
            let session = sessions.get_mut(id)?;
            let Some((number, _)) = session.open(*path, header.number, datagram, scratch) else { continue };
            let frame = std::mem::take(scratch);
            session.on_frame(now, from, *path, number, datagram.len(), &frame, &mut |event| events.push_back(event));
            *scratch = frame;
            return Some(());
        }
        None
    }

    fn on_initiation(&mut self, now: Time, from: A, host: SocketAddr, datagram: &[u8], rng: &mut dyn Random) -> bool {
        let index = HandshakeIndex(self.next as u32);
        let trust = &self.trust;
        let verdict = self.responder.on_initiation(now, datagram, host, index, &mut |key| trust.knows(key), rng);
        match verdict {
            HandshakeVerdict::Drop(_) => return false,
            HandshakeVerdict::Cookie(cookie) => self.answers.push_back((from, cookie.to_vec())),
            HandshakeVerdict::Accept(accepted) => {
                self.answers.push_back((from, accepted.response.to_vec()));
                let id = SessionId(self.next);
                self.next += 1;
                let session = Session::new(id, accepted.peer, accepted.established.keys, now);
                for path in (0..MOST_PATHS as u32).map(PathId) {
                    self.labels.entry(session.keys.recv.label(path)).or_default().push((id, path));
                }
                self.sessions.insert(id, session);
                self.bound_half_open();
            }
        }
        true
    }

    /// The oldest half-open handshake goes first.
    fn bound_half_open(&mut self) {
        let mut half_open = self.sessions.values().filter(|session| !session.is_open()).map(|session| session.id);
        if let (Some(oldest), true) = (half_open.next(), half_open.count() >= MOST_HALF_OPEN) {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        self.labels.retain(|_, owners| {
            owners.retain(|(owner, _)| *owner != id);
            !owners.is_empty()
        });
    }

    /// Step 2.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Step 3: what becomes of each file of an offer, in order, and what is there of it.
    pub fn answer(&mut self, session: SessionId, verdicts: Vec<(Verdict, Have)>) {
        self.with(session, |session| session.answer(verdicts));
    }

    /// Step 3: a block was written; its memory comes back.
    pub fn written(&mut self, now: Time, session: SessionId, block: BlockId, memory: Vec<u8>) {
        self.with(session, |session| session.on_written(now, block, memory));
    }

    /// Step 3: a file has its name, or cannot have it.
    pub fn result(&mut self, session: SessionId, file: usize, verdict: Verdict) {
        self.with(session, |session| session.result(file, verdict));
    }

    /// Closes a session, or all of them.
    pub fn stop(&mut self, session: Option<SessionId>) {
        let chosen = self.sessions.values_mut().filter(|open| session.is_none_or(|id| open.id == id));
        chosen.for_each(|session| session.stop(Reason::Stopped));
    }

    /// Who a session is with; for a secret's, a key that was drawn for it.
    pub fn peer(&self, session: SessionId) -> Option<PublicKey> {
        self.sessions.get(&session).map(|session| session.peer)
    }

    /// How long nothing came from a session's sender.
    pub fn silent_for(&self, now: Time, session: SessionId) -> Duration {
        self.sessions.get(&session).map_or(Duration::MAX, |session| now.since(session.heard_at))
    }

    /// Bytes of a session's chunks that have come.
    pub fn came(&self, session: SessionId) -> u64 {
        self.sessions.get(&session).map_or(0, Session::came)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        let over = self.sessions.values().filter(|session| session.is_over(now));
        let told = |session: &Session<A>| (session.id, session.is_proven(), session.is_settled());
        for (id, proven, settled) in over.map(told).collect::<Vec<_>>() {
            if proven {
                self.events.push_back(Event::Gone(id, settled.then_some(Reason::Done)));
            }
            self.forget(id);
        }
    }

    /// When something is due.
    pub fn poll_timeout(&self, now: Time) -> Time {
        if !self.answers.is_empty() {
            return now;
        }
        self.sessions.values().map(|session| session.deadline(now)).fold(Time::NEVER, Time::min)
    }

    /// Step 4: the next datagram that goes back, written to `out` ([`MOST_ANSWER`] bytes): to whom, and how long it is.
    pub fn poll_transmit(&mut self, now: Time, out: &mut [u8]) -> Option<(A, usize)> {
        if let Some((to, answer)) = self.answers.pop_front() {
            out.get_mut(..answer.len())?.copy_from_slice(&answer);
            return Some((to, answer.len()));
        }
        self.sessions.values_mut().find_map(|session| session.poll_transmit(now, out))
    }

    fn with(&mut self, id: SessionId, act: impl FnOnce(&mut Session<A>)) {
        if let Some(session) = self.sessions.get_mut(&id) {
            act(session);
        }
    }
}

impl<A> std::fmt::Debug for Receiver<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver")
            .field("trust", &self.trust)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
