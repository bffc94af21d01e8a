//! What is left undone in a packet of a TUN device: the core's words for it, and the kernel's.

use super::{GsoKind, VnetHdr};
use hawser_core::packet::{Gso, Offload};

/// Where a TCP header keeps its length, in 32-bit words in the high four bits (RFC 9293 section 3.1), in bytes.
const TCP_DATA_OFFSET: usize = 12;
/// Bytes of a UDP header (RFC 768).
const UDP_HEADER_BYTES: u16 = 8;

/// What the kernel left undone, in the core's words.
#[must_use]
pub fn offload(header: &VnetHdr) -> Offload {
    Offload {
        needs_csum: header.needs_csum,
        csum_start: header.csum_start,
        csum_offset: header.csum_offset,
        gso: match header.gso {
            GsoKind::None => Gso::None,
            GsoKind::TcpV4 => Gso::TcpV4,
            GsoKind::TcpV6 => Gso::TcpV6,
            GsoKind::UdpL4 => Gso::UdpL4,
        },
        gso_size: header.gso_size,
    }
}

/// What the core leaves undone with `packet`, in the kernel's words.
#[must_use]
pub fn header(offload: &Offload, packet: &[u8]) -> VnetHdr {
    let transport = |offset: usize| packet.get(usize::from(offload.csum_start) + offset).copied().unwrap_or(0);
    let (gso, transport_len) = match offload.gso {
        Gso::None => (GsoKind::None, None),
        Gso::TcpV4 => (GsoKind::TcpV4, Some(u16::from(transport(TCP_DATA_OFFSET) >> 4) * 4)),
        Gso::TcpV6 => (GsoKind::TcpV6, Some(u16::from(transport(TCP_DATA_OFFSET) >> 4) * 4)),
        Gso::UdpL4 => (GsoKind::UdpL4, Some(UDP_HEADER_BYTES)),
    };
    VnetHdr {
        needs_csum: offload.needs_csum,
        csum_start: offload.csum_start,
        csum_offset: offload.csum_offset,
        gso,
        gso_size: offload.gso_size,
        hdr_len: transport_len.map_or(0, |len| offload.csum_start + len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_descriptions_of_a_train_say_the_same() {
        let mut packet = vec![0; 20 + 32 + 3000];
        packet[20 + TCP_DATA_OFFSET] = 8 << 4;
        let table = [
            VnetHdr::default(),
            VnetHdr { needs_csum: true, csum_start: 20, csum_offset: 16, ..VnetHdr::default() },
            VnetHdr {
                needs_csum: true,
                csum_start: 20,
                csum_offset: 16,
                gso: GsoKind::TcpV4,
                gso_size: 1400,
                hdr_len: 52,
            },
            VnetHdr {
                needs_csum: true,
                csum_start: 40,
                csum_offset: 6,
                gso: GsoKind::UdpL4,
                gso_size: 1200,
                hdr_len: 48,
            },
        ];
        for given in table {
            assert_eq!(header(&offload(&given), &packet), given);
        }
    }
}
