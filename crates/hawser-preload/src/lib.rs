//! A library that `hawser shim run` preloads: a program that asks for TCP gets MPTCP, and TCP where the kernel has
//! none.
//!
//! 1. [`socket`] stands before the C library's function of this name, and asks the kernel itself.
//! 2. Only stream sockets of IPv4 and IPv6 are meant, and only where no other protocol is named.
//! 3. Where the kernel refuses MPTCP, it is asked again for just what the program wanted.
//!
//! It keeps no state and allocates nothing, so that it may be called from anywhere, signal handlers among it.

use libc::{AF_INET, AF_INET6, EINVAL, ENOPROTOOPT, EPROTONOSUPPORT, IPPROTO_MPTCP, IPPROTO_TCP, SOCK_STREAM, c_int};

/// A socket's kind without its flags (linux/net.h, SOCK_TYPE_MASK).
const KIND: c_int = 0xf;
/// How a kernel says that it has no MPTCP: not built in, switched off (net.mptcp.enabled), or older than linux 5.6.
const NO_MPTCP: [c_int; 3] = [EPROTONOSUPPORT, ENOPROTOOPT, EINVAL];

/// Makes a socket, as socket(2) does, of MPTCP in place of TCP.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let wanted = upgraded(domain, kind, protocol);
    let made = ask(domain, kind, wanted);
    if made < 0 && wanted != protocol && NO_MPTCP.contains(&errno()) { ask(domain, kind, protocol) } else { made }
}

/// Step 2: the protocol to ask for.
const fn upgraded(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let is_tcp = kind & KIND == SOCK_STREAM && matches!(protocol, 0 | IPPROTO_TCP);
    if is_tcp && matches!(domain, AF_INET | AF_INET6) { IPPROTO_MPTCP } else { protocol }
}

fn ask(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: socket(2) takes three numbers and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_socket, domain, kind, protocol) };
    // A descriptor, or -1.
    answer as c_int
}

fn errno() -> c_int {
    // SAFETY: the C library gives a pointer to the calling thread's own number, which lives as long as the thread.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::os::fd::FromRawFd;

    use super::*;

    #[test]
    fn only_what_would_be_tcp_is_upgraded() {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let table = [
            (AF_INET, SOCK_STREAM, 0, IPPROTO_MPTCP),
            (AF_INET6, SOCK_STREAM | flags, IPPROTO_TCP, IPPROTO_MPTCP),
            (AF_INET, SOCK_STREAM, libc::IPPROTO_SCTP, libc::IPPROTO_SCTP),
            (AF_INET, libc::SOCK_DGRAM, 0, 0),
            (AF_INET6, libc::SOCK_RAW, IPPROTO_TCP, IPPROTO_TCP),
            (libc::AF_UNIX, SOCK_STREAM, 0, 0),
            (AF_INET, SOCK_STREAM, IPPROTO_MPTCP, IPPROTO_MPTCP),
        ];
        for (domain, kind, protocol, expected) in table {
            assert_eq!(upgraded(domain, kind, protocol), expected, "{domain} {kind} {protocol}");
        }
    }

    #[test]
    fn a_socket_is_one_and_an_error_stays_one() {
        let made = socket(AF_INET, SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(made >= 0);
        // SAFETY: the descriptor was made just now, and nobody else has it.
        let stream = unsafe { TcpStream::from_raw_fd(made) };
        assert!(stream.peer_addr().is_err(), "it is connected to nobody");
        assert_eq!((socket(AF_INET, SOCK_STREAM, 200), errno()), (-1, EPROTONOSUPPORT));
    }
}
