//! What packets become on their way out: datagrams, or segments where TCP is SCION's layer 4.

use hawser_core::units::Time;

use super::{Outside, Sent, Via};
use crate::compress::{COMPACT_HEADER, Compression, Datagrams, Offload};
use crate::translate::{self, NotCut, OuterPort, bare, cut};

/// What a compact datagram may have beside its header and TCP's options when it is cut: class, identification,
/// acknowledged id.
const SPARE: u16 = 16;

/// What was written. Plain value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Datagrams,
    /// With this traffic class.
    Segments(u8),
}

/// Writes what goes along a way whose datagrams may have `room` bytes, by the one or the other. Lives while a packet is
/// written.
pub(super) struct Writer<'a> {
    pub now: Time,
    pub room: u16,
    /// The flow's, where TCP is its layer 4.
    pub outer: Option<OuterPort>,
    pub compression: &'a mut Compression,
    pub out: &'a mut Datagrams,
}

impl Form {
    pub fn send(self, via: Via, written: &Datagrams, outside: &mut impl Outside) -> Sent {
        match self {
            Self::Datagrams => outside.send(via, written),
            Self::Segments(class) => outside.send_segments(via, written, class),
        }
    }
}

impl Writer<'_> {
    /// Writes a packet.
    pub fn write(&mut self, packet: &[u8], offload: Offload, outside: &mut impl Outside) -> Result<Form, NotCut> {
        let Some(port) = self.outer else {
            let mut random = || outside.random();
            self.compression.shrink(self.now, packet, offload, self.room, &mut random, self.out)?;
            return Ok(Form::Datagrams);
        };
        cut(packet, offload, self.room, port, self.out).map(Form::Segments)
    }

    /// Writes headers alone, so that the peer hears of another way; none where they are such that it cannot.
    pub fn announce(&mut self, headers: &[u8], outside: &mut impl Outside) -> Option<Form> {
        let Some(port) = self.outer else {
            let mut random = || outside.random();
            let is_said = self.compression.announce(self.now, headers, self.room, &mut random, self.out);
            return is_said.then_some(Form::Datagrams);
        };
        bare(headers, self.room, port, self.out).map(Form::Segments)
    }

    /// Data of a segment with this many bytes of options that fits, whatever else its header has.
    pub fn most(&self, options: u16) -> u16 {
        let room = match self.outer {
            None => self.room.saturating_sub(COMPACT_HEADER + SPARE),
            Some(_) => translate::max_segment(self.room),
        };
        room.saturating_sub(options)
    }
}
