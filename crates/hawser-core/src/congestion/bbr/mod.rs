//! BBR: draft-ietf-ccwg-bbr (BBRv3), after the text of August 2026.
//!
//! What an acknowledgement tells, in this order:
//!
//! 1. `signals`: what the last round delivered and lost; the bandwidth filter; short-term bounds.
//! 2. `machine`: is the pipe full, the queue drained, is it time to probe (bandwidth, round trip)?
//! 3. `control`: the pacing rate and the window that follow from model and state.
//!
//! Where this differs from the draft stands in `departures`, each with a switch.
//!
//! Jitter with kept order delays all packets of a round by nearly as much. PROBE_RTT shows it (`DelayGauge::lift`), and
//! it is no queue; a limit that remains is that neither is a queue of others that varies as much.

mod control;
mod departures;
mod fall;
mod follow;
mod gauges;
mod machine;
mod model;
mod signals;

pub use self::departures::Departures;
pub(crate) use self::machine::HEADROOM;
pub(crate) use self::model::FULL_PIPE_GROWTH;

use self::fall::Fall;
use self::gauges::{DelayGauge, LossGauge};
use self::model::{Aggregation, FullPipe, Latest, MaxBandwidth, MinRtt, Rounds, Sample, SplitMix};
use super::{AckEvent, Controller, LossEvent, PathSnapshot, initial_window, packets};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Packets of the least window (draft section 2.8, BBR.MinPipeCwnd).
const MIN_PIPE_PACKETS: u64 = 4;
/// No bound on a rate.
const UNBOUNDED: Rate = Rate(u64::MAX);

/// The states of the draft's section 5.1.1:
///
/// ```text
///             |
///             v
///    +---> Startup ------------+
///    |        | pipe full, or loss beside a queue
///    |        v                |
///    |      Drain -------------+
///    |        | in flight <= BDP, or 3 rounds
///    |        v                |
///    +---> Down <---------+ ---+
///    |        | room      |    |
///    |        v           |    |   round trip not renewed for 5 s
///    |     Cruise --------|----+
///    |        | time      |    |
///    |        v           |    |
///    |     Refill --------|----+
///    |        | 1 round   |    |
///    |        v           |    |
///    |       Up ----------+ ---+
///    |          pipe full,     |
///    |          or loss        |
///    +---- ProbeRtt <----------+     200 ms and a round later: Down, then Cruise at once;
///                                    Startup when the pipe was never full
///    Down -> Refill when it is time although a queue remains;
///    Down, Cruise -> Refill when the last probe was cut short as a precaution, and went well
///    Cruise, Refill, Up -> Down: the path's rate has fallen
///    Drain.. -> Startup, Down.. -> Refill: the loss that ended Startup or Up was spurious
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What the acknowledgements at hand say about a bandwidth probe (draft section 2.14).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// What a spurious loss gives back (draft section 5.5.11).
#[derive(Copy, Clone, Debug)]
struct Undo {
    /// The state that the loss ended, if it ended one.
    state: Option<State>,
    bw_short: Rate,
    inflight_short: ByteCount,
    inflight_long: ByteCount,
}

/// The progress of a bandwidth probing cycle (draft section 2.14).
#[derive(Clone, Debug)]
struct Cycle {
    ack_phase: AckPhase,
    /// Samples at hand stem from a probe, and it was not reacted to yet.
    probe_sample: bool,
    prev_too_high: bool,
    prev_precautionary: bool,
    up_rounds: u32,
    up_acked: ByteCount,
    up_acked_per_packet: ByteCount,
    started_at: Time,
    wait: Duration,
    /// The rate at the start of Up.
    up_rate: Rate,
    feedback_at: Time,
}

/// The BBR controller. Starts in Startup with the initial window and no model. One path owns it.
#[derive(Clone, Debug)]
pub struct Bbr {
    departures: Departures,
    mtu: ByteCount,
    state: State,
    window: ByteCount,
    prior_window: ByteCount,
    /// Zero before the first acknowledgement.
    pacing: Rate,
    /// A datagram a round trip (`Departures::least_pace`); zero before the first acknowledgement.
    least_pacing: Rate,
    delivered: ByteCount,
    rounds: Rounds,
    max_bw: MaxBandwidth,
    bw: Rate,
    bw_short: Rate,
    /// Of the rate while cruising: see `signals::trim_to_queue`.
    trim: f64,
    inflight_short: ByteCount,
    inflight_long: ByteCount,
    latest: Latest,
    min_rtt: MinRtt,
    /// What the path adds to the least round trip on the average: see [`super::RttSnapshot`].
    spread: Duration,
    delay: DelayGauge,
    loss: LossGauge,
    extra: Aggregation,
    full: FullPipe,
    cycle: Cycle,
    /// No round trip of the last round was without a queue.
    queued: bool,
    fall: Fall,
    follow: follow::Follow,
    drain_round: u64,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    /// Samples of packets sent before this much was delivered are limited by PROBE_RTT's own window.
    limited_until: ByteCount,
    last_sample_limited: bool,
    undo: Option<Undo>,
    random: SplitMix,
}

