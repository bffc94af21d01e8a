//! The member's side: what it is to one peer.

use super::{Claim, ClaimAck, ClaimFrame, Role, Timing};
use crate::units::{Epoch, MemberId, Stamp};
use hawser_core::units::Time;

/// How the peer's prefixes are announced to routers. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Announcement {
    /// Not at all.
    Withdrawn,
    /// With the worse preference.
    Standby,
    /// With the better preference.
    Owner,
}

/// What becomes of a packet of the peer's or for it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Forwarding {
    /// It is forwarded, under this epoch.
    Forward(Epoch),
    /// It waits, and [`Ownership::handle_traffic`] asks the peer.
    Hold,
    /// It is dropped.
    Drop,
}

/// What a claim was to this member. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// The highest, or heard of before.
    Taken,
    /// A higher one is known.
    Stale,
    /// The epoch is known to be another member's, which no correct peer says: the first one counts.
    Conflict,
    /// It was heard of from others, while a lease of this member's lasts: it counts once that is over, unless the peer
    /// says something as high itself.
    Early,
}

/// Without a lease and its end, which are times.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
enum Standing {
    Absent,
    Standby,
    Mine,
    Fenced,
}

/// What one member is to one peer. Begins absent, knowing no epoch, so that a restart owns nothing; the member's peer
/// owns it.
///
/// ```text
///              CLAIM(e, other)                CLAIM(e, me)
///   +--------+ --------------> +---------+ -----------------> +-----------------------------+
///   | ABSENT |                 | STANDBY |                    | MINE   OWNER <----- echo    |
///   +--------+ <-------------- +---------+ <----------------- |          |            |     |
///     ^    |     session gone   |     ^     CLAIM(e', other)   |          +--lease--> LAPSED |
///     |    |                    |     |                        +-----------------------------+
///     |    +--- CLAIM(e, me) ---|-----|--------------------------^    |         ^
///     |                         |     |                               |         |
///     |                 hearsay |     | CLAIM(e', other)      hearsay |         | CLAIM(e', me)
///     |    session gone         v     |                               v         |
///     +--------------------- +-----------------------------------------------------+
///       (also from MINE)     |                       FENCED                        |
///                            +-----------------------------------------------------+
/// ```
///
/// Each arrow needs an epoch at least as high as any that was heard of, hearsay a higher one, and no lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ownership {
    me: MemberId,
    timing: Timing,
    /// The highest claim that was heard of.
    known: Option<Claim>,
    /// A higher one that others told of during the lease: it counts once that is over.
    early: Option<Claim>,
    standing: Standing,
    /// When the lease ends; only of what is `Mine`.
    lease_until: Time,
    /// Stamps from before do not count.
    resumed_at: Time,
    /// Since when the peer is asked for an echo, and when next.
    asked: Option<(Time, Time)>,
    draining: bool,
    /// The next acknowledgement says that the peer's packets are brought here.
    brought: bool,
    /// It says that the owner no longer answers.
    misses: bool,
    ack_due: bool,
    announcement: Announcement,
    announced: (Announcement, Option<Epoch>),
}

impl Ownership {
    /// Of a peer that has not spoken to this member since it started.
    pub fn new(me: MemberId, timing: Timing) -> Self {
        Ownership {
            me,
            timing,
            known: None,
            early: None,
            standing: Standing::Absent,
            lease_until: Time::ZERO,
            resumed_at: Time::ZERO,
            asked: None,
            draining: false,
            brought: false,
            misses: false,
            ack_due: false,
            announcement: Announcement::Withdrawn,
            announced: (Announcement::Withdrawn, None),
        }
    }

    /// The highest claim that was heard of: what other members may be told.
    pub fn known(&self) -> Option<Claim> {
        self.known
    }

