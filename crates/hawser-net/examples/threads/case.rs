//! What hosts send.

use hawser_core::packet::{Gso, Offload};

/// IPv4 and TCP headers without options, in bytes.
const TCP_HEADERS: usize = 40;
/// IPv4 and UDP headers.
const UDP_HEADERS: usize = 28;

/// What hosts send. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Bytes of an IP packet.
    pub bytes: usize,
    /// Packets that come as one.
    pub train: usize,
}

impl Case {
    pub const fn headers(&self) -> usize {
        if self.train > 1 { TCP_HEADERS } else { UDP_HEADERS }
    }

    pub const fn payload(&self) -> usize {
        self.bytes - self.headers()
    }

    pub fn offload(&self) -> Offload {
        match self.train {
            1 => Offload { needs_csum: true, csum_start: 20, csum_offset: 6, ..Offload::default() },
            _ => {
                let gso_size = self.payload() as u16;
                Offload { needs_csum: true, csum_start: 20, csum_offset: 16, gso: Gso::TcpV4, gso_size }
            }
        }
    }

    /// As Linux hands it over.
    pub fn packet(&self) -> Vec<u8> {
        let mut packet = vec![0; self.headers() + self.train * self.payload()];
        let len = (packet.len() as u16).to_be_bytes();
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&len);
        packet[8] = 64;
        packet[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
        packet[20..24].copy_from_slice(&[0x10, 0, 0x20, 0]);
        if self.train > 1 {
            packet[9] = 6;
            packet[32..34].copy_from_slice(&[0x50, 0x10]);
        } else {
            packet[9] = 17;
            packet[24..26].copy_from_slice(&((self.bytes - 20) as u16).to_be_bytes());
        }
        packet
    }

    /// Where the number of a packet stands, and by how much one more adds to it.
    pub const fn numbering(&self) -> (usize, u32) {
        if self.train > 1 { (24, self.payload() as u32) } else { (UDP_HEADERS, 1) }
    }
}
