//! TCP as SCION's own layer 4: the SCION header takes the place of the IP header (README.md, "TCP as layer 4").
//!
//! 1. [`cut`]: a packet, or a train of them, becomes segments that bear the port which SCION sees. Their checksums are
//!    made where the SCION header is written, for they cover its addresses (hawser-scion's `Template::finish_tcp`).
//! 2. [`bare`]: the headers of an earlier segment, as one that brings nothing new: so the peer hears of another way.
//! 3. [`restore`]: a segment becomes a packet between two addresses again; its checksum is partial.
//!
//! Nothing is kept here: which addresses and ports stand for which, the engine knows.

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use hawser_core::packet::checksum;
use hawser_core::packet::inner::{IPV4_HEADER, PROTOCOL_TCP, TCP_HEADER};
use hawser_scion::packet::UDP_LEN;

use crate::compress::{Constants, Datagrams, Offload, TooLarge, Varying, headers_of, pieces};
use crate::flow::Protocol;
use crate::mptcp::{Flags, Segment};

/// Where ports, sequence number, flags, checksum and urgent pointer stand in a TCP header (RFC 9293 section 3.1).
const SOURCE_AT: usize = 0;
const DESTINATION_AT: usize = 2;
const SEQUENCE_AT: usize = 4;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
/// What a restored packet may live: the inner one's is not told (RFC 1700, "IP time to live").
const HOP_LIMIT: u8 = 64;

/// What carries segments in SCION. Plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer4 {
    /// Datagrams of UDP, with headers that both ends know replaced.
    #[default]
    Udp,
    /// Nothing: TCP itself is SCION's layer 4.
    Tcp,
}

/// A port of this host's as SCION sees it. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OuterPort(pub u16);

/// Why a packet does not become segments. There is no default. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotCut {
    /// The flow's MSS is larger than [`max_segment`].
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Its lengths contradict each other, or its checksum is wrong, which a new one would hide.
    #[error("translate a packet: it is not whole, or its checksum is wrong")]
    Damaged,
}

/// Bytes that a segment may have with its header, where a datagram may have `room`: UDP's header is not there.
const fn segment_room(room: u16) -> u16 {
    room.saturating_add(UDP_LEN as u16)
}

/// The largest segment (TCP's MSS, RFC 9293 section 3.7.1) along a way whose datagrams may have `room` bytes.
pub const fn max_segment(room: u16) -> u16 {
    segment_room(room).saturating_sub(TCP_HEADER as u16)
}

/// Step 1: adds the segments of a packet to `out`, along a way whose datagrams may have `room` bytes. Says the traffic
/// class, which goes in the SCION header.
///
/// # Errors
/// [`NotCut`]: nothing was added.
pub fn cut(packet: &[u8], offload: Offload, room: u16, port: OuterPort, out: &mut Datagrams) -> Result<u8, NotCut> {
    let segment = Segment::parse(packet).map_err(|_| NotCut::Damaged)?;
    let headers = headers_of(&segment);
    let payload = packet.get(headers..).ok_or(NotCut::Damaged)?;
    let tcp = &packet[usize::from(segment.tcp_at)..];
    let is_whole = offload.segment.is_some() || payload.len() == segment.payload as usize;
    if !is_whole || !(offload.partial || is_right(&segment, tcp)) {
        return Err(NotCut::Damaged);
    }
    let header = &tcp[..headers - usize::from(segment.tcp_at)];
    let size = offload.segment.map_or(payload.len(), usize::from).max(1);
    let (len, room) = (header.len() + size.min(payload.len()), usize::from(segment_room(room)));
    if len > room {
        return Err(TooLarge { len, room }.into());
    }
    for (sequence, flags, piece) in pieces(segment.sequence, segment.flags, payload, size) {
        let at = out.bytes.len();
        out.bytes.extend(header);
        put(&mut out.bytes[at..], SOURCE_AT, port.0);
        out.bytes[at + SEQUENCE_AT..at + SEQUENCE_AT + 4].copy_from_slice(&sequence.0.to_be_bytes());
        out.bytes[at + FLAGS_AT] = flags.0;
        out.bytes.extend(piece);
        out.finish();
    }
    Ok(class_of(packet))
}

/// Step 2: adds the headers of an earlier packet as a segment without data, which its receiver takes for one that came
/// twice. Says the traffic class; none where there are no headers, or they do not fit.
pub fn bare(headers: &[u8], room: u16, port: OuterPort, out: &mut Datagrams) -> Option<u8> {
    let segment = Segment::parse(headers).ok()?;
    let header = headers.get(usize::from(segment.tcp_at)..headers_of(&segment))?;
    if header.len() > usize::from(segment_room(room)) {
        return None;
    }
    let at = out.bytes.len();
    out.bytes.extend(header);
    put(&mut out.bytes[at..], SOURCE_AT, port.0);
    // The end of the data is elsewhere: a FIN here would be another one.
    out.bytes[at + FLAGS_AT] &= !Flags::FIN.with(Flags::PSH).with(Flags::URG).0;
    out.finish();
    Some(class_of(headers))
}

/// The ports of a segment, source and destination; none where there is no whole header.
pub fn ports(segment: &[u8]) -> Option<(u16, u16)> {
    let header: &[u8; TCP_HEADER] = segment.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Some((half(SOURCE_AT), half(DESTINATION_AT)))
}

/// Step 3: puts the packet that a segment stands for in the place of what is in `out`; none where there is no whole
/// header, or it is longer than a packet.
pub fn restore(
    segment: &[u8],
    class: u8,
    source: SocketAddr,
    destination: SocketAddr,
    out: &mut Vec<u8>,
) -> Option<()> {
    ports(segment)?;
    out.clear();
    let constants = Constants {
        protocol: Protocol::Tcp,
        source,
        destination,
        hop_limit: HOP_LIMIT,
        flow_label: 0,
        dont_fragment: true,
    };
    constants.write(Varying { traffic_class: class, identification: 0 }, segment.len(), out)?;
    let at = out.len();
    out.extend(segment);
    let partial = checksum::pseudo(source.ip(), destination.ip(), PROTOCOL_TCP, segment.len());
    let tcp = &mut out[at..];
    put(tcp, SOURCE_AT, source.port());
    put(tcp, DESTINATION_AT, destination.port());
    put(tcp, CHECKSUM_AT, partial);
    Some(())
}

fn is_right(segment: &Segment<'_>, tcp: &[u8]) -> bool {
    let pseudo = checksum::pseudo(segment.source.ip(), segment.destination.ip(), PROTOCOL_TCP, tcp.len());
    checksum::verifies(pseudo, tcp)
}

/// DSCP and ECN of a packet whose headers were read.
fn class_of(packet: &[u8]) -> u8 {
    let is_v4 = packet[0] >> 4 == 4 && packet.len() >= IPV4_HEADER;
    if is_v4 { packet[1] } else { packet[0] << 4 | packet[1] >> 4 }
}

fn put(header: &mut [u8], at: usize, half: u16) {
    header[at..at + 2].copy_from_slice(&half.to_be_bytes());
}
