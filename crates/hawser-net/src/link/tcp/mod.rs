//! TCP links: records on a stream to each remote address.
//!
//! 1. [`TcpLink::bind`] makes a link that calls, or one that listens (`socket.rs`).
//! 2. [`TcpLink::has_room`] asks whether something may go to an address; a link that calls, calls it then.
//! 3. [`Link::recv`]: connections come (`accept.rs`), are answered or break; whole records become runs (`receive.rs`).
//! 4. [`Link::send`]: each piece becomes records on the stream to its address (`stream.rs`).
//! 5. [`TcpLink::news`] tells which streams came and went, and how much each takes now, so that nothing queues in a
//!    socket.
//! 6. [`TcpLink::on_timer`] ends what was silent, or did not prove itself, for too long.

mod accept;
mod accept_limit;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod info;
mod receive;
mod records;
mod socket;
mod stream;
mod tls;
mod tls_acceptor;
#[cfg(feature = "ecdsa")]
mod tls_certificate;
#[cfg(not(feature = "ecdsa"))]
#[path = "tls_certificate_ed25519.rs"]
mod tls_certificate;
mod tls_provider;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use socket2::Socket;

use super::{Link, LinkError, PathError, RecvBatch, Refusal, SendBatch, SendOutcome};
use accept_limit::AcceptLimit;
use receive::Held;
use stream::{Phase, Stream};
use tls::{PART_MOST, Party};
use tls_acceptor::TlsAcceptor;

/// A connection that came must prove that it holds a known key within this time.
const PROOF: Duration = Duration::from_secs(2);
/// Connections that have not yet; one more is closed at once.
pub const PENDING_MAX: usize = 64;
/// A call is given up after this time.
const CALL: Duration = Duration::from_secs(3);
/// A stream on which nothing came for so long is of no use: a path in use is asked after every second.
const SILENCE: Duration = Duration::from_secs(30);
/// From one call of an address to the next, at first and at most.
const CALL_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
/// Addresses of which that is remembered.
const CALLED_MAX: usize = 256;
/// Streams are looked over this often.
const LOOK_OVER: Duration = Duration::from_secs(1);
/// The keys of the listening socket and of the TLS acceptor's eventfd among the streams'.
const LISTENER: u64 = 0;
const TLS_ACCEPTOR: u64 = u64::MAX;

/// What a TCP link is opened with. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpOpts {
    /// The address to bind to: its port is listened on, or 0 where the link calls.
    pub local: SocketAddr,
    /// The interface everything must leave and come by.
    pub interface: Option<String>,
    /// The mark of everything sent (`SO_MARK`), for policy routing.
    pub mark: Option<u32>,
    /// Whether others are answered here; else they are called from here.
    pub listens: bool,
    /// The kernel's congestion control of each stream; the system's where there is none.
    pub congestion: Option<String>,
    /// Whether calls go inside TLS; a link that listens takes both kinds then, and plain ones only without.
    pub tls: bool,
    /// The name that is asked for there, if any.
    pub tls_name: Option<String>,
    /// The bytes that a datagram may have.
    pub sizes: RangeInclusive<usize>,
}

/// What became of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamNews {
    /// A call was answered.
    Up(SocketAddr),
    /// The stream to this address is no more.
    Down(SocketAddr),
    /// How much a stream takes now.
    Room(StreamRoom),
    /// A connection from there wants TLS, which is not configured: it was closed.
    TlsUnwanted(SocketAddr),
    /// A call was answered, and closed before TLS was agreed on.
    TlsRefused(SocketAddr),
}

/// How much a stream takes. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamRoom {
    /// Where it leads.
    pub remote: SocketAddr,
    /// Bytes before a queue builds in its socket.
    pub room: usize,
    /// Bytes a second that it delivers; 0 while unknown.
    pub rate: u64,
}

/// Calls of one address. Plain data.
#[derive(Debug, Clone, Copy)]
struct Called {
    next: Instant,
    wait: Duration,
}

/// A listening socket, or calls from one address, and a stream for each remote address.
/// Starts without any stream. For one thread.
#[derive(Debug)]
pub struct TcpLink {
    opts: TcpOpts,
    local: SocketAddr,
    index: Option<u32>,
    listener: Option<Socket>,
    /// What streams begin TLS with.
    party: Option<Party>,
    epoll: OwnedFd,
    /// Always readable: it stands for `epoll` while there is more to hand out.
    readable: OwnedFd,
    streams: HashMap<u64, Stream>,
    by_remote: HashMap<SocketAddr, u64>,
    next_key: u64,
    called: HashMap<SocketAddr, Called>,
    /// Streams that wait for their first proof.
    pending: usize,
    /// Of these, those that the TLS acceptor has.
    in_handshake: usize,
    tls_acceptor: Option<TlsAcceptor>,
    accept_limit: AcceptLimit,
    /// Until when no connection is accepted.
    paused_until: Option<Instant>,
    streams_max: usize,
    news: VecDeque<StreamNews>,
    /// Streams of which something is to be told.
    stale: Vec<u64>,
    /// Sockets that are ready, and were not looked at.
    ready: VecDeque<(u64, EventFlags)>,
    scratch: Box<[u8]>,
    held: Option<Held>,
    next_timer: Instant,
}

