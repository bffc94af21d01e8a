//! Inner packets as a capture: pcap with nanoseconds, of raw IP packets (pcap-savefile(5)).

use std::io::{self, Write};

/// Begins a file with nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The format's version.
const VERSION: [u16; 2] = [2, 4];
/// The longest packet that the file may have: tcpdump's own limit.
const SNAPLEN: u32 = 262_144;
/// Packets begin with their IP header (LINKTYPE_RAW).
const RAW: u32 = 101;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Writes a capture. Its header is written at once; used by one thread.
#[derive(Debug)]
pub struct PcapWriter<W>(W);

impl<W: Write> PcapWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// Where the header cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        let [major, minor] = VERSION;
        let version = u32::from(minor) << 16 | u32::from(major);
        for word in [MAGIC, version, 0, 0, SNAPLEN, RAW] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(PcapWriter(out))
    }

    /// Appends a packet that was there `time` nanoseconds after 1970.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn packet(&mut self, time: u64, packet: &[u8]) -> io::Result<()> {
        let len = u32::try_from(packet.len()).map_err(io::Error::other)?;
        // Seconds have 32 bits in this format: they end in 2106.
        let seconds = u32::try_from(time / SECOND).unwrap_or(u32::MAX);
        for word in [seconds, (time % SECOND) as u32, len, len] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(packet)
    }

    /// What it was written to.
    pub fn into_inner(self) -> W {
        self.0
    }

    /// Writes out what waits.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
