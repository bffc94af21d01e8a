//! When a path that bulk flows leave out is probed anew.
//!
//! *Principle*: what a path can may have changed since it was judged, and a path that carries nothing tells nothing. So
//! it is probed again after a time, and after twice as long each time that this was in vain, because probing costs
//! bytes (exponential back-off, as RFC 6298 section 5.5 has it for timers).

use super::tuning::Retry as Tuning;
use crate::units::Time;

/// How long a path has been of no use. In use at first; the policy owns one for each path. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Retry {
    /// Since when bulk flows do not use the path; none while they do.
    left_out: Option<Time>,
    /// Since when they do; none while they do not.
    in_use: Option<Time>,
    /// How often it was probed anew since it was last of use.
    tries: u32,
}

impl Retry {
    /// Nothing is known of the path (any more).
    #[must_use]
    pub fn anew(self) -> Retry {
        Retry { tries: self.tries, ..Retry::default() }
    }

    /// Bulk flows use the path now, or do not; what is probed is in use. True when it is time to probe it anew.
    #[must_use]
    pub fn after(mut self, tuning: &Tuning, now: Time, used: bool, probing: bool) -> (Retry, bool) {
        if used || probing {
            let since = *self.in_use.get_or_insert(now);
            if !probing && now.since(since) >= tuning.in_use {
                self.left_out = None;
                self.tries = 0;
            }
            return (self, false);
        }
        self.in_use = None;
        let since = *self.left_out.get_or_insert(now);
        let wait = tuning.first.saturating_mul(1 << self.tries.min(16)).min(tuning.last);
        let due = now.since(since) >= wait;
        self.tries += u32::from(due);
        (if due { self.anew() } else { self }, due)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::*;
    use std::time::Duration;

    /// The seconds at which a path is probed anew that is probed for three seconds each time, and in use as `used`
    /// says.
    fn tried(tuning: &Tuning, seconds: u64, used: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut retry, mut probed_until, mut tried) = (Retry::default(), 3, Vec::new());
        for second in 0..seconds {
            let now = Time::ZERO + Duration::from_secs(1 + second);
            let (next, due) = retry.after(tuning, now, used(second), second < probed_until);
            retry = next;
            if due {
                probed_until = second + 1 + 3;
                tried.push(second);
            }
        }
        tried
    }

    #[test]
    fn a_path_left_out_is_probed_anew_ever_more_seldom() {
        let tuning = Tuning::default();
        assert_eq!(tried(&tuning, 70, |_| false), [8, 22, 46]);
        assert_eq!(tried(&tuning, 70, |_| true), [0u64; 0]);
        let neutral = super::super::Tuning::neutral(Law::named("probe-retry").expect("a law")).retry;
        assert_eq!(tried(&neutral, 70, |_| false), [0u64; 0]);
    }

    #[test]
    fn use_for_a_second_makes_the_next_wait_short_again_and_less_does_not() {
        let tuning = Tuning::default();
        assert_eq!(tried(&tuning, 50, |second| (30..32).contains(&second)), [8, 22, 37]);
        assert_eq!(tried(&tuning, 50, |second| second == 30), [8, 22, 46]);
    }
}
