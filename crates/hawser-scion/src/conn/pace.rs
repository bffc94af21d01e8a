//! How fast a sender may send: a rate, kept by waiting between batches.

use std::time::{Duration, Instant};

/// What is sent at once at most, as time at the rate: longer than a timer's slack (about 60 µs), shorter
/// than a receive buffer (25 ms at 1 Gbit/s).
const BURST: Duration = Duration::from_millis(1);

/// Bits a second, counted from the SCION header on. Plain data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace(u64);

impl Pace {
    /// A pace of this many bits a second; at least one.
    pub const fn bits_per_second(bits: u64) -> Pace {
        Pace(if bits == 0 { 1 } else { bits })
    }

    /// Bytes that may go at once.
    pub(super) fn burst_bytes(self) -> usize {
        usize::try_from(u128::from(self.0) * BURST.as_nanos() / 8_000_000_000).unwrap_or(usize::MAX)
    }

    /// The time that bytes take.
    fn time_of(self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Keeps a pace. Begins with a burst's room. For one thread.
#[derive(Debug)]
pub(super) struct Pacer {
    pace: Pace,
    /// When all that was sent would have gone at the pace.
    done: Instant,
}

impl Pacer {
    pub(super) fn new(pace: Pace, now: Instant) -> Pacer {
        Pacer { pace, done: now }
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// How long to wait before anything more may go.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.done.saturating_duration_since(now)
    }

    /// Notes bytes that go now. Time in which nothing was sent is made up for by a burst at most.
    pub(super) fn sent(&mut self, bytes: usize, now: Instant) {
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        self.done = self.done.max(earliest) + self.pace.time_of(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_bytes_takes_a_second_however_the_waits_turn_out() {
        let began = Instant::now();
        let pace = Pace::bits_per_second(80_000_000);
        assert_eq!(pace.burst_bytes(), 10_000);
        for oversleep in [Duration::ZERO, Duration::from_micros(900)] {
            let (mut pacer, mut now) = (Pacer::new(pace, began), began);
            for _ in 0..1000 {
                pacer.sent(10_000, now);
                let wait = pacer.wait(now);
                if !wait.is_zero() {
                    now += wait + oversleep;
                }
            }
            let took = (now - began).as_secs_f64();
            assert!((0.99..1.01).contains(&took), "{took} with {oversleep:?}");
        }
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let began = Instant::now();
        let mut pacer = Pacer::new(Pace::bits_per_second(8_000_000), began);
        let later = began + Duration::from_secs(10);
        pacer.sent(1000, later);
        assert_eq!(pacer.wait(later), Duration::ZERO, "a burst goes at once");
        pacer.sent(1000, later);
        assert_eq!(pacer.wait(later), Duration::from_millis(1));
    }
}
