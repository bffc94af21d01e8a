//! The headers of a flow, serialised once.
//!
//! 1. [`Template::new`]: SCION header and UDP header, and the sum of what each checksum has in common.
//! 2. [`Template::finish`]: a copy, two lengths and a checksum a packet.
//! 3. [`Template::finish_run`]: the same for packets in a row, of which all but the last have one length.
//! 4. [`Template::finish_tcp`]: the same SCION header before a segment of TCP, without UDP.
//! 5. [`Template::write_scmp`]: a control message with the same SCION header.

use std::net::IpAddr;

use super::checksum::Sum;
use super::dataplane::{DataplaneView, NotReversible};
use super::header::Malformed;
use super::scmp::ScmpView;
use super::wire::*;
use crate::addr::{EndpointAddr, IsdAs};
use crate::path::Dataplane;

/// Where the source port stands in a UDP header, in bytes (RFC 768).
const SOURCE_PORT_AT: usize = 0;
/// Where the length stands in a UDP header, in bytes (RFC 768).
const UDP_LENGTH_AT: usize = 4;
/// Where the checksum stands in a UDP header, in bytes (RFC 768).
const UDP_CHECKSUM_AT: usize = 6;
/// Where the checksum stands in an SCMP message, in bytes (scmp.rst).
const SCMP_CHECKSUM_AT: usize = 2;

/// What routers know a flow by, of 20 bits, never 0 (scion-header.rst, "Common Header"). 1 by default. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(u32);

/// The headers of one flow: who, where to, along which path. There is no default.
/// Many threads may write packets from one; changing it needs it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// SCION header and UDP header; lengths and checksum are 0.
    headers: Box<[u8]>,
    /// Sum of the addresses.
    addresses: Sum,
    /// Sum of the addresses, of UDP's protocol number and of both ports.
    flow: Sum,
}

