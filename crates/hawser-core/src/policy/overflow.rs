//! When slower paths take: how much of a path's delay must wait at the ingress queue before it does.
//!
//! *Principle*: by earliest completion first (Lim et al., CoNEXT 2017) a slower path takes what it delivers before
//! the faster ones would get to the end of what waits: all of the difference in delay must wait. A window grows
//! slowly over so full a queue, so a path of the active set takes at a *threshold* below that, and the bond's whole
//! rate is there at once, for the slow path's delay. A flow with too small a window for that leaves the fastest path
//! idle while it waits; that is measured, and moves the threshold (additive decrease, larger additive increase).
//! Outside the active set the whole difference must wait.

use super::tuning;

/// How much must wait before a path of the active set takes, as a share of the difference in delay. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Overflow {
    /// That share.
    pub threshold: f64,
}

impl Overflow {
    /// The threshold at first.
    pub fn new(tuning: &tuning::Overflow) -> Overflow {
        Overflow { threshold: tuning.first }
    }

    /// The fastest path had nothing to send for this share of the time; `overflowed`: slower ones took something
    /// meanwhile.
    #[must_use]
    pub fn after(self, tuning: &tuning::Overflow, idle: f64, overflowed: bool) -> Overflow {
        let change = match (idle > tuning.idle, overflowed) {
            (false, _) => -tuning.step,
            (true, true) => tuning.back,
            (true, false) => 0.0,
        };
        Overflow { threshold: (self.threshold + change).clamp(tuning.least, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Law, Tuning};
    use super::*;

    fn after(tuning: &tuning::Overflow, steps: &[(usize, f64, bool)]) -> f64 {
        let times = steps.iter().flat_map(|(times, idle, overflowed)| std::iter::repeat_n((idle, overflowed), *times));
        let last = times.fold(Overflow::new(tuning), |now, (idle, overflowed)| now.after(tuning, *idle, *overflowed));
        (last.threshold * 1e3).round() / 1e3
    }

    #[test]
    fn the_threshold_rises_where_the_fastest_path_was_idle_by_what_others_took_and_falls_slowly() {
        type Steps<'a> = &'a [(usize, f64, bool)];
        let table: [(&str, Steps<'_>, f64); 8] = [
            ("at first", &[], 0.1),
            ("never idle", &[(20, 0.0, true)], 0.1),
            ("hardly idle", &[(1, 0.05, true)], 0.1),
            ("idle by what others took", &[(1, 0.2, true)], 0.35),
            ("idle by itself", &[(9, 0.2, false)], 0.1),
            ("idle twice", &[(2, 0.2, true)], 0.6),
            ("idle for ever", &[(100, 0.2, true)], 1.0),
            ("and then busy", &[(100, 0.2, true), (10, 0.0, false)], 0.5),
        ];
        for (name, steps, threshold) in table {
            assert_eq!(after(&tuning::Overflow::default(), steps), threshold, "{name}");
        }
    }

    #[test]
    fn without_its_law_all_of_the_delay_must_wait() {
        let neutral = Tuning::neutral(Law::named("overflow").expect("a law")).overflow;
        assert_eq!(after(&neutral, &[]), 1.0);
        assert_eq!(after(&neutral, &[(3, 0.2, true)]), 1.0);
    }
}
