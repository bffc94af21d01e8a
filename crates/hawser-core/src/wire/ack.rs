//! ACK: which packets of a path arrived, and when.
//!
//! ```text
//! 0x02 | path | largest | delay µs | received_at µs | more ranges | first range
//!      | (gap | length)* | ECT(0) | ECT(1) | CE            all varints
//! ```
//!
//! Ranges run from the newest to the oldest, as in RFC 9000 section 19.3.1.

use std::ops::RangeInclusive;

use crate::units::{PacketNumber, PathId};

use super::path_info::path_id;
use super::{EncodeError, FrameType, Reader, WireError, Writer, varint};

/// The count of ranges is written in the two-byte form, before the ranges are known to fit.
const COUNT_LEN: usize = 2;
/// The top bits of a two-byte varint (RFC 9000 section 16).
const COUNT_FORM: u16 = 0x4000;
/// The most further ranges that two bytes can count.
const COUNT_MAX: u16 = 0x3fff;
/// A gap of `n` stands for `n + 1` missing packets, and a range ends before its own smallest
/// (RFC 9000 section 19.3.1).
const GAP_BIAS: u64 = 2;

/// Packets that arrived by ECN codepoint, since the path began (RFC 9000 section 19.3.2). Zero by
/// default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With congestion experienced.
    pub ce: u64,
}

impl EcnCounts {
    fn encoded_len(&self) -> Result<usize, EncodeError> {
        Ok(varint::len(self.ect0)? + varint::len(self.ect1)? + varint::len(self.ce)?)
    }
}

/// An ACK frame without its ranges, to be written with them. Zero values are valid; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AckHead {
    /// The path whose packets arrived.
    pub path: PathId,
    /// How long the largest number waited for this frame, in µs.
    pub delay_us: u64,
    /// The acknowledging side's own clock when the largest number arrived, in µs.
    pub received_at_us: u64,
    /// What the packets carried.
    pub ecn: EcnCounts,
}

