//! The beginning of a packet, as an SCMP error quotes it: cut somewhere after its header.

use super::extensions;
use super::header::{Header, Malformed, Part, need};
use super::scmp::ScmpView;
use super::wire::{DESTINATION_PORT_AT, UDP_LEN, protocol, u16_at};

/// A packet that came back in an error. There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Its header: who sent it where, along which path, and how far it came.
    pub header: Header<'a>,
    /// What it carried.
    pub carried: Quoted<'a>,
}

/// What a quoted packet carried. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoted<'a> {
    /// UDP.
    Udp {
        /// Who sent it.
        source_port: u16,
        /// Who was to get it.
        destination_port: u16,
        /// How its payload began; may be empty.
        payload: &'a [u8],
    },
    /// A control message. What it carried may be cut.
    Scmp(ScmpView<'a>),
    /// Another protocol.
    Other(u8),
}

impl<'a> Quote<'a> {
    /// Reads a quote; its length need not be what its headers say.
    pub fn read(quoted: &'a [u8]) -> Result<Quote<'a>, Malformed> {
        let (header, rest) = Header::read(quoted)?;
        let (carried, bytes) = extensions::skip(header.next_header(), rest)?;
        let carried = match carried {
            protocol::UDP => {
                need(bytes, UDP_LEN, Part::Udp)?;
                let (source_port, destination_port) = (u16_at(bytes, 0), u16_at(bytes, DESTINATION_PORT_AT));
                Quoted::Udp { source_port, destination_port, payload: &bytes[UDP_LEN..] }
            }
            protocol::SCMP => Quoted::Scmp(ScmpView::read(bytes)?),
            other => Quoted::Other(other),
        };
        Ok(Quote { header, carried })
    }
}
