//! The bytes of datagrams; README.md draws them.

use hawser_core::packet::inner::PROTOCOL_UDP;

use super::context::{ContextId, ID_BYTES};

/// The upper two bits of the first byte say what a datagram is.
const WHOLE: u8 = 0b01 << 6;
const COMPACT: u8 = 0b10 << 6;
const KIND: u8 = 0b11 << 6;
/// Flags of a whole one: the payload was cut off, nothing is to be delivered; the checksum is partial; an id is
/// defined; an id is acknowledged.
const HEADERS_ONLY: u8 = 0x08;
const PARTIAL: u8 = 0x04;
const DEFINES: u8 = 0x02;
const ACKNOWLEDGES: u8 = 0x01;
const WHOLE_FLAGS: u8 = HEADERS_ONLY | PARTIAL | DEFINES | ACKNOWLEDGES;
/// Flags of a compact one: an id is acknowledged, the whole checksum, a traffic class, an urgent pointer, an
/// identification stand there.
const HAS_ACKNOWLEDGED: u8 = 0x20;
const HAS_CHECKSUM: u8 = 0x10;
const HAS_CLASS: u8 = 0x08;
const HAS_URGENT: u8 = 0x04;
const HAS_IDENTIFICATION: u8 = 0x02;
const COMPACT_FLAGS: u8 = HAS_ACKNOWLEDGED | HAS_CHECKSUM | HAS_CLASS | HAS_URGENT | HAS_IDENTIFICATION;
/// What makes a compact one a datagram of UDP: neither TCP's fields nor an urgent pointer stand there.
const IS_UDP: u8 = 0x01;
const UDP_FLAGS: u8 = HAS_ACKNOWLEDGED | HAS_CHECKSUM | HAS_CLASS | HAS_IDENTIFICATION | IS_UDP;
/// IPv6's fragment header (RFC 8200 section 4.5), ICMP (RFC 792) and ICMPv6 (RFC 4443).
const FRAGMENT: u8 = 44;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// What of a TCP header always stands in a compact datagram: sequence and acknowledgment number, offset, flags, window
/// (RFC 9293 section 3.1, bytes 4 to 16).
pub(super) const TCP_FIELDS: usize = 12;
/// What a compact datagram has before TCP's options, and what else may vary: kind and flags, id, TCP's fields.
pub const COMPACT_HEADER: u16 = (1 + ID_BYTES + TCP_FIELDS) as u16;

/// Whether a datagram says that it is a whole packet: others are nothing without a context.
pub fn is_whole(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & KIND == WHOLE)
}

/// Whether a datagram says that it is one of UDP, a part of one or about one, without reading it: what it says may be
/// wrong.
pub fn is_datagram(datagram: &[u8]) -> bool {
    let Some((&first, rest)) = datagram.split_first() else { return false };
    let ids = usize::from(first & DEFINES != 0) + usize::from(first & ACKNOWLEDGES != 0);
    match (first & KIND, rest.get(ids * ID_BYTES..)) {
        (COMPACT, _) => first & IS_UDP != 0,
        (WHOLE, Some(packet)) => {
            let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4);
            let protocol = packet.get(if is_v4 { 9 } else { 6 });
            let others = if is_v4 { [ICMP, ICMP] } else { [ICMPV6, FRAGMENT] };
            protocol.is_some_and(|protocol| *protocol == PROTOCOL_UDP || others.contains(protocol))
        }
        _ => false,
    }
}

