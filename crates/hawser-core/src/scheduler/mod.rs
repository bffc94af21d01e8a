//! Which path a packet goes by.
//!
//! Paths pull: one that has window and pacing credit asks, flow by flow, whether it may take the head of that flow's
//! queue. The scheduler of the flow's treatment answers:
//!
//! - `adaptive`: a path takes what it brings home soonest.
//! - `weighted`: a path takes its fixed share, and no more.
//! - `flow`: a path takes the flows that are its own.
//! - `redundant`: the two best paths take, and each sends copies of what the other took.

mod adaptive;
mod chosen;
mod connections;
mod exploration;
mod flow;
mod redundant;
mod weighted;

pub use connections::Word;
pub use exploration::Exploration;
pub use weighted::Weight;

use crate::packet::FlowBucket;
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, PathId, Rate, Time};
use adaptive::Adaptive;
use flow::ByFlow;
use std::time::Duration;
use weighted::Weighted;

/// As many paths as one session may have usable at a time; the set is a bit mask.
pub const MAX_PATHS: usize = 64;

/// The schedulers that a user may choose. `Adaptive` by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Each path takes what it brings home soonest.
    #[default]
    Adaptive,
    /// Each path takes a fixed share.
    Weighted,
    /// A flow stays on one path.
    Flow,
    /// Every packet goes by the two best paths.
    Redundant,
}

/// What the scheduler knows of a path when it decides. A plain snapshot, made anew for each round.
#[derive(Copy, Clone, Debug)]
pub struct PathView {
    /// Its name.
    pub id: PathId,
    /// Its part of what `weighted` sends.
    pub weight: Weight,
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
    /// The round trip of an average packet, without queues.
    pub least_rtt: Duration,
    /// How much of that lies beyond the fastest packets' round trip, where packets overtake each other.
    pub spread: Duration,
    /// What the path carries, as its controller believes; `None` while unknown.
    pub rate: Option<Rate>,
    /// What may be in flight; while the rate is sought it doubles each round trip.
    pub window: ByteCount,
    /// The share of packets that the path loses, 0 to 1, smoothed.
    pub loss: f64,
    /// How long until the path has window and credit for one more packet.
    pub ready_in: Duration,
    /// The controller has not yet found the path's rate: it must be fed to find it.
    pub exploring: bool,
}

/// Deviation beyond this part of the round trip is a queue that came and went.
const JITTER_PART: u32 = 8;

impl PathView {
    /// The path's delay varies by this much by its nature.
    pub fn own_jitter(&self) -> Duration {
        let varies = Duration::from_micros(self.jitter_us.unsigned_abs());
        varies.min((self.least_rtt / JITTER_PART).max(self.spread / 2))
    }
}

/// All schedulers of a session, each with what it remembers. Starts without preference; one session owns it.
#[derive(Default)]
pub struct Scheduler {
    adaptive: Adaptive,
    weighted: Weighted,
    flow: ByFlow,
    /// Adaptive holds for no flow.
    idle: bool,
}

impl Scheduler {
    /// Whether any flow is `adaptive`: if none is, no path is left out for its delay, and none is explored by copies.
    pub fn set_adaptive(&mut self, used: bool) {
        self.idle = !used;
    }

    /// Looks at the paths anew; call it before a round of `choose`. Tells whether the chosen set was
    /// looked at too.
    pub fn refresh(&mut self, now: Time, paths: &[PathView]) -> bool {
        self.weighted.refresh(paths);
        self.adaptive.refresh(now, paths)
    }

    /// Forgets the chosen set, because a path came or went.
    pub fn reconsider(&mut self) {
        self.adaptive.reconsider();
        self.weighted.begin_anew();
    }

    /// The path that thin flows go by.
    pub fn fastest(&self) -> usize {
        self.adaptive.fastest()
    }

    /// Whether this path is worth its delay to a bulk flow.
    pub fn is_chosen(&self, path: usize) -> bool {
        self.idle || self.adaptive.is_chosen(path)
    }

    /// Since the last choice the fastest path had nothing to send for this share of the time;
    /// `spilled`: slower ones took something meanwhile.
    pub fn on_dry(&mut self, dry: f64, spilled: bool) {
        self.adaptive.on_dry(dry, spilled);
    }

    /// Whether `path`, which has room, takes from `flow`.
    pub fn choose(&mut self, now: Time, path: usize, paths: &[PathView], flow: &FlowView, room: Room) -> Choice {
        match flow.treatment.scheduler {
            Kind::Adaptive => self.adaptive.choose(path, paths, flow, room),
            Kind::Weighted => self.weighted.choose(path, paths, flow, room),
            Kind::Flow => self.flow.choose(now, path, paths, flow.bucket, room),
            Kind::Redundant => redundant::choose(path, paths, room),
        }
    }

    /// `path` took so much of a flow of that kind.
    pub fn on_taken(
        &mut self,
        now: Time,
        path: usize,
        paths: &[PathView],
        kind: Kind,
        bucket: FlowBucket,
        bytes: ByteCount,
    ) {
        match kind {
            Kind::Weighted => self.weighted.on_taken(path, paths, bytes),
            Kind::Flow => self.flow.on_taken(now, bucket),
            Kind::Adaptive | Kind::Redundant => {}
        }
    }

    /// The path that is to carry a copy of what `path` took of a `redundant` flow.
    pub fn twin_of(&self, path: usize, paths: &[PathView]) -> Option<usize> {
        redundant::twin(path, paths)
    }

    /// A packet of a `flow` flow, in either direction, told something of its MPTCP connection.
    pub fn on_word(&mut self, now: Time, bucket: FlowBucket, word: Word) {
        self.flow.on_word(now, bucket, word);
    }

    /// Whether `path` brings a packet that is to be sent again home before any other path would,
    /// with `ahead` bytes to be sent again before it. The path that lost it may well lose it again, which
    /// takes a round trip to mend.
    pub fn takes_resend(&self, path: usize, paths: &[PathView], ahead: ByteCount, lost_on: Option<usize>) -> bool {
        self.adaptive.takes_resend(path, paths, ahead, lost_on)
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

impl Room {
    /// All of it.
    fn take(self) -> Choice {
        Choice::Take { max_bytes: self.bytes, max_segments: self.segments }
    }
}

pub(crate) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
