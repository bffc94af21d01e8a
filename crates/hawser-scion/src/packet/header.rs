//! A SCION header, read where it lies.
//!
//! 1. [`Header::read`]: common header, then addresses, then the path, each length checked before it is used.
//! 2. What it says, read when asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::dataplane::{DataplaneView, PathType};
use super::wire::*;
use crate::addr::IsdAs;

/// Why bytes are no SCION packet that an end host can take. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("read {part}: {need} bytes are needed, {have} are there")]
    Truncated {
        /// What was read.
        part: Part,
        /// Bytes it needs.
        need: usize,
        /// Bytes there are.
        have: usize,
    },
    /// Laid out in a way that is not known.
    #[error("read common header: version {0}, known is 0")]
    Version(u8),
    /// HdrLen is too small for what the header has.
    #[error("read common header: a header of {said} bytes, but {need} are needed")]
    HeaderLength {
        /// Bytes by HdrLen.
        said: usize,
        /// Bytes of the header's parts.
        need: usize,
    },
    /// PayloadLen is not what follows.
    #[error("read common header: a payload of {said} bytes is told, {there} are there")]
    PayloadLength {
        /// Bytes by PayloadLen.
        said: usize,
        /// Bytes after the header.
        there: usize,
    },
    /// Neither IPv4 nor IPv6 nor a service.
    #[error("read address header: type and length {0:#06b} of a host is not known")]
    AddressType(u8),
    /// A service where a host is needed.
    #[error("read address header: {0} is no host")]
    Service(Service),
    /// A path type without a reader.
    #[error("read path: type {0} is not known")]
    PathType(u8),
    /// Bytes where an empty path has none.
    #[error("read path: an empty path of {0} bytes")]
    NotEmpty(usize),
    /// A segment without hops before one with hops.
    #[error("read path: segments of {0:?} hops have a gap")]
    SegmentGap([u8; MAX_SEGMENTS]),
    /// More hops than can be pointed at.
    #[error("read path: {0} hops, at most 64 can be")]
    TooManyHops(usize),
    /// Extensions come at most once each, those for hops first.
    #[error("read extension: {0} cannot follow")]
    ExtensionOrder(u8),
    /// Smaller than its header, or larger than what is there.
    #[error("read udp: a length of {said} bytes, {there} are there")]
    UdpLength {
        /// Bytes by UDP's length.
        said: usize,
        /// Bytes there are.
        there: usize,
    },
    /// Interfaces have 16 bits in hop fields, and 64 in SCMP.
    #[error("read scmp: {0} is no interface")]
    Interface(u64),
}

/// A part of a packet. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The first 12 bytes.
    CommonHeader,
    /// ISD-AS numbers and hosts.
    AddressHeader,
    /// All of the SCION header.
    Header,
    /// Path header.
    Path,
    /// An extension header.
    Extension,
    /// An option in an extension header.
    ExtensionOption,
    /// UDP's header.
    Udp,
    /// An SCMP message.
    Scmp,
}

/// A service of an AS, instead of a host (scion-header.rst, "Service Address"). Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service(pub u16);

/// Who is meant inside an AS. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// A host.
    Ip(IpAddr),
    /// Whichever host has this service.
    Service(Service),
}

/// A kind of host address, of which the length is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    V4,
    V6,
    Service,
}

/// The header of a packet: common header, addresses and path. There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// From the first byte to where the payload begins.
    bytes: &'a [u8],
    destination: HostKind,
    source: HostKind,
    path: PathType,
    /// Bytes of the path. What may stand between it and the payload is left out.
    path_len: u16,
}

impl<'a> Header<'a> {
    /// Reads a header, and gives what follows it.
    #[inline]
    pub fn read(packet: &'a [u8]) -> Result<(Header<'a>, &'a [u8]), Malformed> {
        need(packet, COMMON_LEN, Part::CommonHeader)?;
        let version = packet[0] >> 4;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let destination = HostKind::read(packet[ADDRESS_TYPES_AT] >> 4)?;
        let source = HostKind::read(packet[ADDRESS_TYPES_AT] & 0xf)?;
        let path_at = COMMON_LEN + BOTH_AS_LEN + destination.len() + source.len();
        need(packet, path_at, Part::AddressHeader)?;
        let len = usize::from(packet[HEADER_LEN_AT]) * LINE_LEN;
        if len < path_at {
            return Err(Malformed::HeaderLength { said: len, need: path_at });
        }
        need(packet, len, Part::Header)?;
        let (bytes, rest) = packet.split_at(len);
        let (path, path_len) = DataplaneView::kind_and_len(bytes[PATH_TYPE_AT], &bytes[path_at..])?;
        Ok((Header { bytes, destination, source, path, path_len: path_len as u16 }, rest))
    }