/// Datagrams, one after the other. Starts with none; reused, so that nothing is allocated in the long run. One owner.
#[derive(Clone, Debug, Default)]
pub struct Datagrams {
    pub(crate) bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Datagrams {
    /// Throws them away.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The datagrams, in the order in which they are to be sent.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all of them.
    pub fn total(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// What was written since the last one is one.
    pub(crate) fn finish(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

/// What stands before a whole packet. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Whole {
    pub headers_only: bool,
    pub partial: bool,
    pub defines: Option<ContextId>,
    pub acknowledges: Option<ContextId>,
}

/// What stands before a compact segment's options, or a datagram's data. Plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Compact {
    pub context: ContextId,
    /// Sequence and acknowledgment number, offset, flags, window, as TCP has them. None: it is UDP.
    pub tcp: Option<[u8; TCP_FIELDS]>,
    pub acknowledges: Option<ContextId>,
    /// None: it is partial. Zero, in UDP: there is none.
    pub checksum: Option<u16>,
    /// None: zero.
    pub class: Option<u8>,
    /// None: zero. UDP has none.
    pub urgent: Option<u16>,
    /// None: zero.
    pub identification: Option<u16>,
}

/// A datagram, read. Borrows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Datagram<'d> {
    Whole(Whole, &'d [u8]),
    Compact(Compact, &'d [u8]),
}

impl Whole {
    pub(super) fn len(&self) -> usize {
        1 + ID_BYTES * (usize::from(self.defines.is_some()) + usize::from(self.acknowledges.is_some()))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(self.headers_only, HEADERS_ONLY)
            | flag(self.partial, PARTIAL)
            | flag(self.defines.is_some(), DEFINES)
            | flag(self.acknowledges.is_some(), ACKNOWLEDGES);
        out.push(WHOLE | flags);
        for id in [self.defines, self.acknowledges].into_iter().flatten() {
            out.extend(id.0);
        }
    }
}

impl Compact {
    pub(super) fn len(&self) -> usize {
        1 + ID_BYTES
            + self.tcp.map_or(0, |fields| fields.len())
            + if self.acknowledges.is_some() { ID_BYTES } else { 0 }
            + 2 * usize::from(self.checksum.is_some())
            + usize::from(self.class.is_some())
            + 2 * usize::from(self.urgent.is_some())
            + 2 * usize::from(self.identification.is_some())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(self.acknowledges.is_some(), HAS_ACKNOWLEDGED)
            | flag(self.checksum.is_some(), HAS_CHECKSUM)
            | flag(self.class.is_some(), HAS_CLASS)
            | flag(self.urgent.is_some(), HAS_URGENT)
            | flag(self.identification.is_some(), HAS_IDENTIFICATION)
            | flag(self.tcp.is_none(), IS_UDP);
        out.push(COMPACT | flags);
        out.extend(self.context.0);
        out.extend(self.tcp.into_iter().flatten());
        if let Some(id) = self.acknowledges {
            out.extend(id.0);
        }
        if let Some(checksum) = self.checksum {
            out.extend(checksum.to_be_bytes());
        }
        out.extend(self.class);
        for half in [self.urgent, self.identification].into_iter().flatten() {
            out.extend(half.to_be_bytes());
        }
    }
}

impl<'d> Datagram<'d> {
    /// Reads a datagram; none where it is cut short, or says what nothing here says.
    pub(super) fn parse(datagram: &'d [u8]) -> Option<Self> {
        let (&first, rest) = datagram.split_first()?;
        let flags = first & !KIND;
        let mut rest = Rest(rest);
        match first & KIND {
            WHOLE if flags & !WHOLE_FLAGS == 0 => {
                let whole = Whole {
                    headers_only: flags & HEADERS_ONLY != 0,
                    partial: flags & PARTIAL != 0,
                    defines: rest.id(flags & DEFINES)?,
                    acknowledges: rest.id(flags & ACKNOWLEDGES)?,
                };
                Some(Self::Whole(whole, rest.0))
            }
            COMPACT if flags & !compact_flags(flags) == 0 => {
                let compact = Compact {
                    context: ContextId(rest.take()?),
                    tcp: if flags & IS_UDP == 0 { Some(rest.take()?) } else { None },
                    acknowledges: rest.id(flags & HAS_ACKNOWLEDGED)?,
                    checksum: rest.half(flags & HAS_CHECKSUM)?,
                    class: if flags & HAS_CLASS == 0 { None } else { Some(rest.take::<1>()?[0]) },
                    urgent: rest.half(flags & HAS_URGENT)?,
                    identification: rest.half(flags & HAS_IDENTIFICATION)?,
                };
                Some(Self::Compact(compact, rest.0))
            }
            _ => None,
        }
    }
}

/// Which flags a compact one with these may have.
const fn compact_flags(flags: u8) -> u8 {
    if flags & IS_UDP == 0 { COMPACT_FLAGS } else { UDP_FLAGS }
}

/// Takes bytes off the front. Lives while a datagram is read.
struct Rest<'d>(&'d [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// None where it is cut short; none inside where no flag asks for it.
    fn id(&mut self, flag: u8) -> Option<Option<ContextId>> {
        if flag == 0 { Some(None) } else { self.take().map(|id| Some(ContextId(id))) }
    }

    fn half(&mut self, flag: u8) -> Option<Option<u16>> {
        if flag == 0 { Some(None) } else { self.take().map(|half| Some(u16::from_be_bytes(half))) }
    }
}
