//! Before paths are asked: what is known is refreshed, the policy decides, and what it decided is applied.
//!
//! 1. Every path is looked at anew; only those of the lowest tier that works are usable.
//! 2. The policy decides (`policy`).
//! 3. Its decisions go to the parts that they are for. Nothing is decided here.

use super::Session;
use super::path::Path;
use crate::policy::{Decisions, FlowsView, Tuning, tier};
use crate::scheduler::Round;
use crate::units::Time;

impl Path {
    /// A suspect path may be late and nothing worse: its tier is not left before the probe could have been answered.
    pub(super) fn doubted_until(&self) -> Option<Time> {
        let since = self.health.suspect_since().filter(|_| self.is_offered())?;
        Some(tier::doubted_until(&self.tuning.tier, since, self.rtt.snapshot().smoothed))
    }
}

impl Session {
    /// Looks at every path anew, and does what follows.
    pub(super) fn refresh_views(&mut self, now: Time) {
        let works =
            self.paths.iter().filter(|path| path.works() || path.doubted_until().is_some_and(|until| now < until));
        let tier = tier::present(works.map(Path::tier));
        let scale = self.paths.iter().find_map(Path::scale).unwrap_or(0);
        self.views.clear();
        for path in &mut self.paths {
            let usable = path.works() && Some(path.tier()) == tier;
            self.views.push(path.view(now, usable, scale));
            if usable { path.note_pacing(now) } else { path.paced_until = None }
        }
        let flows = FlowsView { adaptive: self.adaptive, overflows: self.overflows };
        let decisions = self.policy.update(now, &self.views, &flows);
        self.apply(now, &decisions);
    }

    /// Step 3.
    fn apply(&mut self, now: Time, decisions: &Decisions) {
        if !decisions.reinjection.second_path {
            self.copies.forget_reinjections();
        }
        let views = &self.views;
        self.copies.keep_twins(|id| views.iter().any(|view| view.id == id && view.usable));
        self.copies.want(decisions.probes.copies_kept);
        self.scheduler.refresh(&self.views, decisions.anew);
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
        Round { now, paths: &self.views, decisions: self.policy.decisions(), tuning: self.policy.tuning() }
    }

    /// The policy's constants.
    pub(super) fn tuning(&self) -> &Tuning {
        self.policy.tuning()
    }
}
