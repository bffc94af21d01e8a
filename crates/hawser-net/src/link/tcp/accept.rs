//! Connections that a listening link accepts.
//!
//! 1. [`TcpLink::accept`]: as many as the limits let in (`accept_limit.rs`); none for a while where descriptors run
//!    out.
//! 2. One that finds no place is reset: too many wait for their first proof, or one address has too many.
//! 3. [`TcpLink::begin_tls`] hands a stream that wants TLS to the acceptor's thread (`tls_acceptor.rs`), and
//!    [`TcpLink::take_finished`] takes it back.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Resource, getrlimit};

use super::accept_limit::EXHAUSTED_PAUSE;
use super::info::prepare;
use super::stream::Stream;
use super::tls_acceptor::TlsAcceptor;
use super::{LISTENER, PENDING_MAX, StreamNews, TLS_ACCEPTOR, TcpLink};

/// Streams that a link has at most, proven ones included: a few for each of 200 peers, and a bound of memory. And no
/// more than half of the descriptors that the process may have, so that some are left for all else.
const STREAMS_MAX: usize = 1024;
/// Of them with one address: a peer has one for each of its links, and several peers may share an address.
const STREAMS_OF_ONE: usize = 128;
/// Connections accepted in one call.
const ACCEPTS_MAX: usize = 32;

impl TcpLink {
    /// Steps 1 and 2.
    pub(super) fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let now = Instant::now();
            if let Some(until) = self.accept_limit.pause_until(now) {
                return self.pause_accepting(until);
            }
            let Some(listener) = &self.listener else { return };
            let (socket, remote) = match listener.accept() {
                Ok((socket, remote)) => (socket, remote),
                // The connection stays in the kernel's queue, and would wake the thread at once and for nothing.
                Err(error) if is_full(&error) => return self.pause_accepting(now + EXHAUSTED_PAUSE),
                // An error is of one connection, or passes: the next call finds what is left.
                Err(_) => return,
            };
            let Some(remote) = remote.as_socket() else { continue };
            if self.has_place(remote, now) && prepare(&socket, self.opts.congestion.as_deref()).is_ok() {
                self.add(Stream::accepted(socket, remote));
            } else {
                // Reset: else the kernel would remember it for a minute (TIME-WAIT, RFC 9293 section 3.6.1).
                let _ = socket.set_linger(Some(Duration::ZERO));
            }
        }
    }

    /// Accepts nothing until then.
    fn pause_accepting(&mut self, until: Instant) {
        let Some(listener) = &self.listener else { return };
        if epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER), EventFlags::empty()).is_ok() {
            self.paused_until = Some(until);
            self.next_timer = self.next_timer.min(until);
        }
    }

    pub(super) fn resume_accepting(&mut self) {
        self.paused_until = None;
        if let Some(listener) = &self.listener {
            // It was there before, and nothing is allocated for it.
            let _ = epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN);
        }
    }

    /// Whether a connection from there may stay; counts it.
    fn has_place(&mut self, remote: SocketAddr, now: Instant) -> bool {
        if self.pending >= PENDING_MAX || self.streams.len() + self.in_handshake >= self.streams_max {
            self.accept_limit.refused += 1;
            return false;
        }
        let of_one = self.by_remote.keys().filter(|other| other.ip() == remote.ip()).count();
        if of_one >= STREAMS_OF_ONE {
            self.accept_limit.refused += 1;
            return false;
        }
        self.accept_limit.admits(remote.ip(), now)
    }

    /// An accepted stream wants TLS: the acceptor does the handshake. Where TLS is not configured, the stream ends.
    pub(super) fn begin_tls(&mut self, key: u64) -> io::Result<()> {
        let Some(party) = &self.party else {
            self.news.extend(self.streams.get(&key).map(|stream| StreamNews::TlsUnwanted(stream.remote)));
            return Err(io::ErrorKind::Unsupported.into());
        };
        if self.tls_acceptor.is_none() {
            let acceptor = TlsAcceptor::start(party.clone())?;
            epoll::add(&self.epoll, &acceptor, EventData::new_u64(TLS_ACCEPTOR), EventFlags::IN)?;
            self.tls_acceptor = Some(acceptor);
        }
        let Some(stream) = self.streams.remove(&key) else { return Ok(()) };
        self.by_remote.remove(&stream.remote);
        // Closed, it is gone from there anyway.
        let _ = epoll::delete(&self.epoll, &stream);
        let taken = self.tls_acceptor.as_ref().is_some_and(|acceptor| acceptor.accept(Box::new(stream)));
        self.in_handshake += usize::from(taken);
        self.pending -= usize::from(!taken);
        Ok(())
    }

    /// Streams whose handshake is over are here again, and may have brought something already.
    pub(super) fn take_finished(&mut self) {
        let Some(acceptor) = self.tls_acceptor.take() else { return };
        acceptor.acknowledge();
        while let Some(finished) = acceptor.finished() {
            self.in_handshake -= 1;
            self.pending -= 1;
            if let Some(key) = finished.and_then(|stream| self.add(*stream)) {
                self.ready.push_back((key, EventFlags::IN));
            }
        }
        self.tls_acceptor = Some(acceptor);
    }
}

/// No descriptor is left in the process or the system, or no memory (accept(2)).
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Streams that a link of this process has at most.
pub(super) fn streams_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let descriptors = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    STREAMS_MAX.min(descriptors / 2)
}
