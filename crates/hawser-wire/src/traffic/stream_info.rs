//! What the kernel knows of a reliable stream: TCP_INFO, and of MPTCP each subflow's (MPTCP_TCPINFO).
//!
//! 1. An MPTCP socket is asked for all its subflows at once; one that is plain TCP refuses, and is asked as such.
//! 2. Counts are summed over subflows; the extent of reordering is the largest.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use super::reliable::Stack;

/// Level and names of MPTCP's socket options, since Linux 5.16. Source: linux/socket.h, linux/mptcp.h.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
/// Where `struct mptcp_info` has its flags, and how long it was in the first kernel with it.
const MPTCP_INFO_FLAGS: usize = 8;
const MPTCP_INFO_BYTES: usize = 48;
/// MPTCP_INFO_FLAG_FALLBACK: the stream is plain TCP after all. Source: linux/mptcp.h.
const FALLBACK: u32 = 1;
/// The most subflows asked for: MPTCP's addresses have 8 bits, but kernels allow 8 of each kind.
const MOST_SUBFLOWS: usize = 64;
/// `struct mptcp_subflow_data`: four numbers of 32 bits: its size, subflows, the kernel's and our size of each.
const HEAD_WORDS: usize = 4;
const HEAD_BYTES: usize = HEAD_WORDS * size_of::<u32>();
/// Bytes of a `struct tcp_info`, as this program knows it.
const INFO_BYTES: usize = size_of::<libc::tcp_info>();

/// What the kernel knows of a stream's sending side (and what came out of order, of its receiving one). Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// By how many segments the network reorders, as the sender sees it (3 at first).
    pub reordering: u32,
    /// How often the sender saw reordering.
    pub reordering_seen: u64,
    /// Retransmissions that were not needed: the receiver had it twice (RFC 2883).
    pub duplicates_told: u64,
    /// Segments that this end received out of order.
    pub out_of_order: u64,
    /// Subflows now; of TCP one.
    pub subflows: u32,
    /// Whether MPTCP was asked for and the stream is plain TCP.
    pub has_fallen_back: bool,
}

impl StreamInfo {
    /// Looks at a connected socket that was asked for as `stack`.
    ///
    /// # Errors
    /// Where it is no such socket.
    pub fn of(socket: impl AsFd, stack: Stack) -> io::Result<Self> {
        let socket = socket.as_fd().as_raw_fd();
        if stack == Stack::Tcp {
            return tcp(socket);
        }
        match subflows(socket) {
            // A stream that was never MPTCP does not know the level.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)) => {
                Ok(Self { has_fallen_back: true, ..tcp(socket)? })
            }
            other => other,
        }
    }

    /// Step 2.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            retransmissions: self.retransmissions + other.retransmissions,
            reordering: self.reordering.max(other.reordering),
            reordering_seen: self.reordering_seen + other.reordering_seen,
            duplicates_told: self.duplicates_told + other.duplicates_told,
            out_of_order: self.out_of_order + other.out_of_order,
            subflows: self.subflows + other.subflows,
            has_fallen_back: self.has_fallen_back || other.has_fallen_back,
        }
    }

    /// One `struct tcp_info`, as much of it as the kernel gave; the rest is zero.
    fn parse(info: &[u8]) -> Self {
        let word = |at: usize| {
            let bytes = info.get(at..at + size_of::<u32>()).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        Self {
            retransmissions: word(offset_of!(libc::tcp_info, tcpi_total_retrans)).into(),
            reordering: word(offset_of!(libc::tcp_info, tcpi_reordering)),
            reordering_seen: word(offset_of!(libc::tcp_info, tcpi_reord_seen)).into(),
            duplicates_told: word(offset_of!(libc::tcp_info, tcpi_dsack_dups)).into(),
            out_of_order: word(offset_of!(libc::tcp_info, tcpi_rcv_ooopack)).into(),
            subflows: 1,
            has_fallen_back: false,
        }
    }
}

fn tcp(socket: RawFd) -> io::Result<StreamInfo> {
    let mut info = [0; INFO_BYTES];
    let length = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info)?;
    Ok(StreamInfo::parse(&info[..length]))
}

/// Step 1.
fn subflows(socket: RawFd) -> io::Result<StreamInfo> {
    let mut bytes = vec![0; HEAD_BYTES + MOST_SUBFLOWS * INFO_BYTES];
    let size = |bytes: usize| u32::try_from(bytes).expect("a small structure").to_ne_bytes();
    bytes[..4].copy_from_slice(&size(HEAD_BYTES));
    bytes[12..HEAD_BYTES].copy_from_slice(&size(INFO_BYTES));
    let length = option(socket, SOL_MPTCP, MPTCP_TCPINFO, &mut bytes)?;
    let count = u32::from_ne_bytes(std::array::from_fn(|i| bytes[4 + i]));
    let each = bytes[HEAD_BYTES..length.max(HEAD_BYTES)].chunks_exact(INFO_BYTES);
    let all = each.take(count as usize).map(StreamInfo::parse).fold(StreamInfo::default(), StreamInfo::with);
    let mut info = [0; MPTCP_INFO_BYTES];
    option(socket, SOL_MPTCP, MPTCP_INFO, &mut info)?;
    let flags = u32::from_ne_bytes(std::array::from_fn(|i| info[MPTCP_INFO_FLAGS + i]));
    Ok(StreamInfo { subflows: count, has_fallen_back: flags & FALLBACK != 0, ..all })
}

/// Reads a socket option into `bytes`; how many there are of it.
fn option(socket: RawFd, level: libc::c_int, name: libc::c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes to a buffer of that length, and the length itself.
    let done = unsafe { libc::getsockopt(socket, level, name, bytes.as_mut_ptr().cast(), &raw mut length) };
    if done == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use socket2::Socket;

    use super::super::reliable::Reliable;
    use super::super::tcp::Congestion;
    use super::*;

    fn pair(near: Stack, far: Stack) -> [Socket; 2] {
        let kind = |stack| Reliable { stack, congestion: Congestion::Cubic };
        let mut at = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = kind(far).listen(at).expect("listens");
        at.set_port(listener.local_addr().expect("is bound").as_socket().expect("an IP address").port());
        let near = kind(near).connect(at, Duration::from_secs(5)).expect("connects");
        [near, listener.accept().expect("accepts").0]
    }

    #[test]
    fn a_stream_tells_its_subflows_and_whether_it_fell_back() {
        let table =
            [(Stack::Tcp, Stack::Tcp, false), (Stack::Mptcp, Stack::Mptcp, false), (Stack::Mptcp, Stack::Tcp, true)];
        for (near, far, has_fallen_back) in table {
            let [socket, _other] = pair(near, far);
            let info = StreamInfo::of(&socket, near).expect("tells");
            let expected = StreamInfo { subflows: 1, reordering: 3, has_fallen_back, ..StreamInfo::default() };
            assert_eq!(info, expected, "{near:?} to {far:?}");
        }
        let [_near, accepted] = pair(Stack::Tcp, Stack::Mptcp);
        assert!(StreamInfo::of(&accepted, Stack::Mptcp).expect("tells").has_fallen_back, "accepted from plain TCP");
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("binds");
        assert!(StreamInfo::of(&socket, Stack::Tcp).is_err());
    }

    #[test]
    fn a_short_answer_of_an_old_kernel_has_zeros_for_the_rest() {
        let mut info = [0_u8; 104];
        info[offset_of!(libc::tcp_info, tcpi_total_retrans)] = 7;
        let parsed = StreamInfo::parse(&info);
        assert_eq!((parsed.retransmissions, parsed.out_of_order), (7, 0));
    }
}
