//! Recorded delivery opportunities, in the format of mahimahi.
//!
//! 1. `parse`: a line is a whole number of milliseconds since the start, never less than the line before; at each
//!    up to 1500 bytes are delivered. Several equal lines are several opportunities.
//! 2. After the last line the trace begins again: its length is the last line's time.
//! 3. `serve`: a packet takes bytes of one opportunity after another until it is through. What an opportunity has
//!    left serves the next packet, if that waits already; what nobody waits for is gone.
//!
//! Source: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, and its mm-link(1).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use super::spec::Rate;
use crate::clock::Moment;

/// Bytes of an opportunity. Source: mm-link(1).
pub(crate) const OPPORTUNITY_BYTES: u32 = 1500;
/// The resolution of a trace.
const MILLISECOND_NS: u64 = 1_000_000;
/// The longest trace: what a line may say at most, 49 days of milliseconds.
const MOST_MILLIS: u32 = u32::MAX;

/// When a link may deliver: the milliseconds of a file, which repeat.
/// Never empty, and longer than nothing. Clones share one copy; plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(Arc<[u32]>);

/// Why a trace cannot be used. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("read trace {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A line is no whole number of milliseconds.
    #[error("read trace, line {line}: {text:?} is no whole number of milliseconds up to {MOST_MILLIS}")]
    NoNumber {
        /// From 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A line lies before the one above it.
    #[error("read trace, line {line}: {millis} ms is before the line above it")]
    Backwards {
        /// From 1.
        line: usize,
        /// What stands there.
        millis: u32,
    },
    /// There is no line, or none after 0 ms.
    #[error("read trace: it has no opportunity after 0 ms, so that it cannot repeat")]
    NoLength,
}

impl Trace {
    /// Step 1. Empty lines at the end are passed over.
    ///
    /// # Errors
    /// Where a line is no number or goes back, or all of it takes no time.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
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
            Some(1..) => Ok(Self(millis.into())),
            Some(0) | None => Err(TraceError::NoLength),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Where there is none, or [`Trace::parse`] refuses it.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let text =
            fs::read_to_string(path).map_err(|source| TraceError::Read { path: path.display().to_string(), source })?;
        Self::parse(&text)
    }

    /// How long until it repeats.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.period())
    }

    /// What it delivers at most, on average.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of lines")]
    pub fn mean_rate(&self) -> Rate {
        let bits = self.0.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8.0;
        Rate::mbit(bits / 1e6 / self.length().as_secs_f64())
    }

    fn period(&self) -> u64 {
        self.0.last().map_or(0, |&last| u64::from(last) * MILLISECOND_NS)
    }

    /// When an opportunity lies, counted from the start.
    fn nanos(&self, place: Place) -> u64 {
        place.round * self.period() + u64::from(self.0[place.index]) * MILLISECOND_NS
    }

    fn next(&self, place: Place) -> Place {
        match place.index + 1 {
            index if index < self.0.len() => Place { index, ..place },
            _ => Place { round: place.round + 1, index: 0 },
        }
    }

    /// The first opportunity at or after a time from the start.
    fn at_or_after(&self, nanos: u64) -> Place {
        let period = self.period();
        let (round, within) = (nanos / period, nanos % period);
        // The last opportunity of a round lies where the next round begins.
        if round > 0 && within == 0 {
            let last = self.0.partition_point(|&millis| u64::from(millis) * MILLISECOND_NS < period);
            return Place { round: round - 1, index: last };
        }
        let index = self.0.partition_point(|&millis| u64::from(millis) * MILLISECOND_NS < within);
        Place { round, index }
    }
}

/// An opportunity: which round of the trace, which line. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    round: u64,
    index: usize,
}

/// Where one way is in its trace. Starts at a moment, before the first opportunity. One owner: the way.
#[derive(Debug)]
pub(crate) struct Replay {
    start: Moment,
    place: Place,
    /// Bytes the opportunity at `place` still has.
    left: u32,
}

impl Replay {
    /// A trace begins at a moment.
    pub(crate) fn new(start: Moment) -> Self {
        Self { start, place: Place::default(), left: OPPORTUNITY_BYTES }
    }

