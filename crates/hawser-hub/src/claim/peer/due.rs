//! When the peer's side of the claims is due: how long the owner may be silent, when both members are asked, and when
//! each is told the claim again.

use super::{Claimant, Phase};
use crate::claim::Claim;
use crate::claim::contact::Contact;
use crate::units::MemberId;
use hawser_core::units::Time;
use std::time::Duration;

/// How often the silence that is borne doubles while claims are not answered: a round trip of 16 times the silence
/// still gets an answer.
const PATIENCE_DOUBLINGS: u32 = 4;

impl Claimant {
    /// When the owner will have been silent for too long.
    pub(super) fn silent_at(&self) -> Option<Time> {
        let patience = self.timing.silence * (1 << self.failed.min(PATIENCE_DOUBLINGS));
        self.owner.unanswered_since.map(|since| (since + patience).max(self.grace_until.unwrap_or(Time::ZERO)))
    }

    /// When both are asked whether they are there, since the owner seems not to be: the other one's answer comes before
    /// it is needed. At once where the silence counts anew.
    pub(super) fn asked_at(&self) -> Option<Time> {
        let ask = if self.counts_anew { Duration::ZERO } else { self.timing.ask };
        self.owner.unanswered_since.map(|since| since + ask)
    }

    /// Whether the other member has said something in its present session, and is not silent.
    pub(super) fn is_heard(&self, now: Time) -> bool {
        self.other.stamp.is_some() && !self.other.is_silent(now, self.timing.silence)
    }

    /// What `member` is told: the claim; in a planned move the old owner stays so until it is let go.
    pub(super) fn told(&self, member: MemberId) -> Claim {
        self.left.filter(|left| left.owner == member).unwrap_or(self.claim)
    }

    pub(super) fn due_at(&self, contact: &Contact) -> Time {
        let Some(told_at) = contact.told_at.filter(|_| !contact.urgent) else { return Time::ZERO };
        let is_owner = contact.id == self.owner.id;
        let answered =
            contact.knows >= Some(self.told(contact.id).epoch) && (!is_owner || self.phase == Phase::Settled);
        let wait = if !answered {
            self.retransmit(contact.unanswered_since.map_or(Duration::ZERO, |since| told_at.since(since)))
        } else if !is_owner {
            self.timing.standby_refresh
        } else if contact.unacked {
            // Data may be answered where the claim was lost: its lease must not end for that.
            self.timing.silence
        } else {
            self.timing.refresh
        };
        let due = told_at + wait;
        match self.asked_at() {
            // One lost datagram must not be a silence: the owner is asked too.
            Some(asked_at) if told_at < asked_at => due.min(asked_at),
            Some(asked_at) if is_owner || !self.other_answers => told_at + self.retransmit(told_at.since(asked_at)),
            _ => due,
        }
    }

    /// When to ask again who was last asked after it had not answered for `waited`: ever more seldom.
    fn retransmit(&self, waited: Duration) -> Duration {
        self.timing.retransmit.max(waited).min(self.timing.refresh)
    }
}
