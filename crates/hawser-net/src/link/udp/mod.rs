//! UDP links: trains out (UDP_SEGMENT), merged runs in (UDP_GRO), several in each system call.
//!
//! 1. [`UdpLink::bind`] opens the socket (`socket.rs`).
//! 2. [`Link::recv`]: one `recvmmsg` (`receive.rs`); control messages say what came (`control.rs`).
//! 3. [`Link::send`]: `sendmmsg` until the batch is empty or the socket is full (`transmit.rs`).
//! 4. A kernel or device that refuses trains gets single datagrams, from then on.
//! 5. [`Link::next_error`]: the socket's error queue, one error a call (`receive.rs`); after too many, ICMP is ignored
//!    for a moment (`icmp.rs`).

mod control;
mod icmp;
mod name;
mod receive;
pub(super) mod socket;
mod transmit;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use super::ip::IpProtocol;
use super::{Link, LinkError, LinkFinding, PathError, RecvBatch, SendBatch, SendOutcome};
use icmp::IcmpErrors;

/// Bytes of IP and UDP headers before each datagram (RFC 791, RFC 8200, RFC 768; no options).
const HEADROOM_V4: usize = 20 + 8;
const HEADROOM_V6: usize = 40 + 8;

/// Receive buffer a link asks for by default, in bytes: 25 ms at 1 Gbit/s, for a thread that is not scheduled.
pub const DEFAULT_RECEIVE_BUFFER: usize = 4 << 20;

/// Send buffer a link asks for by default, in bytes: a few batches; what waits longer is to wait
/// in the portal's own queue, which is fair.
pub const DEFAULT_SEND_BUFFER: usize = 1 << 20;

/// What a UDP link is opened with. Plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpOpts {
    /// The address to bind to; port 0 lets the kernel choose, an unspecified address takes
    /// datagrams for every address of its family.
    pub local: SocketAddr,
    /// The interface everything must leave and come by.
    pub interface: Option<String>,
    /// The mark of everything sent (`SO_MARK`), for policy routing.
    pub mark: Option<u32>,
    /// Bytes that may wait to be received.
    pub receive_buffer: usize,
    /// Bytes that may wait to be sent.
    pub send_buffer: usize,
    /// Whether to hand the kernel trains at all; off, datagrams go one by one.
    pub segmentation: bool,
    /// Whether the kernel may merge what it receives; off, datagrams come one by one.
    pub merging: bool,
    /// The protocol of a raw socket in the place of UDP's: an [`IpLink`](super::ip::IpLink)'s.
    pub(in crate::link) protocol: Option<IpProtocol>,
}

impl UdpOpts {
    /// Options to bind to `local` and nothing else, with the default buffers.
    pub fn new(local: SocketAddr) -> UdpOpts {
        UdpOpts {
            local,
            interface: None,
            mark: None,
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
            send_buffer: DEFAULT_SEND_BUFFER,
            segmentation: true,
            merging: true,
            protocol: None,
        }
    }
}

/// A UDP socket bound to an address and, if asked for, to an interface.
/// Starts with nothing received, and with trains where the options allow. For one thread.
#[derive(Debug)]
pub struct UdpLink {
    socket: Socket,
    opts: UdpOpts,
    local: SocketAddr,
    index: Option<u32>,
    findings: Vec<LinkFinding>,
    /// Whether the kernel takes trains, as far as is known.
    segmentation: bool,
    icmp: IcmpErrors,
    /// The socket's own count of lost datagrams, as last told.
    last_overflow: u32,
    kernel_drops: u64,
}

impl UdpLink {
    /// Opens a link in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`LinkError`], saying at which step.
    pub fn bind(opts: UdpOpts) -> Result<UdpLink, LinkError> {
        let opened = socket::open(&opts)?;
        let local = bound_address(&opened.socket)?;
        Ok(UdpLink {
            socket: opened.socket,
            local,
            index: opened.index,
            findings: opened.findings,
            segmentation: opts.segmentation,
            icmp: IcmpErrors::default(),
            last_overflow: 0,
            kernel_drops: 0,
            opts,
        })
    }

    /// The same socket once more, so that one thread sends while another receives. What is received,
    /// lost or told as an error reaches whichever asks first; each counts by itself, from 0.
    ///
    /// # Errors
    /// [`LinkError`] when the process may open no more descriptors.
    pub fn try_clone(&self) -> Result<UdpLink, LinkError> {
        let step = "open the socket a second time";
        let socket = self.socket.try_clone().map_err(|source| LinkError::Socket { step, source })?;
        Ok(UdpLink {
            socket,
            opts: self.opts.clone(),
            findings: self.findings.clone(),
            last_overflow: 0,
            kernel_drops: 0,
            ..*self
        })
    }

    /// What the link has to do without, for the log and for `hawser doctor`.
    pub fn findings(&self) -> &[LinkFinding] {
        &self.findings
    }

    /// Whether the kernel gives the IP header with each datagram.
    fn brings_header(&self) -> bool {
        self.opts.protocol.is_some() && self.local.is_ipv4()
    }

    /// Reads ICMP errors again, if they were ignored for long enough.
    fn resume_icmp(&mut self) -> io::Result<()> {
        if !self.icmp.are_ignored() {
            return Ok(());
        }
        self.icmp.resume(&self.socket, self.local.is_ipv6())
    }

    /// Whether the kernel drops ICMP errors for its socket, as there were too many.
    pub fn ignores_icmp(&self) -> bool {
        self.icmp.are_ignored()
    }

    /// Whether trains go to the kernel as one.
    pub fn segmentation(&self) -> bool {
        self.segmentation
    }
}

impl Link for UdpLink {
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize> {
        receive::receive(self, batch)
    }

    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome> {
        transmit::transmit(self, batch)
    }

    fn next_error(&mut self) -> io::Result<Option<PathError>> {
        receive::next_error(self)
    }

    fn reopen(&mut self) -> Result<bool, LinkError> {
        let Some(interface) = &self.opts.interface else {
            return Ok(false);
        };
        let index = socket::index_of(&self.socket, interface);
        if index.is_some() && index == self.index {
            return Ok(false);
        }
        // Sockets on two interfaces may share a port, so the old one stays until the new one is there.
        let drops = self.kernel_drops;
        *self = UdpLink::bind(self.opts.clone())?;
        self.kernel_drops = drops;
        Ok(true)
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn interface_index(&self) -> Option<u32> {
        self.index
    }

    fn headroom(&self) -> usize {
        if self.local.is_ipv4() { HEADROOM_V4 } else { HEADROOM_V6 }
    }

    fn kernel_drops(&self) -> u64 {
        self.kernel_drops
    }
}

impl AsFd for UdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn bound_address(socket: &Socket) -> Result<SocketAddr, LinkError> {
    let step = "read the local address";
    let address = socket.local_addr().map_err(|source| LinkError::Socket { step, source })?;
    address.as_socket().ok_or_else(|| LinkError::Socket { step, source: io::ErrorKind::InvalidData.into() })
}
