//! When a tier is left: which paths may carry inner packets at all.
//!
//! *Principle*: a path of a higher metric carries traffic only while none of a lower one works (as routing metrics do).
//! A suspect path may be late and nothing worse, so its tier counts as working until the probe that was sent could have
//! been answered.

use super::tuning::Tier as Tuning;
use crate::units::Time;
use std::time::Duration;

/// Until when the tier of a path that is suspect `since` then, and has this smoothed round trip, is not left.
pub fn doubted_until(tuning: &Tuning, since: Time, round_trip: Duration) -> Time {
    since + round_trip * tuning.doubt_rounds + tuning.doubt
}

/// The tier that carries inner packets, of those that work or may: the lowest.
pub fn present(works: impl Iterator<Item = u16>) -> Option<u16> {
    works.min()
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::*;

    #[test]
    fn a_tier_is_left_when_the_answer_to_a_probe_is_overdue() {
        let (since, trip) = (Time::ZERO + Duration::from_secs(1), Duration::from_millis(40));
        assert_eq!(doubted_until(&Tuning::default(), since, trip), since + Duration::from_millis(55));
        let neutral = super::super::Tuning::neutral(Law::named("doubt").expect("a law")).tier;
        assert_eq!(doubted_until(&neutral, since, trip), since);
    }

    #[test]
    fn the_lowest_tier_that_works_carries() {
        assert_eq!(present([2, 1, 7].into_iter()), Some(1));
        assert_eq!(present([].into_iter()), None);
    }
}
