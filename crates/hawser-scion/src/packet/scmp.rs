//! SCMP, what SCION has for ICMP (scmp.rst).
//!
//! 1. [`ScmpView`]: a message, as it is read and as it is to be written.
//! 2. [`ScmpView::read`].
//! 3. [`ScmpView::write`].

use super::header::{Malformed, Part, need};
use super::wire::*;
use crate::addr::IsdAs;
use crate::path::InterfaceId;

/// Types of messages (scmp.rst, "Types").
mod kind {
    pub const DESTINATION_UNREACHABLE: u8 = 1;
    pub const PACKET_TOO_BIG: u8 = 2;
    pub const PARAMETER_PROBLEM: u8 = 4;
    pub const EXTERNAL_INTERFACE_DOWN: u8 = 5;
    pub const INTERNAL_CONNECTIVITY_DOWN: u8 = 6;
    pub const ECHO_REQUEST: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
    pub const TRACEROUTE_REQUEST: u8 = 130;
    pub const TRACEROUTE_REPLY: u8 = 131;
}

/// The first type that is no error (scmp.rst, "Types").
const FIRST_INFORMATIONAL: u8 = 128;
/// Bytes of an interface in a message (scmp.rst).
const INTERFACE_LEN: usize = 8;
/// Bytes between checksum and quote, or data, of messages without interfaces (scmp.rst).
const SHORT_BODY_LEN: usize = 4;
/// Bytes between checksum and quote of a message about an external interface.
const EXTERNAL_BODY_LEN: usize = IsdAs::BYTES + INTERFACE_LEN;
/// Bytes between checksum and quote of a message about a way inside an AS.
const INTERNAL_BODY_LEN: usize = IsdAs::BYTES + 2 * INTERFACE_LEN;
/// Bytes of a traceroute message after its checksum.
const TRACEROUTE_BODY_LEN: usize = SHORT_BODY_LEN + IsdAs::BYTES + INTERFACE_LEN;

/// A control message. Errors quote the packet they are about, as much of it as had room.
/// There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScmpView<'a> {
    /// Type 1: it could not be delivered.
    DestinationUnreachable {
        /// Why (scmp.rst, "Destination Unreachable").
        code: u8,
        /// The packet it is about.
        quoted: &'a [u8],
    },
    /// Type 2: a link on the way takes less.
    PacketTooBig {
        /// Bytes that a packet may have, from its SCION header on.
        mtu: u16,
        /// The packet it is about.
        quoted: &'a [u8],
    },
    /// Type 4: its header was not understood.
    ParameterProblem {
        /// Why (scmp.rst, "Parameter Problem").
        code: u8,
        /// Where in the packet, in bytes.
        pointer: u16,
        /// The packet it is about.
        quoted: &'a [u8],
    },
    /// Type 5: a link to another AS is down.
    ExternalInterfaceDown {
        /// The AS that says so.
        isd_as: IsdAs,
        /// Its interface.
        interface: InterfaceId,
        /// The packet it is about.
        quoted: &'a [u8],
    },
    /// Type 6: an AS has no way from one of its interfaces to another.
    InternalConnectivityDown {
        /// The AS that says so.
        isd_as: IsdAs,
        /// Where the packet came in.
        ingress: InterfaceId,
        /// Where it was to go out.
        egress: InterfaceId,
        /// The packet it is about.
        quoted: &'a [u8],
    },
    /// Type 128: to be answered by a host.
    EchoRequest(Echo<'a>),
    /// Type 129.
    EchoReply(Echo<'a>),
    /// Type 130: to be answered by a router.
    TracerouteRequest(Traceroute),
    /// Type 131.
    TracerouteReply(Traceroute),
    /// Any other.
    Unknown {
        /// Its type: an error below 128.
        kind: u8,
        /// Its code.
        code: u8,
        /// What follows the checksum.
        body: &'a [u8],
    },
}

/// A question that is answered by its repetition. Empty by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Who asks: the asking socket's port.
    pub id: u16,
    /// Which question.
    pub seq: u16,
    /// What is to be repeated.
    pub data: &'a [u8],
}

