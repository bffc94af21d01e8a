//! Whether a path's rate is still to be found out.
//!
//! A path that just became active, or was left out for long, is fed by bulk flows until its
//! controller's bandwidth has stopped growing (the test by which BBR leaves its startup,
//! draft-ietf-ccwg-bbr section 5.3.1.2), or for at most `LONGEST`.

use crate::congestion::AckEvent;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Growth that counts as such, per round.
const GROWTH: f64 = 1.25;
/// Rounds without growth that end it.
const ROUNDS: u32 = 3;
/// The longest that a path is fed for its rate's sake.
const LONGEST: Duration = Duration::from_secs(5);
/// A path left out for so long is tried again: what it can may have changed. Each time that this
/// was in vain the next wait is twice as long, because trying costs the flows a little.
const LEFT_OUT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(160));

/// A path that bulk flows use for so long is of use; shorter, and the choice wavers.
const IN_USE: Duration = Duration::from_secs(1);

/// A path's search for its rate. Begins when the path becomes active; one path owns it.
#[derive(Clone, Debug, Default)]
pub struct Exploration {
    best: Rate,
    rounds: u32,
    round_ends: ByteCount,
    ends: Time,
    /// Since when bulk flows do not use the path; none while they do.
    left_out: Option<Time>,
    /// Since when they do; none while they do not.
    in_use: Option<Time>,
    /// How often it was tried again since it was last of use.
    tries: u32,
}

impl Exploration {
    /// Begins anew.
    pub fn begin(&mut self, now: Time) {
        *self = Exploration { ends: now + LONGEST, tries: self.tries, ..Exploration::default() };
    }

    /// Bulk flows use the path now, or do not. True when it is time to begin anew.
    pub fn on_choice(&mut self, now: Time, chosen: bool) -> bool {
        if chosen {
            let since = *self.in_use.get_or_insert(now);
            if now.since(since) >= IN_USE {
                self.left_out = None;
                self.tries = if self.is_on(now) { self.tries } else { 0 };
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

    /// Whether it goes on.
    pub fn is_on(&self, now: Time) -> bool {
        self.rounds < ROUNDS && now < self.ends
    }

    /// Takes an acknowledgement, and the bandwidth that the controller believes in since.
    pub fn on_ack(&mut self, ack: &AckEvent, bandwidth: Option<Rate>) {
        let Some(sample) = ack.rate else { return };
        if sample.prior_delivered < self.round_ends {
            return;
        }
        self.round_ends = ack.delivered;
        let Some(bandwidth) = bandwidth.filter(|_| !ack.app_limited) else { return };
        if bandwidth.0 as f64 >= self.best.0 as f64 * GROWTH {
            self.best = bandwidth;
            self.rounds = 0;
        } else {
            self.rounds += 1;
        }
    }
}