    /// All of it.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What its network may do with it (RFC 2474, RFC 3168).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.bytes, 0) >> 4) as u8
    }

    /// Which flow it belongs to.
    #[inline]
    pub fn flow_id(&self) -> u32 {
        u32_at(self.bytes, 0) & ((1 << FLOW_BITS) - 1)
    }

    /// What follows it: an extension, or what it carries.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.bytes[NEXT_HEADER_AT]
    }

    /// Bytes that are said to follow it.
    #[inline]
    pub fn payload_len(&self) -> usize {
        u16_at(self.bytes, PAYLOAD_LEN_AT).into()
    }

    /// Where it goes.
    #[inline]
    pub fn destination(&self) -> (IsdAs, Host) {
        let host = self.destination.host(&self.bytes[COMMON_LEN + BOTH_AS_LEN..]);
        (IsdAs::from_bits(u64_at(self.bytes, COMMON_LEN)), host)
    }

    /// Where it comes from.
    #[inline]
    pub fn source(&self) -> (IsdAs, Host) {
        let host = self.source.host(&self.bytes[COMMON_LEN + BOTH_AS_LEN + self.destination.len()..]);
        (IsdAs::from_bits(u64_at(self.bytes, COMMON_LEN + IsdAs::BYTES)), host)
    }

    /// Whether hosts are at both ends.
    #[inline]
    pub(super) fn check_hosts(&self) -> Result<(), Malformed> {
        if self.destination == HostKind::Service {
            self.destination().1.ip()?;
        }
        if self.source == HostKind::Service {
            self.source().1.ip()?;
        }
        Ok(())
    }

    /// The way it takes.
    #[inline]
    pub fn dataplane(&self) -> DataplaneView<'a> {
        let path = &self.bytes[COMMON_LEN + self.addresses().len()..];
        DataplaneView::checked(self.path, &path[..self.path_len.into()])
    }

    /// Its addresses, which the checksum of what it carries covers.
    #[inline]
    pub(super) fn addresses(&self) -> &'a [u8] {
        &self.bytes[COMMON_LEN..COMMON_LEN + BOTH_AS_LEN + self.destination.len() + self.source.len()]
    }
}

impl HostKind {
    #[inline]
    fn read(type_and_len: u8) -> Result<HostKind, Malformed> {
        match type_and_len {
            HOST_V4 => Ok(HostKind::V4),
            HOST_V6 => Ok(HostKind::V6),
            HOST_SERVICE => Ok(HostKind::Service),
            other => Err(Malformed::AddressType(other)),
        }
    }

    #[inline]
    fn len(self) -> usize {
        match self {
            HostKind::V4 | HostKind::Service => LINE_LEN,
            HostKind::V6 => 4 * LINE_LEN,
        }
    }

    #[inline]
    fn host(self, bytes: &[u8]) -> Host {
        match self {
            HostKind::V4 => Host::Ip(Ipv4Addr::from(array_at::<4>(bytes, 0)).into()),
            HostKind::V6 => Host::Ip(Ipv6Addr::from(array_at::<16>(bytes, 0)).into()),
            HostKind::Service => Host::Service(Service(u16_at(bytes, 0))),
        }
    }
}

impl Host {
    /// The host, unless it is a service.
    #[inline]
    pub fn ip(self) -> Result<IpAddr, Malformed> {
        match self {
            Host::Ip(ip) => Ok(ip),
            Host::Service(service) => Err(Malformed::Service(service)),
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {:#06x}", self.0)
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::CommonHeader => "common header",
            Part::AddressHeader => "address header",
            Part::Header => "header",
            Part::Path => "path",
            Part::Extension => "extension",
            Part::ExtensionOption => "extension option",
            Part::Udp => "udp",
            Part::Scmp => "scmp",
        })
    }
}

/// Whether there are enough bytes.
#[inline]
pub(super) fn need(bytes: &[u8], need: usize, part: Part) -> Result<(), Malformed> {
    if bytes.len() < need { Err(Malformed::Truncated { part, need, have: bytes.len() }) } else { Ok(()) }
}
