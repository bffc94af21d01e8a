//! One path of a sender: its packet numbers, round trip, loss, rate, and whether it lives.
//!
//! ```text
//!                acknowledged
//!  Untried ---------------------> Active <-----------------------------+
//!     |                             |  ^                               |
//!     | 5 probes unanswered         |  | acknowledged                  | acknowledged: a new controller
//!     |                     silence v  |                               |
//!     |                          Suspect ---- 3 silences more, 0.3 s --+--> Down --+
//!     +-----------------------------------------------------------------------^
//!  any of them --- it carries no chunk, or nothing at all: Closed
//! ```
//!
//! 1. [`SendPath::next_number`] and [`SendPath::on_sent`]: a datagram leaves.
//! 2. [`SendPath::on_ack`]: what has come, what is lost, how fast it goes; the path is alive.
//! 3. [`SendPath::on_timeout`]: what is lost by time, silences, probes.
//! 4. [`SendPath::mark`]: what is to be acknowledged, and when (`marks`).

use std::time::Duration;

use hawser_core::congestion::sampler::{DeliverySampler, Stamp};
use hawser_core::congestion::{AckEvent, LossEvent};
use hawser_core::path::constants::{INITIAL_RTT, MAX_ACK_DELAY};
use hawser_core::path::rtt::RttEstimator;
use hawser_core::path::sent::{AckError, AckOutcome, Arrival, LossOutcome, PtoKind, SentPacket, SentPackets};
use hawser_core::units::{ByteCount, PacketNumber, PathId, Time};
use hawser_core::wire::{DataHeader, Label, TruncatedNumber};

use super::marks::{Marks, ack_after};
use super::rate::{Law, PathRate};
use crate::layout::ChunkId;
use crate::wire::{Ack, Mark};

/// Silences after the first before a suspect path is down, and the least time for them (hawser-core:
/// path/constants.rs).
const SUSPECT_PTOS: u32 = 3;
const SUSPECT_FOR: Duration = Duration::from_millis(300);
/// How often a path that is down is probed (the same), and one that is suspect: probe timeouts double.
const DOWN_PROBE: Duration = Duration::from_millis(500);
const SUSPECT_PROBE: Duration = Duration::from_millis(250);
/// Probes of a path that never answered before it counts as down.
const UNTRIED_PROBES: u32 = 5;

/// Whether a path carries data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Nothing came back yet.
    Untried,
    /// It answers.
    Active,
    /// It has not answered for a probe timeout.
    Suspect,
    /// Given up, but for probes.
    Down,
    /// Given up for good.
    Closed,
}

impl PathState {
    /// Whether it carries what there is: it answers, or is only late.
    pub(super) fn works(self) -> bool {
        matches!(self, PathState::Active | PathState::Suspect)
    }
}

/// What a datagram carried.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Chunk(ChunkId),
    /// A mark, or a piece of the control stream, which has its own timer.
    Control,
}

/// What became of chunks.
pub(super) enum Fate {
    Arrived(ChunkId),
    /// It is to be repeated.
    Lost(ChunkId),
}

/// What was counted of a path. Zero at first; plain data.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct PathCounts {
    /// Bytes of chunks that were sent, repeated ones too.
    pub sent_bytes: u64,
    /// Bytes of datagrams that were acknowledged.
    pub acked_bytes: u64,
    /// Datagrams sent, and those that were taken for lost.
    pub sent: u64,
    /// See `sent`.
    pub lost: u64,
    /// Chunks sent here because they were late elsewhere.
    pub copies: u64,
}

/// A path. Untried at first; its sender owns it.
#[derive(Debug)]
pub(super) struct SendPath {
    pub(super) id: PathId,
    pub(super) state: PathState,
    pub(super) rtt: RttEstimator,
    pub(super) counts: PathCounts,
    /// Datagrams of it that were considered for a copy on another path: those before this one.
    pub(super) copied: PacketNumber,
    label: Label,
    law: Law,
    seed: u64,
    datagram: ByteCount,
    rate: PathRate,
    sent: SentPackets<Stamp, Content>,
    sampler: DeliverySampler,
    next: PacketNumber,
    since: Time,
    probe_at: Option<Time>,
    probes: u32,
    marks: Marks,
    /// Where the clock of a batch of datagrams stands: the next one need not wait for a quantum.
    going: bool,
}