impl TcpLink {
    /// Opens a link in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`LinkError`], saying at which step.
    pub fn bind(opts: TcpOpts) -> Result<TcpLink, LinkError> {
        let opened = socket::open(&opts)?;
        let party = party(&opts).map_err(|source| LinkError::Socket { step: "prepare TLS", source })?;
        Ok(TcpLink {
            local: opened.local,
            index: opened.index,
            listener: opened.listener,
            party,
            epoll: opened.epoll,
            readable: opened.readable,
            streams: HashMap::new(),
            by_remote: HashMap::new(),
            next_key: LISTENER + 1,
            called: HashMap::new(),
            pending: 0,
            in_handshake: 0,
            tls_acceptor: None,
            accept_limit: AcceptLimit::default(),
            paused_until: None,
            streams_max: accept::streams_max(),
            news: VecDeque::new(),
            stale: Vec::new(),
            ready: VecDeque::new(),
            scratch: vec![0; super::RECV_BUFFER_BYTES + PART_MOST].into_boxed_slice(),
            held: None,
            next_timer: Instant::now() + LOOK_OVER,
            opts,
        })
    }

    /// Step 2: whether something may go to `remote` now.
    pub fn has_room(&mut self, remote: SocketAddr) -> bool {
        match self.by_remote.get(&remote).and_then(|key| self.streams.get(key)) {
            Some(stream) => stream.has_room(),
            None => {
                if self.listener.is_none() {
                    self.call(remote);
                }
                false
            }
        }
    }

    /// Step 5: what became of the streams since this was last asked, and how much those take that something was sent
    /// on.
    pub fn news(&mut self) -> Option<StreamNews> {
        while let Some(key) = self.stale.pop() {
            let Some(stream) = self.streams.get_mut(&key).filter(|stream| stream.stale) else { continue };
            if stream.phase != Phase::Open {
                continue;
            }
            match stream.look() {
                Ok(room) => self.news.push_back(StreamNews::Room(room)),
                Err(_) => self.end(key),
            }
            self.watch(key);
        }
        self.news.pop_front()
    }

    /// The sender of what came from `remote` holds a session's keys.
    pub fn prove(&mut self, remote: SocketAddr) {
        let stream = self.by_remote.get(&remote).and_then(|key| self.streams.get_mut(key));
        let Some(stream) = stream.filter(|stream| !stream.proven) else { return };
        stream.proven = true;
        self.pending -= usize::from(stream.accepted);
        self.called.remove(&remote);
    }

    /// Whether there is more to receive at once: it was read already, or seen to be ready. The descriptor is readable
    /// then.
    pub fn has_more(&self) -> bool {
        self.held.is_some() || !self.ready.is_empty()
    }

    /// How long until step 6 has something to do.
    pub fn timeout(&self) -> Duration {
        self.next_timer.saturating_duration_since(Instant::now())
    }

    /// Step 6.
    pub fn on_timer(&mut self) {
        let now = Instant::now();
        if now < self.next_timer {
            return;
        }
        self.next_timer = now + LOOK_OVER;
        let mut over = Vec::new();
        for (key, stream) in &self.streams {
            let deadline = stream.deadline();
            if deadline <= now {
                over.push(*key);
            } else {
                self.next_timer = self.next_timer.min(deadline);
            }
        }
        over.into_iter().for_each(|key| self.end(key));
        match self.paused_until {
            Some(until) if until <= now => self.resume_accepting(),
            Some(until) => self.next_timer = self.next_timer.min(until),
            None => {}
        }
    }

    /// Connections that were closed at once, as too many came.
    pub fn refused(&self) -> u64 {
        self.accept_limit.refused
    }

