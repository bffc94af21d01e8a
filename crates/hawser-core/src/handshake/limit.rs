//! How many initiations a second are worth a Diffie-Hellman exchange.

use std::time::Duration;

use crate::units::Time;

/// A token bucket kept as a virtual time: when the bucket would be full again. Full at first;
/// exclusive.
#[derive(Copy, Clone, Debug)]
pub(super) struct Limit {
    full_at: Time,
}

/// The rate of a [`Limit`] and its depth. No zero value; a plain value.
#[derive(Copy, Clone, Debug)]
pub(super) struct Allowance {
    /// Time for a token to come back.
    pub interval: Duration,
    /// Tokens that a full bucket holds.
    pub burst: u32,
}

impl Limit {
    /// A full bucket.
    pub(super) const FULL: Limit = Limit { full_at: Time::ZERO };

    /// Takes a token; false where there is none, and nothing is taken.
    pub(super) fn take(&mut self, now: Time, allowance: Allowance) -> bool {
        let full_at = self.full_at.max(now) + allowance.interval;
        if full_at.since(now) > allowance.interval * allowance.burst {
            return false;
        }
        self.full_at = full_at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate() {
        let allowance = Allowance { interval: Duration::from_millis(20), burst: 5 };
        let mut limit = Limit::FULL;
        let mut now = Time::from_nanos(1_000_000_000);
        assert_eq!((0..10).filter(|_| limit.take(now, allowance)).count(), 5);
        for _ in 0..10 {
            now = now + allowance.interval;
            assert_eq!((0..3).filter(|_| limit.take(now, allowance)).count(), 1);
        }
        now = now + Duration::from_secs(3600);
        assert_eq!((0..10).filter(|_| limit.take(now, allowance)).count(), 5);
    }
}
