//! The sending side of one path: what is out there, what arrived, what is lost.
//!
//! 1. `on_sent`: a packet enters the ring under the next number.
//! 2. [`on_ack`](SentPackets::on_ack) (ack.rs): an acknowledgement frame settles what it newly acknowledges, and
//!    notices packets that were declared lost too early.
//! 3. [`detect_losses`](SentPackets::detect_losses) (loss.rs): what later packets have overtaken is lost.
//! 4. [`pto_deadline`](SentPackets::pto_deadline) (pto.rs): when silence is worth a probe.
//! 5. `drain`: a dead path hands out everything at once.
//!
//! The ring, by number; everything before the cursor is settled, and stays for a while to notice late
//! acknowledgements:
//!
//! ```text
//!     base                  cursor                          next
//!      v                      v                               v
//!      A  A  L  A  A  L  L  A  o  o  A  A  A  o  o  o  o  o  o     A acked, L lost, o outstanding
//! ```

mod ack;
mod loss;
#[cfg(test)]
mod model_tests;
mod pto;
mod reorder;
#[cfg(test)]
mod tests;

pub use ack::{AckError, AckOutcome, Arrival};
pub use loss::LossOutcome;
pub use pto::PtoKind;

use crate::units::{ByteCount, PacketNumber, Time};
use pto::PtoState;
use reorder::Reordering;
use std::collections::VecDeque;

/// What is remembered of a packet: `S` is the delivery-rate stamp, `T` what the session must know to
/// send its content again. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SentPacket<S, T> {
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes of the datagram.
    pub bytes: u32,
    /// The peer must acknowledge it.
    pub ack_eliciting: bool,
    /// It counts towards the congestion window. A PMTU probe does not: its loss says nothing of congestion
    /// (RFC 9000 section 14.4).
    pub in_flight: bool,
    /// It was written together with others, to leave as one train.
    pub in_train: bool,
    /// The delivery-rate stamp.
    pub stamp: S,
    /// What the session must know.
    pub content: T,
}

impl<S, T> SentPacket<S, T> {
    /// Whether its loss matters to anybody. The others (bare acknowledgements) are acked or forgotten.
    fn watched(&self) -> bool {
        self.ack_eliciting || self.in_flight
    }
}

/// The newest packet of an outcome. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Newest<S> {
    /// Its number.
    pub pn: PacketNumber,
    /// When it was sent.
    pub sent_at: Time,
    /// Its delivery-rate stamp.
    pub stamp: S,
}

/// What became of a number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    Outstanding,
    /// All numbers from `run_start` to this one are acked, so that a walk downwards leaps over them.
    Acked {
        run_start: u64,
    },
    /// `by_time`: by the time threshold alone, not by the packet threshold.
    Lost {
        at: Time,
        by_time: bool,
    },
    Drained {
        at: Time,
    },
    Skipped,
}

#[derive(Copy, Clone, Debug)]
struct Slot<S, T> {
    state: State,
    packet: SentPacket<S, T>,
}

/// All packets of a path that are not settled, and those settled lately. Empty at first. One path owns
/// it, under the session's lock; it allocates only while the ring grows.
#[derive(Clone, Debug)]
pub struct SentPackets<S, T> {
    ring: VecDeque<Slot<S, T>>,
    /// The number of the ring's first slot.
    base: u64,
    /// No number below is watched and outstanding.
    cursor: u64,
    /// Numbers in the ring that were skipped: while there are none, acks need no second look.
    skipped: u64,
    largest_acked: Option<u64>,
    in_flight: ByteCount,
    /// Watched packets outstanding.
    watched: u64,
    ack_eliciting: u64,
    newest_ack_eliciting_at: Time,
    loss_time: Option<Time>,
    pto: PtoState,
    reordering: Reordering,
    persistence: loss::Persistence,
    /// Numbers that acknowledgements made us look at.
    #[cfg(test)]
    looks: std::cell::Cell<u64>,
}

impl<S, T> Default for SentPackets<S, T> {
    fn default() -> Self {
        SentPackets {
            ring: VecDeque::new(),
            base: 0,
            cursor: 0,
            skipped: 0,
            largest_acked: None,
            in_flight: ByteCount::ZERO,
            watched: 0,
            ack_eliciting: 0,
            newest_ack_eliciting_at: Time::ZERO,
            loss_time: None,
            pto: PtoState::default(),
            reordering: Reordering::default(),
            persistence: loss::Persistence::default(),
            #[cfg(test)]
            looks: Default::default(),
        }
    }
}

impl<S: Copy, T: Copy> SentPackets<S, T> {
    /// Nothing was sent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The path leads another way, whose reordering is not known.
    pub fn forget_reordering(&mut self) {
        self.reordering = Reordering::default();
    }

