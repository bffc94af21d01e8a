//! CoDel: packets that waited too long for too long are dropped as they leave the queue.
//!
//! ```text
//!              a packet's wait was above target for an interval: it is dropped
//!   ┌────────┐ ─────────────────────────────────────────────────► ┌──────────┐  drops one more each
//!   │ taking │                                                    │ dropping │  interval / √count
//!   └────────┘ ◄───────────────────────────────────────────────── └──────────┘
//!              a packet waited less, or is the last
//! ```

use std::time::Duration;

use crate::clock::Moment;

/// Acceptable standing delay, and how long it may be exceeded. Source: RFC 8289, sections 4.3 and 4.4.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);
/// Dropping that begins again this many intervals after it would have gone on takes its count up. Source: RFC 8289,
/// section 5.5.
const RECENT_INTERVALS: u32 = 16;
/// What it takes up are the drops of last time, if they were more than this.
const FEW_DROPS: u32 = 1;

/// What CoDel aims at. Plain data. Source: RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// The standing wait that is fine.
    pub target: Duration,
    /// How long a wait above it is tolerated: the longest usual round trip.
    pub interval: Duration,
}

impl Default for Codel {
    /// 5 and 100 milliseconds.
    fn default() -> Self {
        Self { target: TARGET, interval: INTERVAL }
    }
}

/// Where CoDel is on one way. Starts taking; drawn above. One owner: the way.
#[derive(Debug, Default)]
pub(crate) struct CodelState {
    /// When waits above the target will have lasted an interval.
    patience_ends: Option<Moment>,
    dropping: bool,
    drop_next: Moment,
    count: u32,
    last_count: u32,
}

impl CodelState {
    /// How many packets at the head are dropped before the next one goes, at a moment. `arrived` says of the n-th from
    /// the head when it arrived; none where the queue is shorter.
    pub(crate) fn drops(&mut self, codel: &Codel, now: Moment, arrived: impl Fn(usize) -> Option<Moment>) -> usize {
        let mut dropped = 0;
        let mut stale = self.is_stale(codel, now, &arrived, dropped);
        if self.dropping {
            self.dropping = stale;
            while self.dropping && now >= self.drop_next {
                dropped += 1;
                self.count += 1;
                stale = self.is_stale(codel, now, &arrived, dropped);
                self.dropping = stale;
                if stale {
                    self.drop_next = self.drop_next + self.spacing(codel);
                }
            }
        } else if stale {
            dropped = 1;
            self.is_stale(codel, now, &arrived, dropped);
            self.dropping = true;
            let more = self.count.saturating_sub(self.last_count);
            let recent = now - self.drop_next < codel.interval * RECENT_INTERVALS;
            self.count = if more > FEW_DROPS && recent { more } else { 1 };
            self.drop_next = now + self.spacing(codel);
            self.last_count = self.count;
        }
        dropped
    }

    /// Whether the n-th packet has waited too long, as those before it did for an interval. The last of a queue is
    /// none.
    fn is_stale(&mut self, codel: &Codel, now: Moment, arrived: &impl Fn(usize) -> Option<Moment>, n: usize) -> bool {
        let behind = arrived(n + 1).is_some();
        if !behind || arrived(n).is_none_or(|arrived| now - arrived < codel.target) {
            self.patience_ends = None;
            return false;
        }
        now >= *self.patience_ends.get_or_insert(now + codel.interval)
    }

    /// From one drop to the next.
    fn spacing(&self, codel: &Codel) -> Duration {
        codel.interval.div_f64(f64::from(self.count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000) + Duration::from_millis(millis)
    }

    /// A queue that is looked at every 10 ms, from `from` to `to`: when how many were dropped.
    fn dropped(state: &mut CodelState, wait: u64, times: std::ops::Range<u64>) -> Vec<(u64, usize)> {
        let arrived = |now: u64| move |n: usize| (n < 50).then(|| at(now - wait));
        let looks = times.step_by(10).map(|now| (now, state.drops(&Codel::default(), at(now), arrived(now))));
        looks.filter(|&(_, dropped)| dropped > 0).collect()
    }

    #[test]
    fn every_arrow_is_walked() {
        let mut state = CodelState::default();
        assert_eq!(dropped(&mut state, 4, 1000..2000), [], "below the target");
        // Patience for 100 ms; then after 100, 100/√2, 100/√3, … ms, seen at the next look.
        let times: Vec<u64> = dropped(&mut state, 6, 2000..2500).into_iter().map(|(now, _)| now).collect();
        assert_eq!(times, [2100, 2200, 2280, 2330, 2380, 2430, 2470]);
        assert!(state.dropping && state.count == 7);
        assert_eq!(dropped(&mut state, 4, 2500..2600), [], "below again");
        assert!(!state.dropping);
        let times: Vec<u64> = dropped(&mut state, 6, 2600..2800).into_iter().map(|(now, _)| now).collect();
        assert_eq!(times, [2700, 2750, 2780], "it takes its count up: 6, spaced 100/√6 ms");
    }

    #[test]
    fn the_last_packet_always_goes() {
        let mut state = CodelState::default();
        for now in 0..1000 {
            let only = |n| (n == 0).then(|| at(now));
            assert_eq!(state.drops(&Codel::default(), at(now + 500), only), 0);
        }
        assert!(!state.dropping);
    }
}
