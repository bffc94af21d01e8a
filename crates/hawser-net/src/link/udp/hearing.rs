//! What a socket hears of routers (IP_RECVERR), and when it stops its ears.
//!
//! Whoever knows a socket's port can forge ICMP errors, for any remote address. Each takes the next system call of the socket, and is
//! a word to be read. So:
//! 1. [`Hearing::heard`]: each error costs a token; where none is left, the socket is deaf for a moment: the kernel drops
//!    ICMP errors then at no cost of ours.
//! 2. [`Hearing::stop`]: what a system call says of a deaf socket is about the datagram at hand, and no other.
//! 3. [`Hearing::resume`] when the moment is over. What was missed, the search for the path's MTU finds out by itself (RFC 8899).

use std::io;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::socket::set_int;

/// Errors that are read one behind the other: more than the paths of a portal have at once.
const BURST: u32 = 64;
/// One more is read each so often: a router sends at most a few a second to one host (RFC 1812 section 4.3.2.8).
const TOKEN_EVERY: Duration = Duration::from_millis(50);
/// How long a socket is deaf.
const DEAF: Duration = Duration::from_secs(1);

/// How a socket stands to what routers say. At first it hears; its link owns it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hearing {
    tokens: u32,
    refilled: Instant,
    deaf_until: Option<Instant>,
}

impl Hearing {
    pub(super) fn new() -> Hearing {
        Hearing { tokens: BURST, refilled: Instant::now(), deaf_until: None }
    }

    /// Whether the kernel drops what routers say.
    pub(super) fn is_deaf(&self) -> bool {
        self.deaf_until.is_some()
    }

    /// Step 1: an error was read.
    pub(super) fn heard(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        let now = Instant::now();
        let gained = now.saturating_duration_since(self.refilled).as_millis() / TOKEN_EVERY.as_millis();
        if gained > 0 {
            self.tokens = self.tokens.saturating_add(u32::try_from(gained).unwrap_or(BURST)).min(BURST);
            self.refilled = now;
        }
        self.tokens = self.tokens.saturating_sub(1);
        if self.tokens == 0 { self.stop(socket, v6) } else { Ok(()) }
    }

    /// Step 2: hears nothing for a moment, and forgets what waits to be told.
    pub(super) fn stop(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        self.deaf_until = Some(Instant::now() + DEAF);
        listen(socket, v6, false)?;
        // Reading the socket's pending error takes it away.
        socket.take_error().map(drop)
    }

    /// Step 3: hears again, if it is time.
    pub(super) fn resume(&mut self, socket: &Socket, v6: bool) -> io::Result<()> {
        if self.deaf_until.is_some_and(|until| until <= Instant::now()) {
            self.deaf_until = None;
            listen(socket, v6, true)?;
        }
        Ok(())
    }
}

/// Off, the kernel empties the queue of errors, too (ip(7)).
fn listen(socket: &Socket, v6: bool, on: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    set_int(socket, level, name, i32::from(on))
}
