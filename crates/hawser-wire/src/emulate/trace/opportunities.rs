//! Delivery opportunities at whole milliseconds, in the format of mahimahi.
//!
//! 1. `parse`: a line is a whole number of milliseconds since the start, never less than the line before; at each
//!    up to 1500 bytes are delivered. Several equal lines are several opportunities.
//! 2. After the last line the trace begins again: its length is the last line's time.
//! 3. `serve`: a packet takes bytes of one opportunity after another until it is through. What an opportunity has
//!    left serves the next packet, if that waits already; what nobody waits for is gone.
//!
//! Source: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, and its mm-link(1).

use std::sync::Arc;

use super::TraceError;

/// Bytes of an opportunity. Source: mm-link(1).
const OPPORTUNITY_BYTES: u32 = 1500;
/// The resolution of such a trace.
const MILLISECOND_NS: u64 = 1_000_000;
/// Nanoseconds in a second, and bits in a byte.
const SECOND_NS: f64 = 1e9;
const BYTE_BITS: f64 = 8.0;

/// The milliseconds of a file. Never empty, and longer than nothing. Clones share one copy; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opportunities {
    millis: Arc<[u32]>,
    /// Bytes of each.
    bytes: u32,
}

/// An opportunity: which round of the trace, which line. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    round: u64,
    index: usize,
}

/// Where a replay is. Starts before the first opportunity; plain data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    place: Place,
    /// Bytes that the opportunity at `place` still has.
    left: u32,
}

impl Opportunities {
    /// Step 1. Empty lines at the end are passed over.
    pub(super) fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis: Vec<u32> = Vec::new();
        for (line, text) in (1..).zip(text.trim_end().lines()) {
            let text = text.trim();
            let at = text.parse().map_err(|_| TraceError::NoNumber { line, text: text.to_owned() })?;
            if millis.last().is_some_and(|&last| at < last) {
                return Err(TraceError::Backwards { line, millis: at });
            }
            millis.push(at);
        }
        match millis.last() {
            Some(1..) => Ok(Self { millis: millis.into(), bytes: OPPORTUNITY_BYTES }),
            Some(0) | None => Err(TraceError::NoLength),
        }
    }

    /// `factor` times the bytes at each opportunity, to the byte.
    pub(super) fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let bytes = (f64::from(self.bytes) * factor).round();
        if !(1.0..=f64::from(u32::MAX)).contains(&bytes) {
            return Err(TraceError::Scale { factor });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within its range")]
        let bytes = bytes as u32;
        Ok(Self { bytes, ..self.clone() })
    }

    /// Nanoseconds until it repeats.
    pub(super) fn period(&self) -> u64 {
        self.millis.last().map_or(0, |&last| u64::from(last) * MILLISECOND_NS)
    }

    /// Bits a second.
    #[expect(clippy::cast_precision_loss, reason = "a count of lines, and the time of a file")]
    pub(super) fn mean(&self) -> f64 {
        self.millis.len() as f64 * f64::from(self.bytes) * BYTE_BITS * SECOND_NS / self.period() as f64
    }

    /// Bytes of the opportunities before a time.
    pub(super) fn bytes_before(&self, nanos: u64) -> u64 {
        let (round, within) = (nanos / self.period(), nanos % self.period());
        let lines = round * self.millis.len() as u64 + self.index_at_or_after(within) as u64;
        lines * u64::from(self.bytes)
    }

    fn index_at_or_after(&self, within: u64) -> usize {
        self.millis.partition_point(|&millis| u64::from(millis) * MILLISECOND_NS < within)
    }

    /// When an opportunity lies, counted from the start.
    fn nanos(&self, place: Place) -> u64 {
        place.round * self.period() + u64::from(self.millis[place.index]) * MILLISECOND_NS
    }

    fn following(&self, place: Place) -> Place {
        match place.index + 1 {
            index if index < self.millis.len() => Place { index, ..place },
            _ => Place { round: place.round + 1, index: 0 },
        }
    }

    /// The first opportunity at or after a time from the start.
    fn at_or_after(&self, nanos: u64) -> Place {
        let period = self.period();
        let (round, within) = (nanos / period, nanos % period);
        // The last opportunity of a round lies where the next round begins.
        if round > 0 && within == 0 {
            return Place { round: round - 1, index: self.index_at_or_after(period) };
        }
        Place { round, index: self.index_at_or_after(within) }
    }

    /// Before the first one.
    pub(super) fn begin(&self) -> Progress {
        Progress { place: Place::default(), left: self.bytes }
    }

    /// When a packet that waits since then may begin to go.
    pub(super) fn next(&self, progress: Progress, since: u64) -> u64 {
        let mut place = progress.place;
        if self.nanos(place) < since {
            place = self.at_or_after(since);
        } else if progress.left == 0 {
            place = self.following(place);
        }
        self.nanos(place)
    }

    /// Step 3: when a packet is through, which waits since then.
    pub(super) fn serve(&self, progress: &mut Progress, bytes: u32, since: u64) -> u64 {
        if self.nanos(progress.place) < since {
            *progress = Progress { place: self.at_or_after(since), left: self.bytes };
        }
        let mut needs = bytes;
        while needs > progress.left {
            needs -= progress.left;
            *progress = Progress { place: self.following(progress.place), left: self.bytes };
        }
        progress.left -= needs;
        self.nanos(progress.place)
    }
}
