//! Step 2: what carries a datagram.
//!
//! 1. The link's own header goes (Ethernet with VLAN tags, Linux cooked, none). 2. IPv4 or IPv6 with its extension
//!    headers.
//! 3. UDP, TCP, or the bare protocol. What is neither is other traffic.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::capture::Captured;
use crate::{DecodeError, Marks};

/// Link types, as libpcap numbers them (<https://www.tcpdump.org/linktypes.html>).
const ETHERNET: i32 = 1;
const LINUX_SLL: i32 = 113;
const LINUX_SLL2: i32 = 276;
/// Raw IP: the number that files have, that of OpenBSD, and those of one version.
const RAW_IP: [i32; 4] = [101, 12, 228, 229];
/// Bytes of a Linux cooked header, and where the protocol stands in it.
const SLL: (usize, usize) = (16, 14);
const SLL2: (usize, usize) = (20, 0);

/// What carries a datagram between two portals. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// UDP.
    Udp,
    /// Records on a TCP connection.
    Tcp,
    /// A bare IP protocol.
    Ip,
}

impl Transport {
    /// As the configuration calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Ip => "ip",
        }
    }
}

/// From where to where something goes, and by what. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Way {
    /// What carries it.
    pub transport: Transport,
    /// From here; the port is zero where there is none.
    pub source: SocketAddr,
    /// To there.
    pub destination: SocketAddr,
}

impl Way {
    /// Whether addresses say that it is Hawser's.
    pub(crate) fn is_marked(&self, marks: Marks) -> bool {
        self.transport == Transport::Ip || [self.source.port(), self.destination.port()].contains(&marks.port)
    }
}

/// A TCP segment. It borrows the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// Its first byte's number.
    pub sequence: u32,
    /// It begins the connection.
    pub begins: bool,
    /// Its bytes, possibly none.
    pub bytes: &'a [u8],
}

/// What a packet carries. It borrows the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Carried<'a> {
    /// One datagram, or several that the capturing host held in one.
    Datagram(Way, &'a [u8]),
    /// Some bytes of a connection.
    Stream(Way, Segment<'a>),
}

/// What of a packet is of interest. It borrows the packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outer<'a> {
    /// It may carry a datagram.
    Carried(Carried<'a>),
    /// A fragment of an IP packet.
    Fragment,
    /// The capture has not all of it, and it is Hawser's.
    CutShort,
}

/// Reads a captured packet; none: other traffic.
pub fn read<'a>(captured: &Captured<'a>, marks: Marks) -> Result<Option<Outer<'a>>, DecodeError> {
    let Some(packet) = network(captured)? else { return Ok(None) };
    Ok(read_network(&packet, marks))
}

/// Step 1: from the link's header on.
fn network<'a>(captured: &Captured<'a>) -> Result<Option<LaxSlicedPacket<'a>>, DecodeError> {
    let bytes = captured.bytes;
    Ok(match captured.link_type {
        ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
        LINUX_SLL => cooked(bytes, SLL),
        LINUX_SLL2 => cooked(bytes, SLL2),
        raw if RAW_IP.contains(&raw) => LaxSlicedPacket::from_ip(bytes).ok(),
        other => return Err(DecodeError::LinkType(other)),
    })
}

fn cooked(bytes: &[u8], (len, protocol_at): (usize, usize)) -> Option<LaxSlicedPacket<'_>> {
    let (header, payload) = bytes.split_at_checked(len)?;
    let protocol = u16::from_be_bytes([header[protocol_at], header[protocol_at + 1]]);
    Some(LaxSlicedPacket::from_ether_type(EtherType(protocol), payload))
}

/// Steps 2 and 3.
fn read_network<'a>(packet: &LaxSlicedPacket<'a>, marks: Marks) -> Option<Outer<'a>> {
    let (source, destination): (IpAddr, IpAddr) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    let payload = packet.ip_payload()?;
    if payload.fragmented {
        return Some(Outer::Fragment);
    }
    let way = |transport, from: u16, to: u16| Way {
        transport,
        source: (source, from).into(),
        destination: (destination, to).into(),
    };
    let carried = match &packet.transport {
        Some(TransportSlice::Udp(udp)) => {
            // A length that says more than there is (lax) or zero (a jumbogram) is told by the IP header.
            Carried::Datagram(way(Transport::Udp, udp.source_port(), udp.destination_port()), udp.payload())
        }
        Some(TransportSlice::Tcp(tcp)) => Carried::Stream(
            way(Transport::Tcp, tcp.source_port(), tcp.destination_port()),
            Segment { sequence: tcp.sequence_number(), begins: tcp.syn(), bytes: tcp.payload() },
        ),
        _ if payload.ip_number.0 == marks.protocol => Carried::Datagram(way(Transport::Ip, 0, 0), payload.payload),
        _ => return None,
    };
    let (Carried::Datagram(way, _) | Carried::Stream(way, _)) = carried;
    if payload.incomplete {
        return way.is_marked(marks).then_some(Outer::CutShort);
    }
    Some(Outer::Carried(carried))
}
