//! The ingress queue: how much may wait, how long a flow's turn is, and when CoDel acts.
//!
//! *Principle*: packets wait where the queue is fair (RFC 8290) and not in the links' buffers. The laws, each with a
//! constant of its own:
//!
//! - *limit*: the memory for what waits grows with the bond's rate.
//! - *quantum*: a bulk flow's turn lasts a time and not a packet, so that trains stay whole (RFC 8290 section 5.2.4 has
//!   one packet, for slow links).
//! - *target*: a queue of about one round trip of the fastest path keeps a congestion-controlled sender's pipe full
//!   when its window is cut (RFC 8289 section 4.3 has a part of one, for queues that many flows share), and an initial
//!   window (RFC 6928) is no standing queue.
//! - *reach*: on top of it comes what must wait before the slowest path that is active, or may be once its rate is
//!   known, is reached at all (earliest completion first). A drop before that would keep a sender of CUBIC below the
//!   bond's rate for ten seconds.
//! - *late*: what packets are late by, where they overtake each other, all that is in order waits for: until a sender
//!   has heard of a drop and slowed down, that passes twice. It counts to the interval.
//! - *probing*: what waits while a path is probed finds its rate out, so that the interval is some of its round trips.
//! - *memory*: `rate_memory`.
//!
//! Other flows feel none of it, because the queue is fair.

use super::tuning::{Aqm as Constants, Tuning};
use super::{PathSet, PathView, delay};
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

/// How it is managed at this rate, which once was so many times as high.
pub fn decide(
    tuning: &Tuning,
    paths: &[PathView],
    active: PathSet,
    fastest: &PathView,
    rate: Rate,
    before: f64,
) -> Aqm {
    let constants = &tuning.aqm;
    let used =
        || paths.iter().enumerate().filter(|(index, view)| view.usable && (active.contains(*index) || view.probing));
    let behind = used().map(|(_, view)| view.floor_us.saturating_sub(fastest.floor_us)).fold(0, i64::max);
    let jitters = used().map(|(_, view)| delay::own_jitter(&tuning.delay, view) * constants.late_jitters);
    let late = jitters.fold(Duration::ZERO, Duration::max);
    let reach = Duration::from_micros(behind.unsigned_abs()).min(constants.reach_max);
    let target = base(constants, fastest, rate).mul_f64(before) + reach;
    let interval = ((fastest.least_rtt + late) * 2 + target).max(constants.interval_min);
    Aqm {
        limit: rate.bytes_in(constants.limit_time).min(constants.limit_max).max(LIMIT),
        quantum: rate.bytes_in(constants.quantum_time).min(constants.quantum_max),
        target,
        interval: interval.max(probing(constants, paths)),
    }
}

/// What may stand at the bond's rate.
fn base(constants: &Constants, fastest: &PathView, rate: Rate) -> Duration {
    let round_trip = fastest.least_rtt.clamp(constants.target_min, constants.target_max);
    round_trip.max(rate.time_for(constants.target_bytes).min(constants.target_bytes_max))
}

/// How long the interval is by the paths that are probed.
fn probing(constants: &Constants, paths: &[PathView]) -> Duration {
    let probed = paths.iter().filter(|view| view.usable && view.probing);
    probed
        .map(|view| view.rtt * constants.probing_rounds)
        .fold(Duration::ZERO, Duration::max)
        .min(constants.probing_max)
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Target and interval in ms.
    type Codel = (u128, u128);

    /// Those with this tuning, of paths of which the first is the fastest.
    fn codel(tuning: &Tuning, paths: &[PathView], before: f64) -> Codel {
        let active = PathSet::ALL;
        let aqm = decide(tuning, paths, active, &paths[0], Rate(carried(paths, active)), before);
        (aqm.target.as_millis(), aqm.interval.as_millis())
    }

    #[test]
    fn codel_lets_a_round_trip_wait_and_what_reaches_the_slowest_path() {
        let probed = PathView { probing: true, ..path(10, 40) };
        let apart = PathView { jitter_us: 40_000, spread: ms(60), ..path(50, 10) };
        let gone = PathView { usable: false, ..path(50, 400) };
        let table: [(&str, Vec<PathView>, f64, Codel); 10] = [
            ("one path", vec![path(50, 20)], 1.0, (40, 120)),
            ("a short one", vec![path(50, 1)], 1.0, (10, 100)),
            ("a long one", vec![path(50, 200)], 1.0, (60, 860)),
            ("a thin one", vec![path(1, 10)], 1.0, (120, 160)),
            ("a slower one beside it", vec![path(50, 10), path(50, 40)], 1.0, (50, 100)),
            ("a far one beside it", vec![path(50, 10), path(50, 800)], 1.0, (420, 460)),
            ("one that is gone beside it", vec![path(50, 10), gone], 1.0, (20, 100)),
            ("one that is probed beside it", vec![path(50, 10), probed], 1.0, (50, 480)),
            ("twice the rate before", vec![path(50, 20)], 2.0, (80, 160)),
            ("packets that overtake each other", vec![apart], 1.0, (20, 300)),
        ];
        for (name, paths, before, expected) in table {
            assert_eq!(codel(&Tuning::default(), &paths, before), expected, "{name}");
        }
    }

    #[test]
    fn each_law_is_switched_off_alone() {
        let probed = PathView { probing: true, ..path(1, 40) };
        let apart = PathView { jitter_us: 40_000, spread: ms(60), ..path(1, 10) };
        let table: [(&str, Vec<PathView>, Codel, Codel); 5] = [
            ("codel-target", vec![path(50, 20)], (40, 120), (5, 100)),
            ("codel-bytes", vec![path(1, 10)], (120, 160), (20, 100)),
            ("codel-reach", vec![path(50, 10), path(50, 40)], (50, 100), (20, 100)),
            ("codel-late", vec![apart], (120, 400), (120, 160)),
            ("codel-probing", vec![path(50, 10), probed], (50, 480), (50, 100)),
        ];
        for (law, paths, with, without) in table {
            let neutral = Tuning::neutral(Law::named(law).expect("a law"));
            assert_eq!(codel(&Tuning::default(), &paths, 1.0), with, "{law}");
            assert_eq!(codel(&neutral, &paths, 1.0), without, "without {law}");
        }
    }

    #[test]
    fn memory_and_turns_grow_with_the_rate_between_bounds() {
        let neutral = |name| Tuning::neutral(Law::named(name).expect("a law"));
        let at = |tuning: &Tuning, mbit| {
            let paths = [path(mbit, 10)];
            let aqm = decide(tuning, &paths, PathSet::ALL, &paths[0], Rate::from_bits(mbit * 1_000_000), 1.0);
            (aqm.limit.0 >> 10, aqm.quantum.0)
        };
        for (mbit, expected) in [(10, (8_192, 187)), (1_000, (12_207, 18_750)), (10_000, (32_768, 65_536))] {
            assert_eq!(at(&Tuning::default(), mbit), expected, "{mbit} Mbit/s");
            assert_eq!(at(&neutral("queue-limit"), mbit).0, 8_192);
            assert_eq!(at(&neutral("quantum"), mbit).1, 0);
        }
    }
}
