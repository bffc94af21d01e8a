//! The state machine's arrows (draft sections 5.3 and 5.4).

use super::model::Sample;
use super::{AckPhase, Bbr, State};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Rounds after which Drain ends even with a queue (draft section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Part of the long-term bound that is left to others (draft section 2.8, BBR.Headroom).
pub(crate) const HEADROOM: f64 = 0.15;
/// How long PROBE_RTT lasts at least (draft section 2.16.2, BBR.ProbeRTTDuration).
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// Between probes for bandwidth at least; up to a second more is random (draft section 5.3.3.9).
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// Nanoseconds of the random part of that wait.
const PROBE_WAIT_SPREAD: u64 = 1_000_000_000;
/// A rate found in a Startup that loss has ended is looked beyond after this: a burst may have filled a short queue.
pub(super) const EARLY_WAIT: Duration = Duration::from_millis(500);
/// Rounds between probes at most, so that Reno beside us gets its share (draft section 5.3.3.8.3).
const RENO_ROUNDS: u64 = 63;
/// The long-term bound's growth doubles each round, up to this power (draft section 5.3.3.9).
const MAX_UP_ROUNDS: u32 = 30;
/// Part of the least round trip that a queue must be to end Startup: a sender that fills the pipe
/// goes on for the rate's sake, one that has little to send only makes others wait.
const STARTUP_QUEUE_PART: u32 = 2;
/// See `STARTUP_QUEUE_PART`.
const LIMITED_QUEUE_PART: u32 = 4;
/// On top of it: well above batches.
const STARTUP_QUEUE_FLOOR: Duration = Duration::from_millis(5);
/// A probe that raised the rate by less than this, but a queue, has found the path's capacity.
const PROBE_GROWTH: f64 = 1.05;

impl Bbr {
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        if self.rounds.started && !sample.limited && sample.rate > Rate::ZERO {
            self.full.on_round(sample.rate);
        }
        if self.state == State::Startup && self.is_startup_queueing(sample) && self.departures.startup_queue {
            self.full.now = true;
            self.full.reached = true;
        }
    }

    /// A queue, and no growth behind it: the pipe is full, also for a sender that Startup's own pace
    /// has limited. The draft waits for three rounds that were not limited.
    fn is_startup_queueing(&mut self, sample: &Sample) -> bool {
        let Some(least) = self.min_rtt.get().filter(|_| sample.rate > Rate::ZERO) else {
            return false;
        };
        // Where packets overtake each other the least is that of a few, now and then.
        let empty = least + self.spread;
        let stands = |part| self.delay.stands_at_least(empty + empty / part + STARTUP_QUEUE_FLOOR);
        let most = self.max_bw.get();
        let fades = self.full.on_queue(sample.limited && stands(LIMITED_QUEUE_PART), most, self.rounds.started);
        fades || self.rounds.started && sample.rate < most.scale(PROBE_GROWTH) && stands(STARTUP_QUEUE_PART)
    }

    pub(super) fn check_startup_done(&mut self) {
        if self.state != State::Startup {
            return;
        }
        if self.is_startup_loss_high() {
            if let Some(undo) = &mut self.undo {
                undo.state = Some(State::Startup);
            }
            self.full.now = true;
            self.full.reached = true;
            self.inflight_long = self.bdp(1.0).max(self.latest.inflight);
        }
        if self.latest.round_started {
            self.loss.end_round(self.state, self.queued);
        }
        if self.full.reached {
            self.enter_drain();
        }
    }

    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_round = self.rounds.count;
    }

    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state == State::Drain
            && (sample.in_flight <= self.inflight(1.0) || self.rounds.count > self.drain_round + DRAIN_ROUNDS)
        {
            self.start_down(sample.now);
            // Before the first probe only loss, or a mark, has bounded the volume.
            if self.departures.early_probe && self.inflight_long < ByteCount::MAX {
                self.cycle.wait = EARLY_WAIT;
            }
        }
    }

    pub(super) fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.cycle.up_acked_per_packet = ByteCount::MAX;
        self.rounds.since_probe = self.random.next() % 2;
        self.cycle.wait = PROBE_WAIT + Duration::from_nanos(self.random.next() % PROBE_WAIT_SPREAD);
        self.cycle.started_at = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.rounds.restart(self.delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = ByteCount::ZERO;
        self.cycle.prev_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart(self.delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.cycle.probe_sample = true;
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart(self.delivered);
        self.full.reset(sample.rate);
        self.cycle.up_rate = sample.rate;
        self.state = State::Up;
        self.raise_slope();
    }

    /// One step of the probing cycle, on every acknowledgement (draft section 5.3.3.9).
    pub(super) fn step_probe_bw(&mut self, sample: &Sample) {
        let bounded = self.rounds.is_window_limited() && self.window >= self.inflight_long && !self.queued;
        if !self.full.reached || self.adapt_long_term(sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(sample) => self.state = State::Cruise,
            State::Refill if self.rounds.started => self.start_up(sample),
            State::Up => self.step_up(sample, bounded),
            _ => {}
        }
    }

    /// Follows the acknowledgements of a probe; true when that already changed the state.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.started {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
            self.cycle.feedback_at = sample.now;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.started {
            self.cycle.probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.in_probe_bw() {
                if !sample.limited {
                    self.max_bw.advance();
                }
                if self.cycle.prev_precautionary && !self.cycle.prev_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.inflight_long < ByteCount::MAX && !self.is_excess_loss(sample.lost, sample.tx_in_flight) {
            self.inflight_long = self.inflight_long.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.probe_long_term_upward(sample);
            }
        }
        false
    }

    fn raise_slope(&mut self) {
        let growth = 1u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.up_acked_per_packet = ByteCount(self.window.0 / growth).max(self.mtu);
    }

    fn probe_long_term_upward(&mut self, sample: &Sample) {
        if !self.rounds.is_window_limited() || self.window < self.inflight_long {
            return;
        }
        self.cycle.up_acked += sample.newly_acked;
        let steps = self.cycle.up_acked.0 / self.cycle.up_acked_per_packet.0;
        self.cycle.up_acked -= ByteCount(steps * self.cycle.up_acked_per_packet.0);
        self.inflight_long += ByteCount(steps * self.mtu.0);
        if self.rounds.started {
            self.raise_slope();
        }
    }

    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        sample.in_flight <= self.inflight_with_headroom() && sample.in_flight <= self.quantized(self.max_bw_bdp(1.0))
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight().0 / self.mtu.0).min(RENO_ROUNDS);
        now > self.cycle.started_at + self.cycle.wait || self.rounds.since_probe >= reno_rounds
    }

    /// Ends Up when the pipe is full, or, as a precaution, where the last probe went too high. `bounded`: the long-term
    /// bound held back the rate, which so says nothing about the path; beside a queue that stands the round trip has
    /// said it.
    fn step_up(&mut self, sample: &Sample, bounded: bool) {
        if self.cycle.prev_too_high && sample.in_flight >= self.inflight_long {
            self.cycle.prev_precautionary = true;
        } else if bounded {
            self.full.reset(sample.rate);
            return;
        } else if !self.full.now && !self.is_probe_queueing(sample) {
            return;
        }
        self.cycle.prev_too_high = false;
        self.start_down(sample.now);
    }

    /// The probe has built a queue, and the rate has not grown. A path with room shows it in the rate
    /// first, and half a round of feedback is enough to see it. A sender that the probe's own pace has
    /// limited is no reason to go on: its queue stands in the path then.
    fn is_probe_queueing(&self, sample: &Sample) -> bool {
        let Some(least) = self.min_rtt.get() else {
            return false;
        };
        self.departures.probe_queue
            && self.cycle.ack_phase == AckPhase::ProbeFeedback
            && sample.now >= self.cycle.feedback_at + least / 2
            && self.delay.shows_queue(least)
            && sample.rate < self.cycle.up_rate.scale(PROBE_GROWTH)
    }

    pub(super) fn inflight_with_headroom(&self) -> ByteCount {
        if self.inflight_long == ByteCount::MAX {
            return ByteCount::MAX;
        }
        let headroom = self.inflight_long.scale(HEADROOM).max(self.mtu);
        (self.inflight_long - headroom).max(self.min_window())
    }

    /// PROBE_RTT: when the least round trip is old, empty the queue to see it (draft section 5.3.4).
    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        // Whatever comes of it, the sample that found it old is the new one.
        let expired = std::mem::take(&mut self.min_rtt.expired);
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_done = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.rounds.restart(self.delivered);
        }
        if self.state == State::ProbeRtt {
            self.hold_probe_rtt(sample);
        }
        self.idle_restart &= sample.rtt.is_none();
    }

    fn hold_probe_rtt(&mut self, sample: &Sample) {
        self.limited_until = sample.total_delivered + sample.in_flight;
        if self.probe_rtt_done.is_none() {
            if sample.in_flight <= self.probe_rtt_window() {
                self.probe_rtt_done = Some(sample.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.rounds.restart(self.delivered);
            }
            return;
        }
        self.probe_rtt_round_done |= self.rounds.started;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(sample.now);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done.is_some_and(|done| now > done) {
            self.leave_probe_rtt(now);
        }
    }

    pub(super) fn leave_probe_rtt(&mut self, now: Time) {
        self.min_rtt.probed(now);
        self.restore_window();
        self.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// The sender was idle: its queue has drained, and it resumes at the model's rate (draft section 5.4.1).
    pub(super) fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.extra.restart(now);
        if self.in_probe_bw() {
            self.set_pacing_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}
