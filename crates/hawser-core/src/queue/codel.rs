//! CoDel for one flow (RFC 8289 section 5), asked segment by segment.
//!
//! ```text
//!            above target for an interval: act
//!   quiet ------------------------------------> dropping --+
//!     ^                                            |   ^   | at drop_next: act,
//!     +--------------------------------------------+   +---+ drop_next += interval / sqrt(count)
//!            below target, or hardly anything queued
//! ```

use crate::units::Time;
use std::time::Duration;

/// Acceptable standing delay (RFC 8289 section 4.3).
pub const TARGET: Duration = Duration::from_millis(5);
/// A round trip in the worst usual case (RFC 8289 section 4.3).
pub const INTERVAL: Duration = Duration::from_millis(100);
/// Within this many intervals after it ended, dropping goes on where it was (RFC 8289 section 5.5's
/// pseudocode, `16.0 * params.interval`).
const MEMORY: u32 = 16;

/// CoDel's two parameters. RFC 8289's by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct CodelParams {
    /// Acceptable standing delay.
    pub target: Duration,
    /// How long the delay may stay above it.
    pub interval: Duration,
}

impl Default for CodelParams {
    fn default() -> CodelParams {
        CodelParams { target: TARGET, interval: INTERVAL }
    }
}

/// The state drawn above. Quiet at first. One owner, its flow.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Codel {
    /// When the delay will have been above target for an interval.
    ripe_at: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    /// Whether the segment at the head, which waited for `wait`, must be dropped or marked. To be
    /// asked again for the one behind a dropped segment. `few`: hardly more than one packet is queued.
    pub(super) fn must_act(&mut self, now: Time, wait: Duration, few: bool, params: CodelParams) -> bool {
        let ripe = self.is_ripe(now, wait, few, params);
        if self.dropping {
            self.dropping = ripe;
            if !ripe || now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = self.next_after(self.drop_next, params);
            return true;
        }
        if ripe {
            self.dropping = true;
            let steps = self.count - self.last_count;
            let recent = now.since(self.drop_next) < params.interval * MEMORY;
            self.count = if steps > 1 && recent { steps } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.next_after(now, params);
        }
        ripe
    }

    /// Its turn came and the flow had nothing queued, or nobody had.
    pub(super) fn emptied(&mut self) {
        self.ripe_at = None;
    }

    fn is_ripe(&mut self, now: Time, wait: Duration, few: bool, params: CodelParams) -> bool {
        if wait < params.target || few {
            self.ripe_at = None;
            return false;
        }
        now >= *self.ripe_at.get_or_insert(now + params.interval)
    }

    /// The control law (RFC 8289 section 3.3).
    fn next_after(&self, time: Time, params: CodelParams) -> Time {
        time + params.interval.div_f64(f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Time {
        Time::ZERO + MS * ms
    }

    /// The milliseconds of `range` at which CoDel acts on a delay of `wait`.
    fn acts(codel: &mut Codel, range: std::ops::Range<u32>, wait: Duration) -> Vec<u32> {
        range.filter(|&ms| codel.must_act(at(ms), wait, false, CodelParams::default())).collect()
    }

    #[test]
    fn quiet_stays_quiet_below_target_and_within_the_first_interval() {
        let mut codel = Codel::default();
        assert_eq!(acts(&mut codel, 0..1_000, MS * 4), [0u32; 0]);
        assert_eq!(acts(&mut codel, 1_000..1_100, MS * 6), [0u32; 0]);
        assert!(!codel.must_act(at(1_200), MS * 6, true, CodelParams::default()));
        assert_eq!(acts(&mut codel, 1_201..1_300, MS * 6), [0u32; 0]);
    }

    #[test]
    fn quiet_becomes_dropping_and_drops_ever_faster() {
        let mut codel = Codel::default();
        // 100, then + 100/sqrt(1), 100/sqrt(2), 100/sqrt(3), ...
        assert_eq!(acts(&mut codel, 0..400, MS * 6), [100, 200, 271, 329, 379]);
    }

    #[test]
    fn dropping_ends_below_target_and_goes_on_faster_when_it_soon_returns() {
        let mut codel = Codel::default();
        acts(&mut codel, 0..400, MS * 6);
        assert_eq!(acts(&mut codel, 400..500, MS), [0u32; 0]);
        let again = acts(&mut codel, 500..800, MS * 6);
        assert_eq!(again, [600, 650, 695, 736, 774]);
    }

    #[test]
    fn dropping_starts_over_after_a_long_peace() {
        let mut codel = Codel::default();
        acts(&mut codel, 0..400, MS * 6);
        acts(&mut codel, 400..3_000, MS);
        assert_eq!(acts(&mut codel, 3_000..3_250, MS * 6), [3_100, 3_200]);
    }

    #[test]
    fn an_empty_queue_forgets_that_it_was_above_target() {
        let mut codel = Codel::default();
        acts(&mut codel, 0..99, MS * 6);
        codel.emptied();
        assert_eq!(acts(&mut codel, 99..199, MS * 6), [0u32; 0]);
    }
}
