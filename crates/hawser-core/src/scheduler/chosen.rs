//! The chosen set: which paths are worth their delay to a bulk flow.
//!
//! A bulk flow spread over a set of paths gets the sum of their rates and, because its order is
//! restored at the far side, the delay of the slowest. A congestion-controlled sender fills a pipe
//! the later the longer its round trip, so each set is scored
//!
//! ```text
//! score(S) = rate(S) · (round trip(S) / round trip(fastest alone)) ^ -DELAY_WEIGHT
//! ```
//!
//! and the best of the sets "the k paths of least delay" is chosen. A path that loses packets
//! delays a flow by the time that its losses take to be sent again; that counts as its delay.
//! While the rate of the fastest is still sought nobody knows what another would add to it: then
//! only those are chosen that cost next to nothing.

use super::{MAX_PATHS, PathView, micros};

/// How much a longer round trip weighs against more rate. 40 Mbit/s 10 ms beside 10 Mbit/s 40 ms
/// must be used (below 0.24), 5 Mbit/s 75 ms ± 20 beside 100 Mbit/s 10 ms must not (above 0.03).
const DELAY_WEIGHT: f64 = 0.17;
/// From this share of losses on a flow waits for a repair at nearly every moment; below, as seldom.
const LOSS_ALWAYS: f64 = 0.01;
/// Loss detection by packet threshold plus its acknowledgement, in round trips (RFC 9002 6.1.2).
const REPAIR_ROUND_TRIPS: f64 = 1.25;
/// A path that is explored may cost a bulk flow this factor of its score; else copies explore it.
const CHEAP: f64 = 0.95;
/// Scores this much apart are alike: prefer more paths, so that the set does not flap.
const SCORE_TIE: f64 = 0.99;
/// The least round trip that is told apart, µs: below, the hosts' own delays dominate.
const MIN_ROUND_TRIP_US: f64 = 5_000.0;

/// A bit mask of the paths that bulk flows use. `fastest` is always among them, and so is a path
/// that is still exploring its rate and delays them little by it.
pub(super) fn choose(paths: &[PathView], fastest: usize) -> u64 {
    let Some(first) = paths.get(fastest) else { return u64::MAX };
    let base = first.floor_us as f64;
    let round_trip = (first.least_rtt.as_micros() as f64).max(MIN_ROUND_TRIP_US);
    let mut order: Vec<usize> = (0..paths.len().min(MAX_PATHS)).filter(|&i| paths[i].usable).collect();
    order.sort_by(|&a, &b| effective_delay(&paths[a]).total_cmp(&effective_delay(&paths[b])));
    if first.exploring {
        order.clear();
    }
    let mut mask = 1u64 << fastest;
    let mut best = (0.0, mask);
    let mut rate = 0.0;
    for index in order {
        let path = &paths[index];
        mask |= 1 << index;
        rate += path.rate.map_or(0.0, |r| r.0 as f64 * (1.0 - path.loss));
        let longer = (effective_delay(path) - base).max(0.0);
        let score = rate * ((round_trip + longer) / round_trip).powf(-DELAY_WEIGHT);
        if score >= best.0 * SCORE_TIE {
            best = (score.max(best.0), mask);
        }
    }
    let cheap = |path: &PathView| {
        let longer = (effective_delay(path) - base).max(0.0);
        ((round_trip + longer) / round_trip).powf(-DELAY_WEIGHT) >= CHEAP
    };
    let sought = |path: &PathView| first.exploring || path.exploring;
    let searching = paths.iter().take(MAX_PATHS).enumerate().filter(|(_, p)| p.usable && sought(p) && cheap(p));
    searching.fold(best.1, |mask, (index, _)| mask | 1 << index)
}

/// Delay, jitter as far as it is the path's own, and the time to repair what it loses, in µs.
fn effective_delay(path: &PathView) -> f64 {
    path.floor_us.saturating_add(micros(path.own_jitter())).saturating_add(repair_us(path)) as f64
}

/// What a bulk flow waits for the repair of what the path loses, on the average, in µs.
pub(super) fn repair_us(path: &PathView) -> i64 {
    let often = (path.loss / LOSS_ALWAYS).min(1.0);
    (path.least_rtt.as_micros() as f64 * REPAIR_ROUND_TRIPS * often) as i64
}
