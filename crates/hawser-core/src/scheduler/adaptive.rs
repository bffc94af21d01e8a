//! The `adaptive` scheduler: each path takes what it brings home soonest.
//!
//! Paths pull. A path that has window and pacing credit asks, flow by flow, whether it may take
//! the head of that flow's queue:
//!
//! 1. the path with the least delay takes anything;
//! 2. a slower path takes a packet that it brings home before the faster ones would get to the end
//!    of what waits (earliest completion first, after Lim et al., CoNEXT 2017).
//!
//! 3. a slower path of the *chosen* set (`chosen`) takes it earlier than that, as long as the fastest
//!    path never runs dry by it.
//!
//! By 2 alone a flow whose window fills the fast paths keeps their round trip, and only what they
//! cannot carry spills over; but a window grows slowly over a full queue. By 3 the bond's whole rate is
//! there at once, for the slow path's delay: a flow with too small a window for that would leave the
//! fastest path idle while it waits. That is measured, and moves the *spill* between the two.

use super::{MAX_PATHS, PathView, Room, chosen, micros};
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How much sooner another path must be to become the fastest: less would make thin flows hop.
const FASTEST_MARGIN_US: i64 = 1_000;
/// The first share of a chosen path's delay that must wait before it is used, and the least.
const SPILL_FIRST: f64 = 0.1;
/// See `SPILL_FIRST`.
const SPILL_LEAST: f64 = 0.1;
/// The share shrinks by this with each choice, while the fastest path never runs dry.
const SPILL_STEP: f64 = 0.05;
/// It grows by this when the fastest path ran dry.
const SPILL_BACK: f64 = 0.25;
/// What must wait before a path that is not chosen is used, as a share of its delay: all of it, and up to so much where the
/// fastest path ran dry by what it took. One window that waits for the repair of its losses is too small for both.
const OUTSIDE_MOST: f64 = 4.0;
/// It shrinks by this with each choice: what was found out is forgotten in five seconds to half a minute.
const OUTSIDE_STEP: f64 = 0.01;
/// It grows by this.
const OUTSIDE_BACK: f64 = 0.5;
/// Idle for this share of the time a path has run dry.
const DRY: f64 = 0.05;
/// How much likelier a packet is lost by the path that has just lost it than any other: losses come in bursts.
const LOST_AGAIN: f64 = 4.0;
/// But at most every second.
const LOST_AGAIN_MAX: f64 = 0.5;
/// How often the chosen set is looked at again.
const CHOICE_INTERVAL: Duration = Duration::from_millis(100);

/// Chooses paths for packets. Starts without preference; the session's scheduler owns it.
pub struct Adaptive {
    fastest: usize,
    chosen: u64,
    next_choice: Time,
    /// The share of a chosen path's delay that must wait at the entrance before it takes anything.
    spill: f64,
    /// The same for a path that is not chosen.
    outside: f64,
}

impl Default for Adaptive {
    fn default() -> Self {
        Adaptive { fastest: 0, chosen: u64::MAX, next_choice: Time::ZERO, spill: SPILL_FIRST, outside: 1.0 }
    }
}

impl Adaptive {
    /// Looks at the paths anew; call it before a round of `choose`. Tells whether the chosen set was
    /// looked at too.
    pub fn refresh(&mut self, now: Time, paths: &[PathView]) -> bool {
        self.fastest = fastest(self.fastest, paths);
        let due = now >= self.next_choice;
        if due {
            self.chosen = chosen::choose(paths, self.fastest);
            self.next_choice = now + CHOICE_INTERVAL;
        }
        due
    }

    /// Forgets the chosen set, because a path came or went.
    pub fn reconsider(&mut self) {
        self.next_choice = Time::ZERO;
        self.chosen = u64::MAX;
    }

    /// The path that thin flows go by.
    pub fn fastest(&self) -> usize {
        self.fastest
    }

    /// Whether this path is worth its delay to a bulk flow.
    pub fn is_chosen(&self, path: usize) -> bool {
        path < MAX_PATHS && self.chosen & (1 << path) != 0
    }

    /// Since the last choice the fastest path had nothing to send for this share of the time;
    /// `spilled`: slower ones took something meanwhile.
    pub fn on_dry(&mut self, dry: f64, spilled: bool) {
        let (step, outside) = match (dry > DRY, spilled) {
            (false, _) => (-SPILL_STEP, -OUTSIDE_STEP),
            (true, true) => (SPILL_BACK, OUTSIDE_BACK),
            (true, false) => (0.0, 0.0),
        };
        self.spill = (self.spill + step).clamp(SPILL_LEAST, 1.0);
        self.outside = (self.outside + outside).clamp(1.0, OUTSIDE_MOST);
    }

