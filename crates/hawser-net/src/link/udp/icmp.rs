//! Unauthenticated ICMP errors (IP_RECVERR), and when a socket ignores them.
//!
//! Whoever knows a socket's port can forge ICMP errors for any remote address. Each fails the socket's next system
//! call, and fills its error queue.
//! 1. [`IcmpErrors::on_error`]: each error takes a token; where none is left, the socket ignores ICMP for a moment, and
//!    the kernel drops errors at no cost of ours.
//! 2. [`IcmpErrors::ignore`]: what a system call says meanwhile is about the datagram at hand, and no other.
//! 3. [`IcmpErrors::resume`] when the moment is over. The search for the path's MTU finds what was missed (RFC 8899).

use std::io;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::super::token_bucket::{Pace, TokenBucket};
use super::socket::set_int;

/// Errors that are read: a burst of more than a portal has paths, then more than a router sends to one host (RFC 1812
/// section
/// 4.3.2.8).
const READ: Pace = Pace { interval: Duration::from_millis(50), burst: 64 };
/// How long ICMP is ignored.
const IGNORED: Duration = Duration::from_secs(1);

/// Whether a socket reads ICMP errors. It does at first; its link owns it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IcmpErrors {
    bucket: TokenBucket,
    ignored_until: Option<Instant>,
}

impl IcmpErrors {
    /// Whether the kernel drops ICMP errors for this socket.
    pub(super) fn are_ignored(&self) -> bool {
        self.ignored_until.is_some()
    }

    /// Step 1: an error was read.
    pub(super) fn on_error(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        if self.bucket.take(READ, Instant::now()) { Ok(()) } else { self.ignore(socket, v6) }
    }

    /// Step 2: ignores them for a moment, and forgets those that wait to be read.
    pub(super) fn ignore(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        self.ignored_until = Some(Instant::now() + IGNORED);
        receive_errors(socket, v6, false)?;
        // Reading the socket's pending error takes it away.
        socket.take_error().map(drop)
    }

    /// Step 3: reads them again, if it is time.
    pub(super) fn resume(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        if self.ignored_until.is_some_and(|until| until <= Instant::now()) {
            self.ignored_until = None;
            receive_errors(socket, v6, true)?;
        }
        Ok(())
    }
}

/// Off, the kernel empties the error queue, too (ip(7)).
fn receive_errors(socket: &Socket, v6: bool, on: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    set_int(socket, level, name, i32::from(on))
}
