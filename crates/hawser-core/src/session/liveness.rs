//! Whether anybody is there: when the peer was heard, when users' packets went or came, and whether this portal ran
//! meanwhile.

use super::constants::{ASK_LEAST, ASLEEP, EAGER, EAGER_PARTS, IDLE_AFTER, IDLE_DEAF, IDLE_PROBE, SESSION_SILENCE};
use crate::path::constants::DOWN_PROBE_INTERVAL;
use crate::units::Time;
use std::time::Duration;

/// What a session knows of its peer's and its own presence. Begins as if all had just been heard; the session owns it.
pub(super) struct Liveness {
    started: Time,
    /// Since when something was sent and nothing at all was acknowledged.
    unanswered_since: Option<Time>,
    /// When anything last was.
    answered_at: Time,
    /// When inner packets last went or came; none do for long.
    busy_at: Time,
    idle: bool,
    /// When they did again after they did not for long, and the peer was not silent.
    resumed_at: Time,
    /// When an authentic datagram last came.
    heard_at: Time,
    /// When the driver last called, and when it last did after it had not for long.
    called_at: Time,
    woke_at: Time,
}

impl Liveness {
    pub fn new(now: Time) -> Self {
        Liveness {
            started: now,
            unanswered_since: None,
            answered_at: now,
            busy_at: now,
            idle: false,
            resumed_at: now,
            heard_at: now,
            called_at: now,
            woke_at: now,
        }
    }

    /// When the session began.
    pub fn started(&self) -> Time {
        self.started
    }

    /// Notices that the driver did not run for longer than any deadline allows: the process was stopped, or the machine
    /// slept.
    pub fn note_call(&mut self, now: Time) {
        if now.since(std::mem::replace(&mut self.called_at, now)) > ASLEEP {
            self.woke_at = now;
        }
    }

    /// When the driver last called.
    pub fn called_at(&self) -> Time {
        self.called_at
    }

    /// Whether this portal ran ever since `sent_at`: what came while it did not waited for it.
    pub fn is_awake_since(&self, sent_at: Time) -> bool {
        sent_at >= self.woke_at
    }

    /// Something went that is to be acknowledged.
    pub fn note_asked(&mut self, now: Time) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Something was acknowledged.
    pub fn note_answered(&mut self, now: Time) {
        (self.unanswered_since, self.answered_at) = (None, now);
    }

    /// An answer came that no acknowledgement is: a path that was down leads to the peer.
    pub fn note_proof(&mut self, now: Time) {
        self.answered_at = now;
    }

    /// Since when something was sent and nothing at all was acknowledged.
    pub fn unanswered_since(&self) -> Option<Time> {
        self.unanswered_since
    }

    /// When anything last was acknowledged, or a challenge answered; at first, when the session began.
    pub fn answered_at(&self) -> Time {
        self.answered_at
    }

    /// When too much is unanswered, where it may be so for `allowed`.
    pub fn unanswered_until(&self, allowed: impl FnOnce() -> Duration) -> Option<Time> {
        self.unanswered_since.map(|since| since + allowed())
    }

    /// An authentic datagram came. Tells whether the peer had been silent for long.
    pub fn note_heard(&mut self, now: Time) -> bool {
        now.since(std::mem::replace(&mut self.heard_at, now)) > EAGER
    }

    /// The peer took part in a handshake: it answered, or asked.
    pub fn note_handshake(&mut self, now: Time) {
        (self.heard_at, self.unanswered_since, self.answered_at) = (now, None, now);
    }

    /// Whether the session is over for silence.
    pub fn is_over(&self, now: Time) -> bool {
        now.since(self.heard_at) >= SESSION_SILENCE
    }

    /// When one last did.
    pub fn busy_at(&self) -> Time {
        self.busy_at
    }

    /// An inner packet went or came. Tells whether none did for long.
    pub fn note_busy(&mut self, now: Time) -> bool {
        self.busy_at = now;
        let was_idle = std::mem::take(&mut self.idle);
        if was_idle && now.since(self.heard_at) < IDLE_DEAF + EAGER {
            self.resumed_at = now;
        }
        was_idle
    }

    /// Notices that none does for long.
    pub fn note_idle(&mut self, now: Time) {
        self.idle = now.since(self.busy_at) >= IDLE_AFTER;
    }

    /// Whether none does for long.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// For how long nothing came of what should have.
    pub fn silence(&self, now: Time) -> Duration {
        let silence = now.since(self.heard_at.max(self.resumed_at));
        // The far side of an idle session says nothing until it asks, or keys are due.
        if self.idle { silence.saturating_sub(IDLE_DEAF) } else { silence }
    }

    /// How often a path is probed that is down since then: ever more seldom where the peer is silent altogether, or
    /// nobody needs the path.
    pub fn probe_interval(&self, now: Time, down_since: Time) -> Duration {
        let silence = self.silence(now);
        match (silence < EAGER, self.idle) {
            (true, true) => (now.since(down_since) / EAGER_PARTS).clamp(DOWN_PROBE_INTERVAL, IDLE_PROBE),
            (true, false) => DOWN_PROBE_INTERVAL,
            (false, _) => (silence / EAGER_PARTS).clamp(DOWN_PROBE_INTERVAL, ASK_LEAST),
        }
    }
}
