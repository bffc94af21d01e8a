//! Where a path begins whose rate is not known, by a link that is known to have carried something to another place.
//!
//! *Principle*: the bottleneck is mostly the access link, which both ways share; but the other way may be narrower, or
//! busy. So it begins at half of what was carried, paced over a round trip, and only where the round trip does not say
//! that the ways are quite different: no less than half of what it was, and no more than ten times
//! (draft-ietf-tsvwg-careful-resume, its Reconnaissance and Unvalidated Phases; it resumes between the same two ends,
//! where here the far one is another, behind the same link). The controller then goes on as in its startup: what is not
//! delivered never enters its model, so that a start too fast costs one round trip's losses.
//!
//! In a planned move the other place still answers, and what its link carries ends there as it begins here: the rate is
//! known, and nothing is to be found out. But what waits there goes first: until it has come, only sparse flows go by the
//! new path, and the other place leaves room for them. Two senders at the whole rate, or a startup, would fill the link's
//! queue.

use crate::congestion::{FULL_PIPE_GROWTH, HEADROOM};
use crate::units::{Rate, Start};
use std::time::Duration;

/// The part of the carried rate that is begun at.
const PART: f64 = 0.5;
/// A round trip shorter than the one measured, by more than this, is another way's.
const SHORTER: u32 = 2;
/// The same of a longer one.
const LONGER: u32 = 10;

/// How long bulk flows wait beside the other place's packets at most, which is until it is let go (`hawser_hub::pair`,
/// LINGER): where they waited for 600 ms two sent at once in some cases, and of a hundred drains pings were late by 35
/// to 114 ms in four. So long sparse flows go by two paths: the new session does not know which link has how much of
/// what waits (docs/results/hub-drain.json, `9100-wait-20` and `9100-final-20`).
pub const BESIDE: Duration = Duration::from_secs(1);

/// How much longer nothing is overdue then: what waits there is ahead of what the new path's packets wait for, and no
/// sample of it has seen that. As much as a path's controller keeps waiting at most (`bbr/follow.rs`, QUEUE_MAX).
pub const AHEAD: Duration = Duration::from_millis(100);

/// The rate to begin at; none where the ways differ too much. `carried`: what the link delivered, with this least round
/// trip; `now`: the new path's round trip.
pub fn careful_start(start: Start, carried: Rate, round_trip: Duration, now: Duration) -> Option<Rate> {
    let alike = now * SHORTER >= round_trip && now <= round_trip * LONGER;
    let part = if start == Start::Careful { PART } else { 1.0 };
    alike.then(|| carried.scale(part))
}

/// Whether a link that took `taken` of late, and is known to carry `known`, was filled: within what BBR takes for a full
/// pipe (draft-ietf-ccwg-bbr section 5.3.1.2).
pub fn fills(taken: Rate, known: Rate) -> bool {
    taken.scale(FULL_PIPE_GROWTH) >= known
}

/// How fast the other place sends meanwhile, by a link that takes `rate` and carries `sparse` from the new place beside:
/// what is left of it, less what BBR leaves to others, so that queues that are there drain; but half at least.
pub fn pace_beside(rate: Rate, sparse: Rate) -> Rate {
    Rate(rate.scale(1.0 - HEADROOM).0.saturating_sub(sparse.0)).max(rate.scale(PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_who_comes_is_at_most_half_of_the_link() {
        for (rate, sparse, paced) in [(1_000, 0, 850), (1_000, 300, 550), (1_000, 400, 500), (0, 400, 0)] {
            assert_eq!(pace_beside(Rate(rate), Rate(sparse)), Rate(paced), "{rate} beside {sparse}");
        }
    }

    #[test]
    fn a_link_was_filled_that_took_four_fifths_of_what_it_is_known_to_carry() {
        for (taken, known, filled) in [(799, 1_000, false), (800, 1_000, true), (2_000, 1_000, true)] {
            assert_eq!(fills(Rate(taken), Rate(known)), filled, "{taken} of {known}");
        }
    }

    #[test]
    fn half_of_what_was_carried_or_what_is_where_the_ways_are_alike() {
        let ms = Duration::from_millis;
        for (before, now, begins) in
            [(40, 20, true), (40, 19, false), (40, 400, true), (40, 401, false), (40, 40, true)]
        {
            for (start, most) in [(Start::Careful, 500_000), (Start::Beside, 1_000_000), (Start::Known, 1_000_000)] {
                let rate = careful_start(start, Rate(1_000_000), ms(before), ms(now));
                assert_eq!(rate, begins.then_some(Rate(most)), "{start:?}, {before} ms, then {now} ms");
            }
        }
    }
}
