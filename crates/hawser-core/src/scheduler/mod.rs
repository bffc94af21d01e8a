//! Which path a packet goes by: the `adaptive` scheduler.
//!
//! Paths pull. A path that has window and pacing credit asks, flow by flow, whether it may take
//! the head of that flow's queue:
//!
//! 1. the path with the least delay takes anything;
//! 2. a slower path takes a packet that it brings home before the faster ones would get to it
//!    (earliest completion first, after Lim et al., CoNEXT 2017);
//! 3. a slower path of the *chosen set* also takes from bulk flows, which live with its delay.
//!
//! `chosen` decides which paths are worth their delay to a bulk flow; nothing is configured.

mod chosen;
mod exploration;

pub use exploration::Exploration;

use crate::packet::FlowBucket;
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How long a flow stays bulk after it last kept its queue busy: longer than the pause that a
/// congestion-controlled sender makes when it halves its window over a slow path.
const BULK_MEMORY: Duration = Duration::from_secs(2);
/// The shortest busy period that makes a flow bulk: a few segments of a slow start are not.
const BULK_BUSY_MIN: Duration = Duration::from_millis(10);
/// How much sooner another path must be to become the fastest: less would make thin flows hop.
const FASTEST_MARGIN_US: i64 = 1_000;
/// How often the chosen set is looked at again.
const CHOICE_INTERVAL: Duration = Duration::from_millis(100);
/// As many paths as one session may have usable at a time; the set is a bit mask.
pub const MAX_PATHS: usize = 64;

/// What the scheduler knows of a path when it decides. A plain snapshot, made anew for each round.
#[derive(Copy, Clone, Debug)]
pub struct PathView {
    /// The path may carry inner packets: active, and of the lowest tier that works.
    pub usable: bool,
    /// One-way delay in µs on a scale common to the session's paths, jitter and loss repair apart.
    pub delay_us: i64,
    /// The same without queues that do not stand: what the path would cost a bulk flow.
    pub floor_us: i64,
    /// Mean deviation of that delay in µs.
    pub jitter_us: i64,
    /// Smoothed round trip.
    pub rtt: Duration,
    /// The least round trip of late.
    pub least_rtt: Duration,
    /// What the path carries, as its controller believes; `None` while unknown.
    pub rate: Option<Rate>,
    /// The share of packets that the path loses, 0 to 1, smoothed.
    pub loss: f64,
    /// How long until the path has window and credit for one more packet.
    pub ready_in: Duration,
    /// The controller has not yet found the path's rate: it must be fed to find it.
    pub exploring: bool,
}

/// Chooses paths for packets. Starts without preference; one session owns it.
pub struct Scheduler {
    /// Until when the flows of a bucket count as bulk.
    bulk_until: Box<[Time]>,
    fastest: usize,
    chosen: u64,
    next_choice: Time,
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler {
            bulk_until: vec![Time::ZERO; FlowBucket::COUNT].into_boxed_slice(),
            fastest: 0,
            chosen: u64::MAX,
            next_choice: Time::ZERO,
        }
    }
}

impl Scheduler {
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

    /// Whether bulk flows use this path.
    pub fn is_chosen(&self, path: usize) -> bool {
        path < MAX_PATHS && self.chosen & (1 << path) != 0
    }

    /// Whether `path`, which has room, takes from `flow`.
    pub fn choose(&mut self, now: Time, path: usize, paths: &[PathView], flow: &FlowView, room: Room) -> Choice {
        let take = Choice::Take { max_bytes: room.bytes, max_segments: room.segments };
        let bulk = self.note_busy(now, path, paths, flow);
        if path == self.fastest || (bulk && self.is_chosen(path)) {
            return take;
        }
        let ahead = ByteCount(flow.queue_backlog.0.min(flow.backlog.0.saturating_mul(flow.flows.max(1) as u64)));
        if sooner(path, paths, ahead) { take } else { Choice::Skip }
    }

    /// Whether `path` brings a packet that is to be sent again home before any other path would,
    /// with `ahead` bytes to be sent again before it.
    pub fn takes_resend(&self, path: usize, paths: &[PathView], ahead: ByteCount) -> bool {
        path == self.fastest || sooner(path, paths, ahead)
    }

    /// Remembers whether the flow keeps its queue busy; true while it is bulk.
    fn note_busy(&mut self, now: Time, path: usize, paths: &[PathView], flow: &FlowView) -> bool {
        let until = &mut self.bulk_until[flow.bucket.index()];
        let behind = paths[path].delay_us.saturating_sub(paths[self.fastest].delay_us).max(0);
        let busy = BULK_BUSY_MIN.max(Duration::from_micros(behind.unsigned_abs()) / 2);
        if flow.backlogged_for >= busy.min(BULK_MEMORY) {
            *until = now + BULK_MEMORY;
        }
        now < *until
    }
}

/// How much the asking path has room for.
#[derive(Copy, Clone, Debug)]
pub struct Room {
    /// Bytes of inner packets.
    pub bytes: ByteCount,
    /// Segments in the batch.
    pub segments: u16,
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
/// by the paths that are faster than this one?
fn sooner(path: usize, paths: &[PathView], ahead: ByteCount) -> bool {
    let here = paths[path].delay_us.saturating_add(paths[path].jitter_us);
    let mut rate = 0u64;
    let mut start = i64::MAX;
    for (index, other) in paths.iter().enumerate() {
        if index == path || !other.usable || other.delay_us >= paths[path].delay_us {
            continue;
        }
        let wait = i64::try_from(other.ready_in.as_micros()).unwrap_or(i64::MAX);
        start = start.min(other.delay_us.saturating_add(wait));
        rate = rate.saturating_add(other.rate.map_or(0, |r| r.0));
    }
    if start == i64::MAX {
        return true;
    }
    // A rate that is not known yet promises nothing: only the waiting time counts against it.
    let serial = if rate == 0 { Duration::ZERO } else { Rate(rate).time_for(ahead) };
    let there = start.saturating_add(i64::try_from(serial.as_micros()).unwrap_or(i64::MAX));
    here < there
}

#[cfg(test)]
mod tests;
