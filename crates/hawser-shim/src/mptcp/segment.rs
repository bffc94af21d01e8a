//! A TCP segment in an IP packet.
//!
//! 1. The IP header: version, length, addresses; IPv6's extension headers are passed over. Fragments hold no segment.
//! 2. The TCP header, which must be whole; of the payload only the length counts, as the IP header has it.
//! 3. The options, one after the other, up to the first that is not whole.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hawser_core::packet::inner::{IPV4_HEADER, IPV6_HEADER, PROTOCOL_TCP, TCP_HEADER};

use super::option::{MptcpOption, OptionError};

/// IPv4's flag and offset bits of a fragment (RFC 791 section 3.1): all but "don't fragment" and the reserved one.
const FRAGMENT_BITS: u16 = 0x3fff;
/// IPv6's extension headers that may stand before TCP (RFC 8200 section 4): hop-by-hop, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// More extension headers than this are an attack, not a packet.
const MAX_EXTENSIONS: usize = 8;
/// TCP's option kinds (RFC 9293 section 3.2, RFC 7323 sections 2.2 and 3.2, RFC 2018 sections 2 and 3, RFC 8684
/// section 3).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK: u8 = 5;
const MPTCP: u8 = 30;
/// Bytes of an option's kind and length.
const OPTION_HEADER: usize = 2;
/// The largest shift of a window (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// Why a packet holds no segment that can be read. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSegment {
    /// Neither IPv4 nor IPv6, or another protocol than TCP.
    #[error("read a tcp segment: the packet holds none")]
    NotTcp,
    /// A fragment.
    #[error("read a tcp segment: the packet is a fragment")]
    Fragment,
    /// A header is not whole, or contradicts another.
    #[error("read a tcp segment: a header is cut short")]
    Truncated,
}

/// A sequence or acknowledgment number of TCP; compared modulo 2^32 (RFC 9293 section 3.4).
/// Zero by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sequence(pub u32);

impl Sequence {
    /// True where this comes after `other`.
    pub const fn is_after(self, other: Sequence) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() > 0
    }

    /// This many bytes further.
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Sequence {
        Sequence(self.0.wrapping_add(bytes))
    }

    /// How many bytes this is after `other`; huge where it is before.
    pub const fn since(self, other: Sequence) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

/// The flags of a segment, the eight of TCP's fourteenth byte (RFC 9293 section 3.1).
/// None by default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data.
    pub const FIN: Flags = Flags(0x01);
    /// A flow begins.
    pub const SYN: Flags = Flags(0x02);
    /// A flow ends at once.
    pub const RST: Flags = Flags(0x04);
    /// To be delivered at once.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number counts.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer counts.
    pub const URG: Flags = Flags(0x20);
    /// The congestion window was reduced (RFC 3168 section 6.1).
    pub const CWR: Flags = Flags(0x80);

    /// True where all of `flags` are set.
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// True where one of `flags` is set.
    pub const fn has_any(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// These and those.
    #[must_use]
    pub const fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({:#010b})", self.0)
    }
}

/// A TCP segment. Made by [`Segment::parse`] only; borrows from its packet.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'p> {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
    /// Of its first byte.
    pub sequence: Sequence,
    /// What the sender expects next.
    pub acknowledgment: Sequence,
    /// Its flags.
    pub flags: Flags,
    /// The window, as it stands there.
    pub window: u16,
    /// Bytes of data, whether they are in the packet or were not captured.
    pub payload: u32,
    /// Where the TCP header starts in the packet.
    pub tcp_at: u16,
    options: &'p [u8],
}

