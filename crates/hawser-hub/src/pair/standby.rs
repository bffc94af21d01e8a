//! Who stands by: the first of the site's list that is there and asks nobody to move.
//!
//! 1. [`Draining`]: whether a member drains, as it last said.
//! 2. [`successor`]: who takes the standby's place, by what each member is fit for.

use super::silence::is_away;
use super::{Member, Pair};
use crate::claim::{ClaimAck, Phase};
use crate::units::Stamp;
use hawser_core::endpoint::Endpoint;
use hawser_core::session::Presence;
use hawser_core::units::{PeerId, Time};
use std::time::Duration;

/// An old owner keeps its place as the standby for so long after it was let go: what it sent before it heard of that may
/// be under way, and is taken from one of the two alone. As long as a member holds what may be its own in a moment
/// (hawser-core, HELD_FOR).
pub(super) const TRAIL: Duration = Duration::from_millis(500);

/// What a member last said in its present session of whether its peers are to move. It does not drain at first; the
/// peer's contact with it owns it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Draining {
    stamp: Option<Stamp>,
    drains: bool,
}

impl Draining {
    /// Step 1: CLAIM_ACK came. One that a newer one overtook is no news.
    pub fn hear(&mut self, ack: ClaimAck) {
        if self.stamp <= Some(ack.stamp) {
            *self = Draining { stamp: Some(ack.stamp), drains: ack.draining };
        }
    }

    /// Whether it does.
    pub fn drains(self) -> bool {
        self.drains
    }
}

/// What a member is fit for, the best first. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fitness {
    /// It is there.
    There,
    /// It is there, and asks its peers to move.
    Draining,
    /// It is not there.
    Away,
}

/// Step 2: which of this many members, by its place in the site's list, is to stand by from now on; none where the
/// standby stays. One that drains may end soon, and takes nobody over where the owner drains, too.
pub fn successor(members: usize, [carrier, standby]: [usize; 2], fitness: impl Fn(usize) -> Fitness) -> Option<usize> {
    let first = |worst: Fitness| {
        let mut others = (0..members).filter(|place| ![carrier, standby].contains(place));
        others.find(|place| fitness(*place) <= worst)
    };
    match fitness(standby) {
        Fitness::Away => first(Fitness::There).or_else(|| first(Fitness::Draining)),
        Fitness::Draining => first(Fitness::There),
        Fitness::There => None,
    }
}

/// What is known of one member. Nothing at first; the pair owns it.
#[derive(Clone, Debug)]
pub(super) struct Contact {
    /// Who it is.
    pub member: Member,
    /// When anything last was acknowledged, as the claimant knows.
    pub answered_at: Option<Time>,
    /// Whether it drains.
    pub draining: Draining,
}

impl Contact {
    pub fn new(member: Member) -> Self {
        Contact { member, answered_at: None, draining: Draining::default() }
    }

    /// A session with a new start of it began: what the last one said does not count.
    pub fn begin_anew(&mut self) {
        self.draining = Draining::default();
    }

    fn fitness(&self, now: Time, presence: &Presence, pressed: bool) -> Fitness {
        match self.draining.drains() {
            _ if is_away(now, presence, pressed) => Fitness::Away,
            true => Fitness::Draining,
            false => Fitness::There,
        }
    }
}

impl Pair {
    /// A member's place in the list.
    pub(super) fn place_of(&self, member: Member) -> usize {
        self.members().take_while(|known| *known != member).count()
    }

    pub(super) fn on_session(&mut self, now: Time, peer: PeerId) {
        let Some(member) = self.member_of(peer) else { return };
        let place = self.place_of(member);
        self.contacts[place].begin_anew();
        self.claimant.handle_session(now, member.id);
    }

