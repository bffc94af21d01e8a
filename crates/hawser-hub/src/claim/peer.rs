//! The peer's side: which of its two members it claims.

mod due;

use super::contact::Contact;
use super::{Claim, ClaimAck, ClaimFrame, Role, Timing};
use crate::units::{Epoch, MemberId};
use hawser_core::units::Time;
use std::time::Duration;

/// Times that a claim is said within a silence.
const PROBES: u32 = 3;

/// Nobody is taken for silent sooner after the peer's own links came back: what then goes out at once fills them, and
/// answers wait behind it. Of 400 peers whose links were away for half a second none moved with this, one with half as
/// much, and of 300 without it four (docs/results/hub-away.json).
const RETURN_GRACE: Duration = Duration::from_millis(500);

/// How far a claim is. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The member has not confirmed it yet.
    Claiming,
    /// The same, of a planned move: the old owner goes on until then.
    Moving,
    /// The member owns.
    Settled,
}

/// Which member a peer claims, and until when. Begins by claiming the active one; the peer's session with the hub owns
/// it.
///
/// ```text
///        CLAIM_ACK(e, owner)                the owner drains, or `handle_move`
///   +---------- CLAIMING <---------+     +-----------------> MOVING (e+1, other)
///   |           ^  | ^             |     |                      |  |
///   |   silent: |  | | restarted,  |     |  CLAIM_ACK(e+1,      |  | silent:
///   |    (e+1,  +--+ | lapsed      |     |  owner)              |  | (e+2, old),
///   |    other)      |             |     |                      |  v or both gone
///   +--------------> SETTLED ------+-----+ <--------------------+  CLAIMING
///                       silent: (e+1, other)
/// ```
///
/// *Silent*: something was sent to the owner, nothing came for [`Timing::silence`], **and** the other one, asked after
/// [`Timing::ask`] of it, was heard since. Where neither is heard, the peer's own links are down: it waits, and when
/// they are back the owner's answer may come after the other one's: its silence counts anew, once, and is borne for
/// `RETURN_GRACE`. A higher epoch in an answer is of an earlier life of the peer: it claims above.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claimant {
    timing: Timing,
    claim: Claim,
    phase: Phase,
    /// What the old owner of a planned move is still told.
    left: Option<Claim>,
    /// Claims that were given up since one was last confirmed.
    failed: u32,
    owner: Contact,
    other: Contact,
    /// Whether the other one was heard since it was asked, in the owner's silence.
    other_answers: bool,
    /// Both were silent, and since the other one answered the owner's silence counts anew.
    counts_anew: bool,
    /// The peer's own links were away: it takes the owner for silent no sooner.
    grace_until: Option<Time>,
}

impl Claimant {
    /// Claims `active` with the epoch `first`, which must be above any that this peer ever made. The driver reserves
    /// epochs on disk in blocks, ahead of their use, so that no move waits for a write.
    pub fn new(first: Epoch, active: MemberId, standby: MemberId, timing: Timing) -> Self {
        let claim = Claim { epoch: first, owner: active };
        let (owner, other) = (Contact::new(active), Contact::new(standby));
        Claimant {
            timing,
            claim,
            phase: Phase::Claiming,
            left: None,
            failed: 0,
            owner,
            other,
            other_answers: false,
            counts_anew: false,
            grace_until: None,
        }
    }

    /// The highest claim that was made.
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The member that users' packets go to: at once the claimed one, but in a planned move the old one until the new
    /// one owns.
    pub fn carrier(&self) -> MemberId {
        match self.phase {
            Phase::Moving => self.other.id,
            Phase::Claiming | Phase::Settled => self.claim.owner,
        }
    }

    /// The paths changed, or the session's idleness: `silence`, what of it passes before both members are asked, and
    /// how often the owner and the other one are told the claim, from now on.
    pub fn set_pace(&mut self, silence: Duration, ask: Duration, [owner, other]: [Duration; 2]) {
        (self.timing.silence, self.timing.ask) = (silence, ask);
        (self.timing.refresh, self.timing.standby_refresh) = (owner, other);
        self.timing.retransmit = silence / PROBES;
    }

    /// Something was sent to `member` that it is to answer.
    pub fn handle_sent(&mut self, now: Time, member: MemberId) {
        self.note_call(now);
        if let Some(contact) = self.contact(member) {
            contact.unanswered_since.get_or_insert(now);
        }
    }

    /// An authentic datagram came from `member`, over any path.
    pub fn handle_heard(&mut self, now: Time, member: MemberId) {
        self.note_call(now);
        self.note_heard(now, member);
        self.decide(now);
    }

