//! One stream: a connection to one remote address, its records in and out, and how much it takes now.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::super::send_batch::{MAX_RUN_SEGMENTS, Piece};
use super::info::{Info, set_low_water};
use super::records::{LENGTH_BYTES, length_of};
use super::tls::{FIRST_BYTE, Party, Tls};
use super::{CALL, PROOF, SILENCE, StreamRoom};

/// What may wait in the socket unsent, so that the kernel always has something to send until this thread comes again:
/// this long at the rate that is delivered, within these bounds in bytes. What waits longer is to wait in the portal's
/// own queue.
const AHEAD: Duration = Duration::from_millis(2);
const AHEAD_LEAST: usize = 16 << 10;
const AHEAD_MOST: usize = 512 << 10;
/// Beyond that, room for what is no data: acknowledgements do not wait for it, in bytes.
const CONTROL_ROOM: usize = 8 << 10;
/// One part in this many of a new rate enters the smoothed one (as RFC 6298 section 2, alpha).
const SMOOTH_PARTS: u64 = 8;

/// How far a stream is.
///
/// ```text
///   CONNECTING --writable, no error--> OPEN --its end, an error, a malformed record, silence--> gone
///        |                               ^
///        +----> HANDSHAKE --TLS agreed---+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// We called, and were not answered yet.
    Connecting,
    /// The two agree on TLS.
    Handshake,
    /// Records come and go.
    Open,
}

/// What records go in. A part of [`Stream`].
#[derive(Debug)]
enum Channel {
    /// That is seen by the first byte that comes: whoever called decides.
    Unknown,
    /// The connection itself.
    Plain,
    /// A TLS session.
    Tls(Box<Tls>),
}

/// A stream. Starts with nothing received or sent. Its link owns it.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    pub(super) remote: SocketAddr,
    pub(super) phase: Phase,
    channel: Channel,
    /// The other side called.
    pub(super) accepted: bool,
    /// It brought what only somebody with a session's keys can send.
    pub(super) proven: bool,
    pub(super) began: Instant,
    /// When something last came.
    pub(super) heard: Instant,
    /// The beginning of a record whose end has not come.
    tail: Vec<u8>,
    /// What the socket did not take of what was given to it.
    out: VecDeque<u8>,
    /// Bytes that wait in the socket, as far as is known: those sent since it was looked at are counted whole.
    unsent: usize,
    /// Bytes that may.
    ahead: usize,
    rate: u64,
    /// What is known of the socket is old.
    pub(super) stale: bool,
    /// What its link waits for.
    pub(super) watched: EventFlags,
}

impl Stream {
    /// A call that was begun, inside TLS where there is a `party`.
    pub(super) fn called(socket: Socket, remote: SocketAddr, party: Option<&Party>) -> io::Result<Stream> {
        let tls = party.map(|party| party.session(remote.ip()).map(Box::new)).transpose()?;
        let channel = tls.map_or(Channel::Plain, Channel::Tls);
        Ok(Stream::new(socket, remote, Phase::Connecting, channel, false))
    }

    /// A connection that came.
    pub(super) fn accepted(socket: Socket, remote: SocketAddr) -> Stream {
        Stream::new(socket, remote, Phase::Open, Channel::Unknown, true)
    }

