//! Round-trip times of one path (or of one pair of data path and ack path), as RFC 9002 section 5.

use super::constants::{GRANULARITY, MAX_ACK_DELAY, MIN_WINDOW};
use super::windowed::WindowedMin;
use crate::congestion::RttSnapshot;
use crate::units::Time;
use std::time::Duration;

/// Smoothed round trip, its deviation and its least over ten seconds. Before the first sample it
/// stands for the initial guess, with half of it as deviation. One path owns it.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    snapshot: RttSnapshot,
    min: WindowedMin,
    has_sample: bool,
}

impl RttEstimator {
    /// Starts from a guess (RFC 9002 section 5.3).
    pub fn new(initial: Duration) -> Self {
        RttEstimator {
            snapshot: RttSnapshot { latest: initial, smoothed: initial, variance: initial / 2, min: initial },
            min: WindowedMin::new(MIN_WINDOW),
            has_sample: false,
        }
    }

    /// Takes in the round trip `latest` of the largest newly acknowledged packet, whose
    /// acknowledgement the peer says it held back for `ack_delay` (believed up to [`MAX_ACK_DELAY`]).
    pub fn on_sample(&mut self, now: Time, latest: Duration, ack_delay: Duration) {
        let nanos = i64::try_from(latest.as_nanos()).unwrap_or(i64::MAX);
        let min = Duration::from_nanos(self.min.record(now, nanos).unsigned_abs());
        self.snapshot.latest = latest;
        self.snapshot.min = min;
        if !self.has_sample {
            self.has_sample = true;
            self.snapshot.smoothed = latest;
            self.snapshot.variance = latest / 2;
            return;
        }
        let ack_delay = ack_delay.min(MAX_ACK_DELAY);
        // A delay that would put the sample under the least is not the path's (section 5.3).
        let adjusted = if latest >= min + ack_delay { latest - ack_delay } else { latest };
        let deviation = self.snapshot.smoothed.abs_diff(adjusted);
        self.snapshot.variance = (self.snapshot.variance * 3 + deviation) / 4;
        self.snapshot.smoothed = (self.snapshot.smoothed * 7 + adjusted) / 8;
    }

    /// What a controller sees.
    pub fn snapshot(&self) -> RttSnapshot {
        self.snapshot
    }

    /// How long after a packet its acknowledgement is overdue (RFC 9002 section 6.2.1).
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.snapshot.smoothed + (self.snapshot.variance * 4).max(GRANULARITY) + max_ack_delay
    }

    /// Whether anything was measured yet.
    pub fn has_sample(&self) -> bool {
        self.has_sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::constants::INITIAL_RTT;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn sampled(samples: &[(u64, u64, u64)]) -> RttEstimator {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        for &(now, latest, delay) in samples {
            rtt.on_sample(Time::ZERO + ms(now), ms(latest), ms(delay));
        }
        rtt
    }

    #[test]
    fn before_a_sample_the_guess_stands() {
        let rtt = RttEstimator::new(ms(100));
        assert!(!rtt.has_sample());
        assert_eq!(rtt.snapshot().smoothed, ms(100));
        assert_eq!(rtt.pto(ms(5)), ms(100 + 200 + 5));
    }

    #[test]
    fn the_first_sample_replaces_the_guess() {
        let rtt = sampled(&[(0, 20, 5)]);
        assert!(rtt.has_sample());
        let seen = rtt.snapshot();
        assert_eq!((seen.latest, seen.smoothed, seen.variance, seen.min), (ms(20), ms(20), ms(10), ms(20)));
    }

    #[test]
    fn a_believable_ack_delay_is_taken_off() {
        // smoothed 20; sample 28 less 4: 24, so 20 + 4/8; variance (30 + 4) / 4.
        let rtt = sampled(&[(0, 20, 0), (20, 28, 4)]);
        assert_eq!(rtt.snapshot().smoothed, Duration::from_micros(20_500));
        assert_eq!(rtt.snapshot().variance, Duration::from_micros(8_500));
    }

    #[test]
    fn an_ack_delay_that_undercuts_the_least_is_ignored() {
        let rtt = sampled(&[(0, 20, 0), (20, 20, 4)]);
        assert_eq!(rtt.snapshot().smoothed, ms(20));
    }

    #[test]
    fn a_lying_ack_delay_takes_off_no_more_than_the_largest() {
        let rtt = sampled(&[(0, 20, 0), (20, 100, 1_000_000)]);
        let expected = (ms(20) * 7 + (ms(100) - MAX_ACK_DELAY)) / 8;
        assert_eq!(rtt.snapshot().smoothed, expected);
    }

    #[test]
    fn the_least_forgets_a_faster_past() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        for second in 1..30 {
            rtt.on_sample(Time::ZERO + ms(second * 1000), ms(80), ms(0));
        }
        assert_eq!(rtt.snapshot().min, ms(80));
    }

    #[test]
    fn a_steady_path_still_has_a_millisecond_of_slack() {
        let samples: Vec<_> = (0..200).map(|i| (i * 10, 10, 0)).collect();
        assert_eq!(sampled(&samples).pto(ms(0)), ms(11));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        let ages = Duration::from_nanos(u64::MAX);
        rtt.on_sample(Time::NEVER, ages, ages);
        rtt.on_sample(Time::NEVER, ages, ages);
        assert!(rtt.pto(ages) > ages);
    }
}