impl SendPath {
    /// A path whose datagrams have these many bytes with a whole chunk.
    pub(super) fn new(id: PathId, label: Label, law: Law, datagram: ByteCount, seed: u64, now: Time) -> SendPath {
        SendPath {
            id,
            state: PathState::Untried,
            rtt: RttEstimator::new(INITIAL_RTT),
            counts: PathCounts::default(),
            copied: PacketNumber(0),
            label,
            law,
            seed,
            datagram,
            rate: PathRate::new(law, datagram, seed),
            sent: SentPackets::new(),
            sampler: DeliverySampler::new(),
            next: PacketNumber(0),
            since: now,
            probe_at: Some(now),
            probes: 0,
            marks: Marks::new(now),
            going: false,
        }
    }

    /// The handshake went along it, and took so long.
    pub(super) fn answered(&mut self, now: Time, round_trip: Duration) {
        self.rtt.on_sample(now, round_trip, Duration::ZERO);
        self.state = PathState::Active;
        (self.since, self.probe_at) = (now, None);
        self.marks.ask();
    }

    /// Step 1: the header of the next datagram.
    pub(super) fn next_number(&self) -> (PacketNumber, DataHeader) {
        (self.next, DataHeader { label: self.label, number: TruncatedNumber::of(self.next) })
    }

    /// Step 1. `limited`: nothing more waits although there is room.
    pub(super) fn on_sent(&mut self, now: Time, bytes: usize, content: Content, limited: bool) {
        let bytes = ByteCount(bytes as u64);
        let before = self.sent.bytes_in_flight();
        let stamp = self.sampler.on_sent(now, bytes, before, limited);
        let packet = SentPacket {
            sent_at: now,
            bytes: bytes.0 as u32,
            ack_eliciting: true,
            in_flight: true,
            in_train: false,
            stamp,
            content,
        };
        self.sent.on_sent(self.next, packet);
        self.next = self.next.next();
        self.rate.on_sent(now, bytes, before + bytes, limited);
        self.counts.sent += 1;
        self.going = true;
    }

    /// A batch begins: whatever goes waits for a quantum again.
    pub(super) fn begin_batch(&mut self) {
        self.going = false;
    }

    /// Whether a chunk may go now; else when, if that is known.
    pub(super) fn may_send(&mut self, now: Time) -> Result<(), Option<Time>> {
        if self.state != PathState::Active || !self.rate.has_room(self.sent.bytes_in_flight()) {
            return Err(None);
        }
        let ready = self.rate.ready_at(now, self.going);
        if ready > now { Err(Some(ready)) } else { Ok(()) }
    }

    /// Step 2. Says whether it told anything new; `fate` hears of each chunk.
    ///
    /// # Errors
    /// [`AckError`]: what was never sent was acknowledged.
    pub(super) fn on_ack(&mut self, now: Time, ack: &Ack<'_>, mut fate: impl FnMut(Fate)) -> Result<bool, AckError> {
        let below = self.marks.acknowledged(ack.mark);
        let cumulative = below.end.checked_sub(1).filter(|_| !below.is_empty());
        let cumulative = cumulative.map(|last| PacketNumber(below.start)..=PacketNumber(last));
        let SendPath { sent, sampler, counts, .. } = self;
        let (mut ages, mut aged) = (Duration::ZERO, 0);
        let outcome = sent.on_ack(now, cumulative.into_iter().chain(ack.runs()), |_, packet, arrival| {
            if arrival == Arrival::Outstanding {
                let bytes = ByteCount(packet.bytes.into());
                sampler.on_packet_acked(packet.stamp, packet.sent_at, bytes, now, Duration::ZERO);
                ages += now.since(packet.sent_at);
                aged += 1;
                counts.acked_bytes += bytes.0;
            }
            if let Content::Chunk(chunk) = packet.content {
                fate(Fate::Arrived(chunk));
            }
        })?;
        if aged > 0 {
            self.rtt.on_ages(now, ages / aged);
        }
        if outcome.is_news() {
            self.on_news(now, ack, &outcome, &mut fate);
        }
        Ok(outcome.is_news())
    }

