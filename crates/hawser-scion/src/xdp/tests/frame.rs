//! Frames as a sender puts them on the line, byte by byte.

use std::net::{IpAddr, SocketAddr};

use crate::packet::{FlowId, ScmpView, Template};
use crate::path::Dataplane;
use crate::{EndpointAddr, IsdAs};

/// EtherTypes (IEEE 802.3, IEEE 802.1Q).
pub const IPV4: u16 = 0x0800;
pub const IPV6: u16 = 0x86dd;
pub const VLAN: u16 = 0x8100;
pub const SERVICE_VLAN: u16 = 0x88a8;
/// Bytes of headers.
pub const ETHERNET_LEN: usize = 14;
pub const TAG_LEN: usize = 4;
pub const UDP_LEN: usize = 8;
/// UDP's number (RFC 768).
const UDP: u8 = 17;

/// What is outside of a SCION packet.
#[derive(Clone, Debug)]
pub struct Outer {
    /// The types of VLAN tags, outermost first; all have VLAN 0, which is none.
    pub tags: Vec<u16>,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub macs: [u8; 12],
}

impl Outer {
    pub fn new(source: &str, destination: &str) -> Outer {
        let address = |text: &str| text.parse().expect("an address");
        Outer { tags: Vec::new(), source: address(source), destination: address(destination), macs: [2; 12] }
    }

    /// Where the UDP header begins in a frame.
    pub fn udp_at(&self) -> usize {
        let ip = if self.destination.is_ipv4() { 20 } else { 40 };
        ETHERNET_LEN + self.tags.len() * TAG_LEN + ip
    }

    /// The frame around a payload, with a complete checksum.
    pub fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = self.macs.to_vec();
        for tag in &self.tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0; 2]);
        }
        let udp_len = (UDP_LEN + payload.len()) as u16;
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend(IPV4.to_be_bytes());
                let at = frame.len();
                frame.extend([0x45, 0]);
                frame.extend((20 + udp_len).to_be_bytes());
                frame.extend([0, 0, 0, 0, 64, UDP, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
                let check = checksum(&[&frame[at..]]);
                frame[at + 10..at + 12].copy_from_slice(&check.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend(IPV6.to_be_bytes());
                frame.extend([0x60, 0, 0, 0]);
                frame.extend(udp_len.to_be_bytes());
                frame.extend([UDP, 64]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            _ => panic!("one family"),
        }
        frame.extend(self.source.port().to_be_bytes());
        frame.extend(self.destination.port().to_be_bytes());
        frame.extend(udp_len.to_be_bytes());
        frame.extend([0; 2]);
        frame.extend(payload);
        let at = self.udp_at();
        let check = self.udp_checksum(&frame[at..]);
        frame[at + 6..at + 8].copy_from_slice(&check.to_be_bytes());
        frame
    }

    /// The checksum of a datagram that has 0 in its place; 0 if it has the right one (RFC 768, RFC 8200 section 8.1).
    pub fn udp_checksum(&self, datagram: &[u8]) -> u16 {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let len = (datagram.len() as u32).to_be_bytes();
        let pseudo = [octets(self.source.ip()), octets(self.destination.ip()), len.to_vec(), vec![0, UDP]].concat();
        checksum(&[&pseudo, datagram])
    }
}

/// RFC 1071, over parts of which all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A path of this many hops in each segment; what their fields say is nothing to an end host.
pub fn path(segments: &[usize]) -> Dataplane {
    if segments.is_empty() {
        return Dataplane::Empty;
    }
    let lens = segments.iter().enumerate().map(|(index, &hops)| (hops as u32) << (12 - 6 * index));
    let mut bytes = lens.sum::<u32>().to_be_bytes().to_vec();
    bytes.resize(4 + 8 * segments.len() + 12 * segments.iter().sum::<usize>(), 0xa5);
    Dataplane::Scion(bytes.into())
}

/// The headers from one host's port to another's.
pub fn template(source: SocketAddr, destination: SocketAddr, segments: &[usize]) -> Template {
    let endpoint = |isd_as: &str, host| EndpointAddr::new(isd_as.parse::<IsdAs>().expect("an AS"), host);
    let (source, destination) = (endpoint("1-ff00:0:110", source), endpoint("2-ff00:0:210", destination));
    Template::new(source, destination, &path(segments), FlowId::default()).expect("headers")
}

/// A SCION packet with a datagram.
pub fn datagram(template: &Template, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; template.headroom()];
    packet.extend(payload);
    template.finish(&mut packet);
    packet
}

/// A SCION packet with a control message.
pub fn message(template: &Template, message: &ScmpView<'_>) -> Vec<u8> {
    let mut packet = Vec::new();
    template.write_scmp(message, &mut packet);
    packet
}

/// Puts extensions behind the header of a packet that has none: their types, and how many words each has beyond its
/// first.
pub fn extended(packet: &[u8], extensions: &[(u8, u8)]) -> Vec<u8> {
    let header = usize::from(packet[5]) * 4;
    let carried = packet[4];
    let mut extended = packet[..header].to_vec();
    extended[4] = extensions.first().map_or(carried, |&(kind, _)| kind);
    for (index, &(_, words)) in extensions.iter().enumerate() {
        let next = extensions.get(index + 1).map_or(carried, |&(kind, _)| kind);
        extended.extend([next, words]);
        // Padding of one byte each.
        extended.resize(extended.len() + 2 + 4 * usize::from(words), 0);
    }
    extended.extend(&packet[header..]);
    let len = (extended.len() - header) as u16;
    extended[6..8].copy_from_slice(&len.to_be_bytes());
    extended
}
