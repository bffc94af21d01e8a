//! What can go wrong.

use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use hawser_net::link::{LinkError, Refusal};

use super::LookupError;
use super::opts::PortRange;
use crate::addr::EndpointAddr;
use crate::packet::TemplateError;

/// Why a connection or socket was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SCION needs to know which address packets come from.
    #[error("open SCION socket: {local} is not one host's address")]
    Unspecified {
        /// The address.
        local: EndpointAddr,
    },
    /// All dispatched ports are taken.
    #[error("open SCION socket on {local}: no port from {first} to {last} is free", first = range.first, last = range.last)]
    NoFreePort {
        /// The address.
        local: EndpointAddr,
        /// The ports tried.
        range: PortRange,
    },
    /// The UDP socket was not opened.
    #[error("open SCION socket")]
    Link(#[from] LinkError),
    /// The thread that renews paths could not start.
    #[error("start the thread that renews paths")]
    Thread(#[source] io::Error),
    /// A descriptor could not be watched.
    #[error("watch SCION socket")]
    Watch(#[source] io::Error),
    /// There is no way to the destination.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// Why there is no way to a destination (now).
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The paths could not be looked up.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// No path at all, or none that this host can use.
    #[error("send to {destination}: no path to {isd_as} that starts from {family} and lasts", isd_as = destination.isd_as)]
    NoPath {
        /// Where to.
        destination: EndpointAddr,
        /// `IPv4` or `IPv6`: what this host's routers must be reached by.
        family: &'static str,
    },
    /// The path expired and was not renewed in time.
    #[error("send to {destination}: its path expired, and no other was found")]
    Expired {
        /// Where to.
        destination: EndpointAddr,
        /// When it did.
        since: SystemTime,
    },
    /// Nobody looked up paths to it yet, and here nobody may wait for that.
    #[error("send to {destination}: paths to {isd_as} are not known yet", isd_as = destination.isd_as)]
    NotLookedUp {
        /// Where to.
        destination: EndpointAddr,
    },
    /// Wildcards are nobody's address.
    #[error("send to {destination}: {isd_as} is no single AS", isd_as = destination.isd_as)]
    Wildcard {
        /// Where to.
        destination: EndpointAddr,
    },
    /// A path's bytes make no header.
    #[error("send to {destination}")]
    Template {
        /// Where to.
        destination: EndpointAddr,
        /// What is wrong.
        source: TemplateError,
    },
    /// The host of an own AS is of another family than this one.
    #[error("send to {destination}: {next_hop} is not reached from {local}")]
    Family {
        /// Where to.
        destination: EndpointAddr,
        /// Who would have to be reached.
        next_hop: SocketAddr,
        /// From where.
        local: SocketAddr,
    },
}

/// Why something was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// There is no way to the destination.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Longer than the path takes.
    #[error("send {bytes} bytes to {destination}: the path takes {max} at most")]
    TooLong {
        /// Bytes of the payload.
        bytes: usize,
        /// The most it may have.
        max: usize,
        /// Where to.
        destination: EndpointAddr,
    },
    /// The kernel refused packets for good.
    #[error("send to {destination}: {reason:?}, {packets} packets lost")]
    Refused {
        /// Where to.
        destination: EndpointAddr,
        /// Why.
        reason: Refusal,
        /// How many packets did not go.
        packets: usize,
    },
    /// The socket stayed full for as long as sending may wait; nothing was filled in.
    #[error("send to {destination}: the socket is full")]
    Full {
        /// Where to.
        destination: EndpointAddr,
    },
    /// The socket is of no more use.
    #[error("send")]
    Socket(#[from] io::Error),
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> io::Error {
        let kind = match &error {
            SendError::Full { .. } => io::ErrorKind::WouldBlock,
            SendError::TooLong { .. } => io::ErrorKind::InvalidInput,
            SendError::Socket(source) => source.kind(),
            SendError::Route(_) | SendError::Refused { .. } => io::ErrorKind::HostUnreachable,
        };
        io::Error::new(kind, error)
    }
}

/// Why nothing was received.
#[derive(Debug, thiserror::Error)]
pub enum RecvError {
    /// Nothing came in the time given.
    #[error("receive: nothing came in time")]
    TimedOut,
    /// The packet is longer than the buffer; it comes again.
    #[error("receive: a payload of {bytes} bytes, room for {room}")]
    TooShort {
        /// Bytes of the payload.
        bytes: usize,
        /// Bytes of the buffer.
        room: usize,
    },
    /// The socket is of no more use.
    #[error("receive")]
    Socket(#[from] io::Error),
}

impl From<RecvError> for io::Error {
    fn from(error: RecvError) -> io::Error {
        let kind = match &error {
            RecvError::TimedOut => io::ErrorKind::TimedOut,
            RecvError::TooShort { .. } => io::ErrorKind::InvalidInput,
            RecvError::Socket(source) => source.kind(),
        };
        io::Error::new(kind, error)
    }
}
