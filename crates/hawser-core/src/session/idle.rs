//! What an idle session says, and how it is busy again at once.
//!
//! 1. `note_idle`: no inner packet went or came for a while, or the path's tier is not used: the path is quiet.
//! 2. `keepalive_at`, `keep_alive`: a quiet path's opener keeps NAT bindings by datagrams that nobody answers. The
//!    other side asks only where it did not hear of that path for long.
//! 3. `note_busy`: an inner packet is there. It goes at once by what is known of the paths; each of them is asked, so
//!    that one that died meanwhile is noticed as soon as on a busy path.

use super::Session;
use super::constants::{IDLE_AFTER, IDLE_DEAF, IDLE_KEEPALIVE, KEEPALIVE, LATELY, STANDBY_KEEPALIVE};
use super::path::Path;
use crate::units::Time;

/// When a path last spoke, was heard, and carried inner packets. Never at first; its path owns it.
#[derive(Default)]
pub(super) struct Activity {
    /// When an acknowledged datagram was last sent on it.
    pub last_sent: Time,
    /// When any datagram was last sent on it, and when one last came.
    pub spoke_at: Time,
    pub heard_at: Time,
    /// When it last carried inner packets.
    pub last_data: Time,
    /// When it last carried what another scheduler than `adaptive` gave it.
    pub last_given: Time,
    /// Nothing is sent on it but keepalives.
    pub quiet: bool,
}

impl Activity {
    /// Whether inner packets went by this path in the last second.
    pub fn carried_data_lately(&self, now: Time) -> bool {
        self.last_data != Time::ZERO && now.since(self.last_data) < LATELY
    }

    /// A datagram leaves.
    pub fn note_sent(&mut self, now: Time, ack_eliciting: bool) {
        self.spoke_at = now;
        if ack_eliciting {
            self.last_sent = now;
        }
    }
}

impl Path {
    /// When it last carried inner packets, or began.
    fn busy_at(&self) -> Time {
        self.activity.last_data.max(self.capacity.known_since)
    }
}

impl Session {
    /// Step 1.
    pub(super) fn note_idle(&mut self, now: Time) {
        self.liveness.note_idle(now);
        let (idle, tier) = (self.liveness.is_idle(), self.paths.used_tier());
        for path in self.paths.iter_mut() {
            let unused = Some(path.offer.tier()) > tier && now.since(path.busy_at()) >= IDLE_AFTER;
            path.activity.quiet = idle || unused;
        }
    }

    /// Step 2: when a path is to say that it lives, or to be asked whether it does.
    pub(super) fn keepalive_at(&self, index: usize) -> Option<Time> {
        let path = &self.paths[index];
        if !path.health.is_active() || path.wants.ping || path.wants.alive {
            return None;
        }
        let at = match (path.activity.quiet, self.paths.is_ours(path.id)) {
            (false, _) => path.activity.last_sent + KEEPALIVE,
            (true, true) if Some(path.offer.tier()) > self.paths.used_tier() => {
                path.activity.spoke_at + STANDBY_KEEPALIVE
            }
            (true, true) => path.activity.spoke_at + IDLE_KEEPALIVE,
            (true, false) => path.activity.heard_at.max(path.activity.last_sent) + IDLE_DEAF,
        };
        Some(at)
    }

    /// Step 2: does so, if it is due.
    pub(super) fn keep_alive(&mut self, now: Time, index: usize) {
        if self.keepalive_at(index).is_none_or(|at| at > now) {
            return;
        }
        let says = self.paths[index].activity.quiet && self.paths.is_ours(self.paths[index].id);
        let wants = &mut self.paths[index].wants;
        if says { wants.alive = true } else { wants.ping = true }
    }

    /// Step 3.
    pub(super) fn note_busy(&mut self, now: Time) {
        if !self.liveness.note_busy(now) {
            return;
        }
        let tier = self.paths.used_tier();
        for path in self.paths.iter_mut().filter(|path| tier.is_none() || Some(path.offer.tier()) <= tier) {
            path.activity.quiet = false;
            path.wants.ping |= path.health.is_active();
            path.health.probe_now(now);
        }
    }
}
