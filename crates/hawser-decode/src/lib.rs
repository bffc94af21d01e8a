//! Captured tunnel traffic, read with the keys of a key log.
//!
//! 1. `capture` reads the packets of a pcap or pcapng file.
//! 2. `outer` takes off what carries a datagram: Ethernet or Linux's own, IP, UDP or TCP; `streams` puts TCP's bytes in
//!    order and gives its records.
//! 3. `segments` tells datagrams apart that the capturing host held in one.
//! 4. `keys` finds the keys by the datagram's label, `opened` completes its number and opens it.
//! 5. `inner` puts pieces together, leaves copies out and completes checksums.
//! 6. What is found goes to the caller's [`Sink`]; [`Summary`] counts it. [`PcapWriter`] writes inner packets as a
//!    capture again, [`json`] lists datagrams.

mod capture;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod inner;
pub mod json;
mod keys;
mod opened;
mod outer;
mod pcap;
mod segments;
mod streams;
mod summary;

use std::io::{self, Read};

use hawser_core::units::{PacketNumber, PathId};
use hawser_core::wire::DatagramKind;

pub use keys::{Direction, KeyError, Keys};
pub use opened::Refusal;
pub use outer::{Transport, Way};
pub use pcap::PcapWriter;
pub use summary::Summary;

use capture::{Captured, End};
use inner::Inners;
use opened::{Opened, Opener};
use outer::{Carried, Outer};
use streams::Streams;

/// Where portals listen unless told otherwise (docs/configuration.md).
pub const DEFAULT_PORT: u16 = 4920;
/// The number of the bare IP protocol unless told otherwise: one for experiments (RFC 3692 section 2.1).
pub const DEFAULT_PROTOCOL: u8 = 253;

/// By what Hawser's traffic is told from other traffic where no key does it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Marks {
    /// The port of UDP and TCP at either end.
    pub port: u16,
    /// The bare IP protocol.
    pub protocol: u8,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { port: DEFAULT_PORT, protocol: DEFAULT_PROTOCOL }
    }
}

/// Why a capture was not read to its end, or in vain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are no capture.
    #[error("read capture: neither pcap nor pcapng")]
    NotACapture,
    /// The file could not be read.
    #[error("read capture")]
    Read(#[source] io::Error),
    /// A packet's own header contradicts itself.
    #[error("read capture: malformed after packet {0}")]
    Malformed(u64),
    /// A kind of interface that is not known.
    #[error(
        "read capture: link type {0} is not known: Ethernet (1), raw IP (101, 12, 228, 229), Linux cooked (113, 276) are"
    )]
    LinkType(i32),
    /// The file ends in the middle of a packet. What was before it was written.
    #[error("read capture: it ends in the middle of packet {0}")]
    CutShort(u64),
    /// There are datagrams, and no key of the log opens any.
    #[error("open datagrams: the key log has no key for any of the {0}")]
    NoKey(u64),
    /// There is no datagram.
    #[error("find datagrams: none in {0} packets")]
    NoDatagram(u64),
    /// What was found could not be written.
    #[error("write what was found")]
    Write(#[source] io::Error),
}

/// A datagram that was found. It borrows the capture.
#[derive(Clone, Debug)]
pub struct Sighting<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub time: u64,
    /// What carried it.
    pub way: Way,
    /// All of it, as it was captured.
    pub bytes: &'a [u8],
    /// What it is.
    pub verdict: Verdict<'a>,
}

/// What a datagram is. It borrows the capture and the keys.
#[derive(Clone, Debug)]
pub enum Verdict<'a> {
    /// A message of a handshake.
    Handshake(DatagramKind),
    /// Data, and what is in it.
    Opened {
        /// What the portal of the key log calls the other one.
        peer: &'a str,
        /// Which of the two sent it.
        direction: Direction,
        /// On which path.
        path: PathId,
        /// Its whole number.
        number: PacketNumber,
        /// Its frames.
        frames: &'a [u8],
    },
    /// It could not be opened.
    Refused(Refusal),
}

