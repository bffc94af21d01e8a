//! Whose packet it is: the port that the last router, the shim or the bypass hands a packet to.

use super::quote::{Quote, Quoted};
use super::scmp::ScmpView;
use super::view::{Packet, Upper};
use super::wire::{DESTINATION_PORT_AT, TCP_LEN, protocol, u16_at};

/// Where a host answers what is for no application: the shim's port (dispatcher of the reference implementation).
pub const ENDHOST_PORT: u16 = 30041;

/// Why nobody gets a packet. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undeliverable {
    /// No port where its protocol has one.
    #[error("dispatch packet: a tcp header is cut short")]
    Truncated,
    /// An SCMP message without a reader.
    #[error("dispatch packet: scmp type {0} is for nobody")]
    UnknownScmp(u8),
    /// An error about something that no application sends.
    #[error("dispatch packet: an scmp error about what no application sent")]
    NotOurs,
}

/// The UDP port of the application that a packet is for.
///
/// A datagram goes to its destination port; an answer to who asked; an error to who sent what it is about; questions,
/// and what is not known, to the host itself.
pub fn dispatched_port(packet: &Packet<'_>) -> Result<u16, Undeliverable> {
    match packet.upper() {
        Upper::Udp(udp) => Ok(udp.destination_port()),
        Upper::Scmp(ScmpView::EchoRequest(_) | ScmpView::TracerouteRequest(_)) => Ok(ENDHOST_PORT),
        Upper::Scmp(ScmpView::EchoReply(echo)) => Ok(echo.id),
        Upper::Scmp(ScmpView::TracerouteReply(answer)) => Ok(answer.id),
        Upper::Scmp(ScmpView::Unknown { kind, .. }) => Err(Undeliverable::UnknownScmp(kind)),
        Upper::Scmp(error) => quoted_port(error.quoted().unwrap_or_default()).ok_or(Undeliverable::NotOurs),
        Upper::Other(protocol::TCP) if packet.upper_bytes().len() < TCP_LEN => Err(Undeliverable::Truncated),
        Upper::Other(protocol::TCP) => Ok(u16_at(packet.upper_bytes(), DESTINATION_PORT_AT)),
        Upper::Other(_) => Ok(ENDHOST_PORT),
    }
}

/// The port that sent a quoted packet. Port 0 is nobody's.
fn quoted_port(quoted: &[u8]) -> Option<u16> {
    match Quote::read(quoted).ok()?.carried {
        Quoted::Udp { source_port, .. } => (source_port != 0).then_some(source_port),
        Quoted::Scmp(ScmpView::EchoRequest(echo)) => Some(echo.id),
        Quoted::Scmp(ScmpView::TracerouteRequest(question)) => Some(question.id),
        Quoted::Scmp(_) | Quoted::Other(_) => None,
    }
}