    /// A session with a new start of `member` began: nothing that the last one said counts.
    pub fn handle_session(&mut self, now: Time, member: MemberId) {
        self.note_call(now);
        // One that restarted answers late for that, and not for the peer's links.
        if let Some(contact) = self.contact(member) {
            *contact = Contact::new(member);
        }
        if self.phase != Phase::Moving {
            self.left = self.left.filter(|left| left.owner != member);
        }
        self.note_heard(now, member);
        if member == self.owner.id && self.phase == Phase::Settled {
            self.phase = Phase::Claiming;
        }
        self.decide(now);
    }

    /// CLAIM_ACK came from `member`, in its present session. One that a newer one overtook says only that it is there.
    pub fn handle_ack(&mut self, now: Time, member: MemberId, ack: ClaimAck) {
        self.handle_heard(now, member);
        let Some(contact) = self.contact(member).filter(|contact| contact.stamp <= Some(ack.stamp)) else { return };
        contact.unacked = false;
        contact.stamp = Some(ack.stamp);
        contact.knows = contact.knows.max(ack.epoch);
        contact.draining = ack.draining;
        match ack.epoch {
            Some(epoch) if epoch > self.claim.epoch => self.claim_above(epoch),
            Some(epoch) if epoch == self.claim.epoch && member == self.owner.id => {
                self.note_confirmation(ack.role, epoch)
            }
            _ => {}
        }
        self.decide(now);
    }

    /// The session with `member` is over, by its own word, or it is known to be dead: its silence is not waited for.
    pub fn handle_gone(&mut self, now: Time, member: MemberId) {
        self.note_call(now);
        if member == self.other.id {
            // What it said there says nothing: nobody is given to a member without a session.
            (self.other.stamp, self.other_answers) = (None, false);
        } else if member == self.owner.id && self.is_heard(now) {
            self.take_over();
        }
    }

    /// Whether a claim must not wait for the loss of a path: it is not confirmed, or its owner has not answered for a
    /// while.
    pub fn is_pressed(&self, now: Time) -> bool {
        self.phase != Phase::Settled || self.asked_at().is_some_and(|at| at <= now)
    }

    /// The hub wants the peer on the other member: a planned move. False where there is one already, or the other
    /// member is not heard.
    pub fn handle_move(&mut self, now: Time) -> bool {
        let Some(epoch) = self.claim.epoch.next().filter(|_| self.phase == Phase::Settled && self.is_heard(now)) else {
            return false;
        };
        (self.phase, self.left) = (Phase::Moving, Some(self.claim));
        self.turn(epoch);
        true
    }

    /// Other members no longer hear from the owner, says the other one: it is told the claim at once, and taken for silent
    /// only if it does not answer that.
    pub fn handle_missed(&mut self, now: Time) {
        self.note_call(now);
        self.owner.urgent |= self.phase == Phase::Settled;
    }

    /// The old owner of a planned move is to know that it owns no more. Until then it is told what it was told before:
    /// so it goes on with what is under way, and answers where the new one falls silent. Nothing while the move is on.
    pub fn let_go(&mut self) {
        if self.phase != Phase::Moving && self.left.take().is_some() {
            self.other.urgent = true;
        }
    }

    /// Whether the other member has answered what it is told by now.
    pub fn is_known(&self) -> bool {
        self.other.knows >= Some(self.told(self.other.id).epoch)
    }

    /// The hub gave the peer another standby. False while the present one is moved away from.
    pub fn replace_standby(&mut self, standby: MemberId) -> bool {
        let free = standby != self.owner.id && self.phase != Phase::Moving;
        if free && standby != self.other.id {
            (self.other, self.left) = (Contact::new(standby), None);
            (self.other_answers, self.counts_anew) = (false, false);
        }
        free
    }

    /// Neither the old owner of a planned move nor the new one is there: the claim is one like any other, and the old
    /// one's place may be another's.
    pub fn handle_both_gone(&mut self) {
        if self.phase == Phase::Moving {
            (self.phase, self.left) = (Phase::Claiming, None);
        }
    }

