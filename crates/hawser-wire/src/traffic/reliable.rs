//! Sockets of reliable streams: TCP or MPTCP, with a congestion control that is set and read back.
//!
//! 1. A socket is made for a destination; its congestion control is set before anything is sent.
//! 2. What was connected or accepted is looked at again: it must have what was asked for.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::tcp::Congestion;
use super::udp::any;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

/// What reliable streams are made of. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// RFC 9293.
    Tcp,
    /// RFC 8684; falls back to TCP where the other end or the path does not carry it.
    Mptcp,
}

/// How sockets of reliable streams are made. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reliable {
    /// TCP or MPTCP.
    pub stack: Stack,
    /// Of every socket.
    pub congestion: Congestion,
}

impl Reliable {
    /// Step 1, for the family of an address, in the calling thread's namespace.
    ///
    /// # Errors
    /// Where the kernel has no such socket or congestion control, with a word on which kernels do.
    pub fn socket(self, address: SocketAddr) -> io::Result<Socket> {
        let protocol = match self.stack {
            Stack::Tcp => Protocol::TCP,
            Stack::Mptcp => Protocol::MPTCP,
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol)).map_err(|error| {
            let lacking = self.stack == Stack::Mptcp && error.raw_os_error() == Some(libc::EPROTONOSUPPORT);
            let why = "no MPTCP: needs Linux 5.6 with CONFIG_MPTCP and sysctl net.mptcp.enabled=1";
            if lacking { io::Error::new(io::ErrorKind::Unsupported, why) } else { error }
        })?;
        let name = self.congestion.name();
        socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
            let lacking = error.raw_os_error() == Some(libc::ENOENT);
            let why = format!("the kernel has no congestion control {name}: load tcp_{name}");
            if lacking { io::Error::new(io::ErrorKind::Unsupported, why) } else { error }
        })?;
        self.check(&socket)?;
        Ok(socket)
    }

    /// A listening socket at every address of the family: MPTCP's further subflows come to others than the first.
    /// Port 0 takes a free one.
    ///
    /// # Errors
    /// As [`Reliable::socket`], or where the port is taken.
    pub fn listen(self, address: SocketAddr) -> io::Result<Socket> {
        let socket = self.socket(address)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::new(any(address), address.port()).into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    }

    /// A connected socket.
    ///
    /// # Errors
    /// As [`Reliable::socket`], or where nobody answers.
    pub fn connect(self, destination: SocketAddr, patience: Duration) -> io::Result<Socket> {
        let socket = self.socket(destination)?;
        socket.connect_timeout(&destination.into(), patience)?;
        self.check(&socket)?;
        Ok(socket)
    }

    /// Step 2 for an accepted socket: its congestion control is set again, as an MPTCP one does not inherit it.
    ///
    /// # Errors
    /// Where the socket does not take it.
    pub fn accepted(self, socket: &Socket) -> io::Result<()> {
        socket.set_tcp_congestion(self.congestion.name().as_bytes())?;
        self.check(socket)
    }

    /// Step 2.
    ///
    /// # Errors
    /// Where the socket's congestion control is another.
    pub fn check(self, socket: &Socket) -> io::Result<()> {
        let name = socket.tcp_congestion()?;
        let name = String::from_utf8_lossy(&name);
        let name = name.trim_end_matches('\0');
        if name == self.congestion.name() {
            return Ok(());
        }
        Err(io::Error::other(format!("the socket's congestion control is {name}, not {}", self.congestion.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_takes_every_congestion_control_over_both_families() {
        for stack in [Stack::Tcp, Stack::Mptcp] {
            for congestion in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
                for address in ["127.0.0.1:0", "[::1]:0"] {
                    let kind = Reliable { stack, congestion };
                    let mut at: SocketAddr = address.parse().expect("an address");
                    let listener = kind.listen(at).expect("listens");
                    at.set_port(listener.local_addr().expect("is bound").as_socket().expect("an IP address").port());
                    let near = kind.connect(at, Duration::from_secs(5)).expect("connects");
                    let (far, _) = listener.accept().expect("accepts");
                    kind.accepted(&far).expect("has it");
                    for end in [near, far] {
                        let name = end.tcp_congestion().expect("tells");
                        assert!(name.starts_with(congestion.name().as_bytes()), "{stack:?} {congestion:?}");
                    }
                }
            }
        }
    }
}
