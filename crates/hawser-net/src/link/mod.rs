//! Links: how datagrams leave and reach this host, in batches.
//!
//! 1. A link is opened, bound to an address and an interface ([`udp::UdpLink::bind`]).
//! 2. [`Link::recv`] fills a [`RecvBatch`]: runs of equal datagrams, as the kernel merged them.
//! 3. The core seals datagrams into a [`SendBatch`]; [`Link::send`] sends what it holds.
//! 4. [`Link::next_error`] tells what routers and the kernel had to say about what was sent.
//! 5. When the interface is made anew, [`Link::reopen`] opens the link anew.
//!
//! A link over another (SCION over UDP) writes its own headers before datagrams that wait ([`SendBatch::wrap`]), and
//! reads those of datagrams that came ([`RecvBatch::unwrap_each`]).

pub mod ip;
mod recv_batch;
mod send_batch;
pub mod tcp;
mod token_bucket;
pub mod udp;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

pub use recv_batch::{Datagrams, RECV_BUFFER_BYTES, RUNS_PER_BATCH, RecvBatch, Unwrapped};
pub use send_batch::{
    Filling, Full, MAX_DATAGRAM_BYTES, MAX_RUN_BYTES, MAX_RUN_SEGMENTS, Route, SEND_BATCH_BYTES, SEND_BATCH_ENTRIES,
    SPARE_BYTES, SendBatch, SendFailure,
};

/// One local attachment, open and non-blocking.
/// Starts with nothing sent or received. For one thread: everything takes `&mut self`.
pub trait Link: AsFd {
    /// Receives what is there, up to the batch's room, and returns how many runs came;
    /// 0 when there is nothing now. What the batch held before is gone.
    ///
    /// # Errors
    /// Only what makes the link useless; what routers say goes to [`Link::next_error`].
    fn recv(&mut self, batch: &mut RecvBatch) -> io::Result<usize>;

    /// Sends the batch from its front. What was sent, or refused for good, leaves the batch;
    /// what is left when the socket takes no more stays, to be sent when the link is writable.
    ///
    /// # Errors
    /// Only what makes the link useless; refused datagrams are in [`SendBatch::failures`].
    fn send(&mut self, batch: &mut SendBatch) -> io::Result<SendOutcome>;

    /// The oldest error not yet told, `None` when there is none. The descriptor polls as an error
    /// until all were told.
    ///
    /// # Errors
    /// Only what makes the link useless.
    fn next_error(&mut self) -> io::Result<Option<PathError>>;

    /// Opens the link anew when its interface was made anew (its index changed), and says whether
    /// it did; the descriptor is then another one.
    ///
    /// # Errors
    /// [`LinkError`], with the link left as it was.
    fn reopen(&mut self) -> Result<bool, LinkError>;

    /// The address the link is bound to.
    fn local_addr(&self) -> SocketAddr;

    /// Index of the interface the link is bound to, if it is bound to one.
    fn interface_index(&self) -> Option<u32>;

    /// Bytes beside each datagram on the wire: what the link's own headers take from the MTU.
    fn headroom(&self) -> usize;

    /// Datagrams that came and the kernel threw away since the link was opened: its receive buffer was full, or their
    /// UDP checksum was wrong. A socket's count does not tell the two apart.
    fn kernel_drops(&self) -> u64;
}

/// Congestion marks of an IP header (RFC 3168 section 5), by their value in it.
/// `NotEct` at first. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    /// Not capable.
    #[default]
    NotEct = 0,
    /// Capable, codepoint 1.
    Ect1 = 1,
    /// Capable, codepoint 0: what a path sends.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The marks in a byte of type of service or traffic class.
    pub fn from_tos(tos: u8) -> Ecn {
        match tos & 0b11 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// What became of a batch given to [`Link::send`].
/// By default everything went. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct SendOutcome {
    /// Bytes of datagrams that the kernel took.
    pub sent_bytes: usize,
    /// The socket takes no more now; the rest stayed in the batch.
    pub blocked: bool,
    /// In this call the kernel refused trains, for good: from now on datagrams go one by one.
    pub segmentation_lost: bool,
}

/// Why a datagram was not sent, or what was said of one that was.
/// Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Longer than a link on the way carries (`EMSGSIZE`).
    TooBig,
    /// No route, or a router says so (`ENETUNREACH`, `EHOSTUNREACH`).
    Unreachable,
    /// Nobody listens there (`ECONNREFUSED`).
    PortClosed,
    /// The interface is gone or down (`ENODEV`, `ENXIO`, `ENETDOWN`).
    NoDevice,
    /// There is no stream to that address (any more).
    Broken,
    /// A queue below is full (`ENOBUFS`, `ENOMEM`).
    NoBuffers,
    /// A firewall's or routing's decision (`EPERM`, `EACCES`).
    NotPermitted,
    /// Anything else: the kernel's error number.
    Other(i32),
}

