//! A peer's two members, and others that may take the place of either, beside an endpoint that has a session with each
//! over the same links.
//!
//! 1. `handle_event`: a session began or ended, a member answered, or says that routers bring it the peer's packets, or
//!    that the owner no longer answers other members.
//! 2. `handle_round`, after each time that the endpoint did anything: who was heard and who is silent ([`Claimant`]
//!    decides), what is to be said, and where packets go. What the silent one did not acknowledge goes to the other.
//!    A standby that is away, or drains, gives its place to the next member that is there (`standby`). To one that it
//!    prefers the peer goes back (`returning`).
//! 3. `poll_event` tells what moved; `poll_timeout`, when it is to be called again.
//!
//! **A planned move loses nothing.** The old owner is told of the new epoch when what it was sent is acknowledged, and
//! a moment later: routers send to it until they know better. Until then it is told its own epoch, and answers: where the
//! new owner falls silent meanwhile, it is there.
//!
//! **Twice, at worst**: what was under way to a member that fell silent. It may have come there, and goes to the other
//! too.

mod leaving;
mod returning;
mod silence;
mod standby;

pub use self::standby::{Draining, Fitness, successor};

use self::leaving::Leaving;
use self::silence::{ask, silence};
use self::standby::{Contact, TRAIL};
use crate::claim::{Claim, ClaimAck, ClaimMessage, Claimant, Phase, Timing};
use crate::units::{Epoch, MemberId};
use hawser_core::endpoint::{Endpoint, Event, Handing};
use hawser_core::session::Reach;
use hawser_core::session::constants::IDLE_KEEPALIVE;
use hawser_core::units::{PeerId, Time};
use hawser_core::wire::{HubFrame, HubFrameType, Writer};
use std::collections::VecDeque;

/// A member as a peer knows it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its name in the hub.
    pub id: MemberId,
    /// Its name in the endpoint.
    pub peer: PeerId,
}

/// Packets go to another member from now on. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Where to.
    pub to: Member,
    /// In which epoch.
    pub epoch: Epoch,
    /// The old one goes on until what it has is done; else it was silent, or closed its session.
    pub planned: bool,
}

/// How it stands. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Packets go to it.
    pub active: Member,
    /// It is ready to.
    pub standby: Member,
    /// What the members are told.
    pub claim: Claim,
    /// Whether the owner has confirmed it.
    pub settled: bool,
}

/// Two members and the decision between them, and the other members. Begins with the active one claimed; whoever drives
/// the endpoint owns it.
#[derive(Clone, Debug)]
pub struct Pair {
    claimant: Claimant,
    /// All members, in the order of the site's list: who stands before others is preferred.
    contacts: Vec<Contact>,
    carrier: Member,
    standby: Member,
    leaving: Option<Leaving>,
    /// The standby was let go, and what it sent last may still come.
    trails_until: Option<Time>,
    /// Routers bring a member that is not the owner the peer's packets, says it.
    brought: Option<(Member, ClaimAck)>,
    /// The standby misses the owner: what is said next must not wait for the loss of a path.
    missed: bool,
    moved: VecDeque<Moved>,
}

impl Pair {
    /// Members of a hub, which the endpoint has as peers with the same networks: the active one, its standby, and those
    /// that are asked where these are away. `first` must be above each epoch that was ever made ([`crate::epochs`]).
    /// `random` decides how long after others' this peer goes back to a member that it prefers. None where there are
    /// fewer than two.
    pub fn new(endpoint: &mut Endpoint, first: Epoch, members: &[Member], random: u64) -> Option<Self> {
        let [active, standby, ..] = *members else { return None };
        endpoint.pair([active.peer, standby.peer]);
        Some(Pair {
            claimant: Claimant::new(first, active.id, standby.id, Timing::DEFAULT),
            contacts: members.iter().map(|member| Contact::new(*member, random)).collect(),
            carrier: active,
            standby,
            leaving: None,
            trails_until: None,
            brought: None,
            missed: false,
            moved: VecDeque::new(),
        })
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        Status {
            active: self.carrier,
            standby: self.standby,
            claim: self.claimant.claim(),
            settled: self.claimant.phase() == Phase::Settled,
        }
    }

