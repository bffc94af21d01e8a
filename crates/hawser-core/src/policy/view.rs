//! What the policy knows: a snapshot of each path, and of what waits.

use crate::units::{PathId, Rate, Time};
use std::time::Duration;

/// A path's part of what `weighted` sends, beside the parts of the others. One by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Weight(u8);

impl Default for Weight {
    fn default() -> Weight {
        Weight(1)
    }
}

impl Weight {
    /// From 1 to 255.
    pub const fn new(parts: u8) -> Option<Weight> {
        if parts == 0 { None } else { Some(Weight(parts)) }
    }

    /// The number of parts.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// What is known of a path when it is decided on. A plain snapshot, made anew for each round.
#[derive(Copy, Clone, Debug)]
pub struct PathView {
    /// Its name.
    pub id: PathId,
    /// Its part of what `weighted` sends.
    pub weight: Weight,
    /// The path may carry inner packets: active, and of the lowest tier that works.
    pub usable: bool,
    /// One-way delay in µs on a scale common to the session's paths, jitter apart.
    pub delay_us: i64,
    /// The same without queues that do not stand: what the path would cost a bulk flow.
    pub floor_us: i64,
    /// Mean deviation of that delay in µs.
    pub jitter_us: i64,
    /// The round trip of an average packet, without queues.
    pub least_rtt: Duration,
    /// How much of that lies beyond the fastest packets' round trip, where packets overtake each other.
    pub spread: Duration,
    /// What the path carries, as its controller believes; `None` while unknown.
    pub rate: Option<Rate>,
    /// How much what it delivers changes from one half second to the next, on the average: a natural logarithm; `None`
    /// while that is not known.
    pub variation: Option<f64>,
    /// The share of packets that the path loses, 0 to 1, smoothed.
    pub loss: f64,
    /// How long until the path has window and credit for one more packet.
    pub ready_in: Duration,
    /// The controller has not yet found the path's rate: it must be fed to find it.
    pub probing: bool,
    /// For how long altogether the path could have sent and had nothing to send.
    pub idle_for: Duration,
    /// When it last carried what another scheduler than `adaptive` gave it.
    pub last_given: Time,
    /// Since when what is known of its rate counts: it was opened, or restarted, then.
    pub known_since: Time,
}

/// What is known of the flows. Nothing waits by default; a plain snapshot.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowsView {
    /// Any flow may be `adaptive`: else no path is left out for its delay, and none is probed with copies.
    pub adaptive: bool,
    /// Batches that other paths than the fastest took altogether.
    pub overflows: u64,
}
