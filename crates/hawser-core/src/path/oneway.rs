//! The one-way delay of a path, against a zero that all paths of a session share.
//!
//! The sender's and the peer's clock differ by an unknown constant, so that a single delay means
//! nothing; the difference of two paths' delays is exact, since both clocks are the same for both.

use super::constants::{FLOOR_WINDOW, JITTER_PARTS, MAX_WINDOW, MIN_WINDOW, SMOOTH_PARTS, STALE_LEAST};
use super::windowed::WindowedMin;
use crate::units::Time;
use std::time::Duration;

/// The largest believable delay, either way, µs: 2^50 µs are 35 years. Beyond it a peer lies, and sums could overflow.
const BOUND_US: i64 = 1 << 50;

/// Relative delays of one path in µs: smoothed, least, largest, jitter. Nothing at first. One path owns it.
#[derive(Clone, Debug)]
pub struct OneWayDelay {
    smoothed: Option<i64>,
    sampled_at: Time,
    latest: i64,
    jitter: i64,
    min: WindowedMin,
    floor: WindowedMin,
    /// The least of the negated delays.
    max: WindowedMin,
}

impl Default for OneWayDelay {
    fn default() -> Self {
        OneWayDelay {
            smoothed: None,
            sampled_at: Time::ZERO,
            latest: 0,
            jitter: 0,
            min: WindowedMin::new(MIN_WINDOW),
            floor: WindowedMin::new(FLOOR_WINDOW),
            max: WindowedMin::new(MAX_WINDOW),
        }
    }
}

impl OneWayDelay {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet left at `sent_at_us` on our clock and came at `received_at_us` on the peer's.
    pub fn on_sample(&mut self, now: Time, sent_at_us: u64, received_at_us: u64) {
        let difference = i128::from(received_at_us) - i128::from(sent_at_us);
        let bound = i128::from(BOUND_US);
        let delay = difference.clamp(-bound, bound) as i64;
        self.min.record(now, delay);
        self.floor.record(now, delay);
        // What waited on a path that is asked once a second has drained meanwhile; else it would keep for ten what one
        // stall was.
        let stale = now.since(self.sampled_at) >= STALE_LEAST && self.smoothed.is_some_and(|smoothed| delay < smoothed);
        let drained = if stale { self.expected_us(now, delay) } else { self.smoothed };
        (self.sampled_at, self.latest) = (now, delay);
        self.max.record(now, -delay);
        let Some(smoothed) = drained else {
            self.smoothed = Some(delay);
            return;
        };
        let deviation = (delay - smoothed).abs();
        self.jitter += (deviation - self.jitter) / JITTER_PARTS;
        self.smoothed = Some(smoothed + (delay - smoothed) / SMOOTH_PARTS);
    }

    /// The smoothed delay, µs; only differences between paths of one session mean anything.
    pub fn smoothed_us(&self) -> Option<i64> {
        self.smoothed
    }

    /// What a packet sent now will take, µs: the smoothed delay, less what the queue in it has drained
    /// since the last sample; at least `floor`.
    pub fn expected_us(&self, now: Time, floor: i64) -> Option<i64> {
        let drained = i64::try_from(now.since(self.sampled_at).as_micros()).unwrap_or(i64::MAX);
        self.smoothed.map(|smoothed| smoothed.saturating_sub(drained).max(floor))
    }

    /// What the latest packet took beyond the least of the last ten seconds; zero before a sample.
    pub fn waited(&self, now: Time) -> Duration {
        let waited = self.min_us(now).map_or(0, |least| self.latest.saturating_sub(least));
        Duration::from_micros(u64::try_from(waited).unwrap_or(0))
    }

    /// What packets take beyond the least of the last ten seconds, smoothed; zero before a sample.
    pub fn queue(&self, now: Time) -> Duration {
        let queue = self.min_us(now).zip(self.smoothed).map_or(0, |(least, smoothed)| smoothed.saturating_sub(least));
        Duration::from_micros(u64::try_from(queue).unwrap_or(0))
    }

    /// The least delay of the last ten seconds, µs.
    pub fn min_us(&self, now: Time) -> Option<i64> {
        self.min.min(now)
    }

    /// The least delay of the last two seconds, µs: a queue that stands shows in it, a burst does not.
    pub fn floor_us(&self, now: Time) -> Option<i64> {
        self.floor.min(now)
    }

