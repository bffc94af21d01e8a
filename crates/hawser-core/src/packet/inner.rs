//! What is in an inner packet, read without copying.
//!
//! 1. The IP header: version, lengths, addresses, ECN (RFC 791, RFC 8200).
//! 2. IPv6 extension headers, up to the transport or a fragment header.
//! 3. The transport: TCP (RFC 9293) and UDP (RFC 768) with complete headers, ICMP's identifier.
//! 4. The flow bucket and class that follow from it.

use super::flow::{Buckets, FlowHash, FlowKey};
use crate::units::Ecn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// IPv4 header without options, bytes (RFC 791 section 3.1).
pub const IPV4_HEADER: usize = 20;
/// IPv6 header, bytes (RFC 8200 section 3).
pub const IPV6_HEADER: usize = 40;
/// TCP header without options, bytes (RFC 9293 section 3.1).
pub const TCP_HEADER: usize = 20;
/// UDP header, bytes (RFC 768).
pub const UDP_HEADER: usize = 8;
/// IANA protocol numbers.
pub const PROTOCOL_TCP: u8 = 6;
/// IANA protocol numbers.
pub const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_ICMPV6: u8 = 58;
/// Protocols whose first four bytes are ports (DCCP, SCTP, UDP-Lite) or name a flow (ESP's SPI).
const FLOW_IN_FIRST_WORD: [u8; 4] = [33, 132, 136, 50];
/// IPv6 extension headers (RFC 8200 section 4): hop-by-hop, routing, destination options.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;
const FRAGMENT: u8 = 44;
/// Authentication header, counted in 4-byte units (RFC 4302 section 2.2).
const AUTHENTICATION: u8 = 51;
/// More extension headers than this are an attack, not a packet.
const MAX_EXTENSIONS: usize = 8;
/// IPv4's "more fragments" and fragment offset (RFC 791 section 3.1).
const FRAGMENT_BITS: u16 = 0x3fff;
/// ICMP types of echo and its reply (RFC 792), of ICMPv6 (RFC 4443 section 4).
const ECHO: [u8; 4] = [0, 8, 128, 129];

/// Why bytes are no inner packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Error)]
pub enum InnerError {
    /// Neither version 4 nor 6.
    #[error("parse inner packet: ip version {0}")]
    Version(u8),
    /// A header ends after the packet does, or is shorter than it may be.
    #[error("parse inner packet: header cut short")]
    Truncated,
    /// The length in the IP header is not that of the packet.
    #[error("parse inner packet: header says {said} bytes, packet has {got}")]
    Length {
        /// By the header, bytes.
        said: usize,
        /// In fact, bytes.
        got: usize,
    },
    /// The UDP length does not fit.
    #[error("parse inner packet: udp length {0} does not fit")]
    UdpLength(usize),
    /// Too many IPv6 extension headers.
    #[error("parse inner packet: more than {MAX_EXTENSIONS} extension headers")]
    Extensions,
}

/// How a packet's order matters.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Class {
    /// Kept in order within its flow bucket.
    #[default]
    Ordered,
    /// Delivered as it arrives: ICMP and ICMPv6 among them.
    Unordered,
}

/// What follows the IP headers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// TCP with a header of this many bytes.
    Tcp {
        /// With options.
        header: u16,
    },
    /// UDP.
    Udp,
    /// ICMP or ICMPv6, not a fragment.
    Icmp,
    /// A fragment, the first one too.
    Fragment,
    /// Anything else.
    #[default]
    Other,
}

/// The facts about one inner packet. Made by [`parse`] only. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Inner {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol after the extension headers.
    pub protocol: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Where the transport starts, bytes.
    pub transport_at: u16,
    /// The transport.
    pub transport: Transport,
    /// Source and destination port of TCP, UDP and their like; ICMP echo has (id, 0).
    pub ports: Option<(u16, u16)>,
    /// An IPv6 routing header is in the way: the pseudo-header's destination is not ours to know.
    pub routed: bool,
}

impl Inner {
    /// The inner ECN codepoint.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }

    /// The same of an answer to it.
    pub fn reversed(&self) -> Inner {
        let ports = self.ports.map(|(source, destination)| (destination, source));
        Inner { source: self.destination, destination: self.source, ports, ..*self }
    }

    /// How its order matters.
    pub const fn class(&self) -> Class {
        match self.protocol {
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => Class::Unordered,
            _ => Class::Ordered,
        }
    }

    /// Bytes of all headers before the payload of TCP or UDP.
    pub const fn header_len(&self) -> Option<usize> {
        match self.transport {
            Transport::Tcp { header } => Some(self.transport_at as usize + header as usize),
            Transport::Udp => Some(self.transport_at as usize + UDP_HEADER),
            _ => None,
        }
    }

    /// What its flow hashes to, of those whose losses are retransmitted, or are not. Fragments hash by addresses and
    /// protocol alone, so that all of them meet.
    pub fn flow(&self, key: &FlowKey, resend: bool) -> FlowHash {
        let ports = match (self.transport, self.ports) {
            (Transport::Fragment, _) | (_, None) => 0,
            (_, Some((source, destination))) => 1 << 32 | u64::from(source) << 16 | u64::from(destination),
        };
        let tail = u64::from(self.protocol) << 40 | ports;
        let buckets = match self.protocol {
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => Buckets::Icmp,
            _ if resend => Buckets::Resent,
            _ => Buckets::Unresent,
        };
        match (self.source, self.destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => {
                key.hash(&[u64::from(s.to_bits()) << 32 | u64::from(d.to_bits()), tail], buckets)
            }
            (s, d) => {
                let halves = |a: IpAddr| {
                    let bits = match a {
                        IpAddr::V6(a) => a.to_bits(),
                        IpAddr::V4(a) => a.to_ipv6_mapped().to_bits(),
                    };
                    [(bits >> 64) as u64, bits as u64]
                };
                let ([s0, s1], [d0, d1]) = (halves(s), halves(d));
                key.hash(&[s0, s1, d0, d1, tail], buckets)
            }
        }
    }
}

