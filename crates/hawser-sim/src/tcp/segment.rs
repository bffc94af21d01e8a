//! TCP's header with the options that Linux sends (RFC 9293, RFC 7323, RFC 2018), written and read.

use crate::host::packets;
use std::net::Ipv4Addr;

/// IPv4's header and TCP's without options, bytes.
const IPV4: usize = 20;
const TCP: usize = 20;
/// Asks for a connection, or answers that (RFC 9293 section 3.1).
pub const SYN: u8 = 0x02;
/// The end of what the application wrote.
pub const PSH: u8 = 0x08;
/// Acknowledges.
pub const ACK: u8 = 0x10;
/// Options (RFC 9293, RFC 7323, RFC 2018).
const NOTHING: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// The timestamps option with its padding, on every segment, bytes.
pub const TIMESTAMPS_LEN: usize = 12;
/// Bytes of all headers of a segment with data.
pub const DATA_HEADERS: usize = IPV4 + TCP + TIMESTAMPS_LEN;
/// SACK blocks that fit beside timestamps.
pub const BLOCKS: usize = 3;

/// A SACK block: first sequence number, and the one behind its last.
pub type Block = (u32, u32);

/// A segment's header. Zero by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// The first byte's sequence number.
    pub sequence: u32,
    /// The next byte that is expected.
    pub ack: u32,
    /// Flags.
    pub flags: u8,
    /// The receive window, scaled but on a SYN.
    pub window: u16,
    /// With a SYN: the largest segment and the window's scale; SACK is permitted with them.
    pub opening: Option<(u16, u8)>,
    /// The sender's clock and what it echoes, ms.
    pub timestamps: (u32, u32),
    /// SACK blocks; the first ones that are not empty count.
    pub blocks: [Block; BLOCKS],
}

impl Header {
    /// The blocks that are there.
    pub fn sacked(&self) -> impl Iterator<Item = Block> + '_ {
        self.blocks.iter().copied().take_while(|(start, end)| start != end)
    }

    /// Whether it has this flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Writes IPv4's and TCP's header for `data` bytes; tells how long they are. The checksum is left to be
    /// completed.
    pub fn write(&self, out: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, data: usize) -> usize {
        let tcp = TCP + self.write_options(&mut out[IPV4 + TCP..]);
        packets::ipv4(out, from, to, packets::TCP, tcp + data);
        let head = &mut out[IPV4..IPV4 + TCP];
        head.fill(0);
        head[0..2].copy_from_slice(&self.ports.0.to_be_bytes());
        head[2..4].copy_from_slice(&self.ports.1.to_be_bytes());
        head[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        head[8..12].copy_from_slice(&self.ack.to_be_bytes());
        head[12] = ((tcp / 4) as u8) << 4;
        head[13] = self.flags;
        head[14..16].copy_from_slice(&self.window.to_be_bytes());
        IPV4 + tcp
    }

    fn write_options(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some((mss, _)) = self.opening {
            put(&[MSS, 4]);
            put(&mss.to_be_bytes());
        }
        match self.opening {
            Some(_) => put(&[SACK_PERMITTED, 2]),
            None => put(&[NOTHING, NOTHING]),
        }
        put(&[TIMESTAMPS, 10]);
        put(&self.timestamps.0.to_be_bytes());
        put(&self.timestamps.1.to_be_bytes());
        if let Some((_, scale)) = self.opening {
            put(&[NOTHING, SCALE, 3, scale]);
        }
        let blocks = self.sacked().count();
        if blocks > 0 {
            put(&[NOTHING, NOTHING, SACK, (2 + 8 * blocks) as u8]);
            for (start, end) in self.sacked() {
                put(&start.to_be_bytes());
                put(&end.to_be_bytes());
            }
        }
        at
    }

    /// Reads an IPv4 packet: the header, and its data. `None` where it is no TCP.
    pub fn read(packet: &[u8]) -> Option<(Header, &[u8])> {
        let tcp = packet.get(IPV4..).filter(|tcp| tcp.len() >= TCP && packet[9] == packets::TCP)?;
        let data = tcp.get(usize::from(tcp[12] >> 4) * 4..)?;
        let mut header = Header {
            ports: (be16(tcp, 0), be16(tcp, 2)),
            sequence: be32(tcp, 4),
            ack: be32(tcp, 8),
            flags: tcp[13],
            window: be16(tcp, 14),
            ..Header::default()
        };
        header.read_options(&tcp[TCP..tcp.len() - data.len()])?;
        Some((header, data))
    }

    fn read_options(&mut self, mut options: &[u8]) -> Option<()> {
        let (mut mss, mut scale) = (None, None);
        while let Some((&kind, behind)) = options.split_first() {
            if kind == NOTHING {
                options = behind;
                continue;
            }
            let (option, rest) = options.split_at_checked(usize::from(*behind.first()?))?;
            match kind {
                MSS => mss = Some(be16(option, 2)),
                SCALE => scale = Some(option[2]),
                TIMESTAMPS => self.timestamps = (be32(option, 2), be32(option, 6)),
                SACK => {
                    for (block, bytes) in self.blocks.iter_mut().zip(option[2..].chunks_exact(8)) {
                        *block = (be32(bytes, 0), be32(bytes, 4));
                    }
                }
                _ => {}
            }
            options = rest;
        }
        self.opening = mss.zip(scale);
        Some(())
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let (from, to) = (Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1));
        let plain = Header { ports: (1, 2), sequence: 3, ack: 4, flags: ACK, window: 5, ..Header::default() };
        let stamped = Header { timestamps: (6, 7), ..plain };
        let syn = Header { flags: SYN, opening: Some((1448, 7)), ..stamped };
        let sack = Header { blocks: [(1, 2), (3, 4), (0, 0)], ..stamped };
        for (header, len) in [(stamped, 52), (syn, 60), (sack, 52 + 20)] {
            let mut packet = [0; 200];
            let headers = header.write(&mut packet, from, to, 9);
            assert_eq!(headers, len, "{header:?}");
            let (read, data) = Header::read(&packet[..headers + 9]).expect("a segment");
            assert_eq!((read, data.len()), (header, 9));
        }
    }
}
