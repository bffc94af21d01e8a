//! How many repairs the measured loss asks for.
//!
//! ```text
//!          loss reached the next step's               loss below 0.7 of this step's for CALM
//!     step -----------------------------> step above; --------------------------------------> step below
//! ```

use crate::units::Time;
use std::time::Duration;

/// From which share of loss on there is one repair for how many packets. Up to the next step, each mends five losses of
/// six in time at 200 packets a second (the test `every_step_keeps_what_it_promises`; docs/fec.md has the figures). One
/// for four goes as far as it can: 5 % may cost at most 30 % more bytes (docs/fec.md), and is measured as 9 % at times.
pub(super) const STEPS: [(f64, usize); 5] = [(0.0005, 12), (0.005, 8), (0.015, 4), (0.105, 3), (0.13, 2)];
/// A step holds while loss is above this part of what it takes to reach it.
const SLACK: f64 = 0.7;
/// It is left when that was not so for this long.
const CALM: Duration = Duration::from_secs(2);

/// The present step. The lowest at first, without repairs; one session owns it.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Demand {
    /// Steps taken.
    step: usize,
    needed: Time,
}

impl Demand {
    /// The share of packets that the path which is to carry protected packets loses.
    pub fn on_loss(&mut self, now: Time, share: f64) {
        let reached = STEPS.iter().take_while(|(from, _)| share >= *from).count();
        let held = STEPS.iter().take_while(|(from, _)| share >= *from * SLACK).count();
        if reached > self.step {
            self.step = reached;
        }
        if held >= self.step {
            self.needed = now;
        } else if now.since(self.needed) >= CALM {
            self.step -= 1;
            self.needed = now;
        }
    }

    /// There is a repair for this many packets; none: there are no repairs.
    pub fn interval(&self) -> Option<usize> {
        self.step.checked_sub(1).map(|index| STEPS[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_at_once_and_falls_step_by_step_when_loss_stays_away() {
        let mut demand = Demand::default();
        let at = |ms: u64| Time::from_nanos(1_000_000_000) + Duration::from_millis(ms);
        assert_eq!(demand.interval(), None);
        for (ms, share, interval) in [
            (0, 0.0004, None),
            (0, 0.05, Some(4)),
            (1, 0.011, Some(4)),
            (5_000, 0.011, Some(4)),
            (6_999, 0.001, Some(4)),
            (7_000, 0.001, Some(8)),
            (8_999, 0.0, Some(8)),
            (9_000, 0.2, Some(2)),
            (10_999, 0.0, Some(2)),
            (11_000, 0.0, Some(3)),
            (13_000, 0.0, Some(4)),
            (15_000, 0.0, Some(8)),
            (17_000, 0.0, Some(12)),
            (19_000, 0.0, None),
            (30_000, 0.0, None),
        ] {
            demand.on_loss(at(ms), share);
            assert_eq!(demand.interval(), interval, "{ms} ms, {share}");
        }
    }
}
