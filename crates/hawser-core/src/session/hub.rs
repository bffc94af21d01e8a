//! CLAIM and CLAIM_ACK, for who has a hub (`hawser-hub`): said to a peer that knows them, and heard from it. Nothing is
//! repeated here, and nothing kept but the newest: whoever says it says it again.
//!
//! Beside a CLAIM to the standby goes what each path's link brought from the other member: the standby's paths begin
//! there, should it take over (`careful_start`).

use super::hand_over::Carried;
use super::path::Path;
use super::{Event, Session};
use crate::drops::{DropReason, Drops};
use crate::path::health::HealthState;
use crate::policy::{AHEAD, BESIDE};
use crate::units::{ByteCount, LinkId, PathId, Rate, Start, Time};
use crate::wire::{Capabilities, HubFrame, HubFrameType, Version};
use std::time::Duration;

/// By which paths a frame goes. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The one that speaks for the session.
    Best,
    /// All that may lead to the peer: it must not wait for the loss of one. Those that are down are probed.
    All,
    /// Those by which the peer said something since the last answer; by the best, where none of them is active.
    Back,
}

/// Whether the peer is there, as far as the session knows. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Presence {
    /// Since when something was sent and nothing at all was acknowledged; of a peer without a session, since when it
    /// was asked in vain.
    pub unanswered_since: Option<Time>,
    /// When anything last was acknowledged, a challenge answered, or the session began; none without one.
    pub answered_at: Option<Time>,
    /// When the first of its paths has waited for its probe timeout; none where none waits.
    pub late_at: Option<Time>,
    /// When each of its active paths has had two datagrams unanswered for its probe timeout, so that one loss is no
    /// silence; of a path that has one under way, twice the probe timeout after that. None where no such path has
    /// anything.
    pub overdue_at: Option<Time>,
    /// No inner packet went or came for long.
    pub idle: bool,
    /// When one last did; none without a session.
    pub busy_at: Option<Time>,
}

/// One planned move follows another no sooner (`hawser_hub::pair`, LINGER).
const MOVES_APART: Duration = Duration::from_secs(1);
/// What links carry, and flows take, is measured over no less: what comes in bursts is a rate then.
pub(super) const MEASURED_OVER: Duration = Duration::from_millis(500);

/// What a path brings, and what it takes there. A plain value.
#[derive(Copy, Clone)]
struct Both<T> {
    brings: T,
    takes: T,
}

/// What links carry. Nothing is known at first; the session that they carry it for owns it.
#[derive(Default)]
struct Measured {
    since: Option<Time>,
    bytes: Vec<(PathId, Both<ByteCount>)>,
    rates: Vec<(LinkId, Both<Rate>)>,
}

/// What is said and heard. Nothing at first; the session owns it.
#[derive(Default)]
pub(super) struct HubFrames {
    /// Both portals know what it is about.
    known: bool,
    says: Option<HubFrame>,
    heard: Option<HubFrame>,
    /// By which paths it was heard since the last answer.
    came_by: Vec<PathId>,
    measured: Measured,
    /// What links brought from the other member, and whether that one hands over.
    carried: Vec<(LinkId, Rate)>,
    start: Start,
    /// The other member hands over: since when, and whether what it had has come.
    beside: Option<(Time, bool)>,
    /// Packets move to this session, by plan, whichever side of it this is: since when.
    moving: Option<Time>,
}

impl HubFrames {
    /// Until when bulk flows wait, for what another member still brings by the same links.
    pub fn bulk_waits_until(&self, now: Time) -> Option<Time> {
        let (since, come) = self.beside?;
        Some(since + BESIDE).filter(|until| !come && *until > now)
    }

    /// Whether another session may still have packets under way by the same links.
    pub fn is_moving(&self, now: Time) -> bool {
        self.moving.is_some_and(|since| now.since(since) < BESIDE)
    }

    /// What the two portals speak.
    pub fn learn_versions(&mut self, theirs: Version, ours: Version) {
        self.known = [theirs, ours].iter().all(|version| version.capabilities.contain(Capabilities::HUB));
    }

    /// What the paths that want to are to say.
    pub fn says(&self) -> Option<&HubFrame> {
        self.says.as_ref()
    }

    /// What one by this link says beside a CLAIM.
    pub fn says_of(&self, link: LinkId) -> Option<HubFrame> {
        let claims = self.says.is_some_and(|frame| frame.kind() == HubFrameType::Claim);
        let rate = self.carried.iter().find(|(known, _)| *known == link).filter(|_| claims)?.1;
        Some(HubFrame::carried(self.start, rate))
    }
}

impl Session {
    /// Whether both portals know what CLAIM and CLAIM_ACK are about.
    pub fn knows_hub(&self) -> bool {
        self.hub.known
    }

    /// Says it with the next datagram of these paths, in the place of what was to be said and was not. False where the
    /// peer does not know it, or no path works.
    pub fn say_to_hub(&mut self, now: Time, frame: HubFrame, reach: Reach) -> bool {
        if !self.hub.known {
            return false;
        }
        if frame.kind() == HubFrameType::Claim {
            self.recovery.kept.begin(self.outbound.next_order);
        }
        let came_by = if reach == Reach::Back { std::mem::take(&mut self.hub.came_by) } else { Vec::new() };
        let active = |index: usize| self.paths[index].health.is_active();
        let down = |index: usize| matches!(self.paths[index].health.state(), HealthState::Down(_));
        // What is said by a suspect path leaves its quota what brings it back.
        let may = |index: usize| self.paths[index].may_acknowledge_at(now) <= now;
        let mut by: Vec<usize> = match reach {
            Reach::Best => Vec::new(),
            Reach::All => (0..self.paths.len()).filter(|index| !down(*index) && may(*index)).collect(),
            Reach::Back => came_by.iter().filter_map(|id| self.paths.index_of(*id)).filter(|at| active(*at)).collect(),
        };
        if reach == Reach::All {
            self.paths.iter_mut().for_each(|path| path.health.probe_now(now));
        }
        if by.is_empty() {
            by.extend((0..self.paths.len()).find(|index| self.is_spokesman(*index)));
        }
        by.iter().for_each(|index| self.paths[*index].wants.hub = true);
        self.hub.says = Some(frame);
        !by.is_empty()
    }

