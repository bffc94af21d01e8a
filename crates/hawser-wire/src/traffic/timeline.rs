//! What a receiver got, and when, in bins of a millisecond.

use std::time::Duration;

use crate::clock::{Moment, SECOND_NS};

/// Width of a bin: the resolution of every figure below.
const BIN: Duration = Duration::from_millis(1);
/// The most bins: ten minutes. What comes later counts in the last one.
const MOST_BINS: usize = 600_000;
/// Bits in a byte.
const BYTE_BITS: u64 = 8;

/// Bytes received over time. Starts empty at a moment. Plain data.
#[derive(Clone, Debug)]
pub struct Timeline {
    start: Moment,
    bins: Vec<u64>,
    total: u64,
}

impl Timeline {
    /// An empty timeline from a moment on.
    #[must_use]
    pub fn new(start: Moment) -> Self {
        let (bins, total) = (Vec::new(), 0);
        Self { start, bins, total }
    }

    /// Counts bytes received at a moment.
    pub fn add(&mut self, at: Moment, bytes: u64) {
        let bin = self.bin_of(at).min(MOST_BINS - 1);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
        self.total += bytes;
    }

    /// Counts what another of the same start counts, too.
    pub fn absorb(&mut self, other: &Self) {
        for (bin, &bytes) in other.bins.iter().enumerate() {
            if bytes > 0 {
                self.add(self.moment_of(bin), bytes);
            }
        }
    }

    /// When it starts.
    #[must_use]
    pub const fn start(&self) -> Moment {
        self.start
    }

    /// The end of the last bin with bytes.
    #[must_use]
    pub fn end(&self) -> Moment {
        self.moment_of(self.bins.len())
    }

    /// All bytes.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes from one moment to another, both taken to the bin.
    #[must_use]
    pub fn bytes_between(&self, from: Moment, to: Moment) -> u64 {
        let end = self.bin_of(to).min(self.bins.len());
        let start = self.bin_of(from).min(end);
        self.bins[start..end].iter().sum()
    }

    /// Mean rate from one moment to another, in Mbit/s; zero where they are less than a bin apart.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes of one run")]
    pub fn mbps_between(&self, from: Moment, to: Moment) -> f64 {
        let time = self.moment_of(self.bin_of(to)) - self.moment_of(self.bin_of(from));
        if time.is_zero() {
            return 0.0;
        }
        (self.bytes_between(from, to) * BYTE_BITS) as f64 / time.as_secs_f64() / 1e6
    }

    /// Mean rates over steps of a width, in Mbit/s, for a chart. The last step may not be over yet, and is left out.
    #[must_use]
    pub fn mbps_by(&self, step: Duration) -> Vec<f64> {
        let step = step.max(BIN);
        let steps = (self.end() - self.start).as_nanos() / step.as_nanos();
        let at = |index: u128| {
            let nanos = u64::try_from(step.as_nanos() * index).unwrap_or(u64::MAX);
            self.start + Duration::from_nanos(nanos)
        };
        (0..steps).map(|index| self.mbps_between(at(index), at(index + 1))).collect()
    }

    /// The longest time without a byte that lies, in part at least, between two moments; one that nothing
    /// ended lasts to `to`. Exact to a bin.
    #[must_use]
    pub fn longest_gap(&self, from: Moment, to: Moment) -> Duration {
        let (first, last) = (self.bin_of(from), self.bin_of(to));
        let is_empty = |bin: usize| self.bins.get(bin).is_none_or(|&bytes| bytes == 0);
        // A gap that was open at `from` began earlier.
        let mut begin = (0..first).rev().take_while(|&bin| is_empty(bin)).last().unwrap_or(first);
        let mut longest = 0;
        let end = last.max(self.bins.len());
        for bin in first..end {
            if is_empty(bin) {
                longest = longest.max(bin + 1 - begin);
            } else if bin >= last {
                break;
            } else {
                begin = bin + 1;
            }
        }
        self.moment_of(longest) - self.start
    }

    /// How long after a moment the rate was first back: the mean over the `window` that follows reaches this many
    /// Mbit/s. None where it never was.
    #[must_use]
    pub fn recovered_after(&self, moment: Moment, mbps: f64, window: Duration) -> Option<Duration> {
        let wide = usize::try_from(window.as_nanos() / BIN.as_nanos()).ok()?.max(1);
        let first = self.bin_of(moment);
        #[expect(clippy::cast_precision_loss, reason = "bytes of one window")]
        let reached = |bytes: u64| (bytes * BYTE_BITS) as f64 / window.as_secs_f64() / 1e6 >= mbps;
        let windows = self.bins.get(first..)?.windows(wide);
        let found = windows.map(|bins| bins.iter().sum()).position(reached)?;
        Some(self.moment_of(found) - self.start)
    }

    fn bin_of(&self, at: Moment) -> usize {
        usize::try_from((at - self.start).as_nanos() / BIN.as_nanos()).unwrap_or(usize::MAX)
    }

    fn moment_of(&self, bin: usize) -> Moment {
        let nanos = BIN.as_nanos() * bin as u128;
        self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(SECOND_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Bytes in the bins of these milliseconds.
    fn timeline(arrivals: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::new(start());
        for &(at, bytes) in arrivals {
            timeline.add(start() + ms(at), bytes);
        }
        timeline
    }

    fn start() -> Moment {
        Moment::from_nanos(5 * SECOND_NS)
    }

    #[test]
    fn rates_are_of_what_came_between() {
        let line = timeline(&[(0, 1000), (9, 1000), (10, 500)]);
        assert_eq!(line.total_bytes(), 2500);
        assert_eq!(line.bytes_between(start(), start() + ms(10)), 2000);
        assert!((line.mbps_between(start(), start() + ms(10)) - 1.6).abs() < 1e-9);
        assert_eq!(line.mbps_between(start(), start()), 0.0);
        assert_eq!(line.mbps_by(ms(5)), [1.6, 1.6]);
    }

    #[test]
    fn the_longest_gap_is_found_wherever_it_begins_and_ends() {
        let line = timeline(&[(0, 1), (3, 1), (10, 1), (12, 1)]);
        let table = [
            ((0, 13), 6, "whole"),
            ((5, 8), 6, "from inside to inside"),
            ((10, 13), 1, "after"),
            ((11, 40), 27, "that nothing ended"),
            ((0, 3), 2, "up to an arrival"),
        ];
        for ((from, to), expected, name) in table {
            let gap = line.longest_gap(start() + ms(from), start() + ms(to));
            assert_eq!(gap, ms(expected), "{name}");
        }
    }

    #[test]
    fn recovery_is_the_first_window_that_reaches_the_rate() {
        let slow = (0..50).map(|at| (at, 125));
        let fast = (50..100).map(|at| (at, 1250));
        let line = timeline(&slow.chain(fast).collect::<Vec<_>>());
        let after = |at, mbps| line.recovered_after(start() + ms(at), mbps, ms(10));
        assert_eq!(after(20, 1.0), Some(ms(0)));
        assert_eq!(after(20, 10.0), Some(ms(30)));
        assert_eq!(after(20, 11.0), None);
        assert_eq!(after(200, 1.0), None);
    }
}
