//! On what terms paths carry inner packets: how much of them, how fast, or not at all.
//!
//! The portal that configured a link says so for the link's paths. Its peer learns it by TERMS, so that what it sends
//! by them follows the same terms. Without any terms nothing is said.
//!
//! It also says what the link is called (LINK_NAME), so that the peer's rules can name it.

use super::{Rank, Session, reliable};
use crate::rules::Rules;
use crate::scheduler::Weight;
use crate::units::{LinkGroup, LinkTag, PathId, Rate};
use crate::wire::{Capabilities, LinkNameFrame, LinkState, TermsFrame};

/// Bits a second in a kbit/s.
const KILOBIT: u64 = 1_000;

/// What a portal asks of the paths of one link. By default nothing. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// Their part of what `weighted` sends.
    pub weight: Weight,
    /// The most that they may carry in each direction; `None`: what they can.
    pub max_rate: Option<Rate>,
    /// They carry no inner packets.
    pub barred: bool,
    /// What rules name the link by.
    pub name: LinkTag,
}

impl Terms {
    fn frame(&self, path: PathId, revision: u64) -> TermsFrame {
        let max_kbit = self.max_rate.map_or(0, |rate| (rate.as_bits() / KILOBIT).max(1));
        TermsFrame { path, barred: self.barred, weight: self.weight.get(), max_kbit, revision }
    }

    /// Those that the frame says, of the link that these are of.
    fn said(self, frame: &TermsFrame) -> Terms {
        let max_rate = (frame.max_kbit > 0).then(|| Rate::from_bits(frame.max_kbit.saturating_mul(KILOBIT)));
        Terms { weight: Weight::new(frame.weight).unwrap_or_default(), max_rate, barred: frame.barred, ..self }
    }

    /// Those of a link that nobody asked anything of.
    fn are_usual(&self) -> bool {
        Terms { name: LinkTag::default(), ..*self } == Terms::default()
    }
}

/// What the two portals say of a path. Begins with this side's tier and the usual terms; its path owns it.
pub(super) struct Offer {
    /// The configured link that we opened it on; none where the peer opened it.
    pub group: Option<LinkGroup>,
    /// How little it is preferred among those of that link.
    pub rank: Rank,
    /// The tier that this side configured.
    pub metric: u16,
    /// What the peer said of it, with the revision that said it.
    pub peer: Option<(LinkState, u16, u64)>,
    /// On what terms it is offered, by whoever opened it.
    pub terms: Terms,
    /// The revision that the peer said them by.
    pub terms_revision: Option<u64>,
}

impl Offer {
    pub fn new(metric: u16) -> Self {
        Offer { group: None, rank: Rank::default(), metric, peer: None, terms: Terms::default(), terms_revision: None }
    }

    /// Whether this side opened it.
    pub fn is_ours(&self) -> bool {
        self.group.is_some()
    }

    /// The tier: the higher of what the two sides say.
    pub fn tier(&self) -> u16 {
        self.peer.map_or(self.metric, |(_, metric, _)| metric.max(self.metric))
    }

    /// Neither side says that it may not carry inner packets.
    pub fn is_open(&self) -> bool {
        self.peer.is_none_or(|(state, ..)| state == LinkState::Usable) && !self.terms.barred
    }

    /// The rate, but at most what its terms allow.
    pub fn within(&self, rate: Rate) -> Rate {
        self.terms.max_rate.map_or(rate, |most| rate.min(most))
    }

    /// How fast it is sent on, within the same: at 0 its window alone holds it back, as a kernel's stream does.
    pub fn pace(&self, rate: Rate) -> Rate {
        if rate == Rate::ZERO { self.terms.max_rate.unwrap_or(rate) } else { self.within(rate) }
    }
}

impl Session {
    /// What holds for all of a portal's sessions when this one begins, or when it changes.
    pub fn begin_as_told(&mut self, rules: &Rules, terms: &[(LinkGroup, Terms)]) {
        self.follow_rules(rules);
        terms.iter().for_each(|(group, terms)| self.set_terms(*group, *terms));
    }

    /// The terms of a configured link from now on; its paths follow, and the peer is told.
    pub fn set_terms(&mut self, group: LinkGroup, terms: Terms) {
        self.paths.set_terms(group, terms);
        for index in 0..self.paths.len() {
            if self.paths[index].offer.group == Some(group) {
                self.offer_terms(index);
            }
        }
    }

    /// A path of ours follows its link's terms. The peer knows those that nobody configured.
    pub(super) fn offer_terms(&mut self, index: usize) {
        let terms = self.paths.terms_of(self.paths[index].offer.group);
        let path = &mut self.paths[index];
        if path.is_closed() || terms == path.offer.terms {
            return;
        }
        let before = std::mem::replace(&mut path.offer.terms, terms);
        path.follow_controller();
        if (Terms { name: terms.name, ..before }) != terms {
            self.say_terms(index);
        }
        self.say_name(index);
        self.scheduling.policy.reconsider();
    }

    /// The peer may have heard of a path's terms before the path: one that was validated says them again.
    pub(super) fn repeat_terms(&mut self, index: usize) {
        let path = &self.paths[index];
        if path.offer.is_ours() && !path.offer.terms.are_usual() {
            self.say_terms(index);
        }
        self.say_name(index);
    }

    /// What a path's link is called: the peer's rules may name it.
    fn say_name(&mut self, index: usize) {
        let path = &self.paths[index];
        let known = self.peer.version.capabilities.contain(Capabilities::SKIPS);
        if known && path.offer.is_ours() && path.offer.terms.name != LinkTag::default() {
            self.recovery
                .reliable
                .push(reliable::Frame::Name(LinkNameFrame { path: path.id, name: path.offer.terms.name }));
        }
    }

    /// What the peer calls the link of a path that it opened.
    pub(super) fn on_name(&mut self, frame: &LinkNameFrame) {
        let Some(index) = self.paths.index_of(frame.path) else { return };
        let path = &mut self.paths[index];
        if !path.offer.is_ours() && path.offer.terms.name != frame.name {
            path.offer.terms.name = frame.name;
            self.scheduling.policy.reconsider();
        }
    }

    fn say_terms(&mut self, index: usize) {
        if !self.peer.version.capabilities.contain(Capabilities::TERMS) {
            return;
        }
        let (path, reliable) = (&self.paths[index], &mut self.recovery.reliable);
        let revision = reliable.next_revision();
        reliable.push(reliable::Frame::Terms(path.offer.terms.frame(path.id, revision)));
    }

    /// The peer's terms for a path that it opened: the newest revision counts.
    pub(super) fn on_terms(&mut self, frame: &TermsFrame) {
        let Some(index) = self.paths.index_of(frame.path) else { return };
        let path = &mut self.paths[index];
        if path.offer.is_ours() || path.offer.terms_revision.is_some_and(|known| known >= frame.revision) {
            return;
        }
        path.offer.terms_revision = Some(frame.revision);
        path.offer.terms = path.offer.terms.said(frame);
        path.follow_controller();
        self.scheduling.policy.reconsider();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_within_the_terms_also_where_the_kernel_paces() {
        // What the controller says, the terms' most, how fast it is sent on; 0: as the window lets it.
        for (says, most, paced) in [(0, None, 0), (0, Some(5), 5), (9, Some(5), 5), (3, Some(5), 3), (3, None, 3)] {
            let terms = Terms { max_rate: most.map(Rate), ..Terms::default() };
            let offer = Offer { terms, ..Offer::new(0) };
            assert_eq!(offer.pace(Rate(says)), Rate(paced), "{says} within {most:?}");
        }
    }
}
