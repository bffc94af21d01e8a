//! What waits to be retransmitted: one queue for most flows, and one for each rule that names links.
//!
//! The oldest segment of a queue holds up the rest of it. What may go by some paths only must not hold up what others
//! could carry.

use super::{RetransmitQueue, SegmentRecord};
use crate::rules::RuleId;
use crate::units::{ByteCount, Time};
use std::time::Duration;

/// The queues. Empty at first; one session owns them. A rule's comes with its first loss, and goes when it is empty and
/// another comes.
#[derive(Default)]
pub(in crate::session) struct Retransmits {
    open: RetransmitQueue,
    by_rule: Vec<(RuleId, RetransmitQueue)>,
}

impl Retransmits {
    /// Adds all of `lost`, each to its queue, and leaves it empty. `is_bound`: a rule names links.
    pub fn extend(&mut self, lost: &mut Vec<SegmentRecord>, is_bound: impl Fn(RuleId) -> bool) {
        self.open.extend(lost.iter().copied().filter(|record| !is_bound(record.rule())));
        lost.retain(|record| is_bound(record.rule()));
        while let Some(rule) = lost.first().map(SegmentRecord::rule) {
            self.of(rule).extend(lost.iter().copied().filter(|record| record.rule() == rule));
            lost.retain(|record| record.rule() != rule);
        }
    }

    fn of(&mut self, rule: RuleId) -> &mut RetransmitQueue {
        let known = self.by_rule.iter().position(|(of, _)| *of == rule);
        let at = known.unwrap_or_else(|| {
            self.by_rule.retain(|(_, queue)| !queue.is_empty() || !queue.refused.is_empty());
            self.by_rule.push((rule, RetransmitQueue::default()));
            self.by_rule.len() - 1
        });
        &mut self.by_rule[at].1
    }

    /// The rule of each queue; none of that for most flows, which comes first.
    pub fn rule(&self, queue: usize) -> Option<RuleId> {
        if queue == 0 { Some(RuleId::default()) } else { self.by_rule.get(queue - 1).map(|(rule, _)| *rule) }
    }

    /// The queue at that place.
    pub fn queue(&mut self, at: usize) -> &mut RetransmitQueue {
        if at == 0 { &mut self.open } else { &mut self.by_rule[at - 1].1 }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut RetransmitQueue> {
        std::iter::once(&mut self.open).chain(self.by_rule.iter_mut().map(|(_, queue)| queue))
    }

    /// Takes out a segment that arrived after all, if it still waits.
    pub fn cancel(&mut self, wanted: &SegmentRecord) -> Option<SegmentRecord> {
        let own = self.by_rule.iter_mut().find(|(rule, _)| *rule == wanted.rule());
        own.and_then(|(_, queue)| queue.cancel(wanted)).or_else(|| self.open.cancel(wanted))
    }

    /// Takes a segment that is not to be retransmitted.
    pub fn pop_refused(&mut self) -> Option<SegmentRecord> {
        self.all().find_map(RetransmitQueue::pop_refused)
    }

    /// Takes a segment that is of no use any more: first sent longer ago than `useful` says for its rule, or tried too
    /// often.
    pub fn pop_useless(&mut self, now: Time, useful: impl Fn(RuleId) -> Duration) -> Option<SegmentRecord> {
        let of_rules = self.by_rule.iter_mut().map(|(rule, queue)| (*rule, queue));
        let mut all = std::iter::once((RuleId::default(), &mut self.open)).chain(of_rules);
        all.find_map(|(rule, queue)| queue.pop_useless(now, useful(rule)))
    }

    /// Takes any segment: the session ends.
    pub fn pop_any(&mut self) -> Option<SegmentRecord> {
        self.all().find_map(RetransmitQueue::pop_any)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> ByteCount {
        self.by_rule.iter().fold(self.open.bytes(), |bytes, (_, queue)| bytes + queue.bytes())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.by_rule.iter().all(|(_, queue)| queue.is_empty())
    }
}
