//! Which path a packet goes by.
//!
//! Paths pull: one that has window and pacing credit asks, flow by flow, whether it may take the head of that flow's
//! queue. The scheduler of the flow's treatment answers:
//!
//! - `adaptive`: a path takes what it delivers soonest.
//! - `weighted`: a path takes its fixed share, and no more.
//! - `flow`: a path takes the flows that are its own.
//! - `redundant`: the two best paths take, and each sends redundant copies of what the other took.
//!
//! It chooses packet by packet. What holds for longer, such as which paths bulk flows use, the policy decides
//! (`policy`).

mod adaptive;
mod connections;
mod flow;
mod redundant;
mod weighted;

pub use crate::policy::{MAX_PATHS, Weight};
pub use adaptive::takes_retransmit;
pub use connections::MptcpOption;

use crate::packet::FlowBucket;
use crate::policy::{Decisions, PathView, Tuning};
use crate::queue::{Choice, FlowView};
use crate::units::{ByteCount, Time};
use flow::ByFlow;
use weighted::Weighted;

/// The schedulers that a user may choose. `Adaptive` by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// Each path takes what it delivers soonest.
    #[default]
    Adaptive,
    /// Each path takes a fixed share.
    Weighted,
    /// A flow stays on one path.
    Flow,
    /// Every packet goes by the two best paths.
    Redundant,
}

/// What is known while a round of packets is given out. Made anew for each; a plain view.
#[derive(Copy, Clone)]
pub struct Round<'a> {
    /// The present.
    pub now: Time,
    /// The paths.
    pub paths: &'a [PathView],
    /// What was decided on them.
    pub decisions: &'a Decisions,
    /// The policy's constants.
    pub tuning: &'a Tuning,
}

/// All schedulers of a session, each with what it remembers. Starts without preference; one session owns it.
#[derive(Default)]
pub struct Scheduler {
    weighted: Weighted,
    flow: ByFlow,
}

impl Scheduler {
    /// Follows the paths; call it before a round of `choose`. `anew`: a path came or went.
    pub fn refresh(&mut self, paths: &[PathView], anew: bool) {
        if anew {
            self.weighted.begin_anew();
        }
        self.weighted.refresh(paths);
    }

    /// Whether `path`, which has room, takes from `flow`.
    pub fn choose(&mut self, round: &Round<'_>, path: usize, flow: &FlowView, room: Room) -> Choice {
        let Round { now, paths, .. } = *round;
        match flow.treatment.scheduler {
            Kind::Adaptive => adaptive::choose(round, path, flow, room),
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

    /// The path that is to carry a redundant copy of what `path` took of a `redundant` flow.
    pub fn twin_of(&self, path: usize, paths: &[PathView]) -> Option<usize> {
        redundant::twin(path, paths)
    }

    /// A packet of a `flow` flow, in either direction, told something of its MPTCP connection.
    pub fn on_mptcp_option(&mut self, now: Time, bucket: FlowBucket, option: MptcpOption) {
        self.flow.on_mptcp_option(now, bucket, option);
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

#[cfg(test)]
mod tests;