    /// When a packet that waits since then may begin to go.
    pub(crate) fn next(&self, trace: &Trace, waits: Moment) -> Moment {
        let since = u64::try_from((waits - self.start).as_nanos()).unwrap_or(u64::MAX);
        let mut place = self.place;
        if trace.nanos(place) < since {
            place = trace.at_or_after(since);
        } else if self.left == 0 {
            place = trace.next(place);
        }
        self.start + Duration::from_nanos(trace.nanos(place))
    }

    /// Step 3: when a packet is through, which waits since `waits` (never before this trace began).
    pub(crate) fn serve(&mut self, trace: &Trace, bytes: u32, waits: Moment) -> Moment {
        let since = u64::try_from((waits - self.start).as_nanos()).unwrap_or(u64::MAX);
        if trace.nanos(self.place) < since {
            (self.place, self.left) = (trace.at_or_after(since), OPPORTUNITY_BYTES);
        }
        let mut needs = bytes;
        while needs > self.left {
            needs -= self.left;
            (self.place, self.left) = (trace.next(self.place), OPPORTUNITY_BYTES);
        }
        self.left -= needs;
        self.start + Duration::from_nanos(trace.nanos(self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(7_000_000_000) + Duration::from_millis(millis)
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let table = [
            ("", "read trace: it has no opportunity after 0 ms, so that it cannot repeat"),
            ("0\n0\n", "read trace: it has no opportunity after 0 ms, so that it cannot repeat"),
            ("1\n2 ms\n", "read trace, line 2: \"2 ms\" is no whole number of milliseconds up to 4294967295"),
            ("1\n\n2\n", "read trace, line 2: \"\" is no whole number of milliseconds up to 4294967295"),
            ("1\n-1\n", "read trace, line 2: \"-1\" is no whole number of milliseconds up to 4294967295"),
            ("5\n9\n8\n", "read trace, line 3: 8 ms is before the line above it"),
        ];
        for (text, said) in table {
            assert_eq!(Trace::parse(text).expect_err(text).to_string(), said);
        }
        assert!(Trace::read(Path::new("/nonexistent/trace")).expect_err("no file").to_string().contains("nonexistent"));
    }

    #[test]
    fn a_trace_has_a_length_and_a_rate() {
        let trace = Trace::parse("0\r\n5\n5\n10\n\n").expect("a trace");
        assert_eq!(trace.length(), Duration::from_millis(10));
        assert_eq!(trace.mean_rate(), Rate::mbit(4.8));
    }

    #[test]
    fn packets_take_opportunities_in_turn_and_what_is_left_of_them() {
        // Bytes, waiting since (ms), through at (ms): on the trace 0 3 3 10, which repeats after 10 ms.
        let table = [
            ("full packets", &[(1500, 0, 0), (1500, 0, 3), (1500, 0, 3), (1500, 0, 10), (1500, 0, 10)][..]),
            ("small packets share one", &[(500, 1, 3), (500, 1, 3), (500, 1, 3), (1, 1, 3), (1500, 1, 10)]),
            ("what is left serves the next in part", &[(1000, 1, 3), (1000, 1, 3), (1000, 1, 3), (1, 1, 10)]),
            ("nobody waits: it is gone", &[(100, 2, 3), (100, 4, 10), (100, 11, 13), (1500, 21, 23)]),
            ("a long idle time", &[(100, 2, 3), (100, 10_007, 10_010), (2900, 10_007, 10_010), (1, 10_007, 10_013)]),
            ("at the very moment", &[(1500, 3, 3), (1500, 3, 3), (1500, 3, 10), (1500, 10, 10), (1, 10, 13)]),
        ];
        let trace = Trace::parse("0\n3\n3\n10\n").expect("a trace");
        for (what, packets) in table {
            let mut replay = Replay::new(at(0));
            for (number, &(bytes, waits, through)) in packets.iter().enumerate() {
                assert!(replay.next(&trace, at(waits)) <= at(through), "{what}, packet {number}");
                assert_eq!(replay.serve(&trace, bytes, at(waits)), at(through), "{what}, packet {number}");
            }
        }
    }
}