    /// What each link brings by this session.
    pub fn brought(&mut self, now: Time) -> impl Iterator<Item = (LinkId, Rate)> {
        self.measure(now);
        self.hub.measured.rates.iter().map(|(link, rate)| (*link, rate.brings))
    }

    /// What a link takes to the peer, as it was measured last.
    pub(super) fn taken(&self, link: LinkId) -> Option<Rate> {
        self.hub.measured.rates.iter().find(|(known, _)| *known == link).map(|(_, rate)| rate.takes)
    }

    fn measure(&mut self, now: Time) {
        let known = &mut self.hub.measured;
        let time = known.since.map(|since| now.since(since));
        if time.is_some_and(|time| time < MEASURED_OVER) {
            return;
        }
        let bytes = |path: &Path| Both { brings: path.counts.rx_bytes, takes: path.capacity.sampler.delivered() };
        let rate = |path: &Path| {
            let before = known.bytes.iter().find(|(id, _)| *id == path.id)?.1;
            let rate = |now: ByteCount, before: ByteCount| time.map(|time| Rate::of(ByteCount(now.0 - before.0), time));
            let after = bytes(path);
            let rates = Both { brings: rate(after.brings, before.brings)?, takes: rate(after.takes, before.takes)? };
            Some((path.route.link, rates))
        };
        known.rates = self.paths.iter().filter_map(rate).collect();
        known.bytes = self.paths.iter().map(|path| (path.id, bytes(path))).collect();
        known.since = Some(now);
    }

    /// What links brought from the member that carries packets is said with the next CLAIM.
    pub fn tell_carried(&mut self, now: Time, start: Start, carried: &[(LinkId, Rate)]) {
        if start == Start::Beside {
            self.hub.moving = Some(now);
            let brought = |path: &&mut Path| carried.iter().any(|(link, _)| *link == path.route.link);
            self.paths.iter_mut().filter(brought).for_each(|path| path.way.rtt.expect_ahead(now, AHEAD));
        }
        self.hub.start = start;
        self.hub.carried.clear();
        self.hub.carried.extend_from_slice(carried);
    }

    /// All that is this peer's now: said at once, by each path.
    pub fn tell_known(&mut self) {
        self.hub.start = Start::Known;
        self.paths.iter_mut().filter(|path| path.health.is_active()).for_each(|path| path.wants.hub = true);
    }

    /// What the peer said, once.
    pub fn take_hub_frame(&mut self) -> Option<HubFrame> {
        self.hub.heard.take()
    }

    /// What the link of path `index` brings, or brought, from the other member.
    fn on_carried(&mut self, now: Time, index: usize, start: Start, rate: Rate) {
        let path = &mut self.paths[index];
        let (link, round_trip) = (path.route.link, path.way.rtt.snapshot().smoothed);
        if now.since(self.liveness.busy_at()) >= MOVES_APART {
            path.capacity.controller.on_takeover(now);
        }
        // How much was there to carry is the other member's to know.
        path.begin_at(now, start, &Carried { link, rate, filled: false, round_trip });
        match start {
            Start::Careful => {}
            // Each path says it, and one may be late: it is of the same move.
            Start::Beside if self.hub.beside.is_some_and(|(since, _)| now.since(since) < MOVES_APART) => {}
            Start::Beside => (self.hub.beside, self.hub.moving) = (Some((now, false)), Some(now)),
            Start::Known => self.hub.beside.iter_mut().for_each(|(_, come)| *come = true),
        }
    }

    /// It came by path `index`. Whoever has no hub counts it.
    pub(super) fn on_hub(&mut self, now: Time, index: usize, frame: HubFrame, drops: &mut Drops) {
        if !self.hub.known {
            return drops.count(DropReason::NoHub);
        }
        if frame.kind() == HubFrameType::Carried {
            return frame.start().into_iter().for_each(|(start, rate)| self.on_carried(now, index, start, rate));
        }
        let id = self.paths[index].id;
        if !self.hub.came_by.contains(&id) {
            self.hub.came_by.push(id);
        }
        if self.hub.heard.replace(frame).is_none() {
            self.events.push(Event::HubSaid);
        }
    }

    /// Whether the peer is there.
    pub fn presence(&self) -> Presence {
        let late = |path: &Path| match path.health.state() {
            HealthState::Suspect => path.health.suspect_since(),
            HealthState::Active => path.flight.sent.next_awaited_sent_at().map(|at| at + path.way.probe_timeout()),
            _ => None,
        };
        // A path that is suspect has been waited for.
        let active = self.paths.iter().filter(|path| path.health.is_active());
        let overdue = |path: &Path| {
            let (mut awaited, timeout) = (path.flight.sent.awaited_sent_at(), path.way.probe_timeout());
            awaited.next().map(|first| awaited.next().unwrap_or(first + timeout) + timeout)
        };
        Presence {
            unanswered_since: self.liveness.unanswered_since(),
            answered_at: Some(self.liveness.answered_at()),
            late_at: self.paths.iter().filter_map(late).min(),
            overdue_at: active.filter_map(overdue).max(),
            idle: self.liveness.is_idle(),
            busy_at: Some(self.liveness.busy_at()),
        }
    }
}