impl Bbr {
    /// For a path with datagrams of at most `mtu` bytes; `seed` decides when it probes.
    pub fn new(mtu: ByteCount, seed: u64, departures: Departures) -> Self {
        Bbr {
            departures,
            mtu,
            state: State::Startup,
            window: initial_window(mtu),
            prior_window: ByteCount::ZERO,
            pacing: Rate::ZERO,
            least_pacing: Rate::ZERO,
            delivered: ByteCount::ZERO,
            rounds: Rounds::default(),
            max_bw: MaxBandwidth::default(),
            bw: Rate::ZERO,
            bw_short: UNBOUNDED,
            trim: 1.0,
            inflight_short: ByteCount::MAX,
            inflight_long: ByteCount::MAX,
            latest: Latest::default(),
            min_rtt: MinRtt::default(),
            spread: Duration::ZERO,
            delay: DelayGauge::default(),
            loss: LossGauge::default(),
            extra: Aggregation::default(),
            full: FullPipe::default(),
            cycle: Cycle {
                ack_phase: AckPhase::Init,
                probe_sample: false,
                prev_too_high: false,
                prev_precautionary: false,
                up_rounds: 0,
                up_acked: ByteCount::ZERO,
                up_acked_per_packet: ByteCount::MAX,
                started_at: Time::ZERO,
                wait: Duration::ZERO,
                up_rate: Rate::ZERO,
                feedback_at: Time::ZERO,
            },
            queued: false,
            fall: Fall::default(),
            follow: follow::Follow::default(),
            drain_round: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            limited_until: ByteCount::ZERO,
            last_sample_limited: false,
            undo: None,
            random: SplitMix(seed),
        }
    }

    fn min_window(&self) -> ByteCount {
        packets(MIN_PIPE_PACKETS, self.mtu)
    }

    fn in_probe_bw(&self) -> bool {
        use State::{Cruise, Down, Refill, Up};
        matches!(self.state, Down | Cruise | Refill | Up)
    }

    fn is_accelerating(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    /// The story of an acknowledgement (draft section 5.2.3).
    fn on_sample(&mut self, sample: &Sample) {
        self.delivered = sample.total_delivered;
        self.last_sample_limited = sample.limited;
        self.update_latest(sample);
        self.update_max_bandwidth(sample);
        self.follow_fall(sample);
        self.adapt_to_round(sample);
        self.extra.update(sample, self.bw, self.window, &self.rounds, self.full.reached);
        self.check_full_pipe(sample);
        self.check_startup_done();
        self.check_drain_done(sample);
        self.step_probe_bw(sample);
        if let Some(rtt) = sample.rtt {
            self.min_rtt.update(sample.now, rtt, self.departures.renewal);
        }
        self.check_probe_rtt(sample);
        self.advance_latest(sample);
        self.bw = self.max_bw.get().min(self.bw_short);
        self.set_pacing(sample);
        self.set_window(sample);
        self.follow_rate(sample);
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, now: Time, bytes: ByteCount, in_flight: ByteCount, limited: bool) {
        self.rounds.emptied |= limited;
        if in_flight + self.mtu > self.window {
            self.rounds.window_limited = true;
        }
        if in_flight == bytes && self.delivered > ByteCount::ZERO {
            self.restart_from_idle(now);
        }
    }

    fn on_ack(&mut self, ack: &AckEvent, _siblings: &[PathSnapshot]) {
        if let Some(sample) = Sample::of(ack, self.limited_until) {
            if let Some(round_trip) = ack.round_trip {
                self.delay.add(round_trip, ack.rtt.variance);
            }
            self.loss.add_acked(ack.acked);
            self.spread = if self.departures.spread { ack.rtt.spread } else { Duration::ZERO };
            self.on_sample(&sample);
        }
    }

    fn on_loss(&mut self, loss: &LossEvent) {
        self.note_loss(loss);
        if loss.persistent {
            self.save_window();
            self.window = (loss.in_flight + self.mtu).max(self.min_window());
            return;
        }
        self.judge_probe_loss(loss);
    }

    fn on_ecn(&mut self, now: Time, marked: u64, _sent_at: Time) {
        if marked > 0 {
            self.on_marks(now);
        }
    }

    fn on_mtu(&mut self, mtu: ByteCount) {
        self.mtu = mtu;
        // The initial window is one of the new size (RFC 9002 section 7.2), while it has not been delivered once.
        let initial = initial_window(mtu);
        let least = if self.delivered < initial { initial } else { self.min_window() };
        self.window = self.window.max(least);
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        self.undo_spurious_loss();
    }

    fn on_takeover(&mut self, now: Time) {
        self.min_rtt.probed(now);
        if self.state == State::ProbeRtt {
            self.leave_probe_rtt(now);
        }
    }

    fn start_at(&mut self, rate: Rate, round_trip: Duration) {
        if self.state == State::Startup && !self.full.reached {
            self.window = self.window.max(rate.bytes_in(round_trip));
            self.pacing = self.pacing.max(rate);
        }
    }

    fn resume(&mut self, now: Time, rate: Rate, round_trip: Duration, filled: bool) -> bool {
        let window = rate.bytes_in(round_trip);
        if window <= initial_window(self.mtu) && !filled {
            return false;
        }
        self.max_bw.replace(rate);
        (self.bw, self.pacing, self.window) = (rate, rate, window.scale(control::WINDOW_GAIN));
        self.full.reached = true;
        // All links resume at once: the next probe waits at random, so that they do not look for more at once as well.
        self.start_down(now);
        self.state = State::Cruise;
        true
    }

    fn window(&self) -> ByteCount {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (self.pacing > Rate::ZERO).then_some(self.pacing)
    }

    fn bandwidth(&self) -> Option<Rate> {
        (self.bw > Rate::ZERO).then_some(self.bw)
    }

    fn is_ramping(&self) -> bool {
        !self.full.reached
    }

    fn variation(&self) -> Option<f64> {
        self.follow.variation()
    }

    fn name(&self) -> &'static str {
        "bbr"
    }
}

#[cfg(test)]
mod departure_tests;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;
