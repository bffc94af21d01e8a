//! One session of a receiver.
//!
//! ```text
//!  Half-open --- a datagram opens ---> Waiting --- OFFER ---> Asked --- `answer` ---> Taking --- CLOSE ---> Gone
//!      |  10 s, or 64 others              |                     |                       |                  ^
//!      +----------------------------------+---------------------+-- 30 s of silence ----+------------------+
//!                                                                  10 s where every file has its result
//! ```
//!
//! 1. [`Session::open`]: a datagram of it, or not. 2. [`Session::on_frame`]. 3. [`Session::answer`],
//!    [`Session::on_written`],
//!    [`Session::result`]: what its owner found out. 4. [`Session::poll_transmit`]: what goes back.

use std::time::Duration;

use hawser_core::handshake::{PublicKey, TransportKeys};
use hawser_core::units::{PacketNumber, PathId, Time};
use hawser_core::wire::{DATA_HEADER_LEN, DataHeader, TAG_LEN, TruncatedNumber};

use super::blocks::{Blocks, Filled};
use super::path::RecvPath;
use super::{Event, SessionId};
use crate::layout::{BlockId, ChunkId, Layout, OfferedFile};
use crate::sender::{self, MOST_PATHS};
use crate::stream::{Incoming, Outgoing};
use crate::wire::{CONTROL_HEAD, Frame, Have, MOST_BITMAP, Message, Reason, SEAL_LEN, Verdict};

/// How long a handshake waits for its first datagram.
pub const HALF_OPEN: Duration = Duration::from_secs(10);
/// How long a sender may be silent.
pub const SILENCE: Duration = Duration::from_secs(30);
/// How long a sender may be silent where every file has its result: its CLOSE was lost, or the results were. Twice the
/// silence after which it calls anew, so that this end is still there.
const SETTLED: Duration = Duration::from_secs(2 * sender::SILENCE.as_secs());
/// How long a piece of the control stream waits for its acknowledgement, where no round trip is known here (RFC 9002
/// section
/// 6.2.2 has three times 333 ms for a first flight; marks answer at once).
const CONTROL_WAIT: Duration = Duration::from_millis(500);
/// Bytes of a datagram that goes back at most: fits wherever the least chunk does.
const MOST_BACK: usize = 512;

#[derive(Debug)]
pub(super) enum Phase {
    HalfOpen,
    Waiting,
    Asked { layout: Layout, names: Vec<OfferedFile> },
    Taking(Blocks),
    Gone,
}

/// A session. Half-open at first; the receiver owns it.
#[derive(Debug)]
pub(super) struct Session<A> {
    pub(super) id: SessionId,
    pub(super) peer: PublicKey,
    pub(super) phase: Phase,
    pub(super) keys: TransportKeys,
    pub(super) heard_at: Time,
    paths: Vec<Option<RecvPath<A>>>,
    out: Outgoing,
    into: Incoming,
    /// The path that was heard last: where control messages go.
    last: usize,
    close: Option<Reason>,
    /// Files that are taken and have no result yet.
    open: usize,
}

impl<A: Copy> Session<A> {
    pub(super) fn new(id: SessionId, peer: PublicKey, keys: TransportKeys, now: Time) -> Session<A> {
        Session {
            id,
            peer,
            phase: Phase::HalfOpen,
            keys,
            heard_at: now,
            paths: (0..MOST_PATHS).map(|_| None).collect(),
            out: Outgoing::default(),
            into: Incoming::default(),
            last: 0,
            close: None,
            open: 0,
        }
    }