    /// Time passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.note_call(now);
        self.decide(now);
    }

    /// When [`Claimant::handle_timeout`] and [`Claimant::poll_transmit`] are due.
    pub fn poll_timeout(&self) -> Time {
        let silent_at = self.silent_at().filter(|_| self.other_answers).unwrap_or(Time::NEVER);
        self.due_at(&self.owner).min(self.due_at(&self.other)).min(silent_at)
    }

    /// The next CLAIM to send, and whom to; asked until there is none. Where there is no session with the member, it is
    /// dropped.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(MemberId, ClaimFrame)> {
        let to_owner = self.due_at(&self.owner) <= now;
        if !to_owner && self.due_at(&self.other) > now {
            return None;
        }
        let id = if to_owner { self.owner.id } else { self.other.id };
        let claim = self.told(id);
        let contact = if to_owner { &mut self.owner } else { &mut self.other };
        (contact.urgent, contact.told_at, contact.unacked) = (false, Some(now), true);
        contact.unanswered_since.get_or_insert(now);
        Some((id, ClaimFrame { claim, echo: contact.stamp }))
    }

    /// The claimed member says what it is, in the claim's epoch.
    fn note_confirmation(&mut self, role: Role, epoch: Epoch) {
        match role {
            // The stamp that made it own may be old: with the one that it just sent its lease lasts until the refresh.
            Role::Owner if self.phase != Phase::Settled => {
                (self.owner.urgent, self.other.urgent) = (true, true);
                (self.phase, self.failed) = (Phase::Settled, 0);
            }
            Role::Owner => {}
            // It waits for an echo of the stamp that it just sent.
            Role::Lapsed => {
                self.owner.urgent = true;
                if self.phase == Phase::Settled {
                    self.phase = Phase::Claiming;
                }
            }
            // It was told that the epoch is another's: an earlier life of this peer made it.
            Role::None | Role::Standby | Role::Fenced => self.claim_above(epoch),
        }
    }

    /// Claims the same member above what an earlier life of this peer made.
    fn claim_above(&mut self, known: Epoch) {
        if let Some(epoch) = known.next() {
            (self.claim.epoch, self.phase, self.left) = (epoch, Phase::Claiming, None);
            (self.owner.urgent, self.other.urgent) = (true, true);
        }
    }

    fn note_heard(&mut self, now: Time, member: MemberId) {
        let both_silent = self.both_silent(now);
        if member == self.owner.id {
            // What a link still held when the owner fell silent comes late alone.
            if both_silent >= self.timing.silence {
                self.grace_until = Some(now + RETURN_GRACE);
            }
            (self.owner.unanswered_since, self.other_answers, self.counts_anew) = (None, false, false);
        } else if member == self.other.id {
            let asked = self.asked_at().is_some_and(|at| at <= now);
            self.other.unanswered_since = None;
            let late = both_silent >= 2 * self.timing.silence;
            if asked && late && !std::mem::replace(&mut self.counts_anew, true) {
                (self.owner.unanswered_since, self.owner.urgent) = (Some(now), true);
                self.grace_until = Some(now + RETURN_GRACE);
            } else {
                self.other_answers |= asked;
            }
        }
    }

    /// For how long neither was heard: what one of them left unanswered before that is a datagram that was lost.
    fn both_silent(&self, now: Time) -> Duration {
        let since = self.owner.unanswered_since.zip(self.other.unanswered_since);
        since.map_or(Duration::ZERO, |(owner, other)| now.since(owner.max(other)))
    }

    fn decide(&mut self, now: Time) {
        self.grace_until = self.grace_until.filter(|until| *until > now);
        if self.silent_at().is_some_and(|at| at <= now) && self.other_answers {
            self.take_over();
        } else if self.owner.draining && !self.other.draining {
            self.handle_move(now);
        }
    }

    /// The owner is silent, and the other one is not.
    fn take_over(&mut self) {
        let Some(epoch) = self.claim.epoch.next() else { return };
        if self.phase != Phase::Settled {
            self.failed += 1;
        }
        (self.phase, self.left) = (Phase::Claiming, None);
        self.turn(epoch);
    }

    /// Gives `epoch` to the other member.
    fn turn(&mut self, epoch: Epoch) {
        std::mem::swap(&mut self.owner, &mut self.other);
        self.claim = Claim { epoch, owner: self.owner.id };
        self.owner.unanswered_since = None;
        (self.other_answers, self.counts_anew) = (false, false);
        (self.owner.urgent, self.other.urgent) = (true, true);
    }

    /// Notices that this peer did not run: what it did not hear meanwhile says nothing.
    fn note_call(&mut self, now: Time) {
        if now.since(self.poll_timeout()) <= self.timing.late || self.poll_timeout() == Time::ZERO {
            return;
        }
        for contact in [&mut self.owner, &mut self.other] {
            contact.unanswered_since = contact.unanswered_since.map(|_| now);
        }
        self.other_answers = false;
    }

    fn contact(&mut self, member: MemberId) -> Option<&mut Contact> {
        [&mut self.owner, &mut self.other].into_iter().find(|contact| contact.id == member)
    }
}
