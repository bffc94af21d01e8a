//! The `adaptive` scheduler: each path takes what it delivers soonest. It remembers nothing: the policy decides.
//!
//! Paths pull. A path that has window and pacing credit asks, flow by flow, whether it may take
//! the head of that flow's queue:
//!
//! 1. the path with the least delay takes anything;
//! 2. a slower path takes a packet that it delivers before the faster ones would get to the end
//!    of what waits (earliest completion first, after Lim et al., CoNEXT 2017).
//!
//! 3. a slower path of the *active set* takes it earlier than that, as long as the fastest path is never idle by it: at
//!    the policy's *overflow threshold*.
//!
//! All of this among the paths that may carry the flow. Where the fastest of all is none of them, their own fastest
//! takes its place.
//!
//! By 2 alone a flow whose window fills the fast paths keeps their round trip, and only what they cannot carry
//! overflows; but a window grows slowly over a full queue. By 3 the bond's whole rate is there at once, for the slow
//! path's delay.

use super::{PathSet, Room, Round};
use crate::policy::delay::{effective_us, micros};
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, Rate};
use std::time::Duration;

/// Whether `path`, which has room, takes from `flow`, which those of `set` may carry.
pub fn choose(round: &Round<'_>, path: usize, set: PathSet, flow: &FlowView, room: Room) -> Choice {
    let decisions = round.decisions;
    let ahead = ByteCount(flow.queue_backlog.0.min(flow.backlog.0.saturating_mul(flow.flows.max(1) as u64)));
    let threshold = if decisions.active_set.contains(path) { decisions.overflow.threshold } else { 1.0 };
    if path == fastest(round, set) || sooner(round, path, set, ahead, threshold) { room.take() } else { Choice::Skip }
}

/// The path of these that sparse flows go by.
fn fastest(round: &Round<'_>, set: PathSet) -> usize {
    let chosen = round.decisions.fastest;
    let least = || set.iter().filter(|at| *at < round.paths.len()).min_by_key(|at| round.paths[*at].delay_us);
    if set.contains(chosen) { chosen } else { least().unwrap_or(chosen) }
}

/// Whether `path` delivers a packet that is to be retransmitted before any other path of `set` would,
/// with `ahead` bytes to be retransmitted before it.
pub fn takes_retransmit(round: &Round<'_>, path: usize, set: PathSet, ahead: ByteCount) -> bool {
    let delay_us = round.paths[path].delay_us;
    by_faster(round, path, set, ahead).is_none_or(|(start, serial)| delay_us < start.saturating_add(micros(serial)))
}

/// Earliest completion: would `ahead` bytes, the packet in question at their end, be delivered later
/// by the paths that are faster than this one? So much of the difference counts as `threshold` says;
/// a queue of the path's own counts whole.
fn sooner(round: &Round<'_>, path: usize, set: PathSet, ahead: ByteCount, threshold: f64) -> bool {
    let view = &round.paths[path];
    let here = effective_us(&round.tuning.delay, view);
    let queued = view.delay_us.saturating_sub(view.floor_us).max(0);
    let Some((start, serial)) = by_faster(round, path, set, ahead) else { return true };
    let before = (here.saturating_sub(start).max(0) as f64) * threshold + queued as f64;
    before < serial.as_micros() as f64 || here.saturating_add(queued) < start
}

/// When the paths of `set` with less delay than this one would deliver the first byte, on the delays' scale in µs, and
/// how long `ahead` bytes take behind it; none where there is no such path.
fn by_faster(round: &Round<'_>, path: usize, set: PathSet, ahead: ByteCount) -> Option<(i64, Duration)> {
    let (mut rate, mut start) = (0u64, None::<i64>);
    for (at, view) in round.paths.iter().enumerate() {
        if !set.contains(at) || view.delay_us >= round.paths[path].delay_us {
            continue;
        }
        let first = view.delay_us.saturating_add(micros(view.ready_in));
        start = Some(start.map_or(first, |start| start.min(first)));
        rate = rate.saturating_add(view.rate.map_or(0, |rate| rate.0));
    }
    // A rate that is not known yet promises nothing: only the waiting time counts.
    let serial = if rate == 0 { Duration::ZERO } else { Rate(rate).time_for(ahead) };
    start.map(|start| (start, serial))
}
