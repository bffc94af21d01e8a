//! Packet buffers that are lent and given back.

/// Bytes of a buffer: an Ethernet packet fits, and baby giants.
pub(crate) const BUFFER_BYTES: usize = 2048;
/// Buffers made at once when none is free: half a megabyte.
const CHUNK: u32 = 256;
/// Buffers there are at most: 128 MiB a way, the flight of 500 Mbit/s over 1.5 seconds.
const MOST: u32 = 65_536;

/// A packet in a buffer of the slab that lent it; goes back to it by [`Slab::take_back`]. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Packet {
    buffer: u32,
    /// IP bytes.
    pub length: u32,
}

/// Buffers for packets. Starts empty, grows by chunks to what the link once held, and never shrinks, so that
/// no packet allocates in steady state. One owner.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Slab {
    /// Lends a buffer; None where all are lent.
    pub(crate) fn lend(&mut self) -> Option<Packet> {
        if self.free.is_empty() {
            let made = u32::try_from(self.chunks.len()).ok()? * CHUNK;
            if made >= MOST {
                return None;
            }
            self.chunks.push(vec![0; CHUNK as usize * BUFFER_BYTES].into());
            self.free.extend((made..made + CHUNK).rev());
        }
        let buffer = self.free.pop()?;
        Some(Packet { buffer, length: 0 })
    }

    /// Takes a packet's buffer back.
    pub(crate) fn take_back(&mut self, packet: Packet) {
        self.free.push(packet.buffer);
    }

    /// A packet's whole buffer.
    pub(crate) fn buffer(&mut self, packet: Packet) -> &mut [u8] {
        let start = (packet.buffer % CHUNK) as usize * BUFFER_BYTES;
        &mut self.chunks[(packet.buffer / CHUNK) as usize][start..start + BUFFER_BYTES]
    }

    /// A packet's bytes.
    pub(crate) fn bytes(&mut self, packet: Packet) -> &[u8] {
        &self.buffer(packet)[..packet.length as usize]
    }

    /// Another buffer with the same bytes.
    pub(crate) fn copy(&mut self, packet: Packet) -> Option<Packet> {
        let copy = Packet { length: packet.length, ..self.lend()? };
        let bytes = {
            let mut bytes = [0; BUFFER_BYTES];
            bytes.copy_from_slice(self.buffer(packet));
            bytes
        };
        self.buffer(copy).copy_from_slice(&bytes);
        Some(copy)
    }
}
