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
//! Which paths may carry a flow at all, its rule says ([`Allowed`]): no scheduler looks at others.
//!
//! It chooses packet by packet. What holds for longer, such as which paths bulk flows use, the policy decides
//! (`policy`).

mod adaptive;
mod allowed;
mod connections;
mod flow;
mod redundant;
mod weighted;

pub use crate::policy::{MAX_PATHS, Weight};
pub use crate::treatment::Kind;
pub use adaptive::takes_retransmit;
pub use allowed::{Allowed, Candidate};
pub use connections::MptcpOption;

use crate::packet::FlowBucket;
use crate::policy::{Decisions, PathSet, PathView, Tuning};
use crate::queue::{Choice, FlowView};
use crate::treatment::{RuleId, Treatment};
use crate::units::{ByteCount, Time};
use flow::{ByFlow, Tagged};
use weighted::Weighted;

/// What is known while a round of packets is given out. Made anew for each; a plain view.
#[derive(Copy, Clone)]
pub struct Round<'a> {
    /// The present.
    pub now: Time,
    /// The paths.
    pub paths: &'a [PathView],
    /// Which of them may carry what.
    pub allowed: &'a Allowed,
    /// What was decided on them.
    pub decisions: &'a Decisions,
    /// The policy's constants.
    pub tuning: &'a Tuning,
}

/// All schedulers of a session, each with what it remembers. Starts without preference; one session owns it.
#[derive(Default)]
pub struct Scheduler {
    weighted: Weighted,
    /// Those of rules that name links.
    weighted_by_rule: Vec<(RuleId, Weighted)>,
    flow: ByFlow,
}

impl Scheduler {
    /// Follows the rules: those that name links have shares of their own.
    pub fn follow(&mut self, allowed: &Allowed) {
        self.weighted_by_rule.clear();
        self.weighted_by_rule.extend(allowed.rules().map(|rule| (rule, Weighted::default())));
    }

    /// Follows the paths; call it before a round of `choose`. `anew`: a path came or went.
    pub fn refresh(&mut self, paths: &[PathView], allowed: &Allowed, anew: bool) {
        let everybodys = [(RuleId::default(), &mut self.weighted)];
        for (rule, weighted) in everybodys.into_iter().chain(self.weighted_by_rule.iter_mut().map(|(r, w)| (*r, w))) {
            if anew {
                weighted.begin_anew();
            }
            let set = allowed.of(rule);
            let weight = |(at, view): (usize, &PathView)| {
                set.contains(at).then(|| allowed.weight(rule, at).unwrap_or(view.weight))
            };
            weighted.refresh(paths, paths.iter().enumerate().map(weight));
        }
    }

    /// Whether `path`, which has room, takes from `flow`.
    pub fn choose(&mut self, round: &Round<'_>, path: usize, flow: &FlowView, room: Room) -> Choice {
        let Round { now, paths, allowed, .. } = *round;
        let set = allowed.of(flow.treatment.rule);
        if !set.contains(path) {
            return Choice::Foreign;
        }
        match flow.treatment.scheduler {
            Kind::Adaptive => adaptive::choose(round, path, set, flow, room),
            Kind::Weighted => self.weighted_of(flow.treatment.rule).choose(path, flow, room),
            Kind::Flow => self.flow.choose(now, path, paths, set, (flow.bucket, flow.tag), room),
            Kind::Redundant => redundant::choose(path, paths, set, room),
        }
    }

    fn weighted_of(&mut self, rule: RuleId) -> &mut Weighted {
        let own = self.weighted_by_rule.iter_mut().find(|(of, _)| *of == rule);
        own.map_or(&mut self.weighted, |(_, weighted)| weighted)
    }

    /// `path` took so much of a flow that is treated so.
    pub fn on_taken(&mut self, now: Time, path: usize, treatment: Treatment, bucket: FlowBucket, bytes: ByteCount) {
        match treatment.scheduler {
            Kind::Weighted => self.weighted_of(treatment.rule).on_taken(path, bytes),
            Kind::Flow => self.flow.on_taken(now, bucket),
            Kind::Adaptive | Kind::Redundant => {}
        }
    }

    /// The path that is to carry a redundant copy of what `path` took of a `redundant` flow that these may carry.
    pub fn twin_of(&self, path: usize, paths: &[PathView], set: PathSet) -> Option<usize> {
        redundant::twin(path, paths, set)
    }

    /// A packet of a `flow` flow, in either direction, told something of its MPTCP connection.
    pub fn on_mptcp_option(&mut self, now: Time, flow: Tagged, option: MptcpOption) {
        self.flow.on_mptcp_option(now, flow, option);
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
