//! A member's peers, beside the endpoint that serves them: it forwards for a peer only while it owns it.
//!
//! 1. `handle_batch`, after each time that the process may have been stopped and before what it read is used: leases
//!    that are over by now end, all of them where it did not run meanwhile. `runs`, before each time that anything is
//!    forwarded. `note_rest`, before each time that the driver waits: a stop within a long rest would look like one.
//! 2. `handle_event`: a peer claims, its session begins or ends, its packets wait.
//! 3. `handle_timeout`, when `poll_timeout` says so: peers are asked again, and those that do not answer are given up.
//!    A standby looks whether routers go on to bring it the peer's packets, as they do where they have lost the owner's
//!    announcement, and tells the peer.
//! 4. `poll_event` tells who owns what from now on: routes follow it.
//!
//! All times are of CLOCK_BOOTTIME, or a clock like it: it counts while the machine sleeps.

use crate::claim::{Announcement, Claim, ClaimMessage, Forwarding, Ownership, Role, Timing, Verdict};
use crate::units::{Epoch, MemberId};
use hawser_core::endpoint::{Endpoint, Event, Standing};
use hawser_core::handshake::PublicKey;
use hawser_core::session::constants::IDLE_KEEPALIVE;
use hawser_core::session::{Reach, Sink};
use hawser_core::units::{PeerId, Time};
use hawser_core::wire::{HubFrame, HubFrameType, Writer};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Who is here later than it asked to be woken, or than it was last here, by more than this did not run (hawser-core,
/// ASLEEP, beyond the second that it asks for).
const LATE: Duration = Duration::from_millis(250);
/// While a lease runs the driver rests no longer, though nothing is due: whoever is stopped for the rest and [`LATE`]
/// is late, and a shorter stop may be no more than a rest. It costs a member four wake-ups a second, of however many
/// peers, and one that owns nobody none.
const REST: Duration = LATE;
/// A standby that is brought the peer's packets for so long says so: by then the peer knows of a death, and has claimed
/// another member (`pair`, SILENCE_LEAST).
const BROUGHT: Duration = Duration::from_millis(100);
/// A peer tells its standby the claim three times meanwhile, also where it is idle: who is told nothing stands by no
/// longer. Another one took its place, and nobody says so.
const UNTOLD: Duration = Duration::from_secs(3 * IDLE_KEEPALIVE.as_secs());
/// A peer that is asked to claim another member has moved by then, also where its first claim was lost, and what waited
/// here is brought (hawser-core, `policy::BESIDE`). Where there is no other member, links are not left idle for longer.
const MOVES_FOR: Duration = Duration::from_secs(1);

/// A peer's routes follow its claims no more often than this: a peer that claims anew in each datagram is neither to
/// fill the memory of who sets them, nor to make others wait for it.
const ANNOUNCED_EVERY: Duration = Duration::from_millis(125);
/// But for four at once: a move, or a session's end and its next beginning, is one or two, and waits for nothing.
const ANNOUNCED_AHEAD: Duration = Duration::from_millis(375);

/// What a member is to a peer from now on. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Announced {
    /// Whose networks it is about: its place may be another's by the time that this is heard.
    pub key: PublicKey,
    /// How they are announced.
    pub announcement: Announcement,
    /// The highest epoch that is known: of two that both announce as owner the higher one's counts.
    pub epoch: Option<Epoch>,
}

/// A peer of the member's.
struct Ward {
    /// None where the place is free.
    key: Option<PublicKey>,
    ownership: Ownership,
    /// How its networks are announced.
    told: Announcement,
    /// It has no hub, or does not know: this member is all that it has.
    plain: bool,
    /// When a standby that is told nothing more stands by no longer.
    untold_at: Time,
    /// When to look whether packets are brought to a standby.
    look_at: Time,
    /// Until then the links have room for what another member sends: the peer is to move there.
    room_until: Time,
    /// When all that was announced would have been, one each [`ANNOUNCED_EVERY`].
    announced_until: Time,
    due: Time,
}

