//! Whether a path may carry traffic.
//!
//! ```text
//!                     on_validated
//!  NEW --on_probe--> VALIDATING ------------------> ACTIVE <------+
//!                        |                           |  ^         |
//!                        |                    on_pto |  | on_ack  |
//!                        |               or on_doubt v  |         |
//!                        |                         SUSPECT        |
//!                        |  3 further on_pto, or 300 ms |         |
//!                        v                              v         |
//!                       DOWN <--- on_down, from every state       |
//!                        |  ^ probed every 500 ms                 |
//!                        |  +--- on_validated while held back     |
//!                        +------ on_validated --------------------+
//!                        |
//!                        +------ closed: for good
//! ```
//!
//! A path that was given up for silence is probed at once, too: its link may be back already.
//!
//! Where no other path works a suspect one is given up after 1.5 s only: it is asked every 300 ms, and returns with the
//! first answer.
//!
//! A path that flaps is **held back**: the first two drops of ten seconds cost nothing, with the third it stays down
//! for 0.5 s, then 1, 2 … 16 s, even if it answers; each 30 s that it then stays active take one doubling back.

mod flaps;
#[cfg(test)]
mod tests;

use super::constants::{DOWN_PROBE_INTERVAL, SUSPECT_ALONE, SUSPECT_FOR, SUSPECT_PTOS};
use crate::units::Time;
pub use flaps::FlapHold;
use flaps::Flaps;
use std::time::Duration;

/// Why a path is down.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DownReason {
    /// It stopped acknowledging, or never answered a challenge.
    Timeout,
    /// Its interface or address went.
    LinkLost,
    /// The kernel has no route to the remote endpoint.
    NoRoute,
    /// The peer announced it.
    PeerSaidDown,
    /// Either side closed it: final.
    Closed,
}

/// The states, as drawn above.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HealthState {
    /// Nothing was sent on it.
    New,
    /// A challenge is out.
    Validating,
    /// It carries traffic.
    Active,
    /// It owes an acknowledgement for longer than a probe timeout.
    Suspect,
    /// It carries probes only.
    Down(DownReason),
}

/// What a deadline is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HealthTimer {
    /// A suspect path is given up.
    SuspectOver,
    /// A down path is probed.
    Probe,
}

/// The paths beside this one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Others {
    /// One at least may take its place.
    Work,
    /// There is none: nothing is won by giving this one up, which may only be slow.
    None,
}

/// What the session has to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum HealthAction {
    /// Nothing.
    None,
    /// Send a challenge.
    Probe,
    /// Send anything that is acknowledged.
    Ping,
    /// Offer what is in flight to the other paths, acknowledge by all.
    BecameSuspect,
    /// Drain it to the other paths; tell the peer.
    BecameDown,
}

/// A path's health. New at first. One path owns it, under the session's lock.
#[derive(Clone, Debug)]
pub struct Health {
    state: HealthState,
    /// When a suspect path is given up, or a down one probed.
    deadline: Option<Time>,
    /// Probe timeouts since it became suspect.
    ptos: u32,
    /// When it became active.
    active_at: Time,
    /// When it was last suspected: only what was sent since is a sign of life.
    suspected_at: Time,
    /// When it went down last.
    down_since: Time,
    flaps: Flaps,
}

impl Health {
    /// A path that nothing was sent on. `hold`: what it costs to drop again and again.
    pub fn new(hold: FlapHold) -> Self {
        Health {
            state: HealthState::New,
            deadline: None,
            ptos: 0,
            active_at: Time::ZERO,
            suspected_at: Time::ZERO,
            down_since: Time::ZERO,
            flaps: Flaps::new(hold),
        }
    }

    /// The state.
    pub fn state(&self) -> HealthState {
        self.state
    }

    /// Whether new traffic may be put on it.
    pub fn is_active(&self) -> bool {
        self.state == HealthState::Active
    }

    /// Since when it is suspect, if it is.
    pub fn suspect_since(&self) -> Option<Time> {
        (self.state == HealthState::Suspect).then_some(self.suspected_at)
    }

    /// When it went down last.
    pub fn down_since(&self) -> Time {
        self.down_since
    }

    /// Until when a flapping path is held back, if that is after `now`.
    pub fn held_until(&self, now: Time) -> Option<Time> {
        self.flaps.held_until().filter(|&until| until > now)
    }

    /// There is no other path: this one is not held back, however it flaps.
    pub fn forgive_flaps(&mut self) {
        self.flaps.forgive();
    }

    /// The first challenge went out.
    pub fn on_probe(&mut self) {
        if self.state == HealthState::New {
            self.state = HealthState::Validating;
        }
    }

