//! Whether a path's rate is still to be found out.
//!
//! ```text
//!                    bulk fed              bandwidth stopped growing, or LONGEST
//!     UNKNOWN ---------------> SEARCHING ------------------------------------> KNOWN
//!        ^                                                                       |
//!        +------------- bulk flows left it out for LEFT_OUT ---------------------+
//! ```
//!
//! The search needs traffic: bulk flows' own where the path's delay costs them little, copies of
//! what another path carries where it would cost them much (`chosen`). Bandwidth that stopped
//! growing is the test by which BBR leaves its startup (draft-ietf-ccwg-bbr section 5.3.1.2).

use crate::congestion::AckEvent;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Growth that counts as such, per round.
const GROWTH: f64 = 1.25;
/// A queue on top of half a round trip that ends the search after one round without growth.
const QUEUE_FLOOR: Duration = Duration::from_millis(5);
/// Rounds without growth that end the search.
const ROUNDS: u32 = 3;
/// The longest that a path is fed for its rate's sake.
const LONGEST: Duration = Duration::from_secs(3);
/// A path left out for so long is tried again: what it can may have changed. Each time that this
/// was in vain the next wait is twice as long, because trying costs bytes: the first and the last.
const LEFT_OUT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(160));
/// A path that bulk flows use for so long is of use; shorter, and the choice wavers.
const IN_USE: Duration = Duration::from_secs(1);

/// A path's search for its rate. Unknown at first; one path owns it.
#[derive(Clone, Debug, Default)]
pub struct Exploration {
    best: Rate,
    rounds: u32,
    round_ends: ByteCount,
    /// When the search is over, once it has begun.
    ends: Option<Time>,
    /// Since when the rate is known; none while it is not.
    known: Option<Time>,
    /// Since when bulk flows do not use the path; none while they do.
    left_out: Option<Time>,
    /// Since when they do; none while they do not.
    in_use: Option<Time>,
    /// How often it was tried again since it was last of use.
    tries: u32,
}

impl Exploration {
    /// Nothing is known (any more).
    pub fn begin(&mut self) {
        *self = Exploration { tries: self.tries, ..Exploration::default() };
    }

    /// Whether the path asks to be fed for its rate's sake.
    pub fn is_on(&self) -> bool {
        self.known.is_none()
    }

    /// Whether a packet sent then says something of the path, and not of the search.
    pub fn was_over(&self, sent_at: Time) -> bool {
        self.known.is_some_and(|known| sent_at >= known)
    }

    /// Bulk was sent on the path, or a copy of it.
    pub fn on_fed(&mut self, now: Time) {
        let ends = *self.ends.get_or_insert(now + LONGEST);
        if now >= ends {
            self.known.get_or_insert(now);
        }
    }

    /// Takes an acknowledgement, and what the controller believes since; one that is `ramping` would
    /// still fill the path's queue with whatever it is given.
    pub fn on_ack(&mut self, ack: &AckEvent, bandwidth: Option<Rate>, ramping: bool) {
        let Some(sample) = ack.rate.filter(|sample| self.is_on() && sample.prior_delivered >= self.round_ends) else {
            return;
        };
        self.round_ends = ack.delivered;
        // A queue of our own shows that the path carries no more, also when the sender is limited by it.
        let empty = ack.rtt.base();
        let queued = ack.round_trip.is_some_and(|took| took > empty + empty / 2 + QUEUE_FLOOR);
        let judged = !sample.app_limited || queued;
        let Some(bandwidth) = bandwidth.filter(|_| judged && self.ends.is_some()) else { return };
        if bandwidth.0 as f64 >= self.best.0 as f64 * GROWTH {
            self.best = bandwidth;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
        if !ramping && (self.rounds >= ROUNDS || queued && self.rounds > 0) {
            self.known = Some(ack.now);
        }
    }

    /// Bulk flows use the path now, or do not. True when it is time to begin anew.
    pub fn on_choice(&mut self, now: Time, chosen: bool) -> bool {
        if chosen || self.is_on() {
            let since = *self.in_use.get_or_insert(now);
            if !self.is_on() && now.since(since) >= IN_USE {
                self.left_out = None;
                self.tries = 0;
            }
            return false;
        }
        self.in_use = None;
        let since = *self.left_out.get_or_insert(now);
        let wait = LEFT_OUT.0.saturating_mul(1 << self.tries.min(16)).min(LEFT_OUT.1);
        let due = now.since(since) >= wait;
        self.tries += u32::from(due);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{RateSample, RttSnapshot};

    const START: Time = Time::from_nanos(1_000_000_000);

    fn ack(delivered: u64, app_limited: bool) -> AckEvent {
        let rtt = Duration::from_millis(20);
        let sample = RateSample {
            rate: Rate(0),
            app_limited,
            prior_delivered: ByteCount(delivered - 1_000),
            delivered: ByteCount(1_000),
            lost: ByteCount::ZERO,
            tx_in_flight: ByteCount(1_000),
            interval: rtt,
        };
        AckEvent {
            now: START,
            acked: ByteCount(1_000),
            largest_sent_at: START,
            prior_in_flight: ByteCount(1_000),
            in_flight: ByteCount::ZERO,
            delivered: ByteCount(delivered),
            rtt: RttSnapshot { latest: rtt, smoothed: rtt, variance: rtt, min: rtt, spread: Duration::ZERO },
            round_trip: Some(rtt),
            rate: Some(sample),
            app_limited,
        }
    }

    /// One round a call, at these rates; the round that ended the search, if one did.
    fn ends_in_round(exploration: &mut Exploration, rates: &[u64], limited: bool) -> Option<usize> {
        let round = |(at, rate): (usize, &u64)| {
            exploration.on_ack(&ack((at as u64 + 1) * 1_000, limited), Some(Rate(*rate)), false);
            (!exploration.is_on()).then_some(at)
        };
        rates.iter().enumerate().find_map(round)
    }

    #[test]
    fn the_search_ends_when_the_rate_has_stopped_growing() {
        let mut exploration = Exploration::default();
        exploration.on_fed(START);
        assert_eq!(ends_in_round(&mut exploration, &[10, 20, 40, 41, 42, 43], false), Some(5));
        assert!(!exploration.is_on());
    }

    #[test]
    fn what_was_not_fed_or_had_too_little_to_send_finds_nothing_out() {
        let mut exploration = Exploration::default();
        assert_eq!(ends_in_round(&mut exploration, &[10; 8], false), None);
        exploration.on_fed(START);
        assert_eq!(ends_in_round(&mut exploration, &[10; 8], true), None);
        assert!(exploration.is_on());
        exploration.on_fed(START + LONGEST);
        assert!(!exploration.is_on());
    }

    #[test]
    fn a_path_left_out_is_tried_again_ever_more_seldom() {
        let mut exploration = Exploration::default();
        let mut tried = Vec::new();
        for second in 0..60 {
            let now = START + Duration::from_secs(second);
            exploration.on_fed(now);
            exploration.on_fed(now + LONGEST);
            if exploration.on_choice(now, false) {
                exploration.begin();
                tried.push(second);
            }
        }
        assert_eq!(tried, [5, 16, 37]);
    }
}
