//! What the queue and the paths say to each other.

use super::codel::{INTERVAL, TARGET};
use crate::packet::{FlowBucket, SegmentRef, TrainId};
use crate::treatment::Treatment;
use crate::units::ByteCount;
use std::num::NonZeroU32;
use std::time::Duration;

/// Most bytes that may wait, until told otherwise. CoDel keeps it far shorter; this bounds memory.
pub const LIMIT: ByteCount = ByteCount(8 << 20);
/// The largest inner packet that is reckoned with, and the least quantum, bytes (RFC 8290 section 5.2.4).
pub const QUANTUM: ByteCount = ByteCount(1_514);

/// What can be set. RFC 8290's values by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueParams {
    /// Most bytes that may wait.
    pub limit: ByteCount,
    /// Largest inner packet, at least one byte: the least quantum, and what CoDel lets wait in any case.
    pub mtu: ByteCount,
    /// CoDel's acceptable delay.
    pub target: Duration,
    /// CoDel's interval.
    pub interval: Duration,
}

impl Default for QueueParams {
    fn default() -> QueueParams {
        QueueParams { limit: LIMIT, mtu: QUANTUM, target: TARGET, interval: INTERVAL }
    }
}

/// What a path sees of a flow whose turn it is. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FlowView {
    /// Which flow.
    pub bucket: FlowBucket,
    /// What tells it from others that had the bucket.
    pub tag: Option<NonZeroU32>,
    /// Bytes of it that wait.
    pub backlog: ByteCount,
    /// Bytes of all flows that wait.
    pub queue_backlog: ByteCount,
    /// It has not used up a quantum since it was last idle (RFC 8290's new flows).
    pub sparse: bool,
    /// How long its next segment has waited.
    pub head_wait: Duration,
    /// Bytes of its next segment.
    pub head_len: ByteCount,
    /// Time since it last had nothing waiting.
    pub backlogged_for: Duration,
    /// Bytes pulled since then.
    pub sent_in_burst: ByteCount,
    /// Flows that have something waiting.
    pub flows: usize,
    /// How its next segment is treated.
    pub treatment: Treatment,
}

/// A path's answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// At most so much of it; nothing when the next segment is bigger.
    Take {
        /// Bytes of inner packets.
        max_bytes: ByteCount,
        /// Segments.
        max_segments: u16,
    },
    /// Not this flow; it keeps its turn for another path.
    Skip,
    /// The same of a flow that is another path's own: many of them may stand before one of this path's.
    Foreign,
    /// It can go nowhere: its next segment is dropped.
    Discard,
    /// Nothing more.
    Stop,
}

/// Consecutive segments of one train; whoever has them owes the store a `release` for each. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pulled {
    /// The train.
    pub train: TrainId,
    /// The first segment.
    pub first: u16,
    /// How many; at least one.
    pub count: u16,
    /// The flow bucket.
    pub bucket: FlowBucket,
    /// Bytes of these segments.
    pub bytes: ByteCount,
    /// CoDel marked the first segment CE; the store writes it so.
    pub marked: bool,
    /// The flow is sparse: little of it was pulled lately, and nothing of it waited.
    pub sparse: bool,
}

/// Why a segment was dropped.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// The flow's packets waited too long.
    Codel,
    /// A newer acknowledgement took its place.
    AckFiltered,
    /// It waited longer than it can be of use, and no path took it.
    Old,
    /// No path may carry it.
    Discarded,
}

/// A dropped segment. It has been released already. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Dropped {
    /// Which.
    pub segment: SegmentRef,
    /// The flow bucket.
    pub bucket: FlowBucket,
    /// Its bytes.
    pub bytes: ByteCount,
    /// Why.
    pub reason: DropReason,
}