    fn on_news(&mut self, now: Time, ack: &Ack<'_>, outcome: &AckOutcome<Stamp>, fate: &mut impl FnMut(Fate)) {
        let Some(newest) = outcome.newest else { return };
        let delay = Duration::from_micros(ack.delay_us.into());
        if let Some(sample) = outcome.rtt_sample {
            self.rtt.on_sample(now, sample, delay);
        }
        // A path that was given up may deliver what it held back, and nothing since.
        if self.state != PathState::Down || newest.sent_at >= self.since {
            self.revive(now);
        }
        self.detect_losses(now, fate);
        let rtt = self.rtt.snapshot();
        let received_at = Time::ZERO + Duration::from_micros(ack.received_at_us);
        let event = AckEvent {
            now,
            acked: outcome.bytes,
            largest_sent_at: newest.sent_at,
            prior_in_flight: outcome.prior_in_flight,
            in_flight: self.sent.bytes_in_flight(),
            delivered: self.sampler.delivered(),
            rtt,
            round_trip: outcome.rtt_sample.map(|sample| sample.saturating_sub(delay).max(rtt.min)),
            received_at,
            rate: self.sampler.take_sample(now, Some(received_at), rtt.base()),
            app_limited: newest.stamp.app_limited(),
        };
        if outcome.spurious > 0 {
            self.rate.controller.on_spurious_loss(now);
        }
        self.rate.controller.on_ack(&event, &[]);
        self.rate.follow(&rtt);
    }

    /// It answered.
    fn revive(&mut self, now: Time) {
        if matches!(self.state, PathState::Active | PathState::Closed) {
            return;
        }
        if self.state == PathState::Down {
            // What it carried before says little of what it carries now.
            self.rate = PathRate::new(self.law, self.datagram, self.seed);
        }
        self.state = PathState::Active;
        (self.since, self.probe_at, self.probes) = (now, None, 0);
    }

    fn detect_losses(&mut self, now: Time, fate: &mut impl FnMut(Fate)) {
        let Self { sent, rtt, sampler, counts, .. } = self;
        let outcome = sent.detect_losses(now, rtt, |_, packet| {
            sampler.on_lost(ByteCount(packet.bytes.into()));
            counts.lost += 1;
            if let Content::Chunk(chunk) = packet.content {
                fate(Fate::Lost(chunk));
            }
        });
        self.answer_losses(now, &outcome);
    }

    fn answer_losses(&mut self, now: Time, outcome: &LossOutcome<Stamp>) {
        let Some(newest) = outcome.newest else { return };
        self.rate.controller.on_loss(&LossEvent {
            now,
            lost: outcome.bytes,
            largest_sent_at: newest.sent_at,
            in_flight: self.sent.bytes_in_flight(),
            tx_in_flight: newest.stamp.tx_in_flight(),
            total_lost: self.sampler.lost(),
            persistent: outcome.persistent,
        });
        self.rate.follow(&self.rtt.snapshot());
    }

    /// Step 3. Chunks that others must take are told as lost. `alone`: no other path is active.
    pub(super) fn on_timeout(&mut self, now: Time, alone: bool, mut fate: impl FnMut(Fate)) {
        if self.sent.loss_time().is_some_and(|at| at <= now) {
            self.detect_losses(now, &mut fate);
        }
        match self.state {
            state if state.works() => self.mind_silence(now, alone, &mut fate),
            PathState::Untried if self.probes >= UNTRIED_PROBES => self.give_up(now, &mut fate),
            _ => {}
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe_at = None;
            self.marks.ask();
        }
    }

    fn mind_silence(&mut self, now: Time, alone: bool, fate: &mut impl FnMut(Fate)) {
        let Some((at, kind)) = self.sent.pto_deadline(self.pto()) else { return };
        if at > now {
            return;
        }
        self.sent.on_pto(now, kind);
        self.marks.ask();
        if kind == PtoKind::Tail {
            return;
        }
        if self.state == PathState::Active {
            (self.state, self.since) = (PathState::Suspect, now);
            if !alone {
                self.each_chunk(|chunk| fate(Fate::Lost(chunk)));
            }
        } else if self.sent.pto_count() > SUSPECT_PTOS && now.since(self.since) >= SUSPECT_FOR {
            self.give_up(now, fate);
        }
    }