    /// A response came to a challenge sent on it. Says whether the path became active by it.
    pub fn on_validated(&mut self, now: Time) -> bool {
        let may_return = match self.state {
            HealthState::New | HealthState::Validating | HealthState::Suspect => true,
            HealthState::Active | HealthState::Down(DownReason::Closed) => false,
            HealthState::Down(_) => self.held_until(now).is_none(),
        };
        if may_return {
            // A suspect path was active all along: what it did before still counts as stability.
            if self.state != HealthState::Suspect {
                self.active_at = now;
            }
            self.state = HealthState::Active;
            self.deadline = None;
        }
        may_return
    }

    /// A packet that was sent on it at `sent_at` was acknowledged. Says whether it returned from suspect by it. What
    /// was sent before the silence says nothing: its acknowledgement may be late, or have come round by another path.
    /// One of a path that is down makes it ask for nothing: a link that kept its challenges delivers all of them at
    /// once.
    pub fn on_ack(&mut self, sent_at: Time) -> bool {
        let returned = self.state == HealthState::Suspect && sent_at >= self.suspected_at;
        if returned {
            self.state = HealthState::Active;
            self.deadline = None;
        }
        returned
    }

    /// A probe timeout passed without any acknowledgement (`PtoKind::Silence`); `pto` is its length: a path with a
    /// long round trip is suspect for at least that, so that the probe can be answered.
    pub fn on_pto(&mut self, now: Time, pto: Duration, others: Others) -> HealthAction {
        match self.state {
            HealthState::Active => {
                self.state = HealthState::Suspect;
                self.ptos = 0;
                self.suspected_at = now;
                self.deadline = Some(now + SUSPECT_FOR.max(pto));
                HealthAction::BecameSuspect
            }
            HealthState::Suspect => {
                self.ptos += 1;
                if self.ptos >= SUSPECT_PTOS && others == Others::Work {
                    return self.on_down(now, DownReason::Timeout);
                }
                HealthAction::None
            }
            _ => HealthAction::None,
        }
    }

    /// Somebody who may know says that it is broken, or somebody in that name. Says whether it became suspect by it.
    pub fn on_doubt(&mut self, now: Time, pto: Duration) -> bool {
        self.is_active() && self.on_pto(now, pto, Others::Work) == HealthAction::BecameSuspect
    }

    /// Somebody knows that it is down. Of a path that is down already only the reason changes; closed is for good.
    pub fn on_down(&mut self, now: Time, reason: DownReason) -> HealthAction {
        let before = self.state;
        if before == HealthState::Down(DownReason::Closed) {
            return HealthAction::None;
        }
        self.state = HealthState::Down(reason);
        if reason == DownReason::Closed {
            self.deadline = None;
        }
        if matches!(before, HealthState::Down(_)) {
            return HealthAction::None;
        }
        self.down_since = now;
        if reason != DownReason::Closed {
            self.deadline = Some(now + DOWN_PROBE_INTERVAL);
            if matches!(before, HealthState::Active | HealthState::Suspect) {
                self.flaps.on_drop(now, self.active_at);
            }
        }
        HealthAction::BecameDown
    }

    /// Something speaks for a down path (its link is back, the peer says so), or it was given up just now: probe it
    /// without waiting.
    pub fn probe_now(&mut self, now: Time) {
        if matches!(self.state, HealthState::Down(reason) if reason != DownReason::Closed) {
            self.deadline = self.deadline.map(|deadline| deadline.min(now));
        }
    }

    /// The next deadline and what it is for.
    pub fn poll_timeout(&self) -> Option<(Time, HealthTimer)> {
        let timer = match self.state {
            HealthState::Suspect => HealthTimer::SuspectOver,
            _ => HealthTimer::Probe,
        };
        self.deadline.map(|deadline| (deadline, timer))
    }

    /// Does what is due; `every`: how often a path that is down is probed.
    pub fn handle_timeout(&mut self, now: Time, others: Others, every: Duration) -> HealthAction {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return HealthAction::None;
        }
        match self.state {
            HealthState::Suspect if others == Others::None && now.since(self.suspected_at) < SUSPECT_ALONE => {
                self.deadline = Some(now + SUSPECT_FOR);
                HealthAction::Ping
            }
            HealthState::Suspect => self.on_down(now, DownReason::Timeout),
            HealthState::Down(_) => {
                // The end of a hold is worth a probe of its own: no answer before it counts.
                let next = now + every;
                let hold = self.held_until(now).unwrap_or(next);
                self.deadline = Some(next.min(hold));
                HealthAction::Probe
            }
            _ => {
                self.deadline = None;
                HealthAction::None
            }
        }
    }
}
