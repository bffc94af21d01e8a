//! The largest of what was seen in the last second.

use crate::units::Time;
use std::time::Duration;

/// How far back "recent" goes.
pub const RECENT: Duration = Duration::from_secs(1);
/// Parts of it that are forgotten one by one.
const PARTS: usize = 8;

/// A maximum over the last second, to within an eighth of it. `T`'s default at first. A plain value.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Recent<T> {
    parts: [T; PARTS],
    /// The part that is being filled, counted from time zero.
    current: u64,
}

impl<T: Copy + Ord + Default> Recent<T> {
    /// Sees a value.
    pub(super) fn see(&mut self, now: Time, value: T) {
        self.forget(now);
        let part = &mut self.parts[(self.current % PARTS as u64) as usize];
        *part = (*part).max(value);
    }

    /// The largest.
    pub(super) fn largest(&self, now: Time) -> T {
        let mut recent = *self;
        recent.forget(now);
        recent.parts.into_iter().max().unwrap_or_default()
    }

    fn forget(&mut self, now: Time) {
        let part = (RECENT / PARTS as u32).as_nanos() as u64;
        let current = now.as_nanos() / part;
        let passed = current.saturating_sub(self.current).min(PARTS as u64);
        for step in 1..=passed {
            self.parts[((current - passed + step) % PARTS as u64) as usize] = T::default();
        }
        self.current = self.current.max(current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_remembered_for_about_a_second() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut recent = Recent::default();
        recent.see(at(5_000), 7);
        recent.see(at(5_500), 3);
        for (ms, largest) in [(5_500, 7), (5_870, 7), (6_000, 3), (6_490, 3), (6_510, 0), (99_000, 0)] {
            assert_eq!(recent.largest(at(ms)), largest, "at {ms} ms");
        }
    }
}