    /// Every address that there is an open stream to.
    pub fn remotes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.streams.values().filter(|stream| stream.phase == Phase::Open).map(|stream| stream.remote)
    }

    /// Calls an address, unless it was called a moment ago.
    fn call(&mut self, remote: SocketAddr) {
        let now = Instant::now();
        if self.called.len() >= CALLED_MAX {
            self.called.retain(|_, called| called.next > now);
        }
        let called = self.called.entry(remote).or_insert(Called { next: now, wait: CALL_AGAIN.0 });
        if called.next > now || self.streams.len() >= self.streams_max {
            return;
        }
        *called = Called { next: now + called.wait, wait: (called.wait * 2).min(CALL_AGAIN.1) };
        // A call that fails at once, for want of a route, is made again as one that was refused.
        let Ok(socket) = socket::call(&self.opts, self.local, remote) else { return };
        if let Ok(stream) = Stream::called(socket, remote, self.party.as_ref()) {
            self.add(stream);
        }
    }

    /// Takes up a stream; an earlier one to the same address ends. Gives its key.
    fn add(&mut self, mut stream: Stream) -> Option<u64> {
        if let Some(key) = self.by_remote.get(&stream.remote).copied() {
            self.end(key);
        }
        let key = self.next_key;
        stream.watched = stream.interest();
        epoll::add(&self.epoll, &stream, EventData::new_u64(key), stream.watched).ok()?;
        self.next_key += 1;
        self.pending += usize::from(stream.accepted);
        self.by_remote.insert(stream.remote, key);
        self.next_timer = self.next_timer.min(stream.deadline());
        self.stale.push(key);
        self.streams.insert(key, stream);
        Some(key)
    }

    /// The other side, or the network, broke a stream.
    fn broken(&mut self, key: u64) {
        let refused = self.streams.get(&key).filter(|stream| stream.phase == Phase::Handshake);
        self.news.extend(refused.map(|stream| StreamNews::TlsRefused(stream.remote)));
        self.end(key);
    }

    /// A stream is no more.
    fn end(&mut self, key: u64) {
        let Some(stream) = self.streams.remove(&key) else { return };
        self.pending -= usize::from(stream.accepted && !stream.proven);
        if self.by_remote.get(&stream.remote) == Some(&key) {
            self.by_remote.remove(&stream.remote);
        }
        if stream.phase == Phase::Open {
            self.news.push_back(StreamNews::Down(stream.remote));
        }
        if self.held.as_ref().is_some_and(|held| held.key == key) {
            self.held = None;
        }
    }

    /// Waits for what a stream needs now.
    fn watch(&mut self, key: u64) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let interest = stream.interest();
        if std::mem::replace(&mut stream.watched, interest) != interest
            && epoll::modify(&self.epoll, &*stream, EventData::new_u64(key), interest).is_err()
        {
            self.end(key);
        }
    }
}

/// What TLS begins with, where there may be any.
fn party(opts: &TcpOpts) -> io::Result<Option<Party>> {
    match (opts.listens, opts.tls) {
        (true, true) => Party::listener().map(Some),
        (false, true) => Party::caller(opts.tls_name.as_deref()).map(Some),
        (_, false) => Ok(None),
    }
}

impl Link for TcpLink {
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        receive::receive(self, batch)
    }

    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome> {
        batch.start();
        let mut outcome = SendOutcome::default();
        loop {
            let Some(piece) = batch.pieces(true).next() else { return Ok(outcome) };
            let bytes = piece.bytes.len();
            let key = self.by_remote.get(&piece.route.remote).copied();
            let stream = key.and_then(|key| self.streams.get_mut(&key)).filter(|stream| stream.phase == Phase::Open);
            match stream.map(|stream| stream.send(&piece)) {
                Some(Ok(())) => {
                    self.stale.extend(key);
                    outcome.sent_bytes += bytes;
                    batch.consume(bytes);
                }
                Some(Err(_)) => {
                    key.into_iter().for_each(|key| self.end(key));
                    batch.refuse_first(Refusal::Broken);
                }
                None => batch.refuse_first(Refusal::Broken),
            }
        }
    }

    /// Of a stream all is told by [`TcpLink::news`].
    fn next_error(&mut self) -> io::Result<Option<PathError>> {
        Ok(None)
    }

    fn reopen(&mut self) -> Result<bool, LinkError> {
        let Some(interface) = &self.opts.interface else { return Ok(false) };
        let index = socket::index_of(interface);
        if index.is_some() && index == self.index {
            return Ok(false);
        }
        *self = TcpLink::bind(self.opts.clone())?;
        Ok(true)
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn interface_index(&self) -> Option<u32> {
        self.index
    }

    fn headroom(&self) -> usize {
        records::LENGTH_BYTES
    }

    fn kernel_drops(&self) -> u64 {
        0
    }
}

impl AsFd for TcpLink {
    /// Readable while anything is to be done. Asked for before each wait: it is another one while
    /// [`TcpLink::has_more`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        if self.has_more() { self.readable.as_fd() } else { self.epoll.as_fd() }
    }
}
