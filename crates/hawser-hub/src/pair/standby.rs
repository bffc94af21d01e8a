//! Who stands by: the first of the site's list that is there and asks nobody to move. Who stood by meanwhile makes room
//! for one before it once that has been there for a moment.
//!
//! 1. [`Draining`]: whether a member drains, as it last said.
//! 2. [`successor`]: who takes the standby's place, by what each member is fit for.

use super::returning::Returning;
use super::silence::is_away;
use super::{Member, Pair};
use crate::claim::{ClaimAck, Phase};
use crate::units::Stamp;
use hawser_core::endpoint::Endpoint;
use hawser_core::session::Presence;
use hawser_core::units::{PeerId, Time};
use std::time::Duration;

/// An old owner keeps its place as the standby for so long after it was let go: what it sent before it heard of that
/// may be under way, and is taken from the two alone. As long as a member holds what may be its own in a moment
/// (hawser-core, HELD_FOR).
pub(super) const TRAIL: Duration = Duration::from_millis(500);
/// What a member said, and that it answered, counts for so long: the owner and the standby are told the claim twice
/// meanwhile, also by a peer that is idle (hawser-core, IDLE_KEEPALIVE). A spare one is told nothing, and says once that
/// it no longer drains, which may be lost: after this it is asked again. A peer that slept has heard nobody.
pub(super) const HEARD_WITHIN: Duration = Duration::from_secs(60);
/// Who has been there for so long stands by in the place of one behind it: a process that dies as soon as it has
/// started does so sooner, and is started anew after a second (contrib/systemd).
const BACK_FOR: Duration = Duration::from_secs(10);

/// What a member last said in its present session of whether its peers are to move. It does not drain at first; the
/// peer's contact with it owns it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Draining {
    stamp: Option<Stamp>,
    until: Option<Time>,
}

impl Draining {
    /// Step 1: CLAIM_ACK came. One that a newer one overtook is no news.
    pub fn hear(&mut self, now: Time, ack: ClaimAck) {
        if self.stamp <= Some(ack.stamp) {
            *self = Draining { stamp: Some(ack.stamp), until: ack.draining.then(|| now + HEARD_WITHIN) };
        }
    }

