//! TCP as SCION carries it: RFC 9293 with the SCION pseudo-header.

use super::checksum::Sum;
use super::view::{Packet, Upper};
use super::wire::*;

/// A TCP segment in a packet, of which its first twenty bytes are there. There is no default. Cheap to copy, and plain
/// data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView<'a> {
    /// Header, options and payload.
    bytes: &'a [u8],
    /// The addresses that its checksum covers.
    addresses: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// What a packet carries, where that is TCP and not cut short. What the header says of options is left to its
    /// reader.
    #[inline]
    pub fn of(packet: &Packet<'a>) -> Option<TcpView<'a>> {
        let is_one = packet.upper() == Upper::Other(protocol::TCP) && packet.upper_bytes().len() >= TCP_LEN;
        is_one.then(|| TcpView { bytes: packet.upper_bytes(), addresses: packet.header().addresses() })
    }

    /// Who sent it.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16_at(self.bytes, 0)
    }

    /// Who is to get it.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16_at(self.bytes, DESTINATION_PORT_AT)
    }

    /// All of it, from its header on.
    #[inline]
    pub fn segment(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether nothing of it was changed on the way. Reads all of it.
    pub fn verify_checksum(&self) -> bool {
        let pseudo = Sum::default().bytes(self.addresses).pseudo(self.bytes.len(), protocol::TCP);
        pseudo.bytes(self.bytes).is_right()
    }
}
