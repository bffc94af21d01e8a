//! UDP as SCION carries it: RFC 768 with the SCION pseudo-header.

use super::checksum::Sum;
use super::header::{Header, Malformed, Part, need};
use super::wire::*;

/// A UDP datagram in a packet. There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpView<'a> {
    /// Header and payload.
    bytes: &'a [u8],
    /// The addresses that its checksum covers.
    addresses: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// Header and payload, as long as UDP's length says.
    #[inline]
    pub(super) fn cut(bytes: &'a [u8]) -> Result<&'a [u8], Malformed> {
        need(bytes, UDP_LEN, Part::Udp)?;
        let len = usize::from(u16_at(bytes, 4));
        if len < UDP_LEN || len > bytes.len() {
            return Err(Malformed::UdpLength { said: len, there: bytes.len() });
        }
        Ok(&bytes[..len])
    }

    /// A view of what was cut before.
    #[inline]
    pub(super) fn checked(bytes: &'a [u8], header: &Header<'a>) -> UdpView<'a> {
        UdpView { bytes, addresses: header.addresses() }
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

    /// What it carries.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[UDP_LEN..]
    }

    /// Whether nothing of it was changed on the way. Reads all of the payload.
    pub fn verify_checksum(&self) -> bool {
        let pseudo = Sum::default().bytes(self.addresses).pseudo(self.bytes.len(), protocol::UDP);
        pseudo.bytes(self.bytes).is_right()
    }
}
