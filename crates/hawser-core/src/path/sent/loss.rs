//! Loss detection (RFC 9002 section 6.1) and persistent congestion (section 7.6).

use super::{Newest, SentPackets, State};
use crate::path::constants::{LOST_KEPT_PTOS, MAX_ACK_DELAY, MAX_SETTLED_KEPT, PERSISTENT_CONGESTION_PTOS};
use crate::path::rtt::RttEstimator;
use crate::path::sent::SentPacket;
use crate::units::{ByteCount, PacketNumber, Time};
use std::time::Duration;

/// What was declared lost at one time. Nothing by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LossOutcome<S> {
    /// All packets, those that do not count towards the congestion window too.
    pub packets: u32,
    /// Bytes of those in flight: only they are a sign of congestion.
    pub bytes: ByteCount,
    /// The newest of those in flight.
    pub newest: Option<Newest<S>>,
    /// Nothing but loss for three probe timeouts.
    pub persistent: bool,
}

/// A run of lost packets with no acknowledged one among them (RFC 9002 section 7.6.2). None at
/// first. A part of [`SentPackets`].
#[derive(Clone, Debug, Default)]
pub(super) struct Persistence {
    first_rtt_at: Option<Time>,
    run_from: Option<Time>,
}

impl Persistence {
    pub(super) fn on_rtt_sample(&mut self, now: Time) {
        self.first_rtt_at.get_or_insert(now);
    }

    /// A number in or after the run arrived.
    pub(super) fn on_acked(&mut self) {
        self.run_from = None;
    }

    /// Takes a lost ack-eliciting packet, and says whether the run has lasted longer than `limit`.
    fn on_lost(&mut self, sent_at: Time, limit: Duration) -> bool {
        // Before the first round trip was measured, `limit` is a guess.
        if self.first_rtt_at.is_none_or(|first| sent_at < first) {
            return false;
        }
        let from = *self.run_from.get_or_insert(sent_at);
        let persistent = sent_at.since(from) > limit;
        if persistent {
            self.run_from = None;
        }
        persistent
    }
}

impl<S: Copy, T: Copy> SentPackets<S, T> {
    /// Declares lost what was sent long enough before an acknowledged packet, in packets or in time; `visit`
    /// sees each once, oldest first. Call it after `on_ack`, and at `loss_time`.
    ///
    /// Both distances only shrink with the number, so it stops at the first packet that is not lost.
    pub fn detect_losses(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        mut visit: impl FnMut(PacketNumber, &SentPacket<S, T>),
    ) -> LossOutcome<S> {
        let delay = self.loss_delay(rtt);
        let pto = rtt.pto(MAX_ACK_DELAY);
        let mut outcome = LossOutcome { packets: 0, bytes: ByteCount::ZERO, newest: None, persistent: false };
        self.loss_time = None;
        while self.watched > 0 {
            let pn = self.cursor;
            let Some(ahead) = self.largest_acked.and_then(|l| l.checked_sub(pn)) else {
                break;
            };
            let packet = self.slot(pn).packet;
            let by_packets = ahead >= self.reordering.packet_threshold();
            if !by_packets && packet.sent_at + delay > now {
                self.loss_time = Some(packet.sent_at + delay);
                break;
            }
            self.slot_mut(pn).state = State::Lost { at: now, by_time: !by_packets };
            self.settle(&packet);
            outcome.count(pn, &packet);
            // Probes of a size or of a dead path say nothing of congestion.
            outcome.persistent |= packet.ack_eliciting
                && packet.in_flight
                && self.persistence.on_lost(packet.sent_at, pto * PERSISTENT_CONGESTION_PTOS);
            visit(PacketNumber(pn), &packet);
            self.advance_cursor();
        }
        if let Some(newest) = outcome.newest {
            self.reordering.on_losses(now, newest.sent_at);
        }
        self.forget(now, pto);
        outcome
    }

    /// How long after it was sent a packet is lost that a later one has overtaken.
    pub fn loss_delay(&self, rtt: &RttEstimator) -> Duration {
        self.reordering.loss_delay(&rtt.snapshot())
    }

    /// When the next packet may be lost by time.
    pub fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// Lets go of settled packets before the cursor: at once those acked, after a while those that may
    /// still turn out to have arrived.
    pub fn forget(&mut self, now: Time, pto: Duration) {
        let keep = pto * LOST_KEPT_PTOS;
        while self.base < self.cursor {
            let slot = self.slot(self.base);
            let expired = match slot.state {
                State::Acked { .. } | State::Skipped => true,
                State::Lost { at, .. } | State::Drained { at } => at + keep <= now,
                State::Outstanding => slot.packet.sent_at + keep <= now,
            };
            if !expired {
                return;
            }
            self.forget_oldest();
        }
    }

    /// Lets go of the oldest settled packets when there are too many, whatever may still become of them.
    pub(super) fn bound_memory(&mut self) {
        while self.cursor - self.base > MAX_SETTLED_KEPT {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let skipped = self.slot(self.base).state == State::Skipped;
        self.skipped -= u64::from(skipped);
        self.ring.pop_front();
        self.base += 1;
    }
}

impl<S: Copy> LossOutcome<S> {
    fn count<T>(&mut self, pn: u64, packet: &SentPacket<S, T>) {
        self.packets += 1;
        if packet.in_flight {
            self.bytes += ByteCount(u64::from(packet.bytes));
            self.newest = Some(Newest { pn: PacketNumber(pn), sent_at: packet.sent_at, stamp: packet.stamp });
        }
    }
}