/// An option of TCP. Borrows from its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpOption<'p> {
    /// The largest segment that is taken, without headers (RFC 9293 section 3.7.1).
    MaximumSegmentSize(u16),
    /// How far windows are shifted (RFC 7323 section 2).
    WindowScale(u8),
    /// What arrived beyond a gap (RFC 2018 section 3).
    Sack(&'p [u8]),
    /// MPTCP's, from its subtype on (RFC 8684 section 3).
    Mptcp(&'p [u8]),
    /// Another: kind and what follows its length.
    Other(u8, &'p [u8]),
}

/// The options of a segment, in their order, up to the first that is not whole. Borrows from its packet.
#[derive(Clone, Debug)]
pub struct Options<'p>(&'p [u8]);

impl<'p> Segment<'p> {
    /// The segment in an IP packet, of which the headers are enough.
    ///
    /// # Errors
    /// [`NoSegment`] where there is none, or a header is not whole.
    pub fn parse(packet: &'p [u8]) -> Result<Self, NoSegment> {
        let ip = Ip::parse(packet)?;
        let rest = packet.get(ip.tcp_at..).ok_or(NoSegment::Truncated)?;
        let header: &[u8; TCP_HEADER] = rest.first_chunk().ok_or(NoSegment::Truncated)?;
        let len = usize::from(header[12] >> 4) * 4;
        let options = rest.get(TCP_HEADER..len).ok_or(NoSegment::Truncated)?;
        let payload = ip.end.checked_sub(ip.tcp_at + len).ok_or(NoSegment::Truncated)?;
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Ok(Self {
            source: SocketAddr::new(ip.source, half(0)),
            destination: SocketAddr::new(ip.destination, half(2)),
            sequence: Sequence(word(4)),
            acknowledgment: Sequence(word(8)),
            flags: Flags(header[13]),
            window: half(14),
            payload: u32::try_from(payload).map_err(|_| NoSegment::Truncated)?,
            tcp_at: u16::try_from(ip.tcp_at).map_err(|_| NoSegment::Truncated)?,
            options,
        })
    }

    /// Where its data ends; SYN and FIN count as a byte each (RFC 9293 section 3.4).
    pub fn end(&self) -> Sequence {
        let flags = u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN));
        self.sequence.plus(self.payload).plus(flags)
    }

    /// Its options.
    pub fn options(&self) -> Options<'p> {
        Options(self.options)
    }

    /// Bytes of its options, with their padding.
    pub fn options_len(&self) -> usize {
        self.options.len()
    }

    /// Whether it acknowledges parts.
    pub fn has_sack(&self) -> bool {
        self.options().any(|option| matches!(option, TcpOption::Sack(_)))
    }

    /// How far it says that its sender's windows are shifted; at most 14 (RFC 7323 section 2.3).
    pub fn window_scale(&self) -> Option<u8> {
        self.options().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(shift.min(MAX_WINDOW_SCALE)),
            _ => None,
        })
    }

    /// What MPTCP says.
    pub fn mptcp(&self) -> impl Iterator<Item = Result<MptcpOption<'p>, OptionError>> + use<'p> {
        let flags = self.flags;
        self.options().filter_map(move |option| match option {
            TcpOption::Mptcp(body) => Some(MptcpOption::parse(body, flags)),
            _ => None,
        })
    }
}

impl<'p> Iterator for Options<'p> {
    type Item = TcpOption<'p>;

    fn next(&mut self) -> Option<TcpOption<'p>> {
        loop {
            match *self.0.first()? {
                END => return None,
                NO_OPERATION => self.0 = &self.0[1..],
                kind => {
                    let len = usize::from(*self.0.get(1)?);
                    let body = self.0.get(OPTION_HEADER..len)?;
                    self.0 = &self.0[len..];
                    return Some(TcpOption::of(kind, body));
                }
            }
        }
    }
}

impl<'p> TcpOption<'p> {
    fn of(kind: u8, body: &'p [u8]) -> Self {
        match (kind, body) {
            (MAXIMUM_SEGMENT_SIZE, &[high, low]) => Self::MaximumSegmentSize(u16::from_be_bytes([high, low])),
            (WINDOW_SCALE, &[shift]) => Self::WindowScale(shift),
            (SACK, body) => Self::Sack(body),
            (MPTCP, body) => Self::Mptcp(body),
            (kind, body) => Self::Other(kind, body),
        }
    }
}

/// What the IP header says. Lives while a packet is read.
struct Ip {
    source: IpAddr,
    destination: IpAddr,
    tcp_at: usize,
    /// Where the packet ends, by its own account.
    end: usize,
}

impl Ip {
    fn parse(packet: &[u8]) -> Result<Self, NoSegment> {
        match packet.first().ok_or(NoSegment::Truncated)? >> 4 {
            4 => Self::v4(packet),
            6 => Self::v6(packet),
            _ => Err(NoSegment::NotTcp),
        }
    }

    fn v4(packet: &[u8]) -> Result<Self, NoSegment> {
        let header: &[u8; IPV4_HEADER] = packet.first_chunk().ok_or(NoSegment::Truncated)?;
        if header[9] != PROTOCOL_TCP {
            return Err(NoSegment::NotTcp);
        }
        if u16::from_be_bytes([header[6], header[7]]) & FRAGMENT_BITS != 0 {
            return Err(NoSegment::Fragment);
        }
        let tcp_at = usize::from(header[0] & 0xf) * 4;
        if tcp_at < IPV4_HEADER {
            return Err(NoSegment::Truncated);
        }
        let address = |at: usize| Ipv4Addr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]).into();
        let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
        Ok(Self { source: address(12), destination: address(16), tcp_at, end })
    }

    fn v6(packet: &[u8]) -> Result<Self, NoSegment> {
        let header: &[u8; IPV6_HEADER] = packet.first_chunk().ok_or(NoSegment::Truncated)?;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&header[at..at + 16]);
            Ipv6Addr::from(octets).into()
        };
        let mut next = header[6];
        let mut tcp_at = IPV6_HEADER;
        for _ in 0..=MAX_EXTENSIONS {
            if next == PROTOCOL_TCP {
                let end = IPV6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
                return Ok(Self { source: address(8), destination: address(24), tcp_at, end });
            }
            if !EXTENSIONS.contains(&next) {
                return Err(NoSegment::NotTcp);
            }
            let extension = packet.get(tcp_at..tcp_at + 2).ok_or(NoSegment::Truncated)?;
            // Counted in 8 bytes beyond the first 8 (RFC 8200 section 4.3).
            (next, tcp_at) = (extension[0], tcp_at + (usize::from(extension[1]) + 1) * 8);
        }
        Err(NoSegment::NotTcp)
    }
}