    /// The largest delay of the last second, µs.
    pub fn max_us(&self, now: Time) -> Option<i64> {
        self.max.min(now).map(|negated| -negated)
    }

    /// The mean deviation, µs; zero before a second sample.
    pub fn jitter_us(&self) -> i64 {
        self.jitter
    }

    /// How much longer this path takes than `other`, smoothed, µs; zero while either is unknown.
    pub fn delay_above(&self, other: &OneWayDelay) -> i64 {
        match (self.smoothed, other.smoothed) {
            (Some(this), Some(other)) => this - other,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Samples of (our clock in ms, delay in µs) to a peer whose clock is ahead by `offset_us`.
    fn path(offset_us: i64, samples: impl IntoIterator<Item = (u64, i64)>) -> OneWayDelay {
        let mut path = OneWayDelay::new();
        for (ms, delay) in samples {
            let received = (ms * 1_000).checked_add_signed(offset_us + delay).expect("in range");
            path.on_sample(at(ms), ms * 1_000, received);
        }
        path
    }

    #[test]
    fn a_stall_is_forgotten_as_fast_as_its_queue_drains() {
        let mut path = OneWayDelay::new();
        (0..10).for_each(|second| path.on_sample(at(second * 1_000), second * 1_000_000, second * 1_000_000 + 20_000));
        path.on_sample(at(12_000), 11_000_000, 12_000_000);
        assert!(path.smoothed_us().is_some_and(|delay| delay > 100_000), "{path:?}");
        path.on_sample(at(13_000), 13_000_000, 13_020_000);
        assert_eq!(path.smoothed_us(), Some(20_000), "a second later, a second has drained");
    }

    #[test]
    fn a_queue_drains_while_nobody_looks() {
        let mut path = OneWayDelay::new();
        path.on_sample(at(0), 0, 40_000);
        (1..100).for_each(|ms| path.on_sample(at(ms), 0, 140_000));
        let smoothed = path.smoothed_us().expect("samples");
        assert_eq!(path.expected_us(at(99), 40_000), Some(smoothed));
        assert_eq!(path.expected_us(at(109), 40_000), Some(smoothed - 10_000));
        assert_eq!(path.expected_us(at(900), 40_000), Some(40_000));
    }

    #[test]
    fn the_difference_of_two_paths_is_exact_whatever_the_clocks() {
        for offset in [0, 77_000_000_000, -900_000] {
            let steady = |delay| path(offset, (1_000..1_100).map(|ms| (ms, delay)));
            let (fast, slow) = (steady(10_000), steady(40_000));
            assert_eq!(slow.delay_above(&fast), 30_000);
            assert_eq!(fast.delay_above(&slow), -30_000);
            assert_eq!(fast.delay_above(&OneWayDelay::new()), 0);
        }
    }

    #[test]
    fn the_least_lasts_ten_seconds_and_the_largest_one() {
        let mut samples: Vec<_> = (0..100).map(|i| (i * 10, 20_000)).collect();
        samples[10].1 = 5_000;
        samples[20].1 = 90_000;
        let path = path(0, samples);
        assert_eq!(path.min_us(at(1_000)), Some(5_000));
        assert_eq!(path.max_us(at(1_000)), Some(90_000));
        assert_eq!(path.max_us(at(1_500)), Some(20_000));
        assert_eq!(path.min_us(at(9_000)), Some(5_000));
        assert_eq!(path.min_us(at(10_100)), None, "all in the first second");
    }

    #[test]
    fn jitter_is_the_mean_deviation() {
        let steady = path(0, (0..200).map(|i| (i, 20_000)));
        assert_eq!(steady.jitter_us(), 0);
        let jumping = path(0, (0..200).map(|i| (i, if i % 2 == 0 { 10_000 } else { 30_000 })));
        assert!((9_000..12_000).contains(&jumping.jitter_us()), "{}", jumping.jitter_us());
    }

    #[test]
    fn a_peer_that_lies_about_its_clock_does_no_harm() {
        let mut path = OneWayDelay::new();
        for received in [0, u64::MAX, 0, u64::MAX, 1 << 62] {
            path.on_sample(at(1), 5, received);
            path.on_sample(at(1), u64::MAX, received);
        }
        let smoothed = path.smoothed_us().expect("sampled");
        assert!(smoothed.abs() <= BOUND_US);
        assert_eq!(path.max_us(at(1)), Some(BOUND_US));
    }
}
