//! The ingress queue: how much may wait, how long a flow's turn is, and when CoDel acts.
//!
//! *Principle*: packets wait where the queue is fair (RFC 8290) and not in the links' buffers. The laws, each with a
//! constant of its own:
//!
//! - *limit*: the memory for what waits grows with the bond's rate.
//! - *quantum*: a bulk flow's turn lasts a time and not a packet, so that trains stay whole (RFC 8290 section 5.2.4 has
//!   one packet, for slow links).
//! - *target*: a window that pays for bursts and the paths' own round trips. RFC 8289 section 4.3 has a part of a round
//!   trip, for queues that many flows share; a drop costs a bulk flow as long without order as its queue lasts.
//! - *memory*: a sender that is cut when a link is lost, or fades, leaves the links idle when that returns. The window
//!   that filled all of them waits longer meanwhile, and nothing of it is dropped for as long as outages last.
//! - *varying*: for longer where rates vary, or nobody knows yet whether they do.
//! - *shorten*: a drop from a long queue takes its newest part and not its head, so that what is retransmitted waits
//!   for a short one (`queue/shorten.rs`).
//!
//! Other flows feel none of it, because the queue is fair.

use super::tuning::{Aqm as Constants, Tuning};
use super::{PathSet, PathView};
use crate::queue::LIMIT;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How the ingress queue is managed. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Aqm {
    /// How much may wait.
    pub limit: ByteCount,
    /// What a flow may send in its turn, where that is more than a packet.
    pub quantum: ByteCount,
    /// CoDel's acceptable delay.
    pub target: Duration,
    /// CoDel's interval.
    pub interval: Duration,
    /// What a drop leaves of a flow's queue that lasts four times as long.
    pub kept: Duration,
}

/// What the active paths carry together now, and the most of late. Nothing at first; a plain value.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Peak {
    /// Now.
    pub rate: Rate,
    most: Rate,
    most_at: Time,
}

impl Peak {
    /// They carry `rate` now.
    #[must_use]
    pub fn after(self, constants: &Constants, now: Time, rate: Rate) -> Peak {
        let forgotten = rate >= self.most || now.since(self.most_at) > constants.memory;
        let (most, most_at) = if forgotten { (rate, now) } else { (self.most, self.most_at) };
        Peak { rate, most, most_at }
    }

    /// How much longer a window waits now that was worth this time when they carried most.
    fn longer(&self, window: Duration) -> Duration {
        let times = self.most.0 as f64 / self.rate.0.max(1) as f64;
        window.mul_f64((times - 1.0).max(0.0))
    }
}

/// What the active paths carry together, bytes a second.
pub fn carried(paths: &[PathView], active: PathSet) -> u64 {
    let carry = paths.iter().enumerate().filter(|(index, view)| view.usable && active.contains(*index));
    carry.map(|(_, view)| view.rate.map_or(0, |rate| rate.0)).sum()
}