impl AckHead {
    /// Appends the frame with as many of `ranges` (newest first, each below the one before it and
    /// not touching it) as fit into `budget` bytes; the oldest are left out. Tells how many went in.
    ///
    /// # Errors
    /// [`EncodeError::NoRoom`] where not even the newest range fits, [`EncodeError::AckRanges`]
    /// where there is none or they are out of order, [`EncodeError::OutOfRange`] above 62 bits.
    pub fn encode(
        &self,
        ranges: impl IntoIterator<Item = RangeInclusive<PacketNumber>>,
        budget: usize,
        out: &mut Writer<'_>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        let end = start + budget.min(out.remaining());
        let written = self.encode_within(ranges, end, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn encode_within(
        &self,
        ranges: impl IntoIterator<Item = RangeInclusive<PacketNumber>>,
        end: usize,
        out: &mut Writer<'_>,
    ) -> Result<usize, EncodeError> {
        let mut ranges = ranges.into_iter();
        let ecn_len = self.ecn.encoded_len()?;
        let (mut smallest, largest) = bounds(ranges.next().ok_or(EncodeError::AckRanges)?)?;
        out.put_u8(FrameType::Ack as u8)?;
        out.put_varint(u64::from(self.path.0))?;
        out.put_varint(largest)?;
        out.put_varint(self.delay_us)?;
        out.put_varint(self.received_at_us)?;
        let count_at = out.len();
        out.put_u16(0)?;
        out.put_varint(largest - smallest)?;
        if out.len() + ecn_len > end {
            return Err(EncodeError::NoRoom);
        }
        let mut more = 0;
        for range in ranges {
            let (low, high) = bounds(range)?;
            let gap = smallest.checked_sub(high).and_then(|apart| apart.checked_sub(GAP_BIAS));
            let gap = gap.ok_or(EncodeError::AckRanges)?;
            let len = varint::len(gap)? + varint::len(high - low)?;
            if out.len() + len + ecn_len > end || more == COUNT_MAX {
                break;
            }
            out.put_varint(gap)?;
            out.put_varint(high - low)?;
            smallest = low;
            more += 1;
        }
        out.patch_u16(count_at, COUNT_FORM | more);
        out.put_varint(self.ecn.ect0)?;
        out.put_varint(self.ecn.ect1)?;
        out.put_varint(self.ecn.ce)?;
        Ok(usize::from(more) + 1)
    }

    /// The most bytes that the frame takes with one range: a budget of so much never fails.
    pub const MAX_LEN_ONE_RANGE: usize = 1 + 8 * 4 + COUNT_LEN + 8 + 3 * 8;
}

fn bounds(range: RangeInclusive<PacketNumber>) -> Result<(u64, u64), EncodeError> {
    let (low, high) = (range.start().0, range.end().0);
    if low > high {
        return Err(EncodeError::AckRanges);
    }
    Ok((low, high))
}

/// An ACK frame as it was received: a view whose ranges were checked when it was read. No zero
/// value; it borrows the datagram.
#[derive(Clone, Debug)]
pub struct AckFrame<'a> {
    /// The path whose packets arrived.
    pub path: PathId,
    /// The largest number that arrived.
    pub largest: PacketNumber,
    /// How long the largest number waited for this frame, in µs.
    pub delay_us: u64,
    /// The acknowledging side's own clock when the largest number arrived, in µs.
    pub received_at_us: u64,
    /// What the packets carried.
    pub ecn: EcnCounts,
    first_range: u64,
    more_ranges: &'a [u8],
}

impl<'a> AckFrame<'a> {
    /// What arrived, newest first; at least one range, none touches the next.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges {
            next: Some((self.largest.0 - self.first_range, self.largest.0)),
            rest: Reader::new(self.more_ranges),
        }
    }

    /// Reads what follows the type byte, and checks every range.
    pub(super) fn decode(from: &mut Reader<'a>) -> Result<Self, WireError> {
        let path = path_id(from)?;
        let largest = from.varint()?;
        let delay_us = from.varint()?;
        let received_at_us = from.varint()?;
        let count = from.varint()?;
        let first_range = from.varint()?;
        let mut smallest = largest.checked_sub(first_range).ok_or(WireError::AckRanges)?;
        let before = from.peek();
        for _ in 0..count {
            (smallest, _) = next_range(smallest, from)?;
        }
        let more_ranges = &before[..before.len() - from.remaining()];
        let ecn = EcnCounts { ect0: from.varint()?, ect1: from.varint()?, ce: from.varint()? };
        let largest = PacketNumber(largest);
        Ok(AckFrame { path, largest, delay_us, received_at_us, ecn, first_range, more_ranges })
    }
}

/// Equal is what says the same, in whatever form its integers were written.
impl PartialEq for AckFrame<'_> {
    fn eq(&self, other: &Self) -> bool {
        let head = |ack: &Self| (ack.path, ack.delay_us, ack.received_at_us, ack.ecn);
        head(self) == head(other) && self.ranges().eq(other.ranges())
    }
}

impl Eq for AckFrame<'_> {}

/// The bounds of the range that follows one whose smallest number is `above`.
fn next_range(above: u64, from: &mut Reader<'_>) -> Result<(u64, u64), WireError> {
    let (gap, length) = (from.varint()?, from.varint()?);
    let high = above.checked_sub(gap + GAP_BIAS).ok_or(WireError::AckRanges)?;
    let low = high.checked_sub(length).ok_or(WireError::AckRanges)?;
    Ok((low, high))
}

/// Walks the ranges of an [`AckFrame`], newest first. Starts at the newest; it borrows the datagram.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<(u64, u64)>,
    rest: Reader<'a>,
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<PacketNumber>;

    fn next(&mut self) -> Option<Self::Item> {
        let (low, high) = self.next?;
        self.next = next_range(low, &mut self.rest).ok();
        Some(PacketNumber(low)..=PacketNumber(high))
    }
}