/// A question to a router on the way, and its answer. Zero, as asked, by default. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traceroute {
    /// Who asks: the asking socket's port.
    pub id: u16,
    /// Which question.
    pub seq: u16,
    /// The router's AS; 0 in a question.
    pub isd_as: IsdAs,
    /// The router's interface; 0 in a question.
    pub interface: InterfaceId,
}

impl<'a> ScmpView<'a> {
    /// Reads a message from its type on. The checksum is not looked at.
    pub(super) fn read(bytes: &'a [u8]) -> Result<ScmpView<'a>, Malformed> {
        need(bytes, SCMP_LEN, Part::Scmp)?;
        let (kind, code) = (bytes[0], bytes[1]);
        let body_len = match kind {
            kind::EXTERNAL_INTERFACE_DOWN => EXTERNAL_BODY_LEN,
            kind::INTERNAL_CONNECTIVITY_DOWN => INTERNAL_BODY_LEN,
            kind::TRACEROUTE_REQUEST | kind::TRACEROUTE_REPLY => TRACEROUTE_BODY_LEN,
            kind::DESTINATION_UNREACHABLE
            | kind::PACKET_TOO_BIG
            | kind::PARAMETER_PROBLEM
            | kind::ECHO_REQUEST
            | kind::ECHO_REPLY => SHORT_BODY_LEN,
            _ => return Ok(ScmpView::Unknown { kind, code, body: &bytes[SCMP_LEN..] }),
        };
        need(bytes, SCMP_LEN + body_len, Part::Scmp)?;
        let (body, quoted) = bytes[SCMP_LEN..].split_at(body_len);
        let echo = Echo { id: u16_at(body, 0), seq: u16_at(body, 2), data: quoted };
        let isd_as = |at| IsdAs::from_bits(u64_at(body, at));
        let interface = |at| interface(u64_at(body, at));
        let traceroute = || {
            let (isd_as, interface) = (isd_as(SHORT_BODY_LEN), interface(SHORT_BODY_LEN + IsdAs::BYTES)?);
            Ok(Traceroute { id: echo.id, seq: echo.seq, isd_as, interface })
        };
        Ok(match kind {
            kind::DESTINATION_UNREACHABLE => ScmpView::DestinationUnreachable { code, quoted },
            kind::PACKET_TOO_BIG => ScmpView::PacketTooBig { mtu: u16_at(body, 2), quoted },
            kind::PARAMETER_PROBLEM => ScmpView::ParameterProblem { code, pointer: u16_at(body, 2), quoted },
            kind::EXTERNAL_INTERFACE_DOWN => {
                let interface = interface(IsdAs::BYTES)?;
                ScmpView::ExternalInterfaceDown { isd_as: isd_as(0), interface, quoted }
            }
            kind::INTERNAL_CONNECTIVITY_DOWN => {
                let (ingress, egress) = (interface(IsdAs::BYTES)?, interface(IsdAs::BYTES + INTERFACE_LEN)?);
                ScmpView::InternalConnectivityDown { isd_as: isd_as(0), ingress, egress, quoted }
            }
            kind::ECHO_REQUEST => ScmpView::EchoRequest(echo),
            kind::ECHO_REPLY => ScmpView::EchoReply(echo),
            kind::TRACEROUTE_REQUEST => ScmpView::TracerouteRequest(traceroute()?),
            _ => ScmpView::TracerouteReply(traceroute()?),
        })
    }

    /// Writes the message after what is there, its checksum 0.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (kind, code) = self.kind_and_code();
        out.extend([kind, code, 0, 0]);
        match *self {
            ScmpView::DestinationUnreachable { .. } => out.extend([0; SHORT_BODY_LEN]),
            ScmpView::PacketTooBig { mtu: number, .. } | ScmpView::ParameterProblem { pointer: number, .. } => {
                out.extend([0; 2]);
                out.extend(number.to_be_bytes());
            }
            ScmpView::ExternalInterfaceDown { isd_as, interface, .. } => {
                out.extend(isd_as.to_bits().to_be_bytes());
                out.extend(u64::from(interface.0).to_be_bytes());
            }
            ScmpView::InternalConnectivityDown { isd_as, ingress, egress, .. } => {
                out.extend(isd_as.to_bits().to_be_bytes());
                out.extend(u64::from(ingress.0).to_be_bytes());
                out.extend(u64::from(egress.0).to_be_bytes());
            }
            ScmpView::EchoRequest(echo) | ScmpView::EchoReply(echo) => {
                out.extend(echo.id.to_be_bytes());
                out.extend(echo.seq.to_be_bytes());
            }
            ScmpView::TracerouteRequest(question) | ScmpView::TracerouteReply(question) => {
                out.extend(question.id.to_be_bytes());
                out.extend(question.seq.to_be_bytes());
                out.extend(question.isd_as.to_bits().to_be_bytes());
                out.extend(u64::from(question.interface.0).to_be_bytes());
            }
            ScmpView::Unknown { .. } => {}
        }
        out.extend_from_slice(self.tail());
    }