/// Takes what is found, in the order of the capture.
pub trait Sink {
    /// A datagram.
    ///
    /// # Errors
    /// Where it cannot be written: this ends the reading.
    fn datagram(&mut self, sighting: &Sighting<'_>) -> io::Result<()>;

    /// An inner packet, complete; `time` is that of the datagram that completed it.
    ///
    /// # Errors
    /// Where it cannot be written: this ends the reading.
    fn inner(&mut self, time: u64, packet: &[u8]) -> io::Result<()>;
}

/// Reads a capture to its end, and tells what was found even where that fails.
pub fn decode(
    capture: impl Read + Send,
    keys: Keys,
    marks: Marks,
    sink: &mut dyn Sink,
) -> (Summary, Result<(), DecodeError>) {
    let mut decoder = Decoder {
        opener: Opener::new(keys),
        inners: Inners::default(),
        streams: Streams::default(),
        marks,
        sink,
        summary: Summary::default(),
    };
    let end = capture::each(capture, &mut |captured| decoder.on_packet(&captured));
    let summary = decoder.summary;
    let result = end.and_then(|end| match end {
        End::CutShort => Err(DecodeError::CutShort(summary.packets + 1)),
        End::Whole if summary.datagrams() == 0 => Err(DecodeError::NoDatagram(summary.packets)),
        End::Whole if summary.opened == 0 && summary.refused() > 0 => Err(DecodeError::NoKey(summary.refused())),
        End::Whole => Ok(()),
    });
    (summary, result)
}

/// The story, for one packet at a time. At first nothing was seen; used by one thread.
struct Decoder<'s> {
    opener: Opener,
    inners: Inners,
    streams: Streams,
    marks: Marks,
    sink: &'s mut dyn Sink,
    summary: Summary,
}

impl Decoder<'_> {
    /// Steps 2 to 6 for a packet of the capture.
    fn on_packet(&mut self, captured: &Captured<'_>) -> Result<(), DecodeError> {
        self.summary.packets += 1;
        let outer = match outer::read(captured, self.marks)? {
            Some(outer) => outer,
            None => return Ok(()),
        };
        match outer {
            Outer::Fragment => self.summary.fragments += 1,
            Outer::CutShort => self.summary.cut_short += 1,
            Outer::Carried(Carried::Datagram(way, bytes)) => self.on_carried(captured.time, way, bytes)?,
            Outer::Carried(Carried::Stream(way, segment)) => {
                let labels = |label| self.opener.knows(label);
                let expected = way.is_marked(self.marks);
                let records = self.streams.on_segment(way, &segment, expected, &labels, &mut self.summary);
                for record in records {
                    self.on_datagram(captured.time, way, &record)?;
                }
            }
        }
        Ok(())
    }

    /// Step 3.
    fn on_carried(&mut self, time: u64, way: Way, bytes: &[u8]) -> Result<(), DecodeError> {
        for datagram in segments::cut(bytes) {
            self.on_datagram(time, way, datagram)?;
        }
        Ok(())
    }

    /// Steps 4 to 6.
    fn on_datagram(&mut self, time: u64, way: Way, bytes: &[u8]) -> Result<(), DecodeError> {
        let marked = way.is_marked(self.marks);
        let kind = bytes.first().and_then(|first| DatagramKind::of(*first).ok());
        let Self { opener, inners, sink, summary, .. } = self;
        let mut stream = None;
        let verdict = match kind {
            Some(DatagramKind::Data) => match opener.open(bytes) {
                // Other traffic may look like it.
                Err(Refusal::NoKey) if !marked => return Ok(()),
                Err(refusal) => Verdict::Refused(refusal),
                Ok(opened) => {
                    stream = Some(opened.stream);
                    let Opened { peer, direction, path, number, frames, .. } = opened;
                    Verdict::Opened { peer, direction, path, number, frames }
                }
            },
            Some(kind) if marked && opened::handshake_len(kind) == Some(bytes.len()) => Verdict::Handshake(kind),
            _ if marked => Verdict::Refused(Refusal::Malformed),
            _ => return Ok(()),
        };
        summary.count(&verdict);
        let sighting = Sighting { time, way, bytes, verdict };
        sink.datagram(&sighting).map_err(DecodeError::Write)?;
        if let (Verdict::Opened { frames, .. }, Some(stream)) = (sighting.verdict, stream) {
            inners.on_frames(time, stream, frames, summary, &mut |packet| sink.inner(time, packet))?;
        }
        Ok(())
    }
}
