//! A link of any transport.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use hawser_net::link::ip::IpLink;
use hawser_net::link::tcp::TcpLink;
use hawser_net::link::udp::UdpLink;
use hawser_net::link::{Link, LinkError, LinkFinding, PathError, RecvBatch, SendBatch, SendOutcome};
#[cfg(feature = "scion")]
use hawser_scion::link::ScionLink;

/// A link of one of the transports: each call goes straight to it. Begins as it does. For one thread.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each socket of a portal, and it stays where it is")]
pub enum AnyLink {
    /// In UDP datagrams.
    Udp(UdpLink),
    /// In IP packets of a protocol of their own.
    Ip(IpLink),
    /// In records of TCP streams.
    Tcp(TcpLink),
    /// In SCION packets.
    #[cfg(feature = "scion")]
    Scion(ScionLink),
}

/// The same call of whichever it is.
macro_rules! each {
    ($self:ident, $link:ident => $call:expr) => {
        match $self {
            AnyLink::Udp($link) => $call,
            AnyLink::Ip($link) => $call,
            AnyLink::Tcp($link) => $call,
            #[cfg(feature = "scion")]
            AnyLink::Scion($link) => $call,
        }
    };
}

impl AnyLink {
    /// What the link has to do without.
    pub fn findings(&self) -> &[LinkFinding] {
        match self {
            AnyLink::Udp(link) => link.findings(),
            AnyLink::Ip(link) => link.findings(),
            AnyLink::Tcp(_) => &[],
            #[cfg(feature = "scion")]
            AnyLink::Scion(link) => link.findings(),
        }
    }

    /// The streams, where it has any.
    pub fn streams(&mut self) -> Option<&mut TcpLink> {
        match self {
            AnyLink::Tcp(link) => Some(link),
            _ => None,
        }
    }

    /// Connections that were closed at once, as too many came.
    pub fn connections_refused(&self) -> u64 {
        match self {
            AnyLink::Tcp(link) => link.refused(),
            _ => 0,
        }
    }

    /// A session opened a datagram that came from this address.
    pub fn prove(&mut self, remote: SocketAddr) {
        match self {
            AnyLink::Udp(_) | AnyLink::Ip(_) => {}
            AnyLink::Tcp(link) => link.prove(remote),
            #[cfg(feature = "scion")]
            AnyLink::Scion(link) => link.prove(remote),
        }
    }

    /// Whether [`Link::next_error`] has something to tell of which the descriptor does not speak.
    pub fn has_word(&self) -> bool {
        match self {
            AnyLink::Udp(_) | AnyLink::Ip(_) | AnyLink::Tcp(_) => false,
            #[cfg(feature = "scion")]
            AnyLink::Scion(link) => link.has_word(),
        }
    }
}

impl Link for AnyLink {
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        each!(self, link => link.recv(batch))
    }

    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome> {
        each!(self, link => link.send(batch))
    }

    fn next_error(&mut self) -> io::Result<Option<PathError>> {
        each!(self, link => link.next_error())
    }

    fn reopen(&mut self) -> Result<bool, LinkError> {
        each!(self, link => link.reopen())
    }

    fn local_addr(&self) -> SocketAddr {
        each!(self, link => link.local_addr())
    }

    fn interface_index(&self) -> Option<u32> {
        each!(self, link => link.interface_index())
    }

    fn headroom(&self) -> usize {
        each!(self, link => link.headroom())
    }

    fn kernel_drops(&self) -> u64 {
        each!(self, link => link.kernel_drops())
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, link => link.as_fd())
    }
}