    /// Remembers a packet. Numbers left out since the last one count as skipped on purpose: a peer that
    /// acknowledges one lies (RFC 9000 section 21.4).
    ///
    /// # Panics
    /// When the number is not above all before it: a nonce would be used twice.
    pub fn on_sent(&mut self, pn: PacketNumber, packet: SentPacket<S, T>) {
        let next = self.base + self.ring.len() as u64;
        assert!(pn.0 >= next, "packet number {} used twice", pn.0);
        if self.ring.is_empty() {
            // Nothing to skip over when the ring is empty, save that a lie there goes unnoticed.
            self.base = pn.0;
            self.cursor = pn.0;
        }
        while self.base + (self.ring.len() as u64) < pn.0 {
            self.skipped += 1;
            let state = State::Skipped;
            self.ring.push_back(Slot { state, packet });
        }
        if packet.in_flight {
            self.in_flight += ByteCount(u64::from(packet.bytes));
        }
        self.watched += u64::from(packet.watched());
        if packet.ack_eliciting {
            self.ack_eliciting += 1;
            self.newest_ack_eliciting_at = packet.sent_at;
        }
        let state = State::Outstanding;
        self.ring.push_back(Slot { state, packet });
        self.advance_cursor();
        self.bound_memory();
    }

    /// Takes everything outstanding out, oldest first, without calling it lost to congestion: the path is dead.
    /// An acknowledgement that comes after all is [`Arrival::AfterLoss`].
    pub fn drain(&mut self, now: Time, mut visit: impl FnMut(PacketNumber, &SentPacket<S, T>)) {
        for pn in self.cursor..self.base + self.ring.len() as u64 {
            let slot = self.slot_mut(pn);
            let packet = slot.packet;
            if slot.state == State::Outstanding && packet.watched() {
                slot.state = State::Drained { at: now };
                self.settle(&packet);
                visit(PacketNumber(pn), &packet);
            }
        }
        self.advance_cursor();
        self.persistence.on_acked();
        self.loss_time = None;
    }

    /// Everything outstanding that somebody waits for, oldest first: what a suspect path may have black-holed.
    pub fn outstanding(&self) -> impl Iterator<Item = (PacketNumber, &SentPacket<S, T>)> {
        self.outstanding_from(PacketNumber(0))
    }

    /// Those of them from a number on.
    pub fn outstanding_from(&self, from: PacketNumber) -> impl Iterator<Item = (PacketNumber, &SentPacket<S, T>)> {
        let first = (self.cursor.max(from.0) - self.base) as usize;
        let slots = self.ring.iter().enumerate().skip(first);
        slots
            .filter(|(_, slot)| slot.state == State::Outstanding && slot.packet.watched())
            .map(|(at, slot)| (PacketNumber(self.base + at as u64), &slot.packet))
    }

    /// Whether a number is neither acknowledged nor given up.
    pub fn is_outstanding(&self, pn: PacketNumber) -> bool {
        let at = pn.0.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.ring.get(at)).is_some_and(|slot| slot.state == State::Outstanding)
    }

    /// Bytes of a packet that was sent lately and not acknowledged.
    pub fn unacked_bytes(&self, pn: PacketNumber) -> Option<u32> {
        let at = pn.0.checked_sub(self.base).and_then(|at| usize::try_from(at).ok())?;
        let slot = self.ring.get(at)?;
        (!matches!(slot.state, State::Acked { .. } | State::Skipped)).then_some(slot.packet.bytes)
    }

    /// What was sent from number `first` on leaves as one train.
    pub fn join_train(&mut self, first: PacketNumber) {
        let from = usize::try_from(first.0.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.ring.len());
        self.ring.range_mut(from..).for_each(|slot| slot.packet.in_train = true);
    }

    /// Bytes that count towards the congestion window.
    pub fn bytes_in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// When the oldest outstanding packet that somebody waits for was sent.
    pub fn oldest_unacked_sent_at(&self) -> Option<Time> {
        (self.watched > 0).then(|| self.slot(self.cursor).packet.sent_at)
    }

    /// When the newest ack-eliciting packet was sent, while one is outstanding.
    pub fn newest_ack_eliciting_sent_at(&self) -> Option<Time> {
        (self.ack_eliciting > 0).then_some(self.newest_ack_eliciting_at)
    }

    /// The largest number acknowledged.
    pub fn largest_acked(&self) -> Option<PacketNumber> {
        self.largest_acked.map(PacketNumber)
    }

    /// Takes a packet out of the sums of what is outstanding.
    fn settle(&mut self, packet: &SentPacket<S, T>) {
        if packet.in_flight {
            self.in_flight -= ByteCount(u64::from(packet.bytes));
        }
        self.watched -= u64::from(packet.watched());
        self.ack_eliciting -= u64::from(packet.ack_eliciting);
    }

    /// Moves the cursor to the oldest watched packet outstanding, or to the end.
    fn advance_cursor(&mut self) {
        let next = self.base + self.ring.len() as u64;
        while self.cursor < next {
            let slot = self.slot(self.cursor);
            match slot.state {
                State::Outstanding if slot.packet.watched() => return,
                State::Acked { .. } => self.persistence.on_acked(),
                _ => {}
            }
            self.cursor += 1;
        }
    }

    fn slot(&self, pn: u64) -> &Slot<S, T> {
        &self.ring[(pn - self.base) as usize]
    }

    fn slot_mut(&mut self, pn: u64) -> &mut Slot<S, T> {
        &mut self.ring[(pn - self.base) as usize]
    }
}
