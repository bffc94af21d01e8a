//! The header before each packet of the TUN device (virtio 1.2 section 5.1.6, the 10 bytes of
//! `struct virtio_net_hdr`), in the machine's byte order:
//!
//! ```text
//!  0        1          2          4           6             8              10
//!  | flags  | gso_type | hdr_len  | gso_size  | csum_start  | csum_offset  |
//! ```

/// Length of the header, in bytes (linux/virtio_net.h, `struct virtio_net_hdr`).
pub const VNET_HDR_BYTES: usize = 10;

/// linux/virtio_net.h, `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is to be completed.
const F_NEEDS_CSUM: u8 = 1;
/// linux/virtio_net.h, `VIRTIO_NET_HDR_GSO_*`.
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Bytes of a checksum (RFC 1071).
const CHECKSUM_BYTES: usize = 2;
/// Least and fixed header lengths, in bytes (RFC 9293 section 3.1, RFC 768).
const TCP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;
/// Where a TCP header keeps its length, in 32-bit words in the high four bits (RFC 9293 section 3.1).
const TCP_DATA_OFFSET: usize = 12;

/// How a packet is to be cut into segments; `None` when it is a single packet.
/// `None` at first. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GsoKind {
    /// A packet of its own.
    #[default]
    None,
    /// A train of TCP segments over IPv4.
    TcpV4,
    /// A train of TCP segments over IPv6.
    TcpV6,
    /// A train of UDP datagrams over either.
    UdpL4,
}

/// What the kernel left undone in a packet read, or may leave undone in a packet written.
/// The default asks for nothing: a finished packet. Plain data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VnetHdr {
    /// The transport checksum holds the pseudo header's sum only, and is to be completed over
    /// everything from `csum_start` on.
    pub needs_csum: bool,
    /// Bytes from the packet's start to its transport header.
    pub csum_start: u16,
    /// Bytes from `csum_start` to the checksum.
    pub csum_offset: u16,
    /// How to cut it.
    pub gso: GsoKind,
    /// Payload of each segment but the last, in bytes; 0 without `gso`.
    pub gso_size: u16,
    /// All headers before the payload, in bytes; 0 without `gso`. After a read it comes from the
    /// packet's own transport header: the kernel's figure is a hint only.
    pub hdr_len: u16,
}

/// Header and packet contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("parse a packet from tun: its virtio header contradicts it")]
pub struct MalformedVnetHdr;

impl VnetHdr {
    /// Parses the header `raw` of `packet`; every offset in the result lies within the packet.
    ///
    /// # Errors
    /// [`MalformedVnetHdr`]: the packet is to be thrown away.
    pub fn parse(raw: &[u8; VNET_HDR_BYTES], packet: &[u8]) -> Result<VnetHdr, MalformedVnetHdr> {
        let word = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
        let gso = match raw[1] {
            GSO_NONE => GsoKind::None,
            GSO_TCPV4 => GsoKind::TcpV4,
            GSO_TCPV6 => GsoKind::TcpV6,
            GSO_UDP_L4 => GsoKind::UdpL4,
            _ => return Err(MalformedVnetHdr),
        };
        let mut header = VnetHdr { needs_csum: raw[0] & F_NEEDS_CSUM != 0, gso, ..VnetHdr::default() };
        if packet.is_empty() || (gso != GsoKind::None && !header.needs_csum) {
            return Err(MalformedVnetHdr);
        }
        if header.needs_csum {
            (header.csum_start, header.csum_offset) = (word(6), word(8));
            let end = usize::from(header.csum_start) + usize::from(header.csum_offset);
            if end + CHECKSUM_BYTES > packet.len() {
                return Err(MalformedVnetHdr);
            }
        }
        if gso != GsoKind::None {
            header.gso_size = word(4);
            header.hdr_len = headers_length(gso, usize::from(header.csum_start), packet)?;
            if header.gso_size == 0 {
                return Err(MalformedVnetHdr);
            }
        }
        Ok(header)
    }

