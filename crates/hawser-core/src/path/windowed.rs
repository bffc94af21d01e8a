//! The extreme of a value over a sliding window of time.

use crate::units::Time;
use std::time::Duration;

/// Slots of a window: the extreme is forgotten to within a tenth of the window.
const SLOTS: u64 = 10;

/// The least (or, of negated values, the largest) of what was recorded in the last window, kept as
/// one extreme for each tenth of it. Empty at first. One path owns it.
#[derive(Clone, Debug)]
pub(super) struct WindowedMin {
    slot_nanos: u64,
    slots: [Option<(u64, i64)>; SLOTS as usize],
}

impl WindowedMin {
    pub(super) fn new(window: Duration) -> Self {
        let nanos = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        WindowedMin { slot_nanos: (nanos / SLOTS).max(1), slots: [None; SLOTS as usize] }
    }

    /// Takes one value in and gives the least of the window that ends `now`, itself included.
    pub(super) fn record(&mut self, now: Time, value: i64) -> i64 {
        let epoch = now.as_nanos() / self.slot_nanos;
        let slot = &mut self.slots[(epoch % SLOTS) as usize];
        *slot = match *slot {
            Some((at, least)) if at == epoch => Some((epoch, least.min(value))),
            _ => Some((epoch, value)),
        };
        self.min(now).unwrap_or(value)
    }

    /// The least of the window that ends `now`; none when nothing was recorded in it.
    pub(super) fn min(&self, now: Time) -> Option<i64> {
        let epoch = now.as_nanos() / self.slot_nanos;
        let fresh = self.slots.iter().flatten();
        let fresh = fresh.filter(|(at, _)| at.saturating_add(SLOTS) > epoch);
        fresh.map(|&(_, value)| value).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_least_is_kept_for_the_window_and_then_forgotten() {
        let mut window = WindowedMin::new(Duration::from_secs(10));
        assert_eq!(window.min(at(0)), None);
        assert_eq!(window.record(at(500), 10), 10);
        assert_eq!(window.record(at(900), 30), 10);
        assert_eq!(window.record(at(5_000), 20), 10);
        assert_eq!(window.record(at(9_999), 50), 10);
        assert_eq!(window.record(at(10_000), 50), 20, "slot of 0 s is reused");
        assert_eq!(window.record(at(15_000), 60), 50);
        assert_eq!(window.min(at(40_000)), None);
    }
}