/// All peers of a member. Nobody is served at first; whoever drives the endpoint owns it.
pub struct Gate {
    me: MemberId,
    timing: Timing,
    /// By `PeerId`.
    wards: Vec<Ward>,
    /// Who is due, by when.
    timers: BTreeSet<(Time, PeerId)>,
    /// When the process is here again at the latest.
    due_back: Time,
    /// No lease lasts longer.
    leased_until: Time,
    draining: bool,
    announced: VecDeque<Announced>,
}

impl Gate {
    /// A member that has just started: it owns nothing before a peer claims it.
    pub fn new(me: MemberId, timing: Timing) -> Self {
        let (wards, timers, announced) = (Vec::new(), BTreeSet::new(), VecDeque::new());
        let (due_back, leased_until) = (Time::NEVER, Time::ZERO);
        Gate { me, timing, wards, timers, due_back, leased_until, draining: false, announced }
    }

    /// The endpoint has a new peer: nothing is known of it, and its packets wait.
    pub fn add_peer(&mut self, now: Time, peer: PeerId, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        let place = peer.0 as usize;
        while self.wards.len() <= place {
            self.wards.push(Ward::new(None, self.me, self.timing));
        }
        self.timers.remove(&(self.wards[place].due, peer));
        self.wards[place] = Ward::new(endpoint.key_of(peer), self.me, self.timing);
        self.wards[place].ownership.handle_drain(self.draining);
        self.follow(now, peer, endpoint, sink);
    }

    /// The endpoint has that peer no more: nothing is known of whoever takes its place, or comes back with its key.
    pub fn remove_peer(&mut self, peer: PeerId) {
        let Some(ward) = self.wards.get(peer.0 as usize) else { return };
        self.timers.remove(&(ward.due, peer));
        if ward.told != Announcement::Withdrawn {
            self.tell(peer, Announcement::Withdrawn, None);
        }
        self.wards[peer.0 as usize] = Ward::new(None, self.me, self.timing);
    }

    /// What a peer is to this member.
    pub fn role(&self, now: Time, PeerId(peer): PeerId) -> Role {
        self.wards.get(peer as usize).map_or(Role::None, |ward| ward.ownership.role(now))
    }

    /// Whether a peer has no hub, or does not know: it is served as ever.
    pub fn is_plain(&self, PeerId(peer): PeerId) -> bool {
        self.wards.get(peer as usize).is_some_and(|ward| ward.plain)
    }

    /// The highest claim that is known of a peer.
    pub fn known(&self, PeerId(peer): PeerId) -> Option<Claim> {
        self.wards.get(peer as usize).and_then(|ward| ward.ownership.known())
    }

    /// Step 1: the driver is about to wait, and would be woken at `until`. Gives when it is to be, at the latest. Where
    /// it did not run until now, that is not forgotten.
    #[must_use]
    pub fn note_rest(&mut self, now: Time, until: Time) -> Time {
        let until = if now < self.leased_until { until.min(now + REST) } else { until };
        if self.runs(now) {
            self.due_back = until;
        }
        until
    }

    /// Step 1: whether the process ran since it was last here. Where it did not, nothing that it has in hand may be
    /// forwarded, and [`Gate::handle_batch`] is due.
    pub fn runs(&mut self, now: Time) -> bool {
        let ran = now.since(self.due_back) <= LATE;
        if ran {
            self.due_back = now;
        }
        ran
    }

    /// Step 1. `now` is read after the batch was. False where what was delivered before may not be forwarded.
    pub fn handle_batch(&mut self, now: Time, endpoint: &mut Endpoint, sink: &mut dyn Sink) -> bool {
        let ran = self.runs(now);
        if !ran {
            self.due_back = now;
            for place in 0..self.wards.len() {
                self.wards[place].ownership.handle_resumed(now);
                self.follow(now, PeerId(place as u32), endpoint, sink);
            }
        }
        self.handle_timeout(now, endpoint, sink);
        ran
    }