impl Refusal {
    /// The refusal an error number stands for (`errno(3)`).
    pub fn from_errno(errno: i32) -> Refusal {
        match errno {
            libc::EMSGSIZE => Refusal::TooBig,
            libc::ENETUNREACH | libc::EHOSTUNREACH => Refusal::Unreachable,
            libc::ECONNREFUSED => Refusal::PortClosed,
            libc::ENODEV | libc::ENXIO | libc::ENETDOWN => Refusal::NoDevice,
            libc::ENOBUFS | libc::ENOMEM => Refusal::NoBuffers,
            libc::EPERM | libc::EACCES => Refusal::NotPermitted,
            other => Refusal::Other(other),
        }
    }
}

/// What the kernel or a router said of a datagram sent earlier: a hint, as anyone may forge it.
/// Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathError {
    /// Where the datagram was bound for.
    pub remote: SocketAddr,
    /// What was said of it.
    pub reason: Refusal,
    /// With [`Refusal::TooBig`]: what the next link carries, in bytes of an IP packet.
    pub mtu: Option<u32>,
    /// Who said so: a router's address, or `None` for this host.
    pub from: Option<IpAddr>,
    /// How the datagram began, as it is quoted; `None` where the link itself has tested that it was sent.
    pub quoted: Option<Quoted>,
}

/// Bytes of a quoted datagram that are kept: enough for what tells Hawser's datagrams apart (docs/wire.md).
pub const QUOTED_BYTES: usize = 16;

/// How a quoted datagram began. May be empty: not all routers quote more than headers. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoted {
    bytes: [u8; QUOTED_BYTES],
    len: usize,
}

impl Quoted {
    /// The first bytes of these.
    pub fn of(bytes: &[u8]) -> Quoted {
        let mut quoted = Quoted { bytes: [0; QUOTED_BYTES], len: bytes.len().min(QUOTED_BYTES) };
        quoted.bytes[..quoted.len].copy_from_slice(&bytes[..quoted.len]);
        quoted
    }

    /// What is kept of them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Why a link could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No interface has that name (now).
    #[error("open link: there is no interface {interface}")]
    NoInterface {
        /// The interface's name.
        interface: String,
    },
    /// The interface was made anew again and again while the link was opened.
    #[error("open link: the interface {interface} keeps changing")]
    InterfaceChanging {
        /// The interface's name.
        interface: String,
    },
    /// The socket cannot be bound to its address.
    #[error("bind link to {local}")]
    Bind {
        /// The address.
        local: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel has no congestion control of that name.
    #[error("set congestion control {name} of a stream")]
    Congestion {
        /// The name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A step needs a capability the process lacks.
    #[error("{step} of a link: not permitted (CAP_NET_ADMIN is needed, for a raw socket also CAP_NET_RAW)")]
    NotPermitted {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A step needs a newer kernel.
    #[error("{step} of a link: Linux {kernel} does not know it (it came with {since})")]
    TooOld {
        /// What was tried.
        step: &'static str,
        /// The running kernel's release.
        kernel: String,
        /// The first release that knows it.
        since: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Another step failed.
    #[error("{step} of a link")]
    Socket {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Something a link has to do without: it works, and worse.
/// Made when the link is opened. Plain data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFinding {
    /// The kernel merges nothing on receipt.
    #[error("link without udp gro: Linux {kernel} refuses it (it came with 5.0)")]
    NoReceiveMerging {
        /// The running kernel's release.
        kernel: String,
    },
    /// The kernel does not say which datagrams it threw away.
    #[error("link without drop counts: Linux {kernel} refuses SO_RXQ_OVFL")]
    NoDropCounts {
        /// The running kernel's release.
        kernel: String,
    },
    /// What routers send goes to another port.
    #[error(
        "link at a port that routers do not send to ({port}; they send to {ports}): its packets come to port 30041, where the AS's dispatcher \
         must hand them on"
    )]
    PortNotDispatched {
        /// The port.
        port: u16,
        /// Those that routers send to.
        ports: String,
    },
    /// A socket buffer is smaller than asked for.
    #[error("link with a {which} buffer of {got} bytes instead of {wanted} (see {sysctl})")]
    SmallBuffer {
        /// `receive` or `send`.
        which: &'static str,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes got.
        got: usize,
        /// The limit to raise, or CAP_NET_ADMIN to have.
        sysctl: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_from_the_two_low_bits() {
        for (tos, ecn) in [(0x00, Ecn::NotEct), (0xb9, Ecn::Ect1), (0x02, Ecn::Ect0), (0xff, Ecn::Ce)] {
            assert_eq!(Ecn::from_tos(tos), ecn, "{tos:#x}");
            assert_eq!(ecn as u8, tos & 3);
        }
    }

    #[test]
    fn each_errno_has_its_refusal() {
        for (errno, refusal) in [
            (libc::EMSGSIZE, Refusal::TooBig),
            (libc::ENETUNREACH, Refusal::Unreachable),
            (libc::EHOSTUNREACH, Refusal::Unreachable),
            (libc::ECONNREFUSED, Refusal::PortClosed),
            (libc::ENODEV, Refusal::NoDevice),
            (libc::ENETDOWN, Refusal::NoDevice),
            (libc::ENOBUFS, Refusal::NoBuffers),
            (libc::EPERM, Refusal::NotPermitted),
            (libc::EPROTO, Refusal::Other(libc::EPROTO)),
        ] {
            assert_eq!(Refusal::from_errno(errno), refusal, "{errno}");
        }
    }
}
