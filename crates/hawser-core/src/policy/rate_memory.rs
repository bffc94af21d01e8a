//! What the bond carried before it lost rate.
//!
//! *Principle*: a sender whose window was cut while a link was away fills the bond late when the link returns. As most
//! links return soon, the ingress queue keeps room for the window that filled the bond before (windowed maximum, as
//! BBR's of bandwidth, draft-ietf-ccwg-bbr section 5.5.5).

use super::tuning::RateMemory as Tuning;
use crate::units::Time;

/// The most that the paths carried lately together. Nothing at first; the policy owns it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct RateMemory {
    /// Bytes a second.
    best: u64,
    /// Until when that counts.
    until: Time,
}

impl RateMemory {
    /// The bond carries so many bytes a second now, more than zero. Tells how many times as much it did before.
    #[must_use]
    pub fn after(self, tuning: &Tuning, now: Time, rate: u64) -> (RateMemory, f64) {
        let renewed = rate >= self.best || now >= self.until;
        let memory = if renewed { RateMemory { best: rate, until: now + tuning.lasts } } else { self };
        (memory, (memory.best as f64 / rate as f64).clamp(1.0, tuning.most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::*;
    use std::time::Duration;

    #[test]
    fn room_for_what_was_carried_before_is_kept_for_half_a_minute() {
        // Second, bytes a second, how many times as much is reckoned with.
        let table = [(0, 1_000, 1.0), (1, 500, 2.0), (2, 100, 4.0), (29, 500, 2.0), (30, 500, 1.0), (31, 2_000, 1.0)];
        let neutral = super::super::Tuning::neutral(Law::named("rate-memory").expect("a law")).rate_memory;
        for (tuning, law) in [(Tuning::default(), true), (neutral, false)] {
            let mut memory = RateMemory::default();
            for (second, rate, times) in table {
                let now = Time::ZERO + Duration::from_secs(100 + second);
                let (next, found) = memory.after(&tuning, now, rate);
                memory = next;
                assert_eq!(found, if law { times } else { 1.0 }, "second {second}");
            }
        }
    }
}
