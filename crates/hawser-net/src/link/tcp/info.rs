//! What the kernel knows of a stream (TCP_INFO), as plain bytes, and what it is told of one.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Socket, TcpKeepalive};

use super::super::LinkError;
use crate::powers::raised;

/// linux/tcp.h, `tcp_info`: where its numbers are, and the bytes up to the last of them.
const SND_MSS: usize = 16;
const RTT: usize = 68;
const SND_CWND: usize = 80;
const NOTSENT_BYTES: usize = 144;
const DELIVERY_RATE: usize = 160;
const INFO_BYTES: usize = 168;

/// What was sent and not acknowledged for so long ends a stream (RFC 5482): by then the path is long down, and a new
/// stream finds the way sooner than a retransmission that waits ever longer.
const USER_TIMEOUT: Duration = Duration::from_secs(3);
/// An idle stream is asked after this often: a peer that vanished without a word is noticed.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// A stream at one moment. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Info {
    /// Bytes that wait in the socket and were never sent.
    pub(super) unsent: usize,
    /// Bytes a second that it delivers; 0 while unknown.
    pub(super) rate: u64,
}

impl Info {
    /// Asks the kernel.
    pub(super) fn of(socket: &Socket) -> io::Result<Info> {
        let mut bytes = [0_u8; INFO_BYTES];
        let mut len = INFO_BYTES as libc::socklen_t;
        // SAFETY: the socket is open, and the kernel writes at most `len` bytes into the array.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        match done {
            0 if len as usize == INFO_BYTES => Ok(Info::parse(&bytes)),
            0 => Err(io::Error::from_raw_os_error(libc::ENOPROTOOPT)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn parse(bytes: &[u8; INFO_BYTES]) -> Info {
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|n| bytes[at + n]));
        let delivered = u64::from_ne_bytes(std::array::from_fn(|n| bytes[DELIVERY_RATE + n]));
        // Before anything was delivered: a window in a round trip.
        let window = u64::from(word(SND_MSS)) * u64::from(word(SND_CWND));
        let promised = window.saturating_mul(1_000_000).checked_div(word(RTT).into()).unwrap_or(0);
        Info { unsent: word(NOTSENT_BYTES) as usize, rate: if delivered > 0 { delivered } else { promised } }
    }
}

/// Sets what every stream has: no waiting for more to fill a segment, a bound on the time without acknowledgement, and
/// a congestion control where one is asked for.
pub(super) fn prepare(socket: &Socket, congestion: Option<&str>) -> Result<(), LinkError> {
    let failed = |step| move |source| LinkError::Socket { step, source };
    socket.set_nonblocking(true).map_err(failed("set non-blocking"))?;
    socket.set_tcp_nodelay(true).map_err(failed("set TCP_NODELAY"))?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT)).map_err(failed("set TCP_USER_TIMEOUT"))?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    socket.set_tcp_keepalive(&keepalive).map_err(failed("set SO_KEEPALIVE"))?;
    if let Some(name) = congestion {
        let set = raised(|| socket.set_tcp_congestion(name.as_bytes()));
        set.map_err(|source| LinkError::Congestion { name: name.to_owned(), source })?;
    }
    Ok(())
}

/// The socket counts as writable while fewer than `bytes` wait in it unsent.
pub(super) fn set_low_water(socket: &Socket, bytes: usize) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(mss: u32, rtt: u32, window: u32, unsent: u32, rate: u64) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        for (at, word) in [(SND_MSS, mss), (RTT, rtt), (SND_CWND, window), (NOTSENT_BYTES, unsent)] {
            bytes[at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[DELIVERY_RATE..].copy_from_slice(&rate.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_stream_delivers_what_it_did_or_what_its_window_promises() {
        let table = [
            (bytes(1448, 20_000, 10, 77, 0), Info { unsent: 77, rate: 724_000 }),
            (bytes(1448, 20_000, 10, 0, 500_000), Info { unsent: 0, rate: 500_000 }),
            (bytes(1448, 0, 10, 5, 0), Info { unsent: 5, rate: 0 }),
        ];
        for (bytes, expect) in table {
            assert_eq!(Info::parse(&bytes), expect);
        }
    }
}
