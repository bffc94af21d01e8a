//! The paths of a session, and what holds for all of them.

use super::constants::{INITIAL_RTT, SILENCE, SILENCE_LEAST, SILENCE_PTOS};
use super::path::Path;
use super::path_ids::PathIds;
use super::{Route, Settings, Terms};
use crate::congestion;
use crate::path::health::HealthState;
use crate::path::health::Others;
use crate::path::validation::PathValidation;
use crate::rules::{RuleId, Rules};
use crate::transport::Transport;
use crate::units::{LinkGroup, LinkId, PathId, Time};
use crate::wire::Label;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The paths of a session, as a slice, and by what they begin. Empty at first; the session owns it.
pub(super) struct Paths {
    list: Vec<Path>,
    pub ids: PathIds,
    /// How each link carries datagrams; one that is unknown counts as UDP.
    transports: Vec<(LinkId, Transport)>,
    /// Of the configured links: those that are not as by default.
    terms: Vec<(LinkGroup, Terms)>,
    /// The numbers of the rules, in order; zero first.
    rules: Vec<RuleId>,
    /// What the controller that hears of an acknowledgement knows of the others.
    siblings: Vec<congestion::PathSnapshot>,
}

impl Deref for Paths {
    type Target = [Path];

    fn deref(&self) -> &[Path] {
        &self.list
    }
}

impl DerefMut for Paths {
    fn deref_mut(&mut self) -> &mut [Path] {
        &mut self.list
    }
}

impl Paths {
    /// Those of a side that is 0 or 1.
    pub fn new(side: u32) -> Self {
        Paths {
            list: Vec::new(),
            ids: PathIds::new(side),
            transports: Vec::new(),
            terms: Vec::new(),
            rules: vec![RuleId::default()],
            siblings: Vec::new(),
        }
    }

    /// Learns how a link carries datagrams, before any path goes by it.
    pub fn learn_link(&mut self, link: LinkId, transport: Transport) {
        self.transports.retain(|(known, _)| *known != link);
        self.transports.push((link, transport));
    }

    /// How a link carries datagrams.
    pub fn transport(&self, link: LinkId) -> Transport {
        let known = self.transports.iter().find(|(known, _)| *known == link);
        known.map_or_else(Transport::default, |(_, transport)| *transport)
    }

    /// Learns the terms of a configured link.
    pub fn set_terms(&mut self, group: LinkGroup, terms: Terms) {
        self.terms.retain(|(known, _)| *known != group);
        self.terms.push((group, terms));
    }

    /// The terms of a configured link; the usual ones of all others.
    pub fn terms_of(&self, group: Option<LinkGroup>) -> Terms {
        let known = self.terms.iter().find(|(known, _)| group == Some(*known));
        known.map_or_else(Terms::default, |(_, terms)| *terms)
    }

    /// Adds a path, which is validated first. Tells where it stands.
    pub fn add(
        &mut self,
        now: Time,
        (id, label): (PathId, Label),
        route: Route,
        metric: u16,
        settings: &Settings,
        validation: PathValidation<Route>,
    ) -> usize {
        let mut path = Path::new(id, (route, self.transport(route.link)), metric, settings, validation, label);
        path.validation.begin(now);
        path.health.on_probe();
        path.follow_controller();
        path.counts.follow_rules(&self.rules);
        self.list.push(path);
        self.list.len() - 1
    }

    /// Forgets those that are closed. Tells whether there were any.
    pub fn sweep_closed(&mut self) -> bool {
        let before = self.list.len();
        self.list.retain(|path| !path.is_closed());
        self.list.len() != before
    }

    /// Where a path stands.
    pub fn index_of(&self, id: PathId) -> Option<usize> {
        self.list.iter().position(|path| path.id == id)
    }

    /// Whether this side gave the id.
    pub fn is_ours(&self, id: PathId) -> bool {
        self.ids.is_ours(id)
    }

    /// These are the rules from now on. What paths carried of a new one counts from zero.
    pub fn follow_rules(&mut self, rules: &Rules) {
        self.rules = std::iter::once(RuleId::default()).chain(rules.known().map(|rule| rule.treatment.rule)).collect();
        self.rules.sort_unstable();
        self.list.iter_mut().for_each(|path| path.counts.follow_rules(&self.rules));
    }

    /// Whether another path could take this one's place.
    pub fn others(&self, index: usize) -> Others {
        let works = self.list.iter().enumerate().any(|(other, path)| other != index && path.works());
        if works { Others::Work } else { Others::None }
    }

    /// The lowest tier that works.
    pub fn used_tier(&self) -> Option<u16> {
        self.list.iter().filter(|path| path.works()).map(|path| path.offer.tier()).min()
    }

    /// The longest probe timeout.
    pub fn longest_timeout(&self) -> Duration {
        self.list.iter().map(|path| path.way.probe_timeout()).max().unwrap_or(INITIAL_RTT * 3)
    }

    /// How long nothing may be acknowledged: a path that was never measured says nothing.
    pub fn silence_allowed(&self) -> Duration {
        let measured = self.list.iter().filter(|path| !path.is_closed() && path.way.rtt.has_sample());
        let Some(slowest) = measured.clone().map(|path| path.way.probe_timeout()).max() else { return SILENCE };
        // One that is down acknowledges nothing.
        let there = measured.filter(|path| !matches!(path.health.state(), HealthState::Down(_)));
        let fastest = there.map(|path| path.way.probe_timeout()).min().unwrap_or_default();
        (slowest * SILENCE_PTOS).clamp(SILENCE_LEAST, SILENCE).max(fastest)
    }

    /// A path, and what its controller is to know where it is coupled: the paths of its tier that carry inner packets.
    pub fn with_siblings(&mut self, now: Time, index: usize) -> (&mut Path, &[congestion::PathSnapshot]) {
        let Paths { list, siblings, .. } = self;
        let path = &list[index];
        if path.capacity.controller.is_coupled() {
            let tier = path.offer.tier();
            let beside = list.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, path)| path);
            let alike = beside.filter(|path| path.works() && path.offer.tier() == tier);
            let carrying = alike.filter(|path| path.activity.carried_data_lately(now));
            siblings.clear();
            siblings.extend(carrying.filter_map(|path| path.capacity.controller.coupling()));
        }
        (&mut list[index], siblings)
    }
}
