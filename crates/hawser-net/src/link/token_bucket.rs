//! A token bucket: so that strangers' events cost no more than a rate.

use std::time::{Duration, Instant};

/// The rate of a [`TokenBucket`] and its depth. Plain data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The time for a token to come back.
    pub(super) interval: Duration,
    /// Tokens in a full bucket.
    pub(super) burst: u32,
}

/// A bucket kept as a virtual time: when it would be full again. Full at first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TokenBucket {
    full_at: Option<Instant>,
}

impl TokenBucket {
    /// Takes a token; false where there is none, and nothing is taken.
    pub(super) fn take(&mut self, pace: Pace, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |at| at.max(now)) + pace.interval;
        let taken = full_at.duration_since(now) <= pace.interval * pace.burst;
        if taken {
            self.full_at = Some(full_at);
        }
        taken
    }

    /// Whether it is full: there is nothing to remember of it.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate() {
        let pace = Pace { interval: Duration::from_millis(20), burst: 5 };
        let (mut bucket, mut now) = (TokenBucket::default(), Instant::now());
        assert_eq!((0..10).filter(|_| bucket.take(pace, now)).count(), 5);
        for _ in 0..10 {
            now += pace.interval;
            assert_eq!((0..3).filter(|_| bucket.take(pace, now)).count(), 1);
        }
        assert!(!bucket.is_full(now));
        now += Duration::from_secs(3_600);
        assert!(bucket.is_full(now));
        assert_eq!((0..10).filter(|_| bucket.take(pace, now)).count(), 5);
    }
}
