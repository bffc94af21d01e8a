//! What a path costs a flow whose order is restored: delay, what the delay varies by, and the repair of what is lost.
//!
//! *Principle*: in-order delivery waits for the slowest of what was sent, so that neither the mean nor the least
//! delay says it. Two laws:
//!
//! - *own jitter*: what a path's delay varies by its nature counts as delay. Where nothing is reordered, most of the
//!   deviation is a queue that came and went, so that it counts up to a part of the round trip; where packets overtake
//!   each other, up to half of what they are apart.
//! - *repair*: a lost packet comes a repair later (RFC 9002 section 6.1.2), so a path that loses is slower by the
//!   repair, as often as a flow waits for one.

use super::PathView;
use super::tuning::Delay;
use std::time::Duration;

/// The path's delay varies by this much by its nature.
pub fn own_jitter(tuning: &Delay, path: &PathView) -> Duration {
    let varies = Duration::from_micros(path.jitter_us.unsigned_abs());
    varies.min((path.least_rtt / tuning.jitter_part).max(path.spread / tuning.spread_part))
}

/// What a bulk flow waits for the repair of what the path loses, on the average, in µs.
pub fn repair_us(tuning: &Delay, path: &PathView) -> i64 {
    let often = (path.loss / tuning.loss_always).min(1.0);
    (path.least_rtt.as_micros() as f64 * tuning.repair_round_trips * often) as i64
}

/// All of it, on the scale of one-way delays, in µs.
pub fn effective_us(tuning: &Delay, path: &PathView) -> f64 {
    let jitter = micros(own_jitter(tuning, path));
    path.floor_us.saturating_add(jitter).saturating_add(repair_us(tuning, path)) as f64
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
    fn a_path_that_loses_a_hundredth_costs_a_repair_and_more_costs_no_more() {
        let repair = |tuning: &Delay, loss| repair_us(tuning, &PathView { loss, ..path(50, 40) });
        for (loss, us) in [(0.0, 0), (0.005, 50_000), (0.01, 100_000), (0.5, 100_000)] {
            assert_eq!(repair(&Delay::default(), loss), us, "{loss}");
        }
        assert_eq!(repair(&Tuning::neutral(Law::named("repair-delay").expect("a law")).delay, 0.5), 0);
    }

    #[test]
    fn without_its_laws_a_path_costs_its_delay() {
        let shaky = PathView { jitter_us: 30_000, spread: Duration::from_millis(90), ..path(50, 40) };
        let tuning = Tuning::neutral(Law::named("own-jitter").expect("a law")).delay;
        assert_eq!(effective_us(&tuning, &shaky), 40_000.0);
        assert_eq!(effective_us(&Delay::default(), &shaky), 70_000.0);
    }
}
