//! Before paths are asked: what is known is refreshed, the policy decides, and what it decided is applied.
//!
//! 1. Every path is looked at anew; which may carry what, `scheduler::Allowed` says.
//! 2. The policy decides (`policy`).
//! 3. Its decisions go to the parts that they are for. Nothing is decided here.

use super::Session;
use super::path::Path;
use super::redundant_copies::RedundantCopies;
use super::retransmit::SegmentRecord;
use crate::policy::{Decisions, FlowsView, PathSet, PathView, Policy, Tuning, tier};
use crate::rules::{RuleId, Rules};
use crate::scheduler::{Allowed, Candidate, Round, Scheduler};
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

/// Which path carries what. Begins where any may carry all, and none is known; the session owns it.
pub(super) struct Scheduling {
    /// What is known of each path.
    pub views: Vec<PathView>,
    pub policy: Policy,
    /// Which paths may carry what.
    pub allowed: Allowed,
    pub scheduler: Scheduler,
    /// What the policy is told of the flows.
    flows: FlowsView,
}

impl Scheduling {
    pub fn new(now: Time, tuning: Tuning) -> Self {
        Scheduling {
            views: Vec::new(),
            policy: Policy::new(now, tuning),
            allowed: Allowed::default(),
            scheduler: Scheduler::default(),
            flows: FlowsView { adaptive: true, overflows: 0 },
        }
    }

    /// Steps 1 and 2.
    fn refresh(&mut self, now: Time, paths: &mut [Path]) -> Decisions {
        self.allowed.refresh(paths.iter().map(|path| path.candidate(now)));
        let (usable, any) = (self.allowed.of(RuleId::default()), self.allowed.any());
        let scale = paths.iter().find_map(Path::scale).unwrap_or(0);
        self.views.clear();
        for (index, path) in paths.iter_mut().enumerate() {
            let carries = any.contains(index);
            self.views.push(path.view(now, usable.contains(index), carries, scale));
            if carries { path.note_pacing(now) } else { path.stall.paced_until = None }
        }
        self.policy.update(now, &self.views, &self.flows)
    }

    /// Only what its rule still lets go by another path is to be copied.
    fn keep_copies(&self, copies: &mut RedundantCopies) {
        let place = |id: PathId| self.views.iter().position(|view| view.id == id);
        let set = |record: &SegmentRecord| self.allowed.of(record.rule());
        let by = |record: &SegmentRecord, twin| place(twin).is_some_and(|at| set(record).contains(at));
        let beside = |record: &SegmentRecord, path| {
            let without = place(path).map_or(PathSet::NONE, |at| PathSet::NONE.with(at));
            !set(record).without(without).is_empty()
        };
        copies.keep(by, beside);
    }

    /// The path that brings a packet home soonest.
    pub fn fastest(&self) -> usize {
        self.policy.decisions().fastest
    }

    /// Whether a path says what concerns the whole session: the fastest that works.
    pub fn is_spokesman(&self, paths: &[Path], index: usize) -> bool {
        let works = |path: &Path| path.health.is_active();
        let fastest = self.fastest();
        match paths.get(fastest) {
            Some(path) if works(path) => index == fastest,
            _ => paths.iter().position(works) == Some(index),
        }
    }

    /// Of the paths that have room and are not among those `asked`, the one with the least delay.
    pub fn next_to_ask(&self, asked: u64) -> Option<usize> {
        let (fastest, any) = (self.fastest(), self.allowed.any());
        let may = |index, view: &PathView| any.contains(index) && view.ready_in.is_zero() && asked & (1 << index) == 0;
        let ready = self.views.iter().enumerate().filter(|(index, view)| may(*index, view));
        ready.min_by_key(|(index, view)| (view.delay_us, *index != fastest)).map(|(index, _)| index)
    }

    /// The path that a `redundant` flow's packets of a rule go by too.
    pub fn twin_of(&self, index: usize, rule: RuleId) -> Option<PathId> {
        let twin = self.scheduler.twin_of(index, &self.views, self.allowed.of(rule));
        twin.map(|twin| self.views[twin].id)
    }

    /// A path took a batch, some of which might have gone by another.
    pub fn note_free_batch(&mut self, index: usize) {
        self.flows.overflows += u64::from(index != self.fastest());
    }

    /// What the scheduler is told for each packet.
    pub fn round(&self, now: Time) -> Round<'_> {
        let (decisions, tuning) = (self.policy.decisions(), self.policy.tuning());
        Round { now, paths: &self.views, allowed: &self.allowed, decisions, tuning }
    }

    /// These are the rules from now on.
    fn follow_rules(&mut self, rules: &Rules) {
        self.flows.adaptive = rules.adaptive();
        self.allowed.follow(rules);
        self.scheduler.follow(&self.allowed);
        self.policy.reconsider();
    }
}

impl Session {
    /// Looks at every path anew, and does what follows.
    pub(super) fn refresh_views(&mut self, now: Time) {
        let decisions = self.scheduling.refresh(now, &mut self.paths);
        self.apply(now, &decisions);
    }

    /// Step 3.
    fn apply(&mut self, now: Time, decisions: &Decisions) {
        let Session { scheduling, copies, paths, outbound, settings, .. } = self;
        scheduling.keep_copies(copies);
        copies.want(decisions.probes.copies_kept);
        scheduling.scheduler.refresh(&scheduling.views, &scheduling.allowed, decisions.anew);
        for index in decisions.probes.restart.iter() {
            paths[index].restart(now, settings);
        }
        if let Some(aqm) = decisions.aqm {
            outbound.queue.set_limit(aqm.limit);
            outbound.queue.set_quantum(aqm.quantum);
            outbound.queue.set_codel(aqm.target, aqm.interval);
            outbound.queue.set_kept(aqm.kept);
        }
        outbound.queue.set_ack_spacing(decisions.ack_filter);
    }

    /// These are the rules from now on.
    pub(super) fn follow_rules(&mut self, rules: &Rules) {
        self.scheduling.follow_rules(rules);
        self.paths.follow_rules(rules);
    }
}
