//! Deadlines: which is next and why, and what is done when it comes.

use super::constants::QUEUED_FOR;
use super::{Context, Event, Session, Sink};
use crate::path::constants::SUSPECT_PTOS;
use crate::path::health::{HealthAction, HealthState, Others};
use crate::path::sent::PtoKind;
use crate::units::{Random, Time};
use crate::wire::LinkState;
use std::time::Duration;

/// Why the driver is to wake the core. For logs, metrics and tests.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A packet is overdue among others that arrived.
    Loss,
    /// Nothing was acknowledged for a probe timeout.
    ProbeTimeout,
    /// A path is probed, or given up.
    Health,
    /// A challenge is repeated.
    Validation,
    /// The MTU search goes on.
    Pmtu,
    /// An acknowledgement is due.
    Ack,
    /// The pacer lets the next packet go.
    Pacing,
    /// A path is late, and what it holds of sparse flows goes by another too.
    Hedge,
    /// A path that is not active may say something again.
    Quota,
    /// A path that was idle is asked whether it lives.
    Keepalive,
    /// A flow fell silent, and its last packets get a repair.
    Repair,
    /// An acknowledgement of an inner flow was held long enough.
    InnerAck,
    /// A gap is not waited for any longer.
    Resequence,
    /// Old keys go.
    KeysExpire,
    /// New keys are due, or an initiation is repeated.
    Handshake,
    /// Buffers that were idle are given back.
    Housekeeping,
}

/// The earlier of two deadlines.
pub(crate) fn earlier(one: Option<(Time, Reason)>, other: Option<(Time, Reason)>) -> Option<(Time, Reason)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
        (one, other) => one.or(other),
    }
}

impl Session {
    /// The next deadline and its reason.
    pub fn poll_timeout(&self, now: Time) -> Option<(Time, Reason)> {
        let mut next = self.inbound.resequencer.poll_timeout().map(|at| (at, Reason::Resequence));
        next = earlier(next, self.keyring.expires().map(|at| (at, Reason::KeysExpire)));
        // What may not be sealed wakes nobody.
        let mute = self.keyring.permit(now).is_err();
        next = earlier(next, self.fec.poll_timeout().filter(|_| !mute).map(|at| (at, Reason::Repair)));
        next = earlier(next, self.outbound.queue.poll_timeout().map(|at| (at, Reason::InnerAck)));
        let bulk_waits = self.hub.bulk_waits_until(now).filter(|_| !self.nothing_waits());
        next = earlier(next, bulk_waits.map(|at| (at, Reason::Pacing)));
        for index in 0..self.paths.len() {
            next = earlier(next, self.path_deadline(now, index));
            if !mute {
                next = earlier(next, self.speaking_deadline(now, index));
            }
        }
        next
    }

    /// When something is due of a path, whether or not it may speak.
    fn path_deadline(&self, now: Time, index: usize) -> Option<(Time, Reason)> {
        let path = &self.paths[index];
        let waits = !self.nothing_waits();
        let candidates = [
            path.flight.sent.loss_time().map(|at| (at, Reason::Loss)),
            path.flight.sent.pto_deadline(path.way.probe_timeout()).map(|(at, _)| (at, Reason::ProbeTimeout)),
            path.health.poll_timeout().map(|(at, _)| (at, Reason::Health)),
            path.validation.poll_timeout().map(|at| (at, Reason::Validation)),
            path.doubted_until().filter(|at| waits && *at > now).map(|at| (at, Reason::Health)),
        ];
        candidates.into_iter().fold(None, earlier)
    }

    /// When a path has something to say.
    fn speaking_deadline(&self, now: Time, index: usize) -> Option<(Time, Reason)> {
        let waits = !self.nothing_waits() || self.is_filled(index);
        let spokesman = (0..self.paths.len()).any(|other| self.is_spokesman(other) && !self.paths[other].stall.blocked);
        let path = &self.paths[index];
        let active = path.health.is_active();
        // What waits for a full socket wakes nobody: the driver knows when it has room. Nor does an
        // acknowledgement that nobody can carry.
        let may_speak = |at: &Time| *at > now || !path.stall.blocked;
        let heard = |at: &Time| (may_speak(at) && path.may_answer(now)) || (!active && spokesman);
        // What may not go yet is woken for when it may; an acknowledgement that others carry is not waited for.
        let (quota, ack_quota) = (path.may_speak_at(now), path.may_acknowledge_at(now));
        let asked = path.wants.any().then_some(quota);
        let acknowledges = path.ack_is_due(now).then_some(ack_quota);
        let by_quota = [asked, acknowledges].into_iter().flatten().filter(|at| *at > now && !path.stall.blocked).min();
        let ack_due = path.received.ack_due().filter(heard).filter(|at| spokesman || ack_quota <= now || *at > now);
        let paced = path.stall.paced_until.filter(|_| waits);
        let candidates = [
            active.then(|| path.mtu_probe_at()).flatten().filter(may_speak).map(|at| (at, Reason::Pmtu)),
            ack_due.map(|at| (at, Reason::Ack)),
            by_quota.map(|at| (at, Reason::Quota)),
            path.hedge_at()
                .filter(|_| self.scheduling.policy.decisions().reinjection.second_path)
                .map(|at| (at, Reason::Hedge)),
            paced.map(|at| (at, Reason::Pacing)),
            self.keepalive_at(index).map(|at| (at, Reason::Keepalive)),
        ];
        candidates.into_iter().fold(None, earlier)
    }

