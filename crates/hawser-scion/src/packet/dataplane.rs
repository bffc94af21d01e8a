//! A path as it stands in a packet (scion-header.rst, "Path Type: SCION").
//!
//! 1. [`DataplaneView::read`]: how many segments and hops there are, and that they are all there.
//! 2. Its fields, and when the first of them expires.
//! 3. [`DataplaneView::reversed`]: the way back.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::header::{Malformed, Part, need};
use super::wire::*;
use crate::path::{Dataplane, InterfaceId};

/// What a hop field's expiry is counted in: a day in 256 parts (scion-header.rst, "Hop Field").
const EXPIRY_UNIT: Duration = Duration::from_millis(24 * 3600 * 1000 / 256);
/// Where a meta header's segment lengths begin, counted in bits from the right, and how many bits each has.
const SEGMENT_SHIFTS: [u32; MAX_SEGMENTS] = [12, 6, 0];
/// The six bits of a segment's length, of CurrHF, and of what is reserved.
const SIX_BITS: u32 = 0x3f;
/// Where CurrHF stands in a meta header, in bits from the right.
const CURRENT_HOP_SHIFT: u32 = 24;
/// Where CurrINF stands in a meta header, in bits from the right.
const CURRENT_INFO_SHIFT: u32 = 30;
/// Info field: its hops stand as they were constructed (C).
const CONSTRUCTION: u8 = 1;
/// Info field: its segment is one of a peering path (P).
const PEERING: u8 = 2;
/// Hop field: the router where packets enter, in the direction of construction, shall look into them (I).
const INGRESS_ALERT: u8 = 2;
/// Hop field: the same, where packets leave (E).
const EGRESS_ALERT: u8 = 1;
/// Hop field: both.
const ALERTS: u8 = INGRESS_ALERT | EGRESS_ALERT;

/// The kinds of paths. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathType {
    /// Inside an AS: nothing.
    Empty,
    /// Up to three segments.
    Scion,
    /// Between neighbours, before there are segments. Recognised, not read.
    OneHop,
    /// A SCION path with proofs. Recognised, not read.
    Epic,
}

/// A path as it stands in a packet. There is no default. Cheap to copy, and plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataplaneView<'a> {
    kind: PathType,
    /// What its kind has; what may stand between it and the payload is left out.
    bytes: &'a [u8],
}

/// What is true of all hops of a segment. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoField {
    /// Whether its hops stand in the order in which they were constructed.
    pub construction: bool,
    /// Whether its segment is part of a peering path.
    pub peering: bool,
    /// What its hops' authenticators are chained by.
    pub segment_id: u16,
    /// When it was constructed, in seconds of Unix time.
    pub timestamp: u32,
}

/// What a router reads to forward. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopField {
    /// Whether the router of `ingress` shall look into the packet.
    pub ingress_alert: bool,
    /// Whether the router of `egress` shall look into the packet.
    pub egress_alert: bool,
    /// When it expires, after its segment's timestamp: 0 is one unit.
    pub expiry: u8,
    /// Where packets enter the AS, in the direction of construction.
    pub ingress: InterfaceId,
    /// Where packets leave the AS, in the direction of construction.
    pub egress: InterfaceId,
    /// Its authenticator.
    pub mac: [u8; 6],
}

/// Why there is no way back. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReversible {
    /// One-hop and EPIC paths.
    #[error("reverse path: it is of a kind that is not read")]
    Kind,
    /// Nothing to reverse.
    #[error("reverse path: it has no segment")]
    NoSegment,
    /// A router would refuse it, in any direction.
    #[error("reverse path: it stands at hop {hop} of {hops} and segment {segment}, which do not fit")]
    Position {
        /// CurrHF.
        hop: usize,
        /// Hop fields.
        hops: usize,
        /// CurrINF.
        segment: usize,
    },
}

/// A meta header.
#[derive(Debug, Clone, Copy)]
struct Meta {
    current_info: usize,
    current_hop: usize,
    segment_lens: [u8; MAX_SEGMENTS],
}