/// Why there are no headers for a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It is no path.
    #[error("write header")]
    Path(#[from] Malformed),
    /// No router could forward it.
    #[error("write header")]
    Position(#[from] NotReversible),
    /// There is more than the path.
    #[error("write header: a path of {len} bytes has {extra} more after its last hop")]
    PathLength {
        /// Bytes of the path.
        len: usize,
        /// Bytes after it.
        extra: usize,
    },
}

impl FlowId {
    /// Flow ids there are, 0 not counted.
    const COUNT: u32 = (1 << FLOW_BITS) - 1;

    /// A flow id, unless it is 0 or has more than 20 bits.
    pub const fn new(id: u32) -> Option<FlowId> {
        if id == 0 || id > FlowId::COUNT { None } else { Some(FlowId(id)) }
    }

    /// A flow id from any number, as from a hash of ports or from random bits.
    pub const fn from_hash(hash: u32) -> FlowId {
        FlowId(hash % FlowId::COUNT + 1)
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for FlowId {
    fn default() -> FlowId {
        FlowId(1)
    }
}

impl Template {
    /// Serialises the headers of a flow. The path is used as it is: from its first hop on when it is new, from where
    /// a packet stood when it is reversed.
    pub fn new(
        source: EndpointAddr,
        destination: EndpointAddr,
        path: &Dataplane,
        flow: FlowId,
    ) -> Result<Template, TemplateError> {
        let view = DataplaneView::of(path)?;
        view.check_position()?;
        let len = view.as_bytes().len();
        if len != path.len() {
            return Err(TemplateError::PathLength { len, extra: path.len() - len });
        }
        let (to, from) = (host_bytes(destination.host.ip()), host_bytes(source.host.ip()));
        let hosts_len = to.bytes().len() + from.bytes().len();
        let header_len = COMMON_LEN + BOTH_AS_LEN + hosts_len + len;
        let mut headers = Vec::with_capacity(header_len + UDP_LEN);
        headers.extend((u32::from(VERSION) << 28 | flow.get()).to_be_bytes());
        headers.extend([protocol::UDP, (header_len / LINE_LEN) as u8, 0, 0]);
        headers.extend([u8::from(!path.is_empty()), to.type_and_len() << 4 | from.type_and_len(), 0, 0]);
        headers.extend(as_bytes(destination.isd_as));
        headers.extend(as_bytes(source.isd_as));
        headers.extend_from_slice(to.bytes());
        headers.extend_from_slice(from.bytes());
        headers.extend_from_slice(view.as_bytes());
        let addresses = Sum::default().bytes(&headers[COMMON_LEN..COMMON_LEN + BOTH_AS_LEN + hosts_len]);
        headers.extend([0; UDP_LEN]);
        let mut template = Template { headers: headers.into(), addresses, flow: addresses };
        template.set_source_port(source.host.port());
        template.set_destination_port(destination.host.port());
        Ok(template)
    }

    /// Bytes of headers before a payload.
    #[inline]
    pub fn headroom(&self) -> usize {
        self.headers.len()
    }

    /// Bytes of payload that fit, where a packet may have this many bytes from its SCION header on.
    pub fn max_payload(&self, mtu: u16) -> usize {
        usize::from(mtu).saturating_sub(self.headroom())
    }

    /// What the network may do with its packets (RFC 2474, RFC 3168). 0 at first.
    pub fn set_traffic_class(&mut self, class: u8) {
        put_class(&mut self.headers, class);
    }

    /// Sends from another port.
    pub fn set_source_port(&mut self, port: u16) {
        self.set_port(SOURCE_PORT_AT, port);
    }

    /// Sends to another port.
    pub fn set_destination_port(&mut self, port: u16) {
        self.set_port(DESTINATION_PORT_AT, port);
    }

    fn set_port(&mut self, at: usize, port: u16) {
        let udp_at = self.udp_at();
        let udp = &mut self.headers[udp_at..];
        udp[at..at + 2].copy_from_slice(&port.to_be_bytes());
        let (source, destination) = (u16_at(udp, SOURCE_PORT_AT), u16_at(udp, DESTINATION_PORT_AT));
        self.flow = self.addresses.word(protocol::UDP.into()).word(source).word(destination);
    }

    /// Writes headers before a payload that stands at `packet[headroom..]` already.
    ///
    /// # Panics
    /// If there is no room for the headers, or more than [`MAX_UDP_PAYLOAD`] bytes of payload.
    pub fn finish(&self, packet: &mut [u8]) {
        let (headers, payload) = packet.split_at_mut(self.headroom());
        self.write_headers(headers, payload);
    }

    /// Writes headers, exactly as many bytes as there is headroom, for a payload that stands elsewhere.
    ///
    /// # Panics
    /// As [`Template::finish`].
    pub fn write_headers(&self, headers: &mut [u8], payload: &[u8]) {
        let len = udp_len(payload);
        headers.copy_from_slice(&self.headers);
        self.put_lengths(headers, len);
        self.put_checksum(headers, self.flow_of(len), payload);
    }

    /// Writes headers before payloads that lie in a row, as a socket takes them for segmentation: a packet begins every
    /// `stride` bytes, headroom included; the last may be shorter.
    ///
    /// # Panics
    /// As [`Template::finish`], for each packet.
    pub fn finish_run(&self, packets: &mut [u8], stride: usize) {
        let (whole, last) = packets.split_at_mut(packets.len() - packets.len() % stride);
        if let Some((first, others)) = whole.split_at_mut_checked(stride) {
            // Lengths are put into the first packet; the others copy it, which saves them as much.
            self.finish(first);
            let flow = self.flow_of(udp_len(&first[self.headroom()..]));
            for packet in others.chunks_exact_mut(stride) {
                let (headers, payload) = packet.split_at_mut(self.headroom());
                headers.copy_from_slice(&first[..self.headroom()]);
                self.put_checksum(headers, flow, payload);
            }
        }
        if !last.is_empty() {
            self.finish(last);
        }
    }

    /// Bytes of headers before a segment of TCP.
    #[inline]
    pub fn tcp_headroom(&self) -> usize {
        self.udp_at()
    }

    /// Writes headers before a segment of TCP, with its own header, that stands at `packet[tcp_headroom..]` already,
    /// and the segment's checksum. `class` is what the network may do with this one packet.
    ///
    /// # Panics
    /// If there is no room for the headers or for TCP's, or more than a packet holds.
    pub fn finish_tcp(&self, packet: &mut [u8], class: u8) {
        let (headers, segment) = packet.split_at_mut(self.tcp_headroom());
        headers.copy_from_slice(&self.headers[..headers.len()]);
        headers[NEXT_HEADER_AT] = protocol::TCP;
        put_class(headers, class);
        put_u16(headers, PAYLOAD_LEN_AT, u16::try_from(segment.len()).expect("a segment fits a packet"));
        put_u16(segment, TCP_CHECKSUM_AT, 0);
        let checksum = self.addresses.pseudo(segment.len(), protocol::TCP).bytes(segment).checksum();
        put_u16(segment, TCP_CHECKSUM_AT, checksum);
    }

    /// Writes a control message from this flow's host to the other in place of what is in `out`.
    /// An error's quote is cut to what a message may have ([`MAX_SCMP_LEN`]).
    pub fn write_scmp(&self, message: &ScmpView<'_>, out: &mut Vec<u8>) {
        let header_len = self.udp_at();
        out.clear();
        out.extend_from_slice(&self.headers[..header_len]);
        message.write(out);
        if message.is_error() {
            out.truncate(MAX_SCMP_LEN);
        }
        let len = out.len() - header_len;
        out[NEXT_HEADER_AT] = protocol::SCMP;
        put_u16(out, PAYLOAD_LEN_AT, u16::try_from(len).expect("a message fits a packet"));
        let checksum = self.addresses.pseudo(len, protocol::SCMP).bytes(&out[header_len..]).checksum();
        put_u16(out, header_len + SCMP_CHECKSUM_AT, checksum);
    }

    /// Where the UDP header begins.
    #[inline]
    fn udp_at(&self) -> usize {
        self.headers.len() - UDP_LEN
    }

    #[inline]
    fn put_lengths(&self, headers: &mut [u8], len: u16) {
        put_u16(headers, PAYLOAD_LEN_AT, len);
        put_u16(headers, self.udp_at() + UDP_LENGTH_AT, len);
    }

    /// The sum of all but the payload: the length counts twice, in the pseudo-header and in UDP's.
    #[inline]
    fn flow_of(&self, len: u16) -> Sum {
        self.flow.word(len).word(len)
    }

    #[inline]
    fn put_checksum(&self, headers: &mut [u8], flow: Sum, payload: &[u8]) {
        put_u16(headers, self.udp_at() + UDP_CHECKSUM_AT, flow.bytes(payload).checksum());
    }
}

/// UDP's length with this payload.
#[inline]
fn udp_len(payload: &[u8]) -> u16 {
    assert!(payload.len() <= MAX_UDP_PAYLOAD, "a payload of {} bytes fits no packet", payload.len());
    (UDP_LEN + payload.len()) as u16
}

/// A host as it stands in a header.
enum HostBytes {
    V4([u8; 4]),
    V6([u8; 16]),
}

/// IPv4 hosts that are written as IPv6 ones are IPv4 hosts, as for the reference.
fn host_bytes(host: IpAddr) -> HostBytes {
    match host.to_canonical() {
        IpAddr::V4(host) => HostBytes::V4(host.octets()),
        IpAddr::V6(host) => HostBytes::V6(host.octets()),
    }
}

impl HostBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            HostBytes::V4(bytes) => bytes,
            HostBytes::V6(bytes) => bytes,
        }
    }

    fn type_and_len(&self) -> u8 {
        match self {
            HostBytes::V4(_) => HOST_V4,
            HostBytes::V6(_) => HOST_V6,
        }
    }
}

fn as_bytes(isd_as: IsdAs) -> [u8; IsdAs::BYTES] {
    isd_as.to_bits().to_be_bytes()
}

#[inline]
fn put_u16(bytes: &mut [u8], at: usize, number: u16) {
    bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
}

/// The traffic class stands between version and flow id (scion-header.rst, "Common Header").
#[inline]
fn put_class(headers: &mut [u8], class: u8) {
    headers[0] = VERSION << 4 | class >> 4;
    headers[1] = class << 4 | headers[1] & 0xf;
}