    /// Does all that is due.
    pub fn handle_timeout(&mut self, now: Time, sink: &mut dyn Sink, cx: &mut Context<'_>) {
        self.liveness.note_call(now);
        self.note_idle(now);
        for index in 0..self.paths.len() {
            self.path_timeout(now, index, cx.rng);
        }
        let drops = &mut *cx.drops;
        self.outbound.queue.handle_timeout(now, cx.store, &mut |dropped| drops.count(dropped.reason.into()));
        // CoDel looks at what is pulled, and from a peer that is away nothing is.
        self.outbound.queue.drop_old(now, QUEUED_FOR, cx.store, &mut |dropped| drops.count(dropped.reason.into()));
        self.sweep_closed();
        self.inbound.resequencer.handle_timeout(now, sink);
        while let Some(retired) = self.keyring.retire(now) {
            self.events.push(Event::KeysRetired(retired));
        }
        if self.liveness.is_over(now) {
            self.events.push(Event::Silent);
        }
    }

    /// An authentic datagram came: who was silent for long is asked by all paths at once.
    pub(super) fn note_heard(&mut self, now: Time) {
        if self.liveness.note_heard(now) {
            self.paths.iter_mut().for_each(|path| path.health.probe_now(now));
        }
    }

    /// For how long nothing came of what should have.
    pub fn silence(&self, now: Time) -> Duration {
        self.liveness.silence(now)
    }

    fn path_timeout(&mut self, now: Time, index: usize, rng: &mut dyn Random) {
        let path = &mut self.paths[index];
        if path.flight.sent.loss_time().is_some_and(|at| at <= now) {
            self.declare_losses(now, index);
        }
        self.probe_timeout(now, index);
        let (others, every) =
            (self.paths.others(index), self.liveness.probe_interval(now, self.paths[index].health.down_since()));
        let path = &mut self.paths[index];
        match path.health.handle_timeout(now, others, every) {
            HealthAction::None => {}
            HealthAction::Ping => {
                path.wants.ping = true;
                self.events.push(Event::PathDown);
            }
            HealthAction::Probe => self.probe(now, index),
            HealthAction::BecameSuspect => self.on_suspect(now, index),
            HealthAction::BecameDown => self.on_gave_up(now, index),
        }
        self.validation_timeout(now, index, rng);
        self.keep_alive(now, index);
    }

    /// A path that is down is challenged again; what the last challenge left behind is forgotten.
    fn probe(&mut self, now: Time, index: usize) {
        self.drain(now, index);
        self.declare_losses(now, index);
        self.paths[index].validation.begin(now);
    }

    /// Silence makes a path suspect; a tail that is merely late is asked after.
    fn probe_timeout(&mut self, now: Time, index: usize) {
        let others = self.paths.others(index);
        let path = &mut self.paths[index];
        let pto = path.way.probe_timeout();
        let Some((_, kind)) = path.flight.sent.pto_deadline(pto).filter(|(at, _)| *at <= now) else { return };
        path.flight.sent.on_pto(now, kind);
        // Of a path that is down only challenges ask.
        path.wants.ping |= !matches!(path.health.state(), HealthState::Down(_));
        // Where no other path could take over nothing is won by doubting this one early, and what its link keeps comes
        // late. And where nothing but a ping is missing, the peer goes on sending: it would not without
        // acknowledgements.
        let unhurried = others == Others::None || path.is_heard_without_data(now, pto);
        let patient = unhurried && path.flight.sent.pto_count() < SUSPECT_PTOS;
        if kind == PtoKind::Silence && !patient {
            match path.health.on_pto(now, pto, others) {
                HealthAction::BecameSuspect => self.on_suspect(now, index),
                HealthAction::BecameDown => self.on_gave_up(now, index),
                HealthAction::None | HealthAction::Ping | HealthAction::Probe => {}
            }
        }
    }

    /// A path is down because nothing came. It is challenged at once (RFC 9000 section 8.2): suspicion lasts as long as
    /// many outages, and the answers to its pings, which may be on their way, bring back no path that is down. The far
    /// side of an idle one may not have noticed.
    fn on_gave_up(&mut self, now: Time, index: usize) {
        self.events.push(Event::PathDown);
        self.paths[index].health.probe_now(now);
        self.reinject(now, index);
        if self.liveness.is_idle() {
            self.announce(self.paths[index].id, LinkState::Down);
        }
    }

    /// What a suspect path has in flight moves to the others, if there are others.
    pub(super) fn on_suspect(&mut self, now: Time, index: usize) {
        self.scheduling.policy.reconsider();
        self.paths[index].way.ecn.on_silence();
        if self.paths.iter().any(|path| path.works()) {
            self.paths[index].note_black_holed();
            self.reinject(now, index);
        }
    }

    /// When the peer is to be sent a new initiation because nothing at all was acknowledged for too long.
    pub fn silence_deadline(&self) -> Option<Time> {
        self.liveness.unanswered_until(|| self.paths.silence_allowed())
    }
}