    /// What this member is. `now` is read from CLOCK_BOOTTIME after the last time it could have been stopped.
    pub fn role(&self, now: Time) -> Role {
        match self.standing {
            Standing::Absent => Role::None,
            Standing::Standby => Role::Standby,
            Standing::Mine if now < self.lease_until => Role::Owner,
            Standing::Mine => Role::Lapsed,
            Standing::Fenced => Role::Fenced,
        }
    }

    /// What becomes of the peer's packets: asked for each batch, with the time read after the batch was.
    pub fn forwarding(&self, now: Time) -> Forwarding {
        match (self.role(now), self.known) {
            (Role::Owner, Some(claim)) => Forwarding::Forward(claim.epoch),
            (Role::Lapsed, _) => Forwarding::Hold,
            _ => Forwarding::Drop,
        }
    }

    /// When it no longer forwards, unless the peer claims it again; zero where it does not.
    pub fn forwards_until(&self) -> Time {
        if self.standing == Standing::Mine { self.lease_until } else { Time::ZERO }
    }

    /// CLAIM came from the peer, in its present session.
    pub fn handle_claim(&mut self, now: Time, frame: ClaimFrame) -> Verdict {
        self.ack_due = true;
        let verdict = self.compare(frame.claim);
        if verdict != Verdict::Taken {
            return verdict;
        }
        self.learn(frame.claim);
        if frame.claim.owner != self.me {
            self.stand_down(Standing::Standby, Announcement::Standby);
            return verdict;
        }
        self.standing = Standing::Mine;
        // A stamp from the future is not ours: it would make a lease without an end.
        if let Some(Stamp(written_at)) = frame.echo.filter(|stamp| (self.resumed_at..=now).contains(&stamp.0)) {
            self.lease_until = self.lease_until.max(written_at + self.timing.lease);
        }
        if now < self.lease_until {
            self.asked = None;
            self.announcement = Announcement::Owner;
        }
        verdict
    }

    /// A claim of this peer was heard of from anybody else, once: another member, etcd. It ends no lease: in a planned
    /// move the old owner forwards beside the new one until the peer has what it sent acknowledged, and the peer alone
    /// knows.
    pub fn handle_hearsay(&mut self, now: Time, claim: Claim) -> Verdict {
        let verdict = self.compare(claim);
        if verdict != Verdict::Taken || self.known == Some(claim) {
            return verdict;
        }
        if self.role(now) == Role::Owner {
            self.early = self.early.filter(|early| early.epoch >= claim.epoch).or(Some(claim));
            return Verdict::Early;
        }
        self.learn(claim);
        if self.standing != Standing::Absent {
            self.stand_down(Standing::Fenced, Announcement::Withdrawn);
        }
        verdict
    }

    /// A packet waits for an owner whose lease is over.
    pub fn handle_traffic(&mut self, now: Time) {
        if self.role(now) == Role::Lapsed && self.asked.is_none() {
            self.asked = Some((now, now));
        }
    }

    /// This process did not run for long enough that the peer may have claimed another member: it asks before it
    /// forwards. Echoes of what it wrote before waited, or say nothing of meanwhile.
    pub fn handle_resumed(&mut self, now: Time) {
        (self.resumed_at, self.lease_until) = (now, Time::ZERO);
    }

    /// Routers bring the peer's packets here for longer than a move takes: the owner's announcement is lost, and the
    /// peer is told, once.
    pub fn handle_brought(&mut self) {
        self.brought = self.standing == Standing::Standby && !self.draining;
        self.ack_due |= self.brought;
    }

    /// Other members no longer hear from this one: where it owns the peer, that is told, once, for it may have nothing to
    /// say by which it would notice.
    pub fn handle_missed(&mut self, member: MemberId) {
        let is_owner = self.known.is_some_and(|claim| claim.owner == member);
        self.misses = is_owner && self.standing == Standing::Standby && !self.draining;
        self.ack_due |= self.misses;
    }