    /// Whether it serves a sender that proved itself.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::HalfOpen | Phase::Gone)
    }

    /// Whether its sender ever proved itself.
    pub(super) fn is_proven(&self) -> bool {
        !matches!(self.phase, Phase::HalfOpen)
    }

    /// Step 1: opens a datagram of a path into `out`: its number and frame.
    pub(super) fn open<'o>(
        &self,
        path: PathId,
        number: TruncatedNumber,
        datagram: &[u8],
        out: &'o mut Vec<u8>,
    ) -> Option<(PacketNumber, &'o [u8])> {
        let known = self.paths.get(path.0 as usize)?.as_ref().and_then(|path| path.largest);
        let number = number.expand(known);
        out.resize(datagram.len().checked_sub(DATA_HEADER_LEN + TAG_LEN)?, 0);
        let len = self.keys.recv.open_into(path, number, datagram, out).ok()?;
        Some((number, &out[..len]))
    }

    /// Step 2: what a datagram of `bytes` said. A sender that breaks a rule is told to go.
    #[expect(clippy::too_many_arguments, reason = "a datagram is all of these")]
    pub(super) fn on_frame(
        &mut self,
        now: Time,
        from: A,
        path: PathId,
        number: PacketNumber,
        bytes: usize,
        frame: &[u8],
        events: &mut impl FnMut(Event),
    ) {
        self.heard_at = now;
        if matches!(self.phase, Phase::HalfOpen) {
            self.phase = Phase::Waiting;
        }
        let at = path.0 as usize;
        let label = || self.keys.send.label(path);
        let own = self.paths[at].get_or_insert_with(|| RecvPath::new(path, label(), from, now));
        own.on_number(now, number, bytes, from);
        self.last = at;
        let kept = match Frame::decode(frame) {
            Ok(Frame::Data(chunk, bytes)) => self.on_chunk(chunk, bytes, events),
            Ok(Frame::Mark(mark)) => {
                own.on_mark(&mark);
                self.out.on_received(now, mark.control, CONTROL_WAIT).ok()
            }
            Ok(Frame::Control { control, offset, piece }) => self.on_control(now, control, offset, piece, events),
            Ok(Frame::Close(reason)) => {
                self.phase = Phase::Gone;
                events(Event::Gone(self.id, Some(reason)));
                Some(())
            }
            Ok(Frame::Ack(_)) | Err(_) => None,
        };
        if kept.is_none() {
            self.close = Some(Reason::Protocol);
        }
    }

    /// None: a lie. Chunks before the files are taken are none's.
    fn on_chunk(&mut self, chunk: ChunkId, bytes: &[u8], events: &mut impl FnMut(Event)) -> Option<()> {
        let Phase::Taking(blocks) = &mut self.phase else { return None };
        match blocks.fill(chunk, bytes) {
            Filled::New | Filled::Known => Some(()),
            Filled::Whole(bytes) => {
                events(Event::Block(self.id, chunk.block, bytes));
                Some(())
            }
            Filled::Wrong => None,
        }
    }

    fn on_control(
        &mut self,
        now: Time,
        control: u32,
        offset: u32,
        piece: &[u8],
        events: &mut impl FnMut(Event),
    ) -> Option<()> {
        self.out.on_received(now, control, CONTROL_WAIT).ok()?;
        self.into.on_piece(offset, piece);
        // How much has come is said with the next acknowledgement, which a stream waits for.
        if let Some(path) = &mut self.paths[self.last] {
            path.hurry();
        }
        while let Some(message) = self.into.next_message().ok()? {
            match message {
                Message::Offer { chunk, files } if matches!(self.phase, Phase::Waiting) => {
                    let sizes = files.iter().map(|file| file.as_ref().map_or_else(|(_, size)| *size, |file| file.size));
                    let layout = Layout::new(sizes, chunk.into()).ok()?;
                    events(Event::Offer(self.id, files.clone()));
                    self.phase = Phase::Asked { layout, names: files };
                }
                Message::Digest(file, digest) if matches!(self.phase, Phase::Taking(_)) => {
                    events(Event::Digest(self.id, file.into(), digest));
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Step 3: what becomes of each file of the offer.
    pub(super) fn answer(&mut self, verdicts: Vec<(Verdict, Have)>) {
        let Phase::Asked { layout, names } = std::mem::replace(&mut self.phase, Phase::Waiting) else { return };
        let mut have = Vec::with_capacity(names.len());
        for (file, (name, (verdict, there))) in names.iter().zip(verdicts).enumerate() {
            let verdict = if name.is_err() { Verdict::Name } else { verdict };
            self.out.say(&Message::Answer(file as u16, verdict, there.clone()));
            self.open += usize::from(verdict == Verdict::Good);
            have.push((verdict == Verdict::Good).then_some(there));
        }
        self.phase = Phase::Taking(Blocks::new(layout, have));
    }

    /// Step 3: a block was written.
    pub(super) fn on_written(&mut self, now: Time, block: BlockId, memory: Vec<u8>) {
        let Phase::Taking(blocks) = &mut self.phase else { return };
        let before = blocks.limit();
        blocks.on_written(block, memory);
        if blocks.limit() > before
            && let Some(path) = &mut self.paths[self.last]
        {
            path.tell(now);
        }
    }

    /// Step 3: a file is done with.
    pub(super) fn result(&mut self, file: usize, verdict: Verdict) {
        self.open = self.open.saturating_sub(1);
        self.out.say(&Message::Result(file as u16, verdict));
    }

    /// Bytes of chunks that have come.
    pub(super) fn came(&self) -> u64 {
        match &self.phase {
            Phase::Taking(blocks) => blocks.came,
            _ => 0,
        }
    }

    /// Closes it from this end.
    pub(super) fn stop(&mut self, reason: Reason) {
        self.close.get_or_insert(reason);
    }

    /// Whether every file has its result, or was not taken.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Taking(_)) && self.open == 0
    }

    /// How long its sender may be silent.
    fn patience(&self) -> Duration {
        match self.phase {
            Phase::HalfOpen => HALF_OPEN,
            _ if self.is_settled() => SETTLED,
            _ => SILENCE,
        }
    }

    /// Time has passed: says whether it is over by that.
    pub(super) fn is_over(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Gone) || now.since(self.heard_at) >= self.patience()
    }

    /// When something is due.
    pub(super) fn deadline(&self, now: Time) -> Time {
        if self.close.is_some() || self.is_open() && self.out.is_due() {
            return now;
        }
        let paths = self.paths.iter().flatten().filter_map(RecvPath::deadline);
        paths.chain(self.out.deadline()).fold(self.heard_at + self.patience(), Time::min)
    }

    /// Step 4: the next datagram that goes back, written to `out`: to whom, and how long it is.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut [u8]) -> Option<(A, usize)> {
        if !self.is_open() {
            return None;
        }
        self.out.on_timeout(now);
        if let Some(reason) = self.close.take() {
            let sent = self.send(self.last, &Frame::Close(reason), out);
            self.phase = Phase::Gone;
            return sent;
        }
        let (total, limit) =
            (self.into.total(), if let Phase::Taking(blocks) = &self.phase { blocks.limit() } else { 0 });
        if let Some(at) = self.paths.iter().position(|path| path.as_ref().is_some_and(|path| path.is_due(now))) {
            let mut bitmap = [0; MOST_BITMAP];
            let ack = self.paths[at].as_mut()?.ack(now, total, limit, &mut bitmap);
            return self.send(at, &Frame::Ack(ack), out);
        }
        let room = MOST_BACK - SEAL_LEN - CONTROL_HEAD;
        let piece = self.out.next_piece(now, room, CONTROL_WAIT).map(|piece| (piece.offset, piece.bytes.to_vec()))?;
        self.send(self.last, &Frame::Control { control: total, offset: piece.0, piece: &piece.1 }, out)
    }

    fn send(&mut self, at: usize, frame: &Frame<'_>, out: &mut [u8]) -> Option<(A, usize)> {
        let path = self.paths[at].as_mut()?;
        let (number, header) = path.next_number();
        let len = frame.encode(out.get_mut(DATA_HEADER_LEN..)?).ok()? + SEAL_LEN;
        let datagram = out.get_mut(..len)?;
        datagram[..DATA_HEADER_LEN].copy_from_slice(&DataHeader::encode(&header));
        self.keys.send.seal(path.id, number, datagram).ok()?;
        Some((path.answer_to, len))
    }
}