    /// Step 3: everything is given back. Those that were given up stay so.
    pub(super) fn give_up(&mut self, now: Time, fate: &mut impl FnMut(Fate)) {
        if matches!(self.state, PathState::Down | PathState::Closed) {
            return;
        }
        (self.state, self.since, self.probe_at) = (PathState::Down, now, Some(now + DOWN_PROBE));
        self.drain(now, fate);
    }

    /// It carries no chunk any more, or nothing.
    pub(super) fn close(&mut self, now: Time, mut fate: impl FnMut(Fate)) {
        (self.state, self.since, self.probe_at) = (PathState::Closed, now, None);
        self.marks.forget();
        self.drain(now, &mut fate);
    }

    fn drain(&mut self, now: Time, fate: &mut impl FnMut(Fate)) {
        self.sent.drain(now, |_, packet| {
            if let Content::Chunk(chunk) = packet.content {
                fate(Fate::Lost(chunk));
            }
        });
    }

    fn each_chunk(&self, mut visit: impl FnMut(ChunkId)) {
        for (_, packet) in self.sent.outstanding() {
            if let Content::Chunk(chunk) = packet.content {
                visit(chunk);
            }
        }
    }

    /// The oldest chunk under way, from `copied` on, that is acknowledged later than `by`.
    pub(super) fn later_than(&mut self, by: Time) -> Option<ChunkId> {
        let round_trip = self.rtt.snapshot().smoothed;
        // The newest comes last: mostly it says that none is late.
        if self.sent.newest_ack_eliciting_sent_at().is_none_or(|newest| newest + round_trip <= by) {
            return None;
        }
        let mut found = None;
        for (number, packet) in self.sent.outstanding_from(self.copied) {
            let Content::Chunk(chunk) = packet.content else { continue };
            if packet.sent_at + round_trip > by {
                found = Some((number, chunk));
                break;
            }
        }
        let (number, chunk) = found?;
        self.copied = number.next();
        Some(chunk)
    }

    /// Step 4: the mark to send, if one is due; `control` goes along.
    pub(super) fn mark(&mut self, now: Time, control: u32) -> Option<Mark> {
        let rtt = self.rtt.snapshot();
        let due = self.state == PathState::Active && self.marks.is_time(now, rtt.smoothed, self.next.0);
        if !due && !self.marks.is_asked() || self.state == PathState::Closed {
            return None;
        }
        match self.state {
            PathState::Untried => {
                self.probes += 1;
                self.probe_at = Some(now + self.pto() * (1 << self.probes.min(3)));
            }
            PathState::Suspect => self.probe_at = Some(now + SUSPECT_PROBE),
            PathState::Down => self.probe_at = Some(now + DOWN_PROBE),
            _ => {}
        }
        let first_outstanding = self.sent.outstanding().next().map_or(self.next.0, |(number, _)| number.0);
        let mark = self.marks.tell(now, first_outstanding);
        let (bytes, delay) = ack_after(self.rate.controller.window(), self.datagram, rtt.min);
        Some(Mark { mark, ack_bytes: bytes.0 as u32, ack_delay_us: delay.as_micros() as u32, control })
    }

    /// A mark goes with the next batch, if anything may answer.
    pub(super) fn ask_mark(&mut self) {
        if self.state.works() {
            self.marks.ask();
        }
    }

    /// When something is due that is not a chunk.
    pub(super) fn deadline(&self) -> Option<Time> {
        if self.state == PathState::Closed {
            return None;
        }
        let silence = self.sent.pto_deadline(self.pto()).filter(|_| self.state.works()).map(|(at, _)| at);
        [self.sent.loss_time(), silence, self.probe_at].into_iter().flatten().min()
    }

    /// How long an answer may take.
    pub(super) fn pto(&self) -> Duration {
        self.rtt.pto(MAX_ACK_DELAY)
    }

    /// How fast it is taken to deliver.
    pub(super) fn bandwidth(&self) -> u64 {
        self.rate.controller.bandwidth().map_or(0, |rate| rate.as_bits())
    }
}