/// Parses `packet`, which must be one whole IP packet.
///
/// # Errors
/// [`InnerError`] for anything that is not.
pub fn parse(packet: &[u8]) -> Result<Inner, InnerError> {
    let mut inner = match packet.first() {
        None => return Err(InnerError::Truncated),
        Some(first) => match first >> 4 {
            4 => ipv4(packet)?,
            6 => ipv6(packet)?,
            version => return Err(InnerError::Version(version)),
        },
    };
    if inner.transport != Transport::Fragment {
        transport(packet, &mut inner)?;
    }
    Ok(inner)
}

fn ipv4(packet: &[u8]) -> Result<Inner, InnerError> {
    let header: &[u8; IPV4_HEADER] = packet.first_chunk().ok_or(InnerError::Truncated)?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    same_length(usize::from(be16(header, 2)), packet)?;
    if header_len < IPV4_HEADER || header_len > packet.len() {
        return Err(InnerError::Truncated);
    }
    let address = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|i| header[at + i]));
    Ok(Inner {
        source: address(12).into(),
        destination: address(16).into(),
        protocol: header[9],
        traffic_class: header[1],
        transport_at: header_len as u16,
        transport: if be16(header, 6) & FRAGMENT_BITS != 0 { Transport::Fragment } else { Transport::Other },
        ports: None,
        routed: false,
    })
}

fn ipv6(packet: &[u8]) -> Result<Inner, InnerError> {
    let header: &[u8; IPV6_HEADER] = packet.first_chunk().ok_or(InnerError::Truncated)?;
    same_length(IPV6_HEADER + usize::from(be16(header, 4)), packet)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::from(Ipv6Addr::from(octets))
    };
    let mut inner = Inner {
        source: address(8),
        destination: address(24),
        protocol: header[6],
        traffic_class: header[0] << 4 | header[1] >> 4,
        transport_at: IPV6_HEADER as u16,
        transport: Transport::Other,
        ports: None,
        routed: false,
    };
    extensions(packet, &mut inner)?;
    Ok(inner)
}

fn extensions(packet: &[u8], inner: &mut Inner) -> Result<(), InnerError> {
    for _ in 0..MAX_EXTENSIONS {
        let at = usize::from(inner.transport_at);
        let rest = &packet[at..];
        let step = |unit: usize, extra: usize| match rest.get(1) {
            Some(&len) => Ok((usize::from(len) + extra) * unit),
            None => Err(InnerError::Truncated),
        };
        let len = match inner.protocol {
            HOP_BY_HOP | DESTINATION_OPTIONS => step(8, 1)?,
            ROUTING => {
                inner.routed = true;
                step(8, 1)?
            }
            AUTHENTICATION => step(4, 2)?,
            FRAGMENT => {
                inner.transport = Transport::Fragment;
                8
            }
            _ => return Ok(()),
        };
        if len > rest.len() {
            return Err(InnerError::Truncated);
        }
        inner.protocol = rest[0];
        inner.transport_at += len as u16;
        if inner.transport == Transport::Fragment {
            return Ok(());
        }
    }
    Err(InnerError::Extensions)
}

fn transport(packet: &[u8], inner: &mut Inner) -> Result<(), InnerError> {
    let rest = &packet[usize::from(inner.transport_at)..];
    let first_word = |r: &[u8]| Some((be16(r, 0), be16(r, 2)));
    match inner.protocol {
        PROTOCOL_TCP => {
            let offset = rest.get(12).ok_or(InnerError::Truncated)? >> 4;
            let header = u16::from(offset) * 4;
            if usize::from(header) < TCP_HEADER || usize::from(header) > rest.len() {
                return Err(InnerError::Truncated);
            }
            inner.transport = Transport::Tcp { header };
            inner.ports = first_word(rest);
        }
        PROTOCOL_UDP => {
            if rest.len() < UDP_HEADER {
                return Err(InnerError::Truncated);
            }
            let len = usize::from(be16(rest, 4));
            if len < UDP_HEADER || len > rest.len() {
                return Err(InnerError::UdpLength(len));
            }
            inner.transport = Transport::Udp;
            inner.ports = first_word(rest);
        }
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
            inner.transport = Transport::Icmp;
            if rest.len() >= 6 && ECHO.contains(&rest[0]) {
                inner.ports = Some((be16(rest, 4), 0));
            }
        }
        p if FLOW_IN_FIRST_WORD.contains(&p) && rest.len() >= 4 => inner.ports = first_word(rest),
        _ => {}
    }
    Ok(())
}

fn same_length(said: usize, packet: &[u8]) -> Result<(), InnerError> {
    if said == packet.len() {
        return Ok(());
    }
    Err(InnerError::Length { said, got: packet.len() })
}

/// The 16-bit number at `at`, which must lie within `bytes`.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit number at `at`, which must lie within `bytes`.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes a 16-bit number at `at`.
pub(super) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