    /// Step 2.
    pub fn handle_event(&mut self, now: Time, event: &Event, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        let (Event::Session { peer, .. }
        | Event::Closed { peer }
        | Event::Silent { peer }
        | Event::HubSaid { peer, .. }
        | Event::Holds { peer }) = event
        else {
            return;
        };
        let Some(ward) = self.wards.get_mut(peer.0 as usize) else { return };
        match event {
            Event::Session { .. } => self.note_plain(*peer, !endpoint.knows_hub(*peer)),
            Event::Closed { .. } | Event::Silent { .. } => {
                ward.ownership.handle_gone();
                self.note_plain(*peer, false);
            }
            Event::HubSaid { frame, .. } => {
                if let Ok(ClaimMessage::Claim(claim)) = ClaimMessage::decode(frame.contents()) {
                    ward.on_claim(now, claim, *peer, endpoint, sink);
                }
            }
            _ => {
                ward.ownership.handle_traffic(now);
                ward.look_at = ward.look_at.min(now + BROUGHT);
            }
        }
        self.follow(now, *peer, endpoint, sink);
    }

    /// Step 3.
    pub fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        while let Some((_, peer)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let ward = &mut self.wards[peer.0 as usize];
            ward.on_timeout(now, endpoint.brought(now, peer));
            if ward.room_until <= now {
                ward.room_until = Time::NEVER;
                endpoint.leave_room(now, peer, false);
            }
            self.follow(now, peer, endpoint, sink);
        }
    }

    /// Whether no peer's packets would be lost if this member ended: none that has a hub is owned.
    pub fn is_drained(&self) -> bool {
        self.wards.iter().all(|ward| ward.ownership.forwards_until() == Time::ZERO)
    }

    /// A claim of a peer was heard of from anybody but the peer: a higher one fences this member, unless it has a lease.
    pub fn handle_hearsay(
        &mut self,
        now: Time,
        peer: PeerId,
        claim: Claim,
        endpoint: &mut Endpoint,
        sink: &mut dyn Sink,
    ) {
        if let Some(ward) = self.wards.get_mut(peer.0 as usize) {
            ward.ownership.handle_hearsay(now, claim);
            self.follow(now, peer, endpoint, sink);
        }
    }

    /// Other members no longer hear from this one: its peers that have this one as their standby are told.
    pub fn handle_missed(&mut self, now: Time, member: MemberId, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        for place in 0..self.wards.len() {
            self.wards[place].ownership.handle_missed(member);
            self.follow(now, PeerId(place as u32), endpoint, sink);
        }
    }

    /// The operator takes a peer off this member, or all of them and those to come; or no longer does.
    pub fn handle_drain(
        &mut self,
        now: Time,
        one: Option<PeerId>,
        draining: bool,
        endpoint: &mut Endpoint,
        sink: &mut dyn Sink,
    ) {
        let places = match one {
            Some(PeerId(peer)) => peer as usize..self.wards.len().min(peer as usize + 1),
            None => 0..self.wards.len(),
        };
        if one.is_none() {
            self.draining = draining;
        }
        for place in places {
            let (peer, ward) = (PeerId(place as u32), &mut self.wards[place]);
            ward.ownership.handle_drain(draining);
            ward.room_until = if draining { now + MOVES_FOR } else { Time::NEVER };
            endpoint.leave_room(now, peer, draining);
            self.follow(now, peer, endpoint, sink);
        }
    }

    /// When step 3 is due.
    pub fn poll_timeout(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Step 4.
    pub fn poll_event(&mut self) -> Option<Announced> {
        self.announced.pop_front()
    }

    /// A peer has no hub of its own: who has it as a peer owns it.
    fn note_plain(&mut self, peer: PeerId, plain: bool) {
        let ward = &mut self.wards[peer.0 as usize];
        if std::mem::replace(&mut ward.plain, plain) != plain {
            // What it was asked, or is to be announced, is of before.
            if plain {
                ward.ownership.handle_gone();
            }
            let _ = ward.ownership.poll_announcement();
            self.tell(peer, if plain { Announcement::Owner } else { Announcement::Withdrawn }, None);
        }
    }

    fn tell(&mut self, peer: PeerId, announcement: Announcement, epoch: Option<Epoch>) {
        let ward = &mut self.wards[peer.0 as usize];
        ward.told = announcement;
        self.announced.extend(ward.key.map(|key| Announced { key, announcement, epoch }));
    }

    /// Whatever changed of a peer: the endpoint serves it or not, it is told, and so are the routes.
    fn follow(&mut self, now: Time, peer: PeerId, endpoint: &mut Endpoint, sink: &mut dyn Sink) {
        let ward = &mut self.wards[peer.0 as usize];
        self.leased_until = self.leased_until.max(ward.ownership.forwards_until());
        endpoint.set_standing(now, peer, ward.standing(now), sink);
        if let Some(ack) = ward.ownership.poll_ack(now) {
            let mut bytes = [0; ClaimMessage::MAX_LEN];
            let mut out = Writer::new(&mut bytes);
            let written = ClaimMessage::Ack(ack).encode(&mut out);
            debug_assert_eq!(written, Ok(()), "a role that needs an epoch has one");
            if let Some(frame) = HubFrame::new(HubFrameType::ClaimAck, out.written()) {
                // Nobody repeats what is said of another member: it must not wait for the loss of a path.
                endpoint.say_to_hub(now, peer, frame, if ack.misses { Reach::All } else { Reach::Back });
            }
        }
        // What changes meanwhile is announced as it then is.
        if ward.announces_at() <= now
            && let Some(announcement) = ward.ownership.poll_announcement()
        {
            ward.announced_until = ward.announced_until.max(now) + ANNOUNCED_EVERY;
            let epoch = ward.ownership.known().map(|claim| claim.epoch);
            self.tell(peer, announcement, epoch);
        }
        let ward = &mut self.wards[peer.0 as usize];
        self.timers.remove(&(ward.due, peer));
        ward.due = ward.next(now);
        if ward.due < Time::NEVER {
            self.timers.insert((ward.due, peer));
        }
    }
}

