//! Round trips and the retransmission timeout (RFC 6298), with Linux's floor under the variance.

use std::time::Duration;

/// The least variance that counts, so the least timeout beyond a round trip (Linux's `TCP_RTO_MIN`).
const RTO_MIN: Duration = Duration::from_millis(200);
/// The longest timeout (Linux's `TCP_RTO_MAX`).
const RTO_MAX: Duration = Duration::from_secs(120);
/// Before the first sample (RFC 6298 section 2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);

/// The round trip's estimate. Nothing is known at first; its sender owns it.
#[derive(Clone, Debug)]
pub struct Rtt {
    /// Smoothed; `None` before the first sample.
    pub smoothed: Option<Duration>,
    /// The least so far.
    pub least: Option<Duration>,
    mean_deviation: Duration,
    /// The largest deviation of this round trip.
    deviation_max: Duration,
    variance: Duration,
    /// This round trip ends when this many bytes are acknowledged.
    round_end: u64,
    backoff: u32,
}

impl Default for Rtt {
    fn default() -> Self {
        Rtt {
            smoothed: None,
            least: None,
            mean_deviation: Duration::ZERO,
            deviation_max: RTO_MIN,
            variance: RTO_MIN,
            round_end: 0,
            backoff: 0,
        }
    }
}

impl Rtt {
    /// A sample; `una` is acknowledged and `nxt` sent.
    pub fn on_sample(&mut self, sample: Duration, una: u64, nxt: u64) {
        self.backoff = 0;
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.mean_deviation, self.round_end) = (Some(sample), sample / 2, nxt);
            self.variance = (sample * 2).max(RTO_MIN);
            self.deviation_max = self.variance;
            return;
        };
        let error = sample.abs_diff(smoothed);
        self.smoothed = Some((smoothed * 7 + sample) / 8);
        // A sample that is less than expected by more than the deviation hardly counts, as in Linux.
        let damped = if sample < smoothed && error > self.mean_deviation / 4 { 32 } else { 4 };
        self.mean_deviation = self.mean_deviation - self.mean_deviation / damped + error / damped;
        let deviation = self.mean_deviation * 4;
        if deviation > self.deviation_max {
            self.deviation_max = deviation;
            self.variance = self.variance.max(deviation);
        }
        if una > self.round_end {
            if self.deviation_max < self.variance {
                self.variance -= (self.variance - self.deviation_max) / 4;
            }
            (self.round_end, self.deviation_max) = (nxt, RTO_MIN);
        }
    }

    /// A round trip of the newest packet that was acknowledged.
    pub fn on_newest(&mut self, sample: Duration) {
        let sample = sample.max(Duration::from_micros(1));
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
    }

    /// The timeout passed: the next one is twice as long.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// The retransmission timeout.
    pub fn timeout(&self) -> Duration {
        let base = self.smoothed.map_or(RTO_INITIAL, |smoothed| smoothed + self.variance);
        base.saturating_mul(1 << self.backoff.min(16)).min(RTO_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_a_round_trip_and_at_least_200_ms() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), Duration::from_secs(1));
        (0..100).for_each(|i| rtt.on_sample(Duration::from_millis(40), i * 10, i * 10 + 10));
        assert_eq!(rtt.timeout(), Duration::from_millis(240));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(), Duration::from_millis(960));
        rtt.on_sample(Duration::from_millis(40), 2_000, 2_010);
        assert_eq!(rtt.timeout(), Duration::from_millis(240), "a sample ends the backoff");
    }

    #[test]
    fn it_follows_a_round_trip_that_grows_and_varies() {
        let mut rtt = Rtt::default();
        (0..100).for_each(|i| rtt.on_sample(Duration::from_millis(40), i * 10, i * 10 + 10));
        rtt.on_sample(Duration::from_millis(1_040), 2_000, 2_010);
        assert!(rtt.timeout() > Duration::from_millis(1_000), "{:?}", rtt.timeout());
    }
}