    /// Whether `path`, which has room, takes from `flow`.
    pub fn choose(&self, path: usize, paths: &[PathView], flow: &FlowView, room: Room) -> Choice {
        let ahead = ByteCount(flow.queue_backlog.0.min(flow.backlog.0.saturating_mul(flow.flows.max(1) as u64)));
        // What is not worth its losses as a part of the set, is not where it only takes what spills over.
        let (spill, repair) = match self.is_chosen(path) {
            true => (self.spill, 0),
            false => {
                (self.outside, chosen::repair_us(&paths[path]) - paths.get(self.fastest).map_or(0, chosen::repair_us))
            }
        };
        if path == self.fastest || sooner(path, paths, ahead, spill, repair.max(0)) {
            Choice::Take { max_bytes: room.bytes, max_segments: room.segments }
        } else {
            Choice::Skip
        }
    }

    /// Whether `path` brings a packet that is to be sent again home before any other path would,
    /// with `ahead` bytes to be sent again before it. The path that lost it may well lose it again, which
    /// takes a round trip to mend.
    pub fn takes_resend(&self, path: usize, paths: &[PathView], ahead: ByteCount, lost_on: Option<usize>) -> bool {
        let cost = |index: usize| {
            let again = if lost_on == Some(index) { (paths[index].loss * LOST_AGAIN).min(LOST_AGAIN_MAX) } else { 0.0 };
            paths[index].delay_us.saturating_add((paths[index].rtt.as_micros() as f64 * again) as i64)
        };
        by_faster(path, paths, &cost, ahead)
            .is_none_or(|(start, serial)| cost(path) < start.saturating_add(micros(serial)))
    }
}

/// The usable path with the least delay; the present one keeps the place unless beaten clearly.
fn fastest(present: usize, paths: &[PathView]) -> usize {
    let least = paths.iter().enumerate().filter(|(_, p)| p.usable).min_by_key(|(_, p)| p.delay_us);
    let Some((best, view)) = least else { return 0 };
    match paths.get(present) {
        Some(p) if p.usable && p.delay_us - view.delay_us < margin(p) => present,
        _ => best,
    }
}

fn margin(path: &PathView) -> i64 {
    FASTEST_MARGIN_US.max(path.jitter_us)
}

/// Earliest completion: would `ahead` bytes, the packet in question at their end, come home later
/// by the paths that are faster than this one? So much of the difference counts as `spill` says;
/// a queue of the path's own counts whole. `repair`: what its losses cost on top, in µs.
fn sooner(path: usize, paths: &[PathView], ahead: ByteCount, spill: f64, repair: i64) -> bool {
    let view = &paths[path];
    let here = view.floor_us.saturating_add(micros(view.own_jitter())).saturating_add(repair);
    let queued = view.delay_us.saturating_sub(view.floor_us).max(0);
    let Some((start, serial)) = by_faster(path, paths, &|index| paths[index].delay_us, ahead) else { return true };
    let before = (here.saturating_sub(start).max(0) as f64) * spill + queued as f64;
    before < serial.as_micros() as f64 || here.saturating_add(queued) < start
}

/// When the usable paths of less delay than this one would bring the first byte home, on the delays' scale in µs, and
/// how long `ahead` bytes take behind it; none where there is no such path.
fn by_faster(
    path: usize,
    paths: &[PathView],
    delay: &dyn Fn(usize) -> i64,
    ahead: ByteCount,
) -> Option<(i64, Duration)> {
    let (mut rate, mut start) = (0u64, None::<i64>);
    for (index, view) in paths.iter().enumerate() {
        if !view.usable || delay(index) >= delay(path) {
            continue;
        }
        let first = delay(index).saturating_add(micros(view.ready_in));
        start = Some(start.map_or(first, |start| start.min(first)));
        rate = rate.saturating_add(promised(view, ahead).0);
    }
    // A rate that is not known yet promises nothing: only the waiting time counts.
    let serial = if rate == 0 { Duration::ZERO } else { Rate(rate).time_for(ahead) };
    start.map(|start| (start, serial))
}

/// What a path brings home of `ahead` bytes, on the average until their end. A rate that is still sought says how little was
/// sent, and nothing of the path: there the window counts, which doubles each round trip.
fn promised(view: &PathView, ahead: ByteCount) -> Rate {
    if !view.exploring || view.window == ByteCount::ZERO {
        return view.rate.unwrap_or(Rate::ZERO);
    }
    let rounds = (1.0 + ahead.0 as f64 / view.window.0 as f64).log2();
    Rate::of(ahead, view.rtt.mul_f64(rounds)).max(view.rate.unwrap_or(Rate::ZERO))
}