    /// The operator takes peers off this member, or no longer does.
    pub fn handle_drain(&mut self, draining: bool) {
        self.ack_due |= self.draining != draining && self.standing != Standing::Absent;
        self.draining = draining;
    }

    /// The peer has not said its claim for long: another member stands by in this one's place. An owner's lease says that
    /// by itself.
    pub fn handle_untold(&mut self) {
        if self.standing == Standing::Standby {
            self.stand_down(Standing::Absent, Announcement::Withdrawn);
        }
    }

    /// The peer's session is gone. What was heard of still fences.
    pub fn handle_gone(&mut self) {
        self.stand_down(Standing::Absent, Announcement::Withdrawn);
        self.ack_due = false;
    }

    /// Time passed: what was heard during a lease that is over counts; a peer that does not answer for a whole lease is
    /// not here, and its prefixes are withdrawn.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(claim) = self.early.take_if(|_| self.lease_until <= now) {
            self.handle_hearsay(now, claim);
        }
        if self.asked.is_some_and(|(since, _)| now.since(since) >= self.timing.lease) {
            self.asked = None;
            self.announcement = Announcement::Withdrawn;
        }
    }

    /// When [`Ownership::handle_timeout`] and [`Ownership::poll_ack`] are due.
    pub fn poll_timeout(&self) -> Time {
        let asked = self.asked.map_or(Time::NEVER, |(since, next)| next.min(since + self.timing.lease));
        let early = self.early.map_or(Time::NEVER, |_| self.lease_until);
        if self.ack_due { Time::ZERO } else { asked.min(early) }
    }

    /// The next message to the peer, if one is due.
    pub fn poll_ack(&mut self, now: Time) -> Option<ClaimAck> {
        let asks = self.asked.is_some_and(|(_, next)| next <= now);
        if !std::mem::take(&mut self.ack_due) && !asks {
            return None;
        }
        if let Some((_, next)) = &mut self.asked {
            *next = now + self.timing.retransmit;
        }
        let epoch = self.known.map(|claim| claim.epoch);
        let stands_by = self.standing == Standing::Standby;
        let brought = std::mem::take(&mut self.brought) && stands_by;
        let misses = std::mem::take(&mut self.misses) && stands_by;
        Some(ClaimAck { epoch, role: self.role(now), draining: self.draining, brought, misses, stamp: Stamp(now) })
    }

    /// How the prefixes are to be announced from now on, if that changed, or the epoch of an owner's.
    pub fn poll_announcement(&mut self) -> Option<Announcement> {
        let announces = self.announces();
        self.announced = self.to_announce();
        announces.then_some(self.announced.0)
    }

    /// Whether [`Ownership::poll_announcement`] would give something.
    pub fn announces(&self) -> bool {
        self.announced != self.to_announce()
    }

    fn to_announce(&self) -> (Announcement, Option<Epoch>) {
        let epoch = self.known.filter(|_| self.announcement == Announcement::Owner).map(|claim| claim.epoch);
        // A standby that drains may be gone in a moment, and asks for no peer that is brought to it.
        let drains = self.draining && self.announcement == Announcement::Standby;
        (if drains { Announcement::Withdrawn } else { self.announcement }, epoch)
    }

    /// The highest claim that was heard of, from now on.
    fn learn(&mut self, claim: Claim) {
        self.known = Some(claim);
        self.early = self.early.filter(|early| early.epoch > claim.epoch);
    }

    fn compare(&self, claim: Claim) -> Verdict {
        match self.known {
            Some(known) if known.epoch > claim.epoch => Verdict::Stale,
            Some(known) if known.epoch == claim.epoch && known.owner != claim.owner => Verdict::Conflict,
            _ => Verdict::Taken,
        }
    }

    fn stand_down(&mut self, standing: Standing, announcement: Announcement) {
        (self.standing, self.announcement) = (standing, announcement);
        (self.lease_until, self.asked) = (Time::ZERO, None);
    }
}
