//! Before paths are asked: what is known is refreshed, the policy decides, and what it decided is applied.
//!
//! 1. Every path is looked at anew; which may carry what, `scheduler::Allowed` says.
//! 2. The policy decides (`policy`).
//! 3. Its decisions go to the parts that they are for. Nothing is decided here.

use super::Session;
use super::path::Path;
use super::retransmit::SegmentRecord;
use crate::policy::{Decisions, FlowsView, PathSet, Tuning, tier};
use crate::rules::{RuleId, Rules};
use crate::scheduler::{Candidate, Round};
use crate::units::{PathId, Time};

impl Path {
    /// A suspect path may be late and nothing worse: its tier is not left before the probe could have been answered.
    pub(super) fn doubted_until(&self) -> Option<Time> {
        let since = self.health.suspect_since().filter(|_| self.offer.is_open())?;
        Some(tier::doubted_until(&self.tuning.tier, since, self.way.rtt.snapshot().smoothed))
    }

    fn candidate(&self, now: Time) -> Candidate {
        let doubted = || self.doubted_until().is_some_and(|until| now < until);
        let works = self.works();
        Candidate { link: self.offer.terms.name, works, hoped_for: works || doubted(), tier: self.offer.tier() }
    }
}

impl Session {
    /// Looks at every path anew, and does what follows.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.allowed.refresh(self.paths.iter().map(|path| path.candidate(now)));
        let (usable, any) = (self.allowed.of(RuleId::default()), self.allowed.any());
        let scale = self.paths.iter().find_map(Path::scale).unwrap_or(0);
        self.views.clear();
        for (index, path) in self.paths.iter_mut().enumerate() {
            let carries = any.contains(index);
            self.views.push(path.view(now, usable.contains(index), carries, scale));
            if carries { path.note_pacing(now) } else { path.stall.paced_until = None }
        }
        let flows = FlowsView { adaptive: self.adaptive, overflows: self.overflows };
        let decisions = self.policy.update(now, &self.views, &flows);
        self.apply(now, &decisions);
    }

    /// Step 3.
    fn apply(&mut self, now: Time, decisions: &Decisions) {
        let (views, allowed) = (&self.views, &self.allowed);
        let place = |id: PathId| views.iter().position(|view| view.id == id);
        let by = |record: &SegmentRecord, twin| place(twin).is_some_and(|at| allowed.of(record.rule()).contains(at));
        let beside = |record: &SegmentRecord, path| {
            let without = place(path).map_or(PathSet::NONE, |at| PathSet::NONE.with(at));
            !allowed.of(record.rule()).without(without).is_empty()
        };
        self.copies.keep(by, beside);
        self.copies.want(decisions.probes.copies_kept);
        self.scheduler.refresh(&self.views, &self.allowed, decisions.anew);
        for index in decisions.probes.restart.iter() {
            self.paths[index].restart(now, &self.settings);
        }
        if let Some(aqm) = decisions.aqm {
            self.queue.set_limit(aqm.limit);
            self.queue.set_quantum(aqm.quantum);
            self.queue.set_codel(aqm.target, aqm.interval);
        }
        self.queue.set_ack_spacing(decisions.ack_filter);
    }

    /// What the scheduler is told for each packet.
    pub(super) fn round(&self, now: Time) -> Round<'_> {
        Round {
            now,
            paths: &self.views,
            allowed: &self.allowed,
            decisions: self.policy.decisions(),
            tuning: self.policy.tuning(),
        }
    }

    /// These are the rules from now on. What paths carried of a new one counts from zero.
    pub(super) fn follow_rules(&mut self, rules: &Rules) {
        self.adaptive = rules.adaptive();
        self.allowed.follow(rules);
        self.scheduler.follow(&self.allowed);
        self.rules = std::iter::once(RuleId::default()).chain(rules.known().map(|rule| rule.treatment.rule)).collect();
        self.rules.sort_unstable();
        self.paths.iter_mut().for_each(|path| path.counts.follow_rules(&self.rules));
        self.policy.reconsider();
    }

    /// The policy's constants.
    pub(super) fn tuning(&self) -> &Tuning {
        self.policy.tuning()
    }
}
