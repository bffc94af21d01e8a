//! Whether a path's rate is still to be found out.
//!
//! ```text
//!                    bulk fed              bandwidth stopped growing, or `longest`
//!     UNKNOWN ---------------> PROBING --------------------------------------> KNOWN
//!        ^                                                                       |
//!        +------------- bulk flows left it out (`retry`), or it moved -----------+
//! ```
//!
//! *Principle*: a rate that nobody knows is found out before it is judged. Probing needs traffic: bulk flows' own where
//! the path's delay costs them little, redundant copies of what another path carries where it would cost them much
//! (`active_set`). Bandwidth that stopped growing is the test by which BBR leaves its startup (draft-ietf-ccwg-bbr
//! section 5.3.1.2).

use super::tuning;
use crate::congestion::AckEvent;
use crate::units::{ByteCount, Rate, Time};

/// What is known of a path's rate. Unknown at first; one path owns it.
#[derive(Clone, Debug, Default)]
pub struct Probing {
    tuning: tuning::Probing,
    best: Rate,
    rounds: u32,
    round_ends: ByteCount,
    /// When it is over, once it has begun.
    ends: Option<Time>,
    /// Since when the rate is known; none while it is not.
    known: Option<Time>,
}

impl Probing {
    /// Nothing is known.
    pub fn new(tuning: tuning::Probing) -> Probing {
        Probing { tuning, ..Probing::default() }
    }

    /// Nothing is known any more.
    pub fn begin(&mut self) {
        *self = Probing::new(self.tuning);
    }

    /// The rate is known without a probe.
    pub fn skip(&mut self, now: Time) {
        self.known.get_or_insert(now);
    }

    /// Whether the path asks to be fed for its rate's sake.
    pub fn is_on(&self) -> bool {
        self.known.is_none()
    }

    /// Whether a packet sent then says something of the path, and not of the probing.
    pub fn was_over(&self, sent_at: Time) -> bool {
        self.known.is_some_and(|known| sent_at >= known)
    }

    /// Bulk was sent on the path, or a copy of it.
    pub fn on_fed(&mut self, now: Time) {
        let ends = *self.ends.get_or_insert(now + self.tuning.longest);
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
        let queued = ack.round_trip.is_some_and(|took| took > empty + empty / 2 + self.tuning.queue);
        let judged = !sample.app_limited || queued;
        let Some(bandwidth) = bandwidth.filter(|_| judged && self.ends.is_some()) else { return };
        if bandwidth.0 as f64 >= self.best.0 as f64 * self.tuning.growth {
            self.best = bandwidth;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
        if !ramping && (self.rounds >= self.tuning.rounds || queued && self.rounds > 0) {
            self.known = Some(ack.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Law, Tuning};
    use super::*;
    use crate::congestion::{RateSample, RttSnapshot};
    use std::time::Duration;

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
            received_at: Time::ZERO,
            rate: Some(sample),
            app_limited,
        }
    }

    /// One round a call, at these rates; the round that ended it, if one did.
    fn ends_in_round(probing: &mut Probing, rates: &[u64], limited: bool) -> Option<usize> {
        let round = |(at, rate): (usize, &u64)| {
            probing.on_ack(&ack((at as u64 + 1) * 1_000, limited), Some(Rate(*rate)), false);
            (!probing.is_on()).then_some(at)
        };
        rates.iter().enumerate().find_map(round)
    }

    #[test]
    fn probing_ends_when_the_rate_has_stopped_growing() {
        let mut probing = Probing::default();
        probing.on_fed(START);
        assert_eq!(ends_in_round(&mut probing, &[10, 20, 40, 41, 42, 43], false), Some(5));
        assert!(!probing.is_on());
    }

    #[test]
    fn what_was_not_fed_or_had_too_little_to_send_finds_nothing_out() {
        let mut probing = Probing::default();
        assert_eq!(ends_in_round(&mut probing, &[10; 8], false), None);
        probing.on_fed(START);
        assert_eq!(ends_in_round(&mut probing, &[10; 8], true), None);
        assert!(probing.is_on());
        probing.on_fed(START + tuning::Probing::default().longest);
        assert!(!probing.is_on());
    }

    #[test]
    fn without_its_law_a_rate_counts_as_known_from_the_first_packet() {
        let mut probing = Probing::new(Tuning::neutral(Law::named("probing").expect("a law")).probing);
        assert!(probing.is_on());
        probing.on_fed(START);
        assert!(!probing.is_on() && probing.was_over(START));
        probing.begin();
        probing.on_fed(START);
        assert!(!probing.is_on(), "nor when it begins anew");
    }

    #[test]
    fn a_queue_of_our_own_ends_probing_after_one_round_without_growth() {
        let mut probing = Probing::default();
        probing.on_fed(START);
        let rates = [10, 20, 20, 20];
        let queued =
            |at: usize| AckEvent { round_trip: Some(Duration::from_millis(36)), ..ack((at as u64 + 1) * 1_000, true) };
        let ended = rates.iter().enumerate().find_map(|(at, rate)| {
            probing.on_ack(&queued(at), Some(Rate(*rate)), false);
            (!probing.is_on()).then_some(at)
        });
        assert_eq!(ended, Some(2), "20 ms without a queue");
    }
}
