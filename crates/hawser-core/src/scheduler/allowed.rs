//! Which paths may carry a flow: the one place where tiers and the links of rules decide.
//!
//! 1. [`Allowed::follow`] takes over the rules; only those that name links are kept.
//! 2. [`Allowed::refresh`] looks at the paths, before each round: of most flows those of the lowest tier that works; of
//!    a rule with links those of the first link that works, in whatever tier (of `redundant` the first two, of shares
//!    all).
//! 3. [`Allowed::of`] answers for a packet, whatever is to be done with it: sent, retransmitted, copied or repaired.
//!
//! A path that is suspect may be late and nothing worse, so its link counts as working while its tier does
//! (`policy::tier`).

use crate::policy::{PathSet, Weight, tier};
use crate::rules::{Rules, Via};
use crate::treatment::{Kind, RuleId};
use crate::units::LinkTag;

/// What is known of a path for that. A plain value.
#[derive(Copy, Clone, Debug)]
pub struct Candidate {
    /// Its link.
    pub link: LinkTag,
    /// It may carry inner packets, as far as it knows itself.
    pub works: bool,
    /// It does, or may: nobody knows yet.
    pub hoped_for: bool,
    /// Its tier.
    pub tier: u16,
}

/// A rule that names links.
#[derive(Debug)]
struct Bound {
    via: Via,
    /// How many of its links carry at a time.
    breadth: usize,
    paths: PathSet,
    /// It is strict, and none of its links works, or may.
    hopeless: bool,
}

/// The paths of each rule. Without rules, and without paths, at first; the session owns it.
#[derive(Debug, Default)]
pub struct Allowed {
    /// By the rules' numbers; none for those that name no link.
    bounds: Vec<Option<Bound>>,
    candidates: Vec<Candidate>,
    usable: PathSet,
    any: PathSet,
}

impl Allowed {
    /// Step 1.
    pub fn follow(&mut self, rules: &Rules) {
        self.bounds.clear();
        for rule in rules.known().filter(|rule| !rule.via.is_any()) {
            let at = usize::from(rule.treatment.rule.0);
            self.bounds.resize_with(self.bounds.len().max(at + 1), || None);
            let breadth = match (rule.via.shared, rule.treatment.scheduler) {
                (true, _) => rule.via.links.len(),
                (false, Kind::Redundant) => 2,
                (false, _) => 1,
            };
            // Until the paths were looked at, nothing may go.
            self.bounds[at] = Some(Bound { via: rule.via.clone(), breadth, paths: PathSet::NONE, hopeless: false });
        }
    }

    /// Step 2.
    pub fn refresh(&mut self, candidates: impl Iterator<Item = Candidate>) {
        self.candidates.clear();
        self.candidates.extend(candidates);
        let (candidates, bounds) = (&self.candidates, &mut self.bounds);
        let present = tier::present(candidates.iter().filter(|path| path.hoped_for).map(|path| path.tier));
        self.usable = places(candidates, |path| Some(path.tier) == present);
        self.any = self.usable;
        for bound in bounds.iter_mut().flatten() {
            bound.refresh(candidates, self.usable);
            self.any = self.any.and(bound.paths);
        }
    }

    /// Step 3: the paths that may carry packets of this rule.
    pub fn of(&self, rule: RuleId) -> PathSet {
        self.bound(rule).map_or(self.usable, |bound| bound.paths)
    }

    /// The paths that may carry any packet.
    pub fn any(&self) -> PathSet {
        self.any
    }

    /// Whether the rule names links.
    pub fn is_bound(&self, rule: RuleId) -> bool {
        self.bound(rule).is_some()
    }

    /// Whether any rule does.
    pub fn binds(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Whether no path is to be hoped for that may carry packets of this rule.
    pub fn is_hopeless(&self, rule: RuleId) -> bool {
        self.bound(rule).is_some_and(|bound| bound.hopeless)
    }

    /// The path's part of what a rule's links share by weights of its own; none where it has none, or gets nothing.
    pub fn weight(&self, rule: RuleId, path: usize) -> Option<Weight> {
        let bound = self.bound(rule).filter(|bound| bound.via.shared)?;
        let link = self.candidates.get(path)?.link;
        bound.via.links.iter().find(|(tag, _)| *tag == link).map(|(_, weight)| *weight)
    }

    /// The rules that name links.
    pub fn rules(&self) -> impl Iterator<Item = RuleId> + '_ {
        (0..).map(RuleId).zip(&self.bounds).filter(|(_, bound)| bound.is_some()).map(|(rule, _)| rule)
    }

    fn bound(&self, rule: RuleId) -> Option<&Bound> {
        self.bounds.get(usize::from(rule.0))?.as_ref()
    }
}

impl Bound {
    fn refresh(&mut self, candidates: &[Candidate], usable: PathSet) {
        self.paths = PathSet::NONE;
        let mut left = self.breadth;
        for (link, _) in &self.via.links {
            let hoped_for = candidates.iter().any(|path| path.link == *link && path.hoped_for);
            if left > 0 && hoped_for {
                left -= 1;
                self.paths = self.paths.and(places(candidates, |path| path.link == *link));
            }
        }
        let none = left == self.breadth;
        self.hopeless = none && self.via.strict;
        if none && !self.via.strict {
            self.paths = usable;
        }
    }
}

/// The places of the paths that work, of those that fit.
fn places(candidates: &[Candidate], fits: impl Fn(&Candidate) -> bool) -> PathSet {
    candidates.iter().enumerate().filter(|(_, path)| path.works && fits(path)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests;