/// How it is managed at this rate.
pub fn decide(tuning: &Tuning, paths: &[PathView], fastest: &PathView, peak: Peak) -> Aqm {
    let constants = &tuning.aqm;
    // Those outside of the active set too: they take what overflows, and a target that came and went with them would
    // drop each time what it had let wait.
    let usable = || paths.iter().filter(|view| view.usable);
    let variation = usable().map(|view| view.variation.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    let round_trip = usable().map(|view| view.least_rtt).fold(Duration::ZERO, Duration::max);
    let interval = |target| (fastest.least_rtt * 2 + target).max(constants.interval_min);
    let (usual, rate) = (target(constants, variation), peak.rate);
    // A window grows for an interval before CoDel cuts it.
    let longer = peak.longer(round_trip + usual + interval(usual));
    let target = (usual + longer).min(constants.target_varying.max(usual));
    Aqm {
        limit: rate.bytes_in(constants.limit_time).min(constants.limit_max).max(LIMIT),
        quantum: rate.bytes_in(constants.quantum_time).min(constants.quantum_max),
        target,
        interval: interval(target),
        kept: constants.kept,
    }
}

/// What may stand, where rates vary by so much.
fn target(constants: &Constants, variation: f64) -> Duration {
    let longer = constants.target_varying.saturating_sub(constants.target);
    constants.target + longer.mul_f64((variation / constants.varies).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;

    /// Target and interval in ms.
    type Codel = (u128, u128);

    /// Those with this tuning, of paths of which the first is the fastest.
    fn codel(tuning: &Tuning, paths: &[PathView]) -> Codel {
        let active = PathSet::ALL;
        let peak = Peak::default().after(&tuning.aqm, Time::ZERO, Rate(carried(paths, active)));
        let aqm = decide(tuning, paths, &paths[0], peak);
        (aqm.target.as_millis(), aqm.interval.as_millis())
    }

    #[test]
    fn codel_lets_wait_what_lasts_through_a_loss() {
        let gone = PathView { usable: false, variation: Some(1.0), ..path(50, 400) };
        let varies = |variation| PathView { variation, ..path(50, 10) };
        let table: [(&str, Vec<PathView>, Codel); 6] = [
            ("one path", vec![path(50, 20)], (100, 180)),
            ("a long one", vec![path(50, 200)], (100, 900)),
            ("a slower one beside it", vec![path(50, 10), path(50, 40)], (100, 140)),
            ("one that is gone beside it", vec![path(50, 10), gone], (100, 140)),
            ("one that varies a little beside it", vec![path(50, 10), varies(Some(0.05))], (350, 390)),
            ("one of which nobody knows beside it", vec![path(50, 10), varies(None)], (600, 640)),
        ];
        for (name, paths, expected) in table {
            assert_eq!(codel(&Tuning::default(), &paths), expected, "{name}");
        }
    }

    #[test]
    fn what_waits_when_a_link_is_lost_is_no_queue_too_long_for_ten_seconds() {
        let (both, one) = ([path(30, 20), path(50, 20)], [path(30, 20), PathView { usable: false, ..path(50, 20) }]);
        let target = |tuning: &Tuning, after: u64| {
            let rate = |paths: &[PathView]| Rate(carried(paths, PathSet::ALL));
            let before = Peak::default().after(&tuning.aqm, Time::ZERO, rate(&both));
            let peak = before.after(&tuning.aqm, Time::ZERO + Duration::from_millis(after), rate(&one));
            decide(tuning, &one, &one[0], peak).target.as_millis()
        };
        assert_eq!([100, 9_900, 10_100].map(|after| target(&Tuning::default(), after)), [600, 600, 100]);
        let neutral = Tuning::neutral(Law::named("codel-memory").expect("a law"));
        assert_eq!(target(&neutral, 100), 100, "without the law");
    }

    #[test]
    fn each_law_is_switched_off_alone() {
        let varies = PathView { variation: Some(0.3), ..path(50, 10) };
        let table: [(&str, Vec<PathView>, Codel, Codel); 2] = [
            ("codel-target", vec![path(50, 20)], (100, 180), (5, 100)),
            ("codel-varying", vec![varies], (600, 640), (100, 140)),
        ];
        for (law, paths, with, without) in table {
            let neutral = Tuning::neutral(Law::named(law).expect("a law"));
            assert_eq!(codel(&Tuning::default(), &paths), with, "{law}");
            assert_eq!(codel(&neutral, &paths), without, "without {law}");
        }
    }

    #[test]
    fn memory_and_turns_grow_with_the_rate_between_bounds() {
        let neutral = |name| Tuning::neutral(Law::named(name).expect("a law"));
        let at = |tuning: &Tuning, mbit| {
            let paths = [path(mbit, 10)];
            let peak = Peak::default().after(&tuning.aqm, Time::ZERO, Rate::from_bits(mbit * 1_000_000));
            let aqm = decide(tuning, &paths, &paths[0], peak);
            (aqm.limit.0 >> 10, aqm.quantum.0)
        };
        for (mbit, expected) in [(10, (8_192, 187)), (1_000, (12_207, 18_750)), (10_000, (32_768, 65_536))] {
            assert_eq!(at(&Tuning::default(), mbit), expected, "{mbit} Mbit/s");
            assert_eq!(at(&neutral("queue-limit"), mbit).0, 8_192);
            assert_eq!(at(&neutral("quantum"), mbit).1, 0);
        }
    }
}
