//! Where a path begins whose rate is not known, by a link that is known to have carried something to another place.
//!
//! *Principle*: the bottleneck is mostly the access link, which both ways share; but the other way may be narrower, or
//! busy. So it begins at half of what was carried, paced over a round trip, and only where the round trip does not say
//! that the ways are quite different: no less than half of what it was, and no more than ten times
//! (draft-ietf-tsvwg-careful-resume, its Reconnaissance and Unvalidated Phases; it resumes between the same two ends,
//! where here the far one is another, behind the same link). The controller then goes on as in its startup: what is not
//! delivered never enters its model, so that a start too fast costs one round trip's losses.

use crate::units::Rate;
use std::time::Duration;

/// The part of the carried rate that is begun at.
const PART: f64 = 0.5;
/// A round trip shorter than the one measured, by more than this, is another way's.
const SHORTER: u32 = 2;
/// The same of a longer one.
const LONGER: u32 = 10;

/// The rate to begin at; none where the ways differ too much. `carried`: what the link delivered, with this least round
/// trip; `now`: the new path's round trip.
pub fn careful_start(carried: Rate, round_trip: Duration, now: Duration) -> Option<Rate> {
    let alike = now * SHORTER >= round_trip && now <= round_trip * LONGER;
    alike.then(|| carried.scale(PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_was_carried_where_the_ways_are_alike() {
        let ms = Duration::from_millis;
        for (before, now, start) in [(40, 20, true), (40, 19, false), (40, 400, true), (40, 401, false), (40, 40, true)]
        {
            let rate = careful_start(Rate(1_000_000), ms(before), ms(now));
            assert_eq!(rate, start.then_some(Rate(500_000)), "{before} ms, then {now} ms");
        }
    }
}