impl<'a> DataplaneView<'a> {
    /// Reads a path of a kind from what a header has for it.
    pub fn read(kind: u8, bytes: &'a [u8]) -> Result<DataplaneView<'a>, Malformed> {
        let (kind, len) = DataplaneView::kind_and_len(kind, bytes)?;
        Ok(DataplaneView { kind, bytes: &bytes[..len] })
    }

    /// What kind of path begins these bytes, and how many of them it has.
    #[inline]
    pub(super) fn kind_and_len(kind: u8, bytes: &[u8]) -> Result<(PathType, usize), Malformed> {
        let (kind, len) = match kind {
            0 if bytes.is_empty() => (PathType::Empty, 0),
            0 => return Err(Malformed::NotEmpty(bytes.len())),
            1 => (PathType::Scion, scion_len(bytes)?),
            2 => (PathType::OneHop, ONE_HOP_LEN),
            3 => {
                need(bytes, EPIC_META_LEN, Part::Path)?;
                (PathType::Epic, EPIC_META_LEN + scion_len(&bytes[EPIC_META_LEN..])?)
            }
            other => return Err(Malformed::PathType(other)),
        };
        need(bytes, len, Part::Path)?;
        Ok((kind, len))
    }

    /// A view of a path that was read before.
    #[inline]
    pub(super) fn checked(kind: PathType, bytes: &'a [u8]) -> DataplaneView<'a> {
        DataplaneView { kind, bytes }
    }

    /// A view of a path that a daemon told.
    pub fn of(dataplane: &'a Dataplane) -> Result<DataplaneView<'a>, Malformed> {
        DataplaneView::read(u8::from(!dataplane.is_empty()), dataplane.as_bytes())
    }

    /// Its kind.
    #[inline]
    pub fn path_type(&self) -> PathType {
        self.kind
    }

    /// As it stands in the packet.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where in the path the packet is: the index of a segment and of a hop field. `None` unless it is a SCION path.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.meta().map(|meta| (meta.current_info, meta.current_hop))
    }

    /// Its segments in order, each with its hop fields. None unless it is a SCION path.
    #[inline]
    pub fn segments(&self) -> impl Iterator<Item = (InfoField, impl Iterator<Item = HopField> + use<'a>)> + use<'a> {
        let bytes = self.bytes;
        let (lens, infos) = self.meta().map_or(([0; MAX_SEGMENTS], 0), |meta| (meta.segment_lens, meta.segments()));
        let mut hop_at = META_LEN + infos * INFO_LEN;
        (0..infos).map(move |index| {
            let hops = &bytes[hop_at..hop_at + usize::from(lens[index]) * HOP_LEN];
            hop_at += hops.len();
            (InfoField::read(&bytes[META_LEN + index * INFO_LEN..]), hops.chunks_exact(HOP_LEN).map(HopField::read))
        })
    }

    /// When the first of its hop fields expires. `None` where there are none.
    pub fn expiry(&self) -> Option<SystemTime> {
        let expiries = self.segments().flat_map(|(info, hops)| {
            let constructed = SystemTime::UNIX_EPOCH + Duration::from_secs(info.timestamp.into());
            hops.map(move |hop| constructed + EXPIRY_UNIT * (u32::from(hop.expiry) + 1))
        });
        expiries.min()
    }

    /// The way back from where the packet is. What is reserved is cleared, as the reference does.
    pub fn reversed(&self) -> Result<Dataplane, NotReversible> {
        match self.kind {
            PathType::Empty => return Ok(Dataplane::Empty),
            PathType::Scion => {}
            PathType::OneHop | PathType::Epic => return Err(NotReversible::Kind),
        }
        let meta = self.meta().expect("it is a SCION path");
        let back = meta.reversed()?;
        let mut reversed = Vec::with_capacity(self.bytes.len());
        reversed.extend(back.to_bits().to_be_bytes());
        let (infos, hops) = self.bytes[META_LEN..].split_at(meta.segments() * INFO_LEN);
        for info in infos.rchunks_exact(INFO_LEN) {
            reversed.extend([info[0] & (CONSTRUCTION | PEERING) ^ CONSTRUCTION, 0]);
            reversed.extend_from_slice(&info[2..]);
        }
        for hop in hops.rchunks_exact(HOP_LEN) {
            reversed.push(hop[0] & ALERTS);
            reversed.extend_from_slice(&hop[1..]);
        }
        Ok(Dataplane::Scion(Arc::from(reversed)))
    }

    /// The same path, whose last router shall look into what comes along it: it answers a traceroute request.
    /// `None` unless it is a SCION path with hops.
    pub fn alerting_last(&self) -> Option<Dataplane> {
        let last = self.meta()?.segments().checked_sub(1)?;
        let info = InfoField::read(&self.bytes[META_LEN + last * INFO_LEN..]);
        let mut bytes = self.bytes.to_vec();
        let hop = bytes.len() - HOP_LEN;
        bytes[hop] |= if info.construction { INGRESS_ALERT } else { EGRESS_ALERT };
        Some(Dataplane::Scion(bytes.into()))
    }

    /// Whether it can be sent along: it is empty, or points at one of its hops and that hop's segment.
    pub(super) fn check_position(&self) -> Result<(), NotReversible> {
        match self.kind {
            PathType::Empty => Ok(()),
            PathType::Scion => self.meta().expect("it is a SCION path").reversed().map(drop),
            PathType::OneHop | PathType::Epic => Err(NotReversible::Kind),
        }
    }

    fn meta(&self) -> Option<Meta> {
        (self.kind == PathType::Scion).then(|| Meta::from_bits(u32_at(self.bytes, 0)))
    }
}

/// Bytes of a SCION path, by its meta header.
#[inline]
fn scion_len(bytes: &[u8]) -> Result<usize, Malformed> {
    need(bytes, META_LEN, Part::Path)?;
    let meta = Meta::from_bits(u32_at(bytes, 0));
    let (segments, hops) = (meta.segments(), meta.hops());
    if segments > 0 && meta.segment_lens[0] == 0 || segments > 2 && meta.segment_lens[1] == 0 {
        return Err(Malformed::SegmentGap(meta.segment_lens));
    }
    if hops > MAX_HOPS {
        return Err(Malformed::TooManyHops(hops));
    }
    Ok(META_LEN + segments * INFO_LEN + hops * HOP_LEN)
}

impl Meta {
    #[inline]
    fn from_bits(bits: u32) -> Meta {
        Meta {
            current_info: (bits >> CURRENT_INFO_SHIFT) as usize,
            current_hop: (bits >> CURRENT_HOP_SHIFT & SIX_BITS) as usize,
            segment_lens: SEGMENT_SHIFTS.map(|shift| (bits >> shift & SIX_BITS) as u8),
        }
    }

    fn to_bits(self) -> u32 {
        let lens = self.segment_lens.into_iter().zip(SEGMENT_SHIFTS).map(|(len, shift)| u32::from(len) << shift);
        (self.current_info as u32) << CURRENT_INFO_SHIFT
            | (self.current_hop as u32) << CURRENT_HOP_SHIFT
            | lens.sum::<u32>()
    }

    /// Segments up to the last that has hops.
    #[inline]
    fn segments(&self) -> usize {
        match self.segment_lens {
            [0, 0, 0] => 0,
            [_, 0, 0] => 1,
            [_, _, 0] => 2,
            _ => 3,
        }
    }

    #[inline]
    fn hops(&self) -> usize {
        let [first, second, third] = self.segment_lens.map(usize::from);
        first + second + third
    }

    /// The index of the segment that a hop is in.
    fn segment_of(&self, hop: usize) -> usize {
        let mut end = 0;
        let ends = self.segment_lens.iter().map(|len| {
            end += usize::from(*len);
            end
        });
        ends.take_while(|end| *end <= hop).count()
    }

    fn reversed(self) -> Result<Meta, NotReversible> {
        let (segments, hops) = (self.segments(), self.hops());
        if segments == 0 {
            return Err(NotReversible::NoSegment);
        }
        if self.current_hop >= hops || self.segment_of(self.current_hop) != self.current_info {
            return Err(NotReversible::Position { hop: self.current_hop, hops, segment: self.current_info });
        }
        let mut segment_lens = self.segment_lens;
        segment_lens[..segments].reverse();
        Ok(Meta {
            current_info: segments - self.current_info - 1,
            current_hop: hops - self.current_hop - 1,
            segment_lens,
        })
    }
}

impl InfoField {
    /// Reads one from bytes that are long enough.
    fn read(bytes: &[u8]) -> InfoField {
        InfoField {
            construction: bytes[0] & CONSTRUCTION != 0,
            peering: bytes[0] & PEERING != 0,
            segment_id: u16_at(bytes, 2),
            timestamp: u32_at(bytes, 4),
        }
    }
}

impl HopField {
    /// Reads one from bytes that are long enough.
    fn read(bytes: &[u8]) -> HopField {
        HopField {
            ingress_alert: bytes[0] & INGRESS_ALERT != 0,
            egress_alert: bytes[0] & EGRESS_ALERT != 0,
            expiry: bytes[1],
            ingress: InterfaceId(u16_at(bytes, 2)),
            egress: InterfaceId(u16_at(bytes, 4)),
            mac: array_at(bytes, 6),
        }
    }
}
