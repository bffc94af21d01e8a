//! Probe timeouts (RFC 9002 section 6.2), told apart by what they mean.
//!
//! RFC 9002 puts the timer off with every packet sent, so that a thin steady flow into a black hole
//! never sees it fire. Here two things may time out, whichever comes first:
//!
//! - **tail**: the newest ack-eliciting packet is overdue (the RFC's timer). The path lives; a probe makes
//!   the peer acknowledge, so that a lost tail is noticed.
//! - **silence**: something is outstanding, and for a whole probe timeout nothing at all was newly
//!   acknowledged. The path is suspect. Doubles each time, until something is acknowledged.

use super::{SentPackets, State};
use crate::path::constants::MAX_PTO_DOUBLINGS;
use crate::units::Time;
use std::time::Duration;

/// Why a probe is worth sending.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PtoKind {
    /// The newest packet is overdue on a path that else answers.
    Tail,
    /// Nothing was acknowledged for a probe timeout: tell `Health::on_pto`.
    Silence,
}

/// What the timers remember. Nothing at first. A part of [`SentPackets`].
#[derive(Clone, Debug, Default)]
pub(super) struct PtoState {
    /// Silences since anything was newly acknowledged, or answered.
    count: u32,
    last_news_at: Time,
    last_silence_at: Time,
    /// The newest packet that a tail probe was sent for.
    tail_probed: Option<Time>,
}

impl PtoState {
    pub(super) fn on_news(&mut self, now: Time) {
        self.count = 0;
        self.last_news_at = now;
    }
}

impl<S: Copy, T: Copy> SentPackets<S, T> {
    /// When the next probe is due and why, given the path's probe timeout; none while nothing that
    /// elicits an acknowledgement is outstanding. A `loss_time` goes first (RFC 9002 section 6.2.1).
    pub fn pto_deadline(&self, pto: Duration) -> Option<(Time, PtoKind)> {
        let newest = self.newest_ack_eliciting_sent_at()?;
        let oldest = self.oldest_unacked_sent_at()?;
        let from = oldest.max(self.pto.last_news_at).max(self.pto.last_silence_at);
        let silence = from + pto * (1 << self.pto.count.min(MAX_PTO_DOUBLINGS));
        let tail = newest + pto;
        let tail_is_due =
            self.pto.count == 0 && tail < silence && self.pto.tail_probed.is_none_or(|probed| newest > probed);
        Some(if tail_is_due { (tail, PtoKind::Tail) } else { (silence, PtoKind::Silence) })
    }

    /// When the oldest packet was sent that nothing newer overtook, and that is still without an answer: what the path
    /// is known to hold up.
    pub fn next_awaited_sent_at(&self) -> Option<Time> {
        self.awaited_sent_at().next()
    }

    /// The same of all of them, oldest first.
    pub fn awaited_sent_at(&self) -> impl Iterator<Item = Time> + Clone {
        let first = self.largest_acked.map_or(self.cursor, |largest| largest + 1).max(self.cursor);
        let next = self.base + self.ring.len() as u64;
        let awaited = (first..next).map(|pn| self.slot(pn));
        awaited.filter(|slot| slot.state == State::Outstanding && slot.packet.watched()).map(|slot| slot.packet.sent_at)
    }

    /// The deadline passed. Send a probe: a new ack-eliciting packet, best with content still outstanding.
    pub fn on_pto(&mut self, now: Time, kind: PtoKind) {
        match kind {
            PtoKind::Tail => self.pto.tail_probed = Some(self.newest_ack_eliciting_at),
            PtoKind::Silence => {
                self.pto.count += 1;
                self.pto.last_silence_at = now;
            }
        }
    }

    /// The path answered otherwise than by an acknowledgement: silences count anew. A path that returns after long
    /// would else keep the doublings of its outage, and its next one be noticed a minute late.
    pub fn on_answer(&mut self, now: Time) {
        self.pto.on_news(now);
    }

    /// Silences since anything was newly acknowledged, or answered.
    pub fn pto_count(&self) -> u32 {
        self.pto.count
    }
}
