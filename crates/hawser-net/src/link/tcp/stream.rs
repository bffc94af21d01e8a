//! One stream: a connection to one remote address, its records in and out, and how much it takes now.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::super::send_batch::{MAX_RUN_SEGMENTS, Piece};
use super::info::{Info, set_low_water};
use super::records::{LENGTH_BYTES, length_of};
use super::{CALL, PROOF, SILENCE, StreamRoom};

/// What may wait in the socket unsent, so that the kernel always has something to send until this thread comes again: this
/// long at the rate that is delivered, within these bounds in bytes. What waits longer is to wait in the portal's own queue.
const AHEAD: Duration = Duration::from_millis(2);
const AHEAD_LEAST: usize = 16 << 10;
const AHEAD_MOST: usize = 512 << 10;
/// Beyond that, room for what is no data: acknowledgements do not wait for it, in bytes.
const CONTROL_ROOM: usize = 8 << 10;
/// One part in so many of a new rate enters the smoothed one (as RFC 6298 section 2, alpha).
const SMOOTH_PARTS: u64 = 8;

/// How far a stream is.
///
/// ```text
///   CONNECTING --writable, no error--> OPEN --its end, an error, a malformed record, silence--> gone
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// We called, and were not answered yet.
    Connecting,
    /// Records come and go.
    Open,
}

/// A stream. Starts with nothing received or sent. Its link owns it.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    pub(super) remote: SocketAddr,
    pub(super) phase: Phase,
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
    pub(super) fn new(socket: Socket, remote: SocketAddr, phase: Phase, accepted: bool) -> Stream {
        let now = Instant::now();
        Stream {
            socket,
            remote,
            phase,
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
            Phase::Connecting => self.began + CALL,
            Phase::Open if self.accepted && !self.proven => self.began + PROOF,
            Phase::Open => self.heard + SILENCE,
        }
    }

    /// Whether a call was answered; an error is the refusal.
    pub(super) fn connected(&mut self) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        (self.phase, self.heard) = (Phase::Open, Instant::now());
        Ok(())
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
        (&self.socket).read(buffer)
    }

    /// Keeps the beginning of a record until the rest comes.
    pub(super) fn keep(&mut self, part: &[u8]) {
        self.tail.extend_from_slice(part);
    }

    /// Sends a piece's datagrams, each as a record; what the socket does not take waits here.
    pub(super) fn send(&mut self, piece: &Piece<'_>) -> io::Result<()> {
        let size = piece.segment_size.map_or(piece.bytes.len(), usize::from).max(1);
        let records = piece.bytes.len() + piece.bytes.len().div_ceil(size) * LENGTH_BYTES;
        let mut taken = 0;
        if self.out.is_empty() {
            taken = self.write_records(piece.bytes, size)?;
        }
        if taken < records {
            self.wait(piece.bytes, size, taken);
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

    /// Whether more may be written now, were it only an acknowledgement.
    pub(super) fn has_room(&self) -> bool {
        self.phase == Phase::Open && self.out.is_empty() && self.unsent < self.ahead.max(AHEAD_LEAST) + CONTROL_ROOM
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
        let room = if self.out.is_empty() { self.ahead.saturating_sub(self.unsent) } else { 0 };
        Ok(StreamRoom { remote: self.remote, room, rate: self.rate })
    }

    /// What is waited for: room only where there is none.
    pub(super) fn interest(&self) -> EventFlags {
        match self.phase {
            Phase::Connecting => EventFlags::OUT,
            Phase::Open if self.out.is_empty() && self.unsent < self.ahead.max(1) => EventFlags::IN,
            Phase::Open => EventFlags::IN | EventFlags::OUT,
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
