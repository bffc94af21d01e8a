//! What is read of packets that come: whose they are, and where their payload begins.
//!
//! 1. [`Heads::find`]: a packet whose header is that of one seen lately, but for lengths and checksum, is what that one
//!    was.
//! 2. [`read`]: else it is read whole: a datagram for this port, or what a router says of one that was sent.

use std::net::{IpAddr, SocketAddr};

use hawser_net::link::{self, Refusal, Unwrapped};

use super::key::Key;
use crate::addr::{EndpointAddr, IsdAs};
use crate::packet::{DataplaneView, Quote, Quoted, ScmpView, Upper, parse};

/// Headers remembered: the paths of a session take turns.
const HEADS: usize = 8;
/// Bytes of ports in a UDP header, which lengths and checksum follow (RFC 768).
const PORTS_LEN: usize = 4;
/// Bytes of a UDP header (RFC 768).
const UDP_LEN: usize = 8;
/// Where PayloadLen stands, and where what follows it does, in bytes (scion-header.rst, "Common Header").
const PAYLOAD_LEN_AT: usize = 6;
const AFTER_PAYLOAD_LEN: usize = 8;

/// A datagram for us.
pub(super) struct Datagram<'a> {
    /// Who sent it.
    pub(super) from: EndpointAddr,
    /// Whom it was sent to.
    pub(super) to: EndpointAddr,
    /// The way that it came.
    pub(super) path: DataplaneView<'a>,
    /// Bytes before its payload.
    pub(super) header: usize,
    /// Nothing stands between its SCION and its UDP header.
    pub(super) plain: bool,
}

/// What somebody on the way says of a packet of ours. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) reason: Refusal,
    /// Bytes that the packet might have had, from its SCION header on.
    pub(super) mtu: Option<u16>,
    /// How the datagram in that packet began.
    pub(super) quoted: link::Quoted,
}

/// What a packet is.
pub(super) enum Came<'a> {
    Datagram(Datagram<'a>),
    /// Word about the way that `key` is set to.
    Word(Word),
    Nothing,
}

/// Reads a packet that came to `local`. Of word about one of ours, `key` becomes that one's way.
pub(super) fn read<'a>(packet: &'a [u8], local: SocketAddr, key: &mut Key) -> Came<'a> {
    let Ok(parsed) = parse(packet) else { return Came::Nothing };
    match parsed.upper() {
        Upper::Udp(udp) => {
            let ((from, source), (to, destination)) = (parsed.source(), parsed.destination());
            let for_us = local.ip().is_unspecified() || destination == local.ip();
            let behind = parsed.upper_bytes().len();
            if udp.destination_port() != local.port() || !for_us || UDP_LEN + udp.payload().len() != behind {
                return Came::Nothing;
            }
            let head = packet.len() - behind;
            Came::Datagram(Datagram {
                from: endpoint(from, source, udp.source_port()),
                to: endpoint(to, destination, udp.destination_port()),
                path: parsed.dataplane(),
                header: head + UDP_LEN,
                plain: head == parsed.header().as_bytes().len(),
            })
        }
        Upper::Scmp(message) => word(&message, local, key).map_or(Came::Nothing, Came::Word),
        Upper::Other(_) => Came::Nothing,
    }
}

/// What an error says, if it is about a datagram of this socket.
fn word(message: &ScmpView<'_>, local: SocketAddr, key: &mut Key) -> Option<Word> {
    let quote = Quote::read(message.quoted()?).ok()?;
    let Quoted::Udp { source_port, destination_port, payload } = quote.carried else { return None };
    let host = quote.header.source().1.ip().ok()?;
    if source_port != local.port() || !(local.ip().is_unspecified() || host == local.ip()) {
        return None;
    }
    let (isd_as, host) = quote.header.destination();
    key.set_goes(&endpoint(isd_as, host.ip().ok()?, destination_port), &quote.header.dataplane());
    let (reason, mtu) = match message {
        ScmpView::PacketTooBig { mtu, .. } => (Refusal::TooBig, Some(*mtu)),
        ScmpView::ExternalInterfaceDown { .. } | ScmpView::InternalConnectivityDown { .. } => {
            (Refusal::Unreachable, None)
        }
        ScmpView::DestinationUnreachable { .. } => (Refusal::PortClosed, None),
        // It was not understood, for example as its path has expired.
        _ => (Refusal::Unreachable, None),
    };
    Some(Word { reason, mtu, quoted: link::Quoted::of(payload) })
}

fn endpoint(isd_as: IsdAs, host: IpAddr, port: u16) -> EndpointAddr {
    EndpointAddr::new(isd_as, SocketAddr::new(host, port))
}

/// A header that was read, and what it said.
#[derive(Debug, Default)]
struct Head {
    /// SCION header and ports.
    bytes: Vec<u8>,
    outer: Option<(SocketAddr, Option<IpAddr>)>,
    remote: Option<SocketAddr>,
}

/// Headers that were read lately. None at first; one thread uses it.
#[derive(Debug, Default)]
pub(super) struct Heads {
    heads: [Head; HEADS],
    next: usize,
}

impl Heads {
    /// Step 1. Lengths are checked of each packet.
    pub(super) fn find(&self, from: SocketAddr, local: Option<IpAddr>, packet: &[u8]) -> Option<Unwrapped> {
        let outer = Some((from, local));
        self.heads.iter().find_map(|head| {
            let remote = head.remote.filter(|_| head.outer == outer)?;
            let rest = packet.get(head.bytes.len()..)?;
            let same = packet[..PAYLOAD_LEN_AT] == head.bytes[..PAYLOAD_LEN_AT]
                && packet[AFTER_PAYLOAD_LEN..head.bytes.len()] == head.bytes[AFTER_PAYLOAD_LEN..];
            let len = (rest.len() + PORTS_LEN) as u16;
            let said =
                [packet.get(PAYLOAD_LEN_AT..)?, rest].map(|at| at.first_chunk().map(|two| u16::from_be_bytes(*two)));
            (same && said == [Some(len); 2])
                .then_some(Unwrapped { remote, header: head.bytes.len() + UDP_LEN - PORTS_LEN })
        })
    }

    /// Remembers what a packet without extensions was.
    pub(super) fn keep(&mut self, from: SocketAddr, local: Option<IpAddr>, packet: &[u8], what: Unwrapped) {
        let head = &mut self.heads[self.next];
        self.next = (self.next + 1) % HEADS;
        head.bytes.clear();
        head.bytes.extend_from_slice(&packet[..what.header + PORTS_LEN - UDP_LEN]);
        (head.outer, head.remote) = (Some((from, local)), Some(what.remote));
    }

    /// Forgets them all: aliases changed.
    pub(super) fn clear(&mut self) {
        self.heads.iter_mut().for_each(|head| head.remote = None);
    }
}
