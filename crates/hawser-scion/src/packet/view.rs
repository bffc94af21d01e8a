//! A whole packet, read where it lies.
//!
//! 1. [`parse`]: header, extensions, and what they carry; all lengths are checked here.
//! 2. [`Packet`]: what it says, read when asked for.

use std::net::IpAddr;

use super::checksum::Sum;
use super::dataplane::DataplaneView;
use super::extensions;
use super::header::{Header, Malformed};
use super::scmp::ScmpView;
use super::udp::UdpView;
use super::wire::protocol;
use crate::addr::IsdAs;

/// A packet between two hosts. There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    header: Header<'a>,
    /// What is carried, after extensions, as long as its own header says.
    bytes: &'a [u8],
    /// Its protocol.
    carried: u8,
}

/// What a packet carries. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper<'a> {
    /// A datagram.
    Udp(UdpView<'a>),
    /// A control message.
    Scmp(ScmpView<'a>),
    /// Another protocol, by its number.
    Other(u8),
}

/// Reads a packet. Checksums are left to those who want them.
#[inline]
pub fn parse(packet: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = Header::read(packet)?;
    header.check_hosts()?;
    if header.payload_len() != rest.len() {
        return Err(Malformed::PayloadLength { said: header.payload_len(), there: rest.len() });
    }
    let (carried, bytes) = extensions::skip(header.next_header(), rest)?;
    let bytes = match carried {
        protocol::UDP => UdpView::cut(bytes)?,
        protocol::SCMP => ScmpView::read(bytes).map(|_| bytes)?,
        _ => bytes,
    };
    Ok(Packet { header, bytes, carried })
}

impl<'a> Packet<'a> {
    /// Its header.
    #[inline]
    pub fn header(&self) -> &Header<'a> {
        &self.header
    }

    /// Where it comes from.
    #[inline]
    pub fn source(&self) -> (IsdAs, IpAddr) {
        let (isd_as, host) = self.header.source();
        (isd_as, host.ip().expect("parse takes hosts only"))
    }

    /// Where it goes.
    #[inline]
    pub fn destination(&self) -> (IsdAs, IpAddr) {
        let (isd_as, host) = self.header.destination();
        (isd_as, host.ip().expect("parse takes hosts only"))
    }

    /// The way it came.
    #[inline]
    pub fn dataplane(&self) -> DataplaneView<'a> {
        self.header.dataplane()
    }

    /// What it carries.
    #[inline]
    pub fn upper(&self) -> Upper<'a> {
        match self.carried {
            protocol::UDP => Upper::Udp(UdpView::checked(self.bytes, &self.header)),
            protocol::SCMP => Upper::Scmp(ScmpView::read(self.bytes).expect("parse has read it")),
            other => Upper::Other(other),
        }
    }

    /// What it carries, as bytes, with that protocol's header.
    #[inline]
    pub fn upper_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether nothing of it was changed on the way. UDP and SCMP have a checksum; others are taken as they are.
    pub fn verify_checksum(&self) -> bool {
        let pseudo = Sum::default().bytes(self.header.addresses()).pseudo(self.bytes.len(), self.carried);
        !matches!(self.carried, protocol::UDP | protocol::SCMP) || pseudo.bytes(self.bytes).is_right()
    }
}
