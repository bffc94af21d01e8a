//! The ingress queue: how much may wait, how long a flow's turn is, and when CoDel acts.
//!
//! *Principle*: packets wait where the queue is fair (RFC 8290) and not in the links' buffers. The laws, each with a
//! constant of its own:
//!
//! - *limit*: the memory for what waits grows with the bond's rate.
//! - *quantum*: a bulk flow's turn lasts a time and not a packet, so that trains stay whole (RFC 8290 section 5.2.4 has
//!   one packet, for slow links).
//! - *target*: a sender that is cut when a link is lost, or its rate falls for a moment, leaves the links idle when it
//!   returns. What waits lasts through that: RFC 8289 section 4.3 has a part of a round trip, for queues that many flows
//!   share. Order can be restored within half a second, and a bulk flow past its start wants the sum (docs/architecture.md).
//! - *varying*: for longer where rates vary, or nobody knows yet whether they do.
//!
//! Other flows feel none of it, because the queue is fair.

use super::tuning::{Aqm as Constants, Tuning};
use super::{PathSet, PathView};
use crate::queue::LIMIT;
use crate::units::{ByteCount, Rate};
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
}

/// What the active paths carry together, bytes a second.
pub fn carried(paths: &[PathView], active: PathSet) -> u64 {
    let carry = paths.iter().enumerate().filter(|(index, view)| view.usable && active.contains(*index));
    carry.map(|(_, view)| view.rate.map_or(0, |rate| rate.0)).sum()
}

/// How it is managed at this rate.
pub fn decide(tuning: &Tuning, paths: &[PathView], active: PathSet, fastest: &PathView, rate: Rate) -> Aqm {
    let constants = &tuning.aqm;
    let used =
        paths.iter().enumerate().filter(|(index, view)| view.usable && (active.contains(*index) || view.probing));
    let variation = used.map(|(_, view)| view.variation.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    let target = target(constants, variation);
    Aqm {
        limit: rate.bytes_in(constants.limit_time).min(constants.limit_max).max(LIMIT),
        quantum: rate.bytes_in(constants.quantum_time).min(constants.quantum_max),
        target,
        interval: (fastest.least_rtt * 2 + target).max(constants.interval_min),
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
        let aqm = decide(tuning, paths, active, &paths[0], Rate(carried(paths, active)));
        (aqm.target.as_millis(), aqm.interval.as_millis())
    }

    #[test]
    fn codel_lets_wait_what_lasts_through_a_loss() {
        let gone = PathView { usable: false, variation: Some(1.0), ..path(50, 400) };
        let varies = |variation| PathView { variation, ..path(50, 10) };
        let table: [(&str, Vec<PathView>, Codel); 6] = [
            ("one path", vec![path(50, 20)], (200, 280)),
            ("a long one", vec![path(50, 200)], (200, 1_000)),
            ("a slower one beside it", vec![path(50, 10), path(50, 40)], (200, 240)),
            ("one that is gone beside it", vec![path(50, 10), gone], (200, 240)),
            ("one that varies a little beside it", vec![path(50, 10), varies(Some(0.05))], (400, 440)),
            ("one of which nobody knows beside it", vec![path(50, 10), varies(None)], (600, 640)),
        ];
        for (name, paths, expected) in table {
            assert_eq!(codel(&Tuning::default(), &paths), expected, "{name}");
        }
    }

    #[test]
    fn each_law_is_switched_off_alone() {
        let varies = PathView { variation: Some(0.3), ..path(50, 10) };
        let table: [(&str, Vec<PathView>, Codel, Codel); 2] = [
            ("codel-target", vec![path(50, 20)], (200, 280), (5, 100)),
            ("codel-varying", vec![varies], (600, 640), (200, 240)),
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
            let aqm = decide(tuning, &paths, PathSet::ALL, &paths[0], Rate::from_bits(mbit * 1_000_000));
            (aqm.limit.0 >> 10, aqm.quantum.0)
        };
        for (mbit, expected) in [(10, (8_192, 187)), (1_000, (12_207, 18_750)), (10_000, (32_768, 65_536))] {
            assert_eq!(at(&Tuning::default(), mbit), expected, "{mbit} Mbit/s");
            assert_eq!(at(&neutral("queue-limit"), mbit).0, 8_192);
            assert_eq!(at(&neutral("quantum"), mbit).1, 0);
        }
    }
}
