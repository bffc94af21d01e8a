//! A network card without a portal behind it: super-packets are cut into segments, and wait to be taken.

use super::packets;
use hawser_core::packet::{Gso, Offload};

/// More than the longest super-packet, bytes.
const BUFFER: usize = 66_000;
/// IPv4's header, and the least of TCP's, bytes.
const IPV4: usize = 20;

/// A network card. Nothing waits at first; its world owns it.
pub struct Wire {
    /// The largest packet, bytes.
    pub mtu: usize,
    /// What was sent, cut.
    pub packets: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Wire {
    /// One that carries packets of `mtu` bytes.
    pub fn new(mtu: usize) -> Self {
        Wire { mtu, packets: Vec::new(), buffer: vec![0; BUFFER] }
    }

    /// Sends what `write` puts into a buffer, of as many bytes as it says.
    pub fn send(&mut self, offload: Offload, write: impl FnOnce(&mut [u8]) -> usize) {
        let len = write(&mut self.buffer);
        let packet = &self.buffer[..len];
        if offload.gso == Gso::None {
            return self.packets.push(packet.to_vec());
        }
        let headers = IPV4 + usize::from(packet[IPV4 + 12] >> 4) * 4;
        let first = packets::sequence_of(packet);
        let size = usize::from(offload.gso_size);
        for (index, piece) in packet[headers..].chunks(size).enumerate() {
            let mut segment = [&packet[..headers], piece].concat();
            let length = segment.len() as u16;
            segment[2..4].copy_from_slice(&length.to_be_bytes());
            let sequence = first.wrapping_add((index * size) as u32);
            segment[24..28].copy_from_slice(&sequence.to_be_bytes());
            self.packets.push(segment);
        }
    }
}