    /// The standby is away or drains, and another member is there. Not while the old owner is still needed. Where the
    /// owner answers, one claim that was lost is no reason yet; where it does not, one that drains is better than one
    /// that was not asked.
    pub(super) fn replace_standby(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.give_up_move(now, endpoint);
        self.trails_until = self.trails_until.filter(|until| *until > now);
        if self.leaving.is_some() {
            return;
        }
        let pressed = self.claimant.is_pressed(now);
        let fitness = |place: usize| {
            let contact = &self.contacts[place];
            contact.fitness(now, &endpoint.presence(contact.member.peer), pressed)
        };
        let places = [self.carrier, self.standby].map(|member| self.place_of(member));
        let waits = pressed || self.trails_until.is_some();
        if waits && fitness(places[1]) < Fitness::Away {
            return;
        }
        let Some(next) = successor(self.contacts.len(), places, fitness) else { return };
        let next = self.contacts[next].member;
        if self.claimant.replace_standby(next.id) {
            endpoint.pair([self.carrier.peer, next.peer]);
            self.standby = next;
        }
    }

    /// The old and the new owner of a planned move are away, and another member is there: it is to be asked.
    fn give_up_move(&mut self, now: Time, endpoint: &Endpoint) {
        let is_away = |member: Member| is_away(now, &endpoint.presence(member.peer), false);
        if self.claimant.phase() == Phase::Moving
            && is_away(self.carrier)
            && is_away(self.standby)
            && self.members().any(|member| !is_away(member))
        {
            self.claimant.handle_both_gone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Role;
    use crate::units::Epoch;
    use Fitness::{Away, Draining as Drains, There};

    #[test]
    fn a_standby_that_is_away_or_drains_gives_its_place_to_the_first_that_is_better() {
        // Of four members: the places of the owner and the standby, what all are fit for, and who stands by from now on.
        for (what, places, members, next) in [
            ("it is there", [0, 1], [There, There, There, There], None),
            ("it is there, though an earlier one is, too", [2, 3], [There, There, There, There], None),
            ("it is away", [0, 1], [There, Away, There, There], Some(2)),
            ("it is away, and so is the next", [0, 1], [There, Away, Away, There], Some(3)),
            ("it is away, and the next one drains", [0, 1], [There, Away, Drains, There], Some(3)),
            ("it is away, and all others drain", [0, 1], [Drains, Away, Drains, Drains], Some(2)),
            ("it drains", [0, 1], [There, Drains, There, There], Some(2)),
            ("it drains, and so does the owner", [0, 1], [Drains, Drains, Away, There], Some(3)),
            ("all drain", [0, 1], [Drains, Drains, Drains, Drains], None),
            ("it drains, and others are away", [0, 1], [There, Drains, Away, Away], None),
            ("all are away", [0, 1], [Away, Away, Away, Away], None),
            ("the list begins with others", [3, 2], [Away, There, Drains, There], Some(1)),
        ] {
            assert_eq!(successor(4, places, |place| members[place]), next, "{what}");
        }
        assert_eq!(successor(2, [0, 1], |_| Away), None, "there are two alone");
    }

    #[test]
    fn who_drains_is_known_by_the_newest_answer_of_the_present_session() {
        let at = |millis: u64| Stamp(Time::ZERO + Duration::from_millis(millis));
        let ack = |draining, millis| ClaimAck {
            epoch: Some(Epoch::FIRST),
            role: Role::Standby,
            draining,
            brought: false,
            misses: false,
            stamp: at(millis),
        };
        let mut known = Draining::default();
        for (said, millis, drains) in [(false, 5, false), (true, 7, true), (false, 6, true), (false, 8, false)] {
            known.hear(ack(said, millis));
            assert_eq!(known.drains(), drains, "at {millis} ms");
        }
    }

    #[test]
    fn away_comes_before_draining() {
        let member = Member { id: crate::units::MemberId(1), peer: PeerId(0) };
        let mut contact = Contact::new(member);
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let presence = |answered_at| Presence {
            unanswered_since: None,
            answered_at,
            late_at: None,
            overdue_at: None,
            idle: false,
            busy_at: None,
        };
        let fitness = |contact: &Contact, answered_at| contact.fitness(at(9), &presence(answered_at), false);
        assert_eq!((fitness(&contact, None), fitness(&contact, Some(at(1)))), (Away, There));
        contact.draining = super::Draining { stamp: None, drains: true };
        assert_eq!((fitness(&contact, None), fitness(&contact, Some(at(1)))), (Away, Drains));
        contact.begin_anew();
        assert_eq!(fitness(&contact, Some(at(1))), There, "another start of it does not");
    }
}