    /// Type and code.
    pub fn kind_and_code(&self) -> (u8, u8) {
        match *self {
            ScmpView::DestinationUnreachable { code, .. } => (kind::DESTINATION_UNREACHABLE, code),
            ScmpView::PacketTooBig { .. } => (kind::PACKET_TOO_BIG, 0),
            ScmpView::ParameterProblem { code, .. } => (kind::PARAMETER_PROBLEM, code),
            ScmpView::ExternalInterfaceDown { .. } => (kind::EXTERNAL_INTERFACE_DOWN, 0),
            ScmpView::InternalConnectivityDown { .. } => (kind::INTERNAL_CONNECTIVITY_DOWN, 0),
            ScmpView::EchoRequest(_) => (kind::ECHO_REQUEST, 0),
            ScmpView::EchoReply(_) => (kind::ECHO_REPLY, 0),
            ScmpView::TracerouteRequest(_) => (kind::TRACEROUTE_REQUEST, 0),
            ScmpView::TracerouteReply(_) => (kind::TRACEROUTE_REPLY, 0),
            ScmpView::Unknown { kind, code, .. } => (kind, code),
        }
    }

    /// Whether it tells of an error: such a message is never answered with another (scmp.rst, "Message Processing").
    pub fn is_error(&self) -> bool {
        self.kind_and_code().0 < FIRST_INFORMATIONAL
    }

    /// The beginning of the packet that an error is about.
    pub fn quoted(&self) -> Option<&'a [u8]> {
        (self.is_error() && !matches!(self, ScmpView::Unknown { .. })).then(|| self.tail())
    }

    /// What follows the fields.
    fn tail(&self) -> &'a [u8] {
        match *self {
            ScmpView::DestinationUnreachable { quoted, .. }
            | ScmpView::PacketTooBig { quoted, .. }
            | ScmpView::ParameterProblem { quoted, .. }
            | ScmpView::ExternalInterfaceDown { quoted, .. }
            | ScmpView::InternalConnectivityDown { quoted, .. } => quoted,
            ScmpView::EchoRequest(echo) | ScmpView::EchoReply(echo) => echo.data,
            ScmpView::TracerouteRequest(_) | ScmpView::TracerouteReply(_) => &[],
            ScmpView::Unknown { body, .. } => body,
        }
    }
}

impl<'a> Echo<'a> {
    /// The answer.
    pub fn reply(self) -> ScmpView<'a> {
        ScmpView::EchoReply(self)
    }
}

fn interface(number: u64) -> Result<InterfaceId, Malformed> {
    u16::try_from(number).map(InterfaceId).map_err(|_| Malformed::Interface(number))
}