    /// All members, in the order in which they are asked.
    pub fn members(&self) -> impl Iterator<Item = Member> {
        self.contacts.iter().map(|contact| contact.member)
    }

    /// Moves packets to the other member without a loss, if it is there. False where it is not, or a move is on.
    pub fn handle_move(&mut self, now: Time) -> bool {
        self.leaving.is_none() && self.claimant.handle_move(now)
    }

    /// Step 1. Events of other peers change nothing.
    pub fn handle_event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Session { peer, new: true } => self.on_session(now, *peer),
            Event::Closed { peer } | Event::Silent { peer } => {
                let gone = self.member_of(*peer);
                gone.iter().for_each(|member| self.claimant.handle_gone(now, member.id));
            }
            Event::HubSaid { peer, frame } => {
                let said = self.member_of(*peer).zip(ClaimMessage::decode(frame.contents()).ok());
                if let Some((member, ClaimMessage::Ack(ack))) = said {
                    self.on_ack(now, member, ack);
                }
            }
            _ => {}
        }
    }

    /// Step 2. Whether there is something that leaves by the endpoint's next `poll_transmit`.
    pub fn handle_round(&mut self, now: Time, endpoint: &mut Endpoint) -> bool {
        let before = self.carrier;
        self.replace_standby(now, endpoint);
        self.follow_presence(now, endpoint);
        if let Some((member, ack)) = self.brought.take() {
            self.stand_by_for_routers(now, member, ack, endpoint);
            if member == self.standby {
                self.follow_routers(now, endpoint);
            }
        }
        if self.claimant.poll_timeout() <= now {
            self.claimant.handle_timeout(now);
        }
        // Whom packets leave is known, and whether it is let go, before anything is said to it.
        self.follow_carrier(now, endpoint);
        let let_go = self.note_ebb(now, endpoint) | self.let_go(now, endpoint);
        self.go_back(now, endpoint);
        let spoke = self.speak(now, endpoint);
        spoke || let_go || self.carrier != before
    }

    /// When [`Pair::handle_round`] is due, if nothing happens before. What waits for minutes is looked at when the
    /// endpoint is woken, which it is each second.
    pub fn poll_timeout(&self) -> Time {
        let lets_go = self.leaving.as_ref().map_or(Time::NEVER, Leaving::poll_timeout);
        self.claimant.poll_timeout().min(lets_go).min(self.trails_until.unwrap_or(Time::NEVER))
    }

    /// What moved.
    pub fn poll_event(&mut self) -> Option<Moved> {
        self.moved.pop_front()
    }

    fn member_of(&self, peer: PeerId) -> Option<Member> {
        self.members().find(|member| member.peer == peer)
    }

    fn named(&self, id: MemberId) -> Option<Member> {
        self.members().find(|member| member.id == id)
    }

    fn on_ack(&mut self, now: Time, member: Member, ack: ClaimAck) {
        let place = self.place_of(member);
        self.contacts[place].draining.hear(now, ack);
        self.claimant.handle_ack(now, member.id, ack);
        if ack.brought && member != self.carrier {
            self.brought = Some((member, ack));
        }
        if ack.misses && member == self.standby {
            self.missed = true;
            self.claimant.handle_missed(now);
        }
    }

    fn follow_presence(&mut self, now: Time, endpoint: &Endpoint) {
        for contact in &mut self.contacts {
            let (id, presence) = (contact.member.id, endpoint.presence(contact.member.peer));
            contact.note_presence(now, &presence);
            // Who sends and does not hear is of no use: an acknowledgement alone shows that it does.
            if presence.answered_at > contact.answered_at {
                contact.answered_at = presence.answered_at;
                self.claimant.handle_heard(now, id);
            }
            if let Some(since) = presence.unanswered_since {
                self.claimant.handle_sent(since.max(presence.answered_at.unwrap_or(since)), id);
            }
        }
        let carrier = endpoint.presence(self.carrier.peer);
        let busy = [Timing::DEFAULT.refresh, Timing::DEFAULT.standby_refresh];
        let refresh = if carrier.idle { [IDLE_KEEPALIVE; 2] } else { busy };
        let silence = silence(&carrier);
        self.claimant.set_pace(silence, ask(&carrier, silence), refresh);
    }

    /// Routers have lost the owner's announcement: it is dead, where it is late as well, or they alone do not hear it.
    /// Where two routers differ nobody can follow both: a planned move takes a second or two, and so has each its turn.
    fn follow_routers(&mut self, now: Time, endpoint: &Endpoint) {
        let presence = endpoint.presence(self.carrier.peer);
        if presence.unanswered_since.and(presence.late_at).is_some_and(|late_at| late_at <= now) {
            self.claimant.handle_gone(now, self.carrier.id);
        } else {
            self.handle_move(now);
        }
    }

    /// Who lost its place as the standby may not know of it yet, and routers have no better way than there.
    fn stand_by_for_routers(&mut self, now: Time, member: Member, ack: ClaimAck, endpoint: &mut Endpoint) {
        let is_another = ![self.carrier, self.standby].contains(&member) && self.leaving.is_none();
        if is_another && self.claimant.replace_standby(member.id) {
            endpoint.pair([self.carrier.peer, member.peer]);
            self.standby = member;
            self.claimant.handle_ack(now, member.id, ack);
        }
    }

    fn speak(&mut self, now: Time, endpoint: &mut Endpoint) -> bool {
        let mut spoke = false;
        let pressed = std::mem::take(&mut self.missed) | self.claimant.is_pressed(now);
        let reach = if pressed { Reach::All } else { Reach::Best };
        while let Some((id, frame)) = self.claimant.poll_transmit(now) {
            let Some(to) = self.named(id) else { continue };
            let mut bytes = [0; ClaimMessage::MAX_LEN];
            let mut out = Writer::new(&mut bytes);
            let written = ClaimMessage::Claim(frame).encode(&mut out);
            debug_assert_eq!(written, Ok(()), "the buffer has the longest message's length");
            if let Some(frame) = HubFrame::new(HubFrameType::Claim, out.written()) {
                let planned = self.claimant.phase() == Phase::Moving && to != self.carrier;
                let say = if planned { Endpoint::say_of_move } else { Endpoint::say_to_hub };
                spoke |= say(endpoint, now, to.peer, frame, reach);
            }
        }
        spoke
    }

    fn follow_carrier(&mut self, now: Time, endpoint: &mut Endpoint) {
        // In a planned move the claim was confirmed before anything moves.
        let planned = self.claimant.phase() == Phase::Settled;
        let Some(to) = self.named(self.claimant.carrier()) else { return };
        let what = if planned { Handing::Queue } else { Handing::All };
        // It was claimed while it was away, and another one took its place as the standby meanwhile.
        if let (None, Some(from)) = (endpoint.carrier(to.peer), endpoint.carrier(self.carrier.peer)) {
            endpoint.pair([from, to.peer]);
        }
        // Where a session was closed the endpoint moved by itself; back, if the owner begins another.
        let carries = endpoint.carrier(to.peer) == Some(to.peer) || endpoint.hand_over(now, to.peer, what);
        if carries && to != self.carrier {
            let old = std::mem::replace(&mut self.carrier, to);
            self.standby = old;
            self.note_left(now, old);
            // Where another one took its place: the claimant knows the same two.
            self.claimant.replace_standby(old.id);
            self.leaving = planned.then(|| Leaving::begin(now, old));
            self.moved.push_back(Moved { to, epoch: self.claimant.claim().epoch, planned });
        }
    }

    /// The old owner has brought what it had: the new one is to go on as fast.
    fn note_ebb(&mut self, now: Time, endpoint: &mut Endpoint) -> bool {
        let ebbed = self.leaving.as_mut().is_some_and(|leaving| leaving.ebbs(now, endpoint));
        if ebbed {
            endpoint.say_known(self.carrier.peer);
        }
        ebbed
    }

    /// The old owner has done what it had, or there is none.
    fn let_go(&mut self, now: Time, endpoint: &mut Endpoint) -> bool {
        let waits = self.leaving.as_mut().is_some_and(|leaving| !leaving.is_over(now, endpoint));
        if waits {
            return false;
        }
        self.claimant.let_go();
        let let_go = self.leaving.take().is_some();
        if let_go {
            self.trails_until = Some(now + TRAIL);
        }
        let_go
    }
}

#[cfg(test)]
mod tests;
