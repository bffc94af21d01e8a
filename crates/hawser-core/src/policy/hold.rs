//! How long a gap in a flow is waited for at the far side, and a lost packet worth retransmitting.
//!
//! *Principle*: the sender knows exactly what it would still repair, the receiver of a one-way stream little of round
//! trips. So the sender says how long its repairs may take (HOLD, docs/wire.md): until the slowest of the paths that
//! carry data could have noticed a loss (RFC 9002 section 6.2; RFC 8985 where packets come late), and the packet have
//! arrived by another, once more for good measure. It is asked whenever a control datagram is written, since that
//! happens without a round of views.

use super::tuning::Hold as Tuning;
use crate::units::Time;
use std::time::Duration;

/// How long it may take until what a path lost is home: by its probe timeout, or where it was learned that packets come
/// late, and losses are `noticed` later therefore, by that.
pub fn repair_time(tuning: &Tuning, probe_timeout: Duration, noticed: Duration) -> Duration {
    (probe_timeout * tuning.timeouts).max(noticed * tuning.losses)
}

/// How long a gap may last over paths that repair within these times.
pub fn time(tuning: &Tuning, repairs: impl Iterator<Item = Duration>) -> Duration {
    repairs.max().unwrap_or(Duration::ZERO).clamp(tuning.min, tuning.max)
}

/// Whether the far side, which was `told` something at a time, is to be told `fresh`.
pub fn is_due(tuning: &Tuning, now: Time, told: (Duration, Time), fresh: Duration) -> bool {
    let (before, after) = (told.0.as_secs_f64(), fresh.as_secs_f64());
    (after - before).abs() > before * tuning.change || now.since(told.1) >= tuning.repeat
}

/// For how long a lost packet is worth retransmitting, where the far side was `told` so.
pub fn useful_for(tuning: &Tuning, told: Duration) -> Duration {
    told.max(tuning.min) * tuning.useful
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_gap_is_waited_for_as_long_as_the_slowest_path_may_need_to_repair_it() {
        let tuning = Tuning::default();
        let repairs = |paths: &[(u64, u64)]| {
            time(&tuning, paths.iter().map(|(timeout, noticed)| repair_time(&tuning, ms(*timeout), ms(*noticed))))
        };
        let table: [(&[(u64, u64)], u64); 5] =
            [(&[], 10), (&[(2, 1)], 10), (&[(50, 20), (80, 30)], 240), (&[(50, 200)], 400), (&[(2_000, 30)], 3_000)];
        for (paths, expected) in table {
            assert_eq!(repairs(paths), ms(expected), "{paths:?}");
        }
        let neutral = super::super::Tuning::neutral(Law::named("hold").expect("a law")).hold;
        assert_eq!(time(&neutral, [ms(40)].into_iter()), ms(3_000), "without the law, a fixed time");
    }

    #[test]
    fn the_far_side_is_told_of_a_change_by_a_quarter_and_now_and_then() {
        let (tuning, at) = (Tuning::default(), Time::ZERO + ms(1_000));
        for (fresh, later, due) in
            [(100, 10, false), (124, 10, false), (126, 10, true), (74, 10, true), (100, 200, true)]
        {
            assert_eq!(is_due(&tuning, at + ms(later), (ms(100), at), ms(fresh)), due, "{fresh} ms after {later}");
        }
        assert!(is_due(&tuning, at, (Duration::ZERO, at), ms(10)), "it was told nothing yet");
    }

    #[test]
    fn a_lost_packet_is_of_use_for_twice_as_long() {
        assert_eq!(useful_for(&Tuning::default(), ms(100)), ms(200));
        assert_eq!(useful_for(&Tuning::default(), Duration::ZERO), ms(20));
    }
}