    /// Looks at the first byte of one that came, if that was not seen yet. Whether it wants TLS.
    pub(super) fn wants_tls(&mut self) -> io::Result<bool> {
        if !matches!(self.channel, Channel::Unknown) {
            return Ok(false);
        }
        let mut first = [MaybeUninit::new(0)];
        match self.socket.peek(&mut first) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if is_for_now(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        // SAFETY: the byte was initialised above, and at most written to since.
        let tls = unsafe { first[0].assume_init() } == FIRST_BYTE;
        if !tls {
            self.channel = Channel::Plain;
        }
        Ok(tls)
    }

    /// For the TLS acceptor: the handshake begins.
    pub(super) fn begin_tls(&mut self, party: &Party) -> io::Result<()> {
        self.channel = Channel::Tls(Box::new(party.session(self.remote.ip())?));
        Ok(())
    }

    /// For the TLS acceptor: a step of the handshake. Whether it is over.
    pub(super) fn handshake_step(&mut self) -> io::Result<bool> {
        match &mut self.channel {
            Channel::Tls(tls) => tls.handshake_step(&self.socket),
            Channel::Plain | Channel::Unknown => Ok(true),
        }
    }

    /// For the TLS acceptor: what the handshake waits for.
    pub(super) fn handshake_needs(&self) -> PollFlags {
        if self.waits() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
    }

    fn new(socket: Socket, remote: SocketAddr, phase: Phase, channel: Channel, accepted: bool) -> Stream {
        let now = Instant::now();
        Stream {
            socket,
            remote,
            phase,
            channel,
            accepted,
            proven: false,
            began: now,
            heard: now,
            tail: Vec::new(),
            out: VecDeque::new(),
            unsent: 0,
            ahead: 0,
            rate: 0,
            stale: true,
            watched: EventFlags::empty(),
        }
    }

    /// When it ends unless something comes.
    pub(super) fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Connecting | Phase::Handshake => self.began + CALL,
            Phase::Open if self.accepted && !self.proven => self.began + PROOF,
            Phase::Open => self.heard + SILENCE,
        }
    }

    /// Whether a call was answered; an error is the refusal.
    pub(super) fn connected(&mut self) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        self.heard = Instant::now();
        self.phase = Phase::Open;
        if let Channel::Tls(tls) = &mut self.channel {
            self.phase = Phase::Handshake;
            tls.flush(&self.socket)?;
        }
        Ok(())
    }

    /// Whether TLS was agreed on just now.
    pub(super) fn handshake_is_over(&mut self) -> bool {
        let done = matches!(&self.channel, Channel::Tls(tls) if !tls.begins());
        let news = done && self.phase == Phase::Handshake;
        if news {
            self.phase = Phase::Open;
        }
        news
    }

    /// Receives behind what the last record lacks, both into `buffer`; gives the bytes there, `None` when nothing came.
    ///
    /// # Errors
    /// The stream's end is one.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let kept = self.tail.len();
        match self.read(&mut buffer[kept..]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer[..kept].copy_from_slice(&self.tail);
                self.tail.clear();
                self.heard = Instant::now();
                Ok(Some(kept + count))
            }
            Err(error) if is_for_now(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.channel {
            Channel::Tls(tls) => tls.read(&self.socket, buffer),
            Channel::Plain | Channel::Unknown => (&self.socket).read(buffer),
        }
    }

    /// Keeps the beginning of a record until the rest comes.
    pub(super) fn keep(&mut self, part: &[u8]) {
        self.tail.extend_from_slice(part);
    }

    /// Sends a piece's datagrams, each as a record; what the socket does not take waits here.
    pub(super) fn send(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        let size = piece.segment_size.map_or(piece.bytes.len(), usize::from).max(1);
        let records = piece.bytes.len() + piece.bytes.len().div_ceil(size) * LENGTH_BYTES;
        if let Channel::Tls(tls) = &mut self.channel {
            tls.send(&self.socket, piece, size)?;
        } else {
            let taken = if self.out.is_empty() { self.write_records(piece.bytes, size)? } else { 0 };
            if taken < records {
                self.wait(piece.bytes, size, taken);
            }
        }
        self.unsent += records;
        self.stale = true;
        Ok(())
    }

    /// One system call for as many records as a train has; gives the bytes that the socket took.
    fn write_records(&mut self, bytes: &[u8], size: usize) -> io::Result<usize> {
        let mut lengths = [[0; LENGTH_BYTES]; MAX_RUN_SEGMENTS];
        for (length, datagram) in lengths.iter_mut().zip(bytes.chunks(size)) {
            *length = length_of(datagram);
        }
        let mut slices = [IoSlice::new(&[]); 2 * MAX_RUN_SEGMENTS];
        let mut count = 0;
        for (length, datagram) in lengths.iter().zip(bytes.chunks(size)) {
            slices[count] = IoSlice::new(length);
            slices[count + 1] = IoSlice::new(datagram);
            count += 2;
        }
        match self.socket.send_vectored_with_flags(&slices[..count], libc::MSG_NOSIGNAL) {
            Ok(taken) => Ok(taken),
            Err(error) if is_for_now(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Keeps all but the first `taken` bytes of the records.
    fn wait(&mut self, bytes: &[u8], size: usize, taken: usize) {
        let before = self.out.len();
        for datagram in bytes.chunks(size) {
            self.out.extend(length_of(datagram));
            self.out.extend(datagram);
        }
        self.out.drain(before..before + taken);
    }

    /// Sends what waits here.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if let Channel::Tls(tls) = &mut self.channel {
            tls.flush(&self.socket)?;
        }
        while !self.out.is_empty() {
            match self.socket.send_with_flags(self.out.as_slices().0, libc::MSG_NOSIGNAL) {
                Ok(taken) => drop(self.out.drain(..taken)),
                Err(error) if is_for_now(&error) => break,
                Err(error) => return Err(error),
            }
        }
        self.stale = true;
        Ok(())
    }

    /// Whether the socket did not take all that it was given.
    fn waits(&self) -> bool {
        match &self.channel {
            Channel::Tls(tls) => tls.waits(),
            Channel::Plain | Channel::Unknown => !self.out.is_empty(),
        }
    }

    /// Whether records may be written at all.
    fn is_ready(&self) -> bool {
        self.phase == Phase::Open && !self.waits() && !matches!(&self.channel, Channel::Tls(tls) if tls.begins())
    }

    /// Whether more may be written now, were it only an acknowledgement.
    pub(super) fn has_room(&self) -> bool {
        self.is_ready() && self.unsent < self.ahead.max(AHEAD_LEAST) + CONTROL_ROOM
    }

    /// Looks at the socket: how much it takes before a queue builds in it.
    pub(super) fn look(&mut self) -> io::Result<StreamRoom> {
        let info = Info::of(&self.socket)?;
        self.stale = false;
        self.unsent = info.unsent;
        self.rate =
            if self.rate == 0 { info.rate } else { self.rate - self.rate / SMOOTH_PARTS + info.rate / SMOOTH_PARTS };
        let ahead = (self.rate as f64 * AHEAD.as_secs_f64()) as usize;
        let ahead = ahead.clamp(AHEAD_LEAST, AHEAD_MOST).next_power_of_two();
        if ahead != self.ahead {
            set_low_water(&self.socket, ahead)?;
            self.ahead = ahead;
        }
        let room = if self.is_ready() { self.ahead.saturating_sub(self.unsent) } else { 0 };
        Ok(StreamRoom { remote: self.remote, room, rate: self.rate })
    }

    /// What is waited for: room only where there is none.
    pub(super) fn interest(&self) -> EventFlags {
        match self.phase {
            Phase::Connecting => EventFlags::OUT,
            Phase::Open | Phase::Handshake if !self.waits() && self.unsent < self.ahead.max(1) => EventFlags::IN,
            Phase::Open | Phase::Handshake => EventFlags::IN | EventFlags::OUT,
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether it will go later.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
