//! Step 1: packets of a capture file, pcap (with microseconds or nanoseconds) or pcapng, of either byte order.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};

use crate::DecodeError;

/// Room for a block, in bytes; it grows to what a block needs.
const BUFFER: usize = 1 << 20;
/// The largest block taken, in bytes: tcpdump's longest packet is 256 KiB (pcap-savefile(5), snapshot length).
const BUFFER_MAX: usize = 16 << 20;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1_000;
/// The bit of pcapng's `if_tsresol` that makes the rest a power of two (draft-ietf-opsawg-pcapng section 4.2).
const BINARY: u8 = 0x80;

/// A packet of the capture. It borrows the reader's buffer.
#[derive(Copy, Clone, Debug)]
pub struct Captured<'a> {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// The interface's link type, as libpcap numbers it.
    pub link_type: i32,
    /// What was captured of it.
    pub bytes: &'a [u8],
}

/// How a capture ends. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// After a packet.
    Whole,
    /// In the middle of one.
    CutShort,
}

/// What a file or its sections say of all packets. Unknown at first; the reading owns it.
#[derive(Default)]
struct Context {
    /// Of a pcap file: its link type, and nanoseconds in a unit of its times.
    legacy: Option<(i32, u64)>,
    /// Of a pcapng section: each interface's link type, and how its times are to be read.
    interfaces: Vec<(i32, Clock)>,
}

/// An interface's clock. A plain value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Clock {
    units_per_second: u128,
    offset_s: i64,
}

/// Gives each packet to `on`, until the end of the capture or the first failure.
pub fn each(
    capture: impl Read + Send,
    on: &mut dyn FnMut(Captured<'_>) -> Result<(), DecodeError>,
) -> Result<End, DecodeError> {
    let failure = Arc::new(Mutex::new(None));
    let failing = Failing { inner: capture, failure: Arc::clone(&failure) };
    let failed = || {
        let error = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        DecodeError::Read(error.unwrap_or_else(|| io::ErrorKind::Other.into()))
    };
    let mut reader = match create_reader(BUFFER, failing) {
        Ok(reader) => reader,
        Err(PcapError::ReadError) => return Err(failed()),
        Err(_) => return Err(DecodeError::NotACapture),
    };
    let (mut context, mut packets, mut room) = (Context::default(), 0, BUFFER);
    loop {
        let step = match reader.next() {
            Ok((consumed, block)) => {
                if let Some(captured) = context.packet(&block) {
                    packets += 1;
                    on(captured)?;
                }
                Step::Read(consumed)
            }
            Err(error) => Step::of(&error),
        };
        let step = match step {
            Step::Read(consumed) => {
                reader.consume(consumed);
                continue;
            }
            Step::Refill if reader.reader_exhausted() => Step::End(End::CutShort),
            Step::Refill => reader.refill().map_or_else(|error| Step::of(&error), |()| Step::Read(0)),
            step => step,
        };
        match step {
            Step::Read(_) | Step::Refill => {}
            Step::Grow if room < BUFFER_MAX => {
                room *= 2;
                reader.grow(room);
            }
            Step::End(end) => return Ok(end),
            Step::Failed => return Err(failed()),
            Step::Grow | Step::Malformed => return Err(DecodeError::Malformed(packets)),
        }
    }
}

/// What is to be done after a block was asked for. A plain value.
enum Step {
    /// This many bytes are done with.
    Read(usize),
    /// More bytes are needed.
    Refill,
    /// They need more room.
    Grow,
    End(End),
    Failed,
    Malformed,
}

impl Step {
    fn of(error: &PcapError<&[u8]>) -> Self {
        match error {
            PcapError::Eof => Step::End(End::Whole),
            PcapError::UnexpectedEof => Step::End(End::CutShort),
            PcapError::Incomplete(_) => Step::Refill,
            PcapError::BufferTooSmall => Step::Grow,
            PcapError::ReadError => Step::Failed,
            _ => Step::Malformed,
        }
    }
}

impl Context {
    /// The packet of a block, if it is one; what else it says is kept.
    fn packet<'b>(&mut self, block: &'b PcapBlockOwned<'_>) -> Option<Captured<'b>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let unit = if header.is_nanosecond_precision() { 1 } else { MICROSECOND };
                self.legacy = Some((header.network.0, unit));
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let (link_type, unit) = self.legacy?;
                let time = u64::from(packet.ts_sec) * SECOND + u64::from(packet.ts_usec) * unit;
                Some(Captured { time, link_type, bytes: packet.data })
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let clock = Clock::of(interface.if_tsresol, interface.if_tsoffset);
                self.interfaces.push((interface.linktype.0, clock));
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let (link_type, clock) = *self.interfaces.get(packet.if_id as usize)?;
                let time = clock.nanos(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
                Some(Captured { time, link_type, bytes: packet.packet_data() })
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let (link_type, _) = *self.interfaces.first()?;
                Some(Captured { time: 0, link_type, bytes: packet.packet_data() })
            }
            PcapBlockOwned::NG(_) => None,
        }
    }
}

impl Clock {
    /// As `if_tsresol` and `if_tsoffset` say.
    fn of(resolution: u8, offset_s: i64) -> Self {
        let exponent = u32::from(resolution & !BINARY);
        let units = if resolution & BINARY == 0 { 10u128.checked_pow(exponent) } else { 1u128.checked_shl(exponent) };
        // Finer than any clock: the time is then as good as unknown.
        Clock { units_per_second: units.filter(|units| *units > 0).unwrap_or(u128::MAX), offset_s }
    }

    fn nanos(self, units: u64) -> u64 {
        let nanos = u128::from(units).saturating_mul(u128::from(SECOND)) / self.units_per_second;
        let offset = i128::from(self.offset_s) * i128::from(SECOND);
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

/// Keeps the error that the parser's own hides. Whole at first; the parser owns it.
struct Failing<R> {
    inner: R,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl<R: Read> Read for Failing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kind = error.kind();
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(kind.into());
                }
                Ok(read) => return Ok(read),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interfaces_clock_may_count_in_powers_of_ten_or_two() {
        for (resolution, offset, units, nanos) in [
            (6, 0, 1_500_000, 1_500_000_000),
            (9, 0, 1_500_000_000, 1_500_000_000),
            (0x80 | 10, 0, 1536, 1_500_000_000),
            (3, 2, 500, 2_500_000_000),
            (3, -2, 500, 0),
            (255, 0, 500, 0),
        ] {
            assert_eq!(Clock::of(resolution, offset).nanos(units), nanos, "{resolution}");
        }
    }
}