    /// Whether it does, as far as is known by now.
    pub fn drains(self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// What a member is fit for, the best first. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fitness {
    /// It has been there for long enough to stand by in the place of one behind it.
    Steady,
    /// It is there.
    There,
    /// It is there, and asks its peers to move.
    Draining,
    /// It is not there.
    Away,
}

/// Step 2: which of this many members, by its place in the site's list, is to stand by from now on; none where the
/// standby stays. One that drains may end soon, and takes nobody over where the owner drains, too. One before it in the
/// list is where the peer is to go back to.
pub fn successor(members: usize, [carrier, standby]: [usize; 2], fitness: impl Fn(usize) -> Fitness) -> Option<usize> {
    let first = |worst: Fitness| {
        let mut others = (0..members).filter(|place| ![carrier, standby].contains(place));
        others.find(|place| fitness(*place) <= worst)
    };
    match fitness(standby) {
        Fitness::Away => first(Fitness::There).or_else(|| first(Fitness::Draining)),
        Fitness::Draining => first(Fitness::There),
        Fitness::There | Fitness::Steady => {
            (0..standby).find(|place| *place != carrier && fitness(*place) == Fitness::Steady)
        }
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
    /// Since when it is there, in one session, and does not drain.
    there_since: Option<Time>,
    /// Whether the peer is to go back to it.
    pub returning: Returning,
}

impl Contact {
    /// `random` is the peer's own.
    pub fn new(member: Member, random: u64) -> Self {
        let (draining, returning) = (Draining::default(), Returning::new(random));
        Contact { member, answered_at: None, draining, there_since: None, returning }
    }

    /// A session with a new start of it began: what the last one said, and how long it was there, does not count.
    pub fn begin_anew(&mut self, now: Time) {
        (self.draining, self.there_since) = (Draining::default(), None);
        self.returning.note_ready(now, false);
    }

    /// Whether it is there by now.
    pub fn note_presence(&mut self, now: Time, presence: &Presence) {
        let there = !is_away(now, presence, false) && !self.draining.drains(now);
        self.there_since = self.there_since.or(Some(now)).filter(|_| there);
    }

    fn fitness(&self, now: Time, presence: &Presence, pressed: bool) -> Fitness {
        let steady = self.there_since.is_some_and(|since| now.since(since) >= BACK_FOR);
        match (self.draining.drains(now), steady) {
            _ if is_away(now, presence, pressed) => Fitness::Away,
            (true, _) => Fitness::Draining,
            (false, false) => Fitness::There,
            (false, true) => Fitness::Steady,
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
        self.contacts[place].begin_anew(now);
        self.claimant.handle_session(now, member.id);
    }

    /// The standby is away or drains, and another member is there, or one before it in the list is. Not while the old
    /// owner is still needed. Where the owner answers, one claim that was lost is no reason yet; where it does not, one
    /// that drains is better than one that was not asked.
    pub(super) fn replace_standby(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.give_up_move(now, endpoint);
        self.trails_until = self.trails_until.filter(|until| *until > now);
        // Packets follow a claim that was just confirmed first, and leave the old owner by plan.
        let follows = self.claimant.phase() == Phase::Settled && self.claimant.carrier() != self.carrier.id;
        if self.leaving.is_some() || follows {
            return;
        }
        let pressed = self.claimant.is_pressed(now);
        let fitness = |place: usize| {
            let contact = &self.contacts[place];
            contact.fitness(now, &endpoint.presence(contact.member.peer), pressed)
        };
        let places = [self.carrier, self.standby].map(|member| self.place_of(member));
        // One that was not heard of its new epoch may be the owner still, as far as it knows.
        let waits = pressed || self.trails_until.is_some() || !self.claimant.is_known();
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
    use Fitness::{Away, Draining as Drains, Steady, There};

    #[test]
    fn a_standby_that_is_away_or_drains_gives_its_place_to_the_first_that_is_better() {
        // Of four members: the owner's and the standby's place, what all are fit for, and who stands by from now on.
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
            ("it is there, and one before it for longer", [0, 2], [Steady, Steady, There, Steady], Some(1)),
            ("several before it have been for long", [3, 2], [Steady, Steady, Steady, Steady], Some(0)),
            ("it is there, and one behind it for longer", [0, 1], [Steady, There, Steady, Steady], None),
            ("it is there, and the owner alone is before it", [0, 1], [Steady, Steady, Steady, Steady], None),
            ("it is away, and who was there for longer is behind", [0, 1], [Steady, Away, There, Steady], Some(2)),
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
        let now = Time::ZERO + Duration::from_secs(9);
        for (said, millis, drains) in [(false, 5, false), (true, 7, true), (false, 6, true), (false, 8, false)] {
            known.hear(now, ack(said, millis));
            assert_eq!(known.drains(now), drains, "at {millis} ms");
        }
        known.hear(now, ack(true, 9));
        let until = now + HEARD_WITHIN;
        assert!(known.drains(until - Duration::from_nanos(1)) && !known.drains(until), "nor for ever");
    }

    #[test]
    fn away_comes_before_draining_and_who_has_been_there_for_ten_seconds_before_others() {
        let member = Member { id: crate::units::MemberId(1), peer: PeerId(0) };
        let mut contact = Contact::new(member, 0);
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let presence = |answered_at| Presence {
            unanswered_since: None,
            answered_at,
            late_at: None,
            overdue_at: None,
            idle: false,
            busy_at: None,
        };
        let (gone, there) = (presence(None), presence(Some(at(1))));
        let fitness =
            |contact: &Contact, millis| [&gone, &there].map(|presence| contact.fitness(at(millis), presence, false));
        contact.note_presence(at(1), &there);
        contact.note_presence(at(5000), &there);
        assert_eq!(fitness(&contact, 10_000), [Away, There]);
        assert_eq!(fitness(&contact, 10_001), [Away, Steady]);
        contact.draining = super::Draining { stamp: None, until: Some(at(50_000)) };
        assert_eq!(fitness(&contact, 10_001), [Away, Drains]);
        contact.note_presence(at(10_001), &there);
        contact.draining = super::Draining::default();
        contact.note_presence(at(10_002), &there);
        assert_eq!(fitness(&contact, 20_001), [Away, There], "it drained meanwhile");
        contact.begin_anew(at(20_001));
        contact.note_presence(at(20_002), &there);
        assert_eq!(fitness(&contact, 30_001), [Away, There], "another start of it is there since then");
        contact.note_presence(at(30_001), &gone);
        contact.note_presence(at(30_002), &there);
        assert_eq!(fitness(&contact, 40_001), [Away, There], "it was away");
    }
}