impl Ward {
    fn new(key: Option<PublicKey>, me: MemberId, timing: Timing) -> Self {
        Ward {
            key,
            told: Announcement::Withdrawn,
            ownership: Ownership::new(me, timing),
            plain: false,
            untold_at: Time::NEVER,
            look_at: Time::NEVER,
            room_until: Time::NEVER,
            announced_until: Time::ZERO,
            due: Time::NEVER,
        }
    }

    /// When something may be announced; never, where there is nothing.
    fn announces_at(&self) -> Time {
        if self.ownership.announces() { self.announced_until - ANNOUNCED_AHEAD } else { Time::NEVER }
    }

    fn standing(&self, now: Time) -> Standing {
        match (self.ownership.forwarding(now), self.ownership.role(now)) {
            _ if self.plain => Standing::Served,
            (Forwarding::Forward(_), _) => Standing::Served,
            (_, Role::Fenced) => Standing::Refused,
            // What comes may have overtaken the claim that gives it to this member.
            _ => Standing::Held,
        }
    }

    /// Step 3. `brought`: when the first and the last packet of those came that are held.
    fn on_timeout(&mut self, now: Time, brought: Option<(Time, Time)>) {
        self.ownership.handle_timeout(now);
        if self.untold_at <= now {
            self.untold_at = Time::NEVER;
            self.ownership.handle_untold();
        }
        if self.look_at > now {
            return;
        }
        self.look_at = if brought.is_some() { now + BROUGHT } else { Time::NEVER };
        // One that comes alone may be late.
        if brought.is_some_and(|(first, last)| last.since(first) >= BROUGHT / 2 && now.since(last) < BROUGHT) {
            self.ownership.handle_brought();
        }
    }

    /// A claim; what waited under another one is not forwarded under this.
    fn on_claim(
        &mut self,
        now: Time,
        frame: crate::claim::ClaimFrame,
        peer: PeerId,
        endpoint: &mut Endpoint,
        sink: &mut dyn Sink,
    ) {
        let before = self.ownership.known();
        let taken = self.ownership.handle_claim(now, frame) == Verdict::Taken;
        self.untold_at = now + UNTOLD;
        if taken
            && before.is_some_and(|before| before.owner != frame.claim.owner)
            && self.standing(now) == Standing::Held
        {
            endpoint.set_standing(now, peer, Standing::Refused, sink);
        }
    }

    fn next(&self, now: Time) -> Time {
        let lease_ends = Some(self.ownership.forwards_until()).filter(|end| *end > now).unwrap_or(Time::NEVER);
        let looks = self.look_at.min(self.room_until).min(self.untold_at);
        self.ownership.poll_timeout().min(lease_ends).min(looks).min(self.announces_at())
    }
}

#[cfg(test)]
mod tests;
