//! What a path costs a flow whose order is restored: delay, and what the delay varies by.
//!
//! *Principle*: in-order delivery waits for the slowest of what was sent, so that neither the mean nor the least
//! delay says it. What a path's delay varies by its nature counts as delay (*own jitter*): where nothing is reordered,
//! most of the deviation is a queue that came and went, so that it counts up to a part of the round trip; where packets
//! overtake each other, up to half of what they are apart.

use super::PathView;
use super::tuning::Delay;
use std::time::Duration;

/// The path's delay varies by this much by its nature.
fn own_jitter(tuning: &Delay, path: &PathView) -> Duration {
    let varies = Duration::from_micros(path.jitter_us.unsigned_abs());
    varies.min((path.least_rtt / tuning.jitter_part).max(path.spread / tuning.spread_part))
}

/// Delay and own jitter, on the scale of one-way delays, in µs.
pub fn effective_us(tuning: &Delay, path: &PathView) -> i64 {
    path.floor_us.saturating_add(micros(own_jitter(tuning, path)))
}

/// On the scale of one-way delays.
pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::path;
    use super::super::{Law, Tuning};
    use super::*;

    #[test]
    fn jitter_beyond_an_eighth_of_the_round_trip_is_the_paths_own_where_packets_overtake_each_other() {
        let own = |spread_ms| {
            let spread = Duration::from_millis(spread_ms);
            own_jitter(&Delay::default(), &PathView { jitter_us: 30_000, spread, ..path(50, 40) })
        };
        assert_eq!([0, 10, 50, 90].map(own), [10, 10, 25, 30].map(Duration::from_millis));
    }

    #[test]
    fn without_its_law_a_path_costs_its_delay() {
        let shaky = PathView { jitter_us: 30_000, spread: Duration::from_millis(90), ..path(50, 40) };
        let tuning = Tuning::neutral(Law::named("own-jitter").expect("a law")).delay;
        assert_eq!(effective_us(&tuning, &shaky), 40_000);
        assert_eq!(effective_us(&Delay::default(), &shaky), 70_000);
    }
}
