//! What an acknowledgement frame settles. The work is that of the newly acknowledged packets, however
//! often the peer repeats the ranges.

use super::{Newest, SentPacket, SentPackets, State};
use crate::units::{ByteCount, PacketNumber, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How a newly acknowledged packet had been seen until then.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// As outstanding.
    Outstanding,
    /// As lost or drained: the content was handed out, and this takes the need away.
    AfterLoss,
}

/// What one acknowledgement frame newly acknowledged. Nothing by default. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AckOutcome<S> {
    /// Packets that were outstanding.
    pub packets: u32,
    /// Their bytes, of those in flight.
    pub bytes: ByteCount,
    /// Packets that had been declared lost, and were not.
    pub spurious: u32,
    /// Packets that had been drained, and arrived all the same.
    pub after_drain: u32,
    /// The newest of all these packets.
    pub newest: Option<Newest<S>>,
    /// The round trip of the frame's largest number, where that may be taken (RFC 9002 section 5.1).
    pub rtt_sample: Option<Duration>,
    /// Bytes in flight before the frame.
    pub prior_in_flight: ByteCount,
}

impl<S> AckOutcome<S> {
    /// Whether the frame told anything new: the path carries packets.
    pub fn is_news(&self) -> bool {
        self.newest.is_some()
    }
}

/// A peer that lies in its acknowledgements. The frame changed nothing.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AckError {
    /// A number that was not sent yet, or was skipped on purpose.
    #[error("acknowledge packet {0:?}: it was never sent")]
    NeverSent(PacketNumber),
}

impl<S: Copy, T: Copy> SentPackets<S, T> {
    /// Settles what a frame's `ranges` newly acknowledge, in any order; `visit` sees each such packet once.
    ///
    /// # Errors
    /// [`AckError::NeverSent`] when a range holds a number that was never sent; then nothing changes.
    pub fn on_ack(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = RangeInclusive<PacketNumber>> + Clone,
        mut visit: impl FnMut(PacketNumber, &SentPacket<S, T>, Arrival),
    ) -> Result<AckOutcome<S>, AckError> {
        for range in ranges.clone() {
            self.check_range(&range)?;
        }
        let mut walk = AckWalk {
            outcome: AckOutcome {
                packets: 0,
                bytes: ByteCount::ZERO,
                spurious: 0,
                after_drain: 0,
                newest: None,
                rtt_sample: None,
                prior_in_flight: self.in_flight,
            },
            ack_eliciting: false,
            prior_largest: self.largest_acked,
        };
        let mut largest = None;
        for range in ranges {
            largest = largest.max(Some(range.end().0));
            self.ack_range(now, range.start().0, range.end().0, &mut walk, &mut visit);
        }
        self.largest_acked = self.largest_acked.max(largest);
        self.advance_cursor();
        let mut outcome = walk.outcome;
        if let Some(newest) = outcome.newest {
            self.pto.on_news(now);
            if walk.ack_eliciting && largest == Some(newest.pn.0) {
                outcome.rtt_sample = Some(now.since(newest.sent_at));
                self.persistence.on_rtt_sample(now);
            }
        }
        Ok(outcome)
    }

    /// Looks for numbers never sent, without changing anything.
    fn check_range(&self, range: &RangeInclusive<PacketNumber>) -> Result<(), AckError> {
        let next = self.base + self.ring.len() as u64;
        if range.end().0 >= next {
            return Err(AckError::NeverSent(*range.end()));
        }
        if self.skipped == 0 {
            return Ok(());
        }
        let mut pn = range.end().0;
        while pn >= self.base.max(range.start().0) {
            let below = match self.slot(pn).state {
                State::Skipped => return Err(AckError::NeverSent(PacketNumber(pn))),
                State::Acked { run_start } => run_start.checked_sub(1),
                _ => pn.checked_sub(1),
            };
            let Some(below) = below else { break };
            pn = below;
        }
        Ok(())
    }

    /// Walks one range downwards, leaping over what was acked before: the work is that of the new packets.
    fn ack_range(
        &mut self,
        now: Time,
        start: u64,
        end: u64,
        walk: &mut AckWalk<S>,
        visit: &mut impl FnMut(PacketNumber, &SentPacket<S, T>, Arrival),
    ) {
        let start = start.max(self.base);
        if end < start {
            return;
        }
        let mut lowest = start;
        let mut pn = end;
        loop {
            #[cfg(test)]
            self.looks.set(self.looks.get() + 1);
            let below = match self.slot(pn).state {
                State::Acked { run_start } => {
                    lowest = lowest.min(run_start);
                    // All down to `start` is acked now: who comes by here again leaps at once.
                    self.slot_mut(pn).state = State::Acked { run_start: run_start.min(start) };
                    run_start
                }
                _ => {
                    // The whole range will be acked, so a later walk may start anywhere in it.
                    self.ack_one(now, pn, start, walk, visit);
                    pn
                }
            };
            if below <= start {
                break;
            }
            pn = below - 1;
        }
        let run_start = lowest;
        self.slot_mut(end).state = State::Acked { run_start };
    }

    fn ack_one(
        &mut self,
        now: Time,
        pn: u64,
        run_start: u64,
        walk: &mut AckWalk<S>,
        visit: &mut impl FnMut(PacketNumber, &SentPacket<S, T>, Arrival),
    ) {
        let slot = self.slot_mut(pn);
        let (state, packet) = (slot.state, slot.packet);
        slot.state = State::Acked { run_start };
        let arrival = match state {
            State::Outstanding => {
                self.settle(&packet);
                walk.outcome.packets += 1;
                if packet.in_flight {
                    walk.outcome.bytes += ByteCount(u64::from(packet.bytes));
                }
                Arrival::Outstanding
            }
            State::Lost { at, by_time } => {
                walk.outcome.spurious += 1;
                if by_time {
                    self.reordering.on_late(now, packet.sent_at, at.since(packet.sent_at));
                }
                self.persistence.on_acked();
                Arrival::AfterLoss
            }
            State::Drained { .. } => {
                walk.outcome.after_drain += 1;
                Arrival::AfterLoss
            }
            State::Acked { .. } | State::Skipped => return,
        };
        if let Some(ahead) = walk.prior_largest.and_then(|largest| largest.checked_sub(pn)) {
            // Packets drained were held up by a dead path, not overtaken on a live one.
            if !matches!(state, State::Drained { .. }) {
                let spurious = matches!(state, State::Lost { .. });
                self.reordering.on_overtaken(ahead, now.since(packet.sent_at), spurious);
            }
        }
        walk.take(pn, &packet);
        visit(PacketNumber(pn), &packet, arrival);
    }
}

/// What gathers while the ranges of one frame are walked.
struct AckWalk<S> {
    outcome: AckOutcome<S>,
    ack_eliciting: bool,
    /// The largest number acknowledged before this frame.
    prior_largest: Option<u64>,
}

impl<S: Copy> AckWalk<S> {
    fn take<T>(&mut self, pn: u64, packet: &SentPacket<S, T>) {
        self.ack_eliciting |= packet.ack_eliciting;
        if self.outcome.newest.as_ref().is_none_or(|n| n.pn.0 < pn) {
            self.outcome.newest = Some(Newest { pn: PacketNumber(pn), sent_at: packet.sent_at, stamp: packet.stamp });
        }
    }
}