    /// The header's bytes, for the kernel.
    pub fn encode(&self) -> [u8; VNET_HDR_BYTES] {
        let mut raw = [0; VNET_HDR_BYTES];
        raw[0] = if self.needs_csum { F_NEEDS_CSUM } else { 0 };
        raw[1] = match self.gso {
            GsoKind::None => GSO_NONE,
            GsoKind::TcpV4 => GSO_TCPV4,
            GsoKind::TcpV6 => GSO_TCPV6,
            GsoKind::UdpL4 => GSO_UDP_L4,
        };
        raw[2..4].copy_from_slice(&self.hdr_len.to_ne_bytes());
        raw[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        raw[6..8].copy_from_slice(&self.csum_start.to_ne_bytes());
        raw[8..10].copy_from_slice(&self.csum_offset.to_ne_bytes());
        raw
    }
}

/// Bytes of `packet` before its payload, from its transport header, which starts at `start`.
fn headers_length(gso: GsoKind, start: usize, packet: &[u8]) -> Result<u16, MalformedVnetHdr> {
    let transport = match gso {
        GsoKind::UdpL4 => UDP_HEADER_BYTES,
        _ => {
            let offset = packet.get(start + TCP_DATA_OFFSET).ok_or(MalformedVnetHdr)?;
            usize::from(offset >> 4) * 4
        }
    };
    let least = if gso == GsoKind::UdpL4 { UDP_HEADER_BYTES } else { TCP_HEADER_BYTES };
    let total = start + transport;
    if transport < least || total > packet.len() {
        return Err(MalformedVnetHdr);
    }
    u16::try_from(total).map_err(|_| MalformedVnetHdr)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 header, a TCP header of `words` words, 3000 bytes of payload.
    fn tcp_packet(words: u8) -> Vec<u8> {
        let mut packet = vec![0; 20 + usize::from(words) * 4 + 3000];
        packet[20 + TCP_DATA_OFFSET] = words << 4;
        packet
    }

    fn train() -> VnetHdr {
        VnetHdr { needs_csum: true, csum_start: 20, csum_offset: 16, gso: GsoKind::TcpV4, gso_size: 1400, hdr_len: 52 }
    }

    #[test]
    fn what_is_encoded_parses_to_the_same() {
        let packet = tcp_packet(8);
        let udp = VnetHdr { csum_offset: 6, gso: GsoKind::UdpL4, hdr_len: 28, ..train() };
        let tcp6 = VnetHdr { gso: GsoKind::TcpV6, ..train() };
        for header in [VnetHdr::default(), train(), tcp6, udp] {
            assert_eq!(VnetHdr::parse(&header.encode(), &packet), Ok(header));
        }
    }

    #[test]
    fn the_kernels_header_length_is_not_believed() {
        let lie = VnetHdr { hdr_len: 9999, ..train() };
        assert_eq!(VnetHdr::parse(&lie.encode(), &tcp_packet(8)), Ok(train()));
    }

    #[test]
    fn contradictions_are_refused() {
        let cases: [(&str, VnetHdr, Vec<u8>); 6] = [
            ("empty packet", VnetHdr::default(), vec![]),
            ("checksum beyond the end", VnetHdr { csum_start: 4000, ..train() }, tcp_packet(8)),
            ("no segment size", VnetHdr { gso_size: 0, ..train() }, tcp_packet(8)),
            ("train without checksum", VnetHdr { needs_csum: false, ..train() }, tcp_packet(8)),
            ("tcp header too short", train(), tcp_packet(4)),
            ("tcp header cut off", train(), tcp_packet(8)[..45].to_vec()),
        ];
        for (name, header, packet) in cases {
            let parsed = VnetHdr::parse(&header.encode(), &packet);
            assert_eq!(parsed, Err(MalformedVnetHdr), "{name}");
        }
        let mut ufo = train().encode();
        ufo[1] = 3;
        assert_eq!(VnetHdr::parse(&ufo, &tcp_packet(8)), Err(MalformedVnetHdr));
    }

    proptest::proptest! {
        #[test]
        fn offsets_lie_within_the_packet(
            raw in proptest::array::uniform10(0_u8..),
            kind in 0_u8..6,
            start in 0_u16..200,
            packet in proptest::collection::vec(0_u8.., 0..200),
        ) {
            let mut raw = raw;
            raw[1] = kind;
            raw[6..8].copy_from_slice(&start.to_ne_bytes());
            raw[8..10].copy_from_slice(&(start % 20).to_ne_bytes());
            if let Ok(header) = VnetHdr::parse(&raw, &packet) {
                let checksum = usize::from(header.csum_start) + usize::from(header.csum_offset);
                assert!(!header.needs_csum || checksum + CHECKSUM_BYTES <= packet.len());
                assert!(usize::from(header.hdr_len) <= packet.len());
                assert_eq!(header.gso == GsoKind::None, header.gso_size == 0);
                assert_eq!(VnetHdr::parse(&header.encode(), &packet), Ok(header));
            }
        }
    }
}
