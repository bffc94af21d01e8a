//! What a round delivered and lost, and the bounds that follow (draft sections 5.5.3 to 5.5.11).

use super::super::LossEvent;
use super::model::Sample;
use super::{Bbr, State, UNBOUNDED, Undo};
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Loss above the path's own that shows too much in flight, beside a queue (draft section 2.8, BBR.LossThresh).
const LOSS_THRESHOLD: f64 = 0.02;
/// Loss above the path's own that shows it without a queue: a shallow buffer, a policer, or a queue that was never seen
/// empty. In Startup, which does not know the path's own yet.
const LOSS_THRESHOLD_BLIND: f64 = 0.05;
/// See `LOSS_THRESHOLD_BLIND`.
const STARTUP_LOSS_THRESHOLD_BLIND: f64 = 0.10;
/// Lost packets that a judgement without a queue needs: fewer are chance.
const LEAST_LOST_BLIND: u64 = 4;
/// Standard deviations of chance above the path's own loss that do not count.
const CHANCE: f64 = 2.0;
/// What a congested round leaves of the short-term bounds at least (draft section 2.8, BBR.Beta).
const BETA: f64 = 0.7;
/// Lost packets in a round that may end Startup (draft section 5.3.1.3, BBRStartupFullLossCnt).
const STARTUP_LOST_PACKETS: u64 = 6;
/// Part of the least round trip that a queue must hold over a round to stand.
const STANDING_PART: u32 = 4;
/// Least delay of a standing queue: what ours and the acknowledgements' batches make is less.
const STANDING_FLOOR: Duration = Duration::from_millis(3);
/// Part of the least round trip, and the least delay, above which cruising is trimmed: what is left of a
/// queue that the maximum's own error feeds.
const TRIM_PART: u32 = 16;
/// See `TRIM_PART`.
const TRIM_FLOOR: Duration = Duration::from_millis(1);
/// Of the rate, taken off after a round with such a queue, and given back after one without: one round
/// in five shows a little queue then, and the path is full.
const TRIM_STEP: f64 = 0.01;
/// See `TRIM_STEP`.
const TRIM_BACK: f64 = 0.0025;
/// The most that is taken off: clumped acknowledgements seldom flatter the maximum by more.
const TRIM_LEAST: f64 = 0.94;

impl Bbr {
    pub(super) fn update_latest(&mut self, sample: &Sample) {
        self.latest.bw = self.latest.bw.max(sample.rate);
        self.latest.inflight = self.latest.inflight.max(sample.delivered);
        self.latest.round_started = sample.prior_delivered >= self.latest.round_delivered;
        if self.latest.round_started {
            self.latest.round_delivered = sample.total_delivered;
        }
    }

    pub(super) fn advance_latest(&mut self, sample: &Sample) {
        if self.latest.round_started {
            self.latest.bw = sample.rate;
            self.latest.inflight = sample.delivered;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss.forget_round();
        self.latest.bw = Rate::ZERO;
        self.latest.inflight = ByteCount::ZERO;
    }

    pub(super) fn update_max_bandwidth(&mut self, sample: &Sample) {
        self.rounds.update(sample);
        if sample.rate > Rate::ZERO && (sample.rate >= self.max_bw.get() || !sample.limited) {
            self.max_bw.update(sample.rate);
        }
    }

    /// Once a round: lower the short-term bounds when it was congested.
    pub(super) fn adapt_to_round(&mut self, sample: &Sample) {
        if !self.latest.round_started {
            return;
        }
        let least = self.min_rtt.get().unwrap_or_default();
        let queue = self.delay.end_round(least, self.state);
        self.queued = queue > self.standing_floor(least);
        if self.state == State::Startup {
            // Judged, and ended, by check_startup_done.
            return;
        }
        if !self.is_accelerating() && (self.is_round_lossy() || self.loss.marked_in_round) {
            self.lower_short_term(sample.limited);
        }
        self.trim_to_queue(queue, sample);
        self.loss.end_round(self.state, self.queued);
    }

    /// The delay that no round trip of a round is without, beyond what jitter was seen to lift it by, above which a queue
    /// stands. PROBE_RTT shows less than a full path does: few packets are under way, and wait for no delayed one.
    fn standing_floor(&self, least: Duration) -> Duration {
        (least / STANDING_PART).max(STANDING_FLOOR).max(self.delay.held())
    }

    /// The bandwidth is a maximum, and clumps in the acknowledgements raise it above what the path
    /// carries: paced at it, a path is never without a queue. Cruising learns how much less is enough.
    fn trim_to_queue(&mut self, queue: Duration, sample: &Sample) {
        if self.state != State::Cruise || !self.departures.trim {
            return;
        }
        let least = self.min_rtt.get().unwrap_or_default();
        let floor = (least / TRIM_PART).max(TRIM_FLOOR).max(self.delay.jitter());
        // A sender that is limited still feeds the queue, as long as it sends in clumps of that rate; but
        // that there is none says nothing then.
        let step = match (queue > floor, sample.limited) {
            (true, _) => -TRIM_STEP,
            (false, false) => TRIM_BACK,
            (false, true) => 0.0,
        };
        self.trim = (self.trim + step).clamp(TRIM_LEAST, 1.0);
    }

    /// The path carries far less than it did: begin anew with what it carries, and empty its queue.
    pub(super) fn follow_fall(&mut self, sample: &Sample) {
        let known = self.full.reached && self.departures.fall;
        let Some(least) = self.min_rtt.get().filter(|_| known) else { return };
        if let Some(rate) = self.fall.on_sample(sample, least, self.max_bw.get()) {
            self.fall_to(rate, sample.now);
        }
    }

    pub(super) fn fall_to(&mut self, rate: Rate, now: Time) {
        self.max_bw.replace(rate);
        self.reset_short_term();
        if self.in_probe_bw() {
            self.start_down(now);
        }
    }

    /// A rate that the sender did not fill says nothing about the path: then only the volume sinks.
    fn lower_short_term(&mut self, limited: bool) {
        if !(limited && self.departures.limited_loss) {
            let bound = self.bw_short.min(self.max_bw.get());
            self.bw_short = self.latest.bw.max(bound.scale(BETA));
        }
        let bound = self.inflight_short.min(self.window);
        self.inflight_short = self.latest.inflight.max(bound.scale(BETA));
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bw_short = UNBOUNDED;
        self.inflight_short = ByteCount::MAX;
    }

    /// The loss above the path's own that counts at present.
    fn loss_threshold(&self) -> f64 {
        let grows = self.min_rtt.get().is_some_and(|least| self.delay.shows_queue(least));
        if grows || self.queued || !self.departures.loss_beside_queue {
            LOSS_THRESHOLD
        } else if self.full.reached {
            LOSS_THRESHOLD_BLIND
        } else {
            STARTUP_LOSS_THRESHOLD_BLIND
        }
    }

    /// What the path loses by its nature. Beside a queue that stands nothing is: others fill it too, and whoever takes
    /// their losses for the path's own drives them out.
    fn own_loss(&self) -> f64 {
        let learned = self.departures.loss_beside_queue && self.departures.own_loss;
        if self.queued || !learned { 0.0 } else { self.loss.baseline() }
    }

    /// `lost` of `sent` bytes is more than the path's own loss, chance and the threshold explain.
    pub(super) fn is_excess_loss(&self, lost: ByteCount, sent: ByteCount) -> bool {
        let threshold = self.loss_threshold();
        let mtu = self.mtu.0 as f64;
        if threshold > LOSS_THRESHOLD && lost < ByteCount(self.mtu.0 * LEAST_LOST_BLIND) {
            return false;
        }
        let own = self.own_loss();
        let sent = sent.0 as f64 / mtu;
        let usual = sent * (own + threshold) + CHANCE * (sent * own).sqrt();
        lost.0 as f64 / mtu > usual
    }

    /// While the rate still grows by a quarter a round, what is lost is the path's own. After that a round must end to
    /// know the share that is lost; but not behind a queue that stands, where every loss is what the path does not
    /// hold.
    pub(super) fn is_startup_loss_high(&self) -> bool {
        let ours = self.departures.startup_loss;
        (self.full.has_stalled() || !ours)
            && self.loss.round_lost >= ByteCount(self.mtu.0 * STARTUP_LOST_PACKETS)
            && ((ours && self.overflows()) || (self.latest.round_started && self.is_round_lossy()))
    }

    /// Packets are lost while none of the latest round trips was without a queue.
    fn overflows(&self) -> bool {
        let least = self.min_rtt.get().unwrap_or_default();
        self.loss.in_round && self.delay.stands_at_least(least + self.standing_floor(least))
    }

    fn is_round_lossy(&self) -> bool {
        let lost = self.loss.round_lost;
        let excess = self.is_excess_loss(lost, lost + self.loss.round_acked);
        let counts = match self.departures.loss_beside_queue {
            true => self.queued || excess,
            false => self.state != State::Startup || excess,
        };
        self.loss.in_round && counts
    }

    pub(super) fn note_loss(&mut self, loss: &LossEvent) {
        if !self.loss.in_round {
            self.latest.round_delivered = self.delivered;
            self.save_state();
        }
        self.loss.in_round = true;
        let least = self.min_rtt.get().unwrap_or_default();
        self.loss.add_lost(loss.now, loss.lost, loss.total_lost, least);
    }

    /// Was too much in flight when a probe's packet was lost (draft section 5.5.10.2)?
    pub(super) fn judge_probe_loss(&mut self, loss: &LossEvent) {
        if !self.cycle.probe_sample {
            return;
        }
        let lost = self.loss.lost_since(loss.largest_sent_at);
        if self.is_excess_loss(lost, loss.tx_in_flight) {
            let safe = self.inflight_at_loss(loss, lost);
            self.on_inflight_too_high(loss.now, safe);
        }
    }

    /// The volume at which the losses passed the threshold, somewhere in the packets just lost.
    fn inflight_at_loss(&self, loss: &LossEvent, lost: ByteCount) -> ByteCount {
        let threshold = self.loss_threshold() + self.own_loss();
        let before = loss.tx_in_flight - loss.lost;
        let lost_before = (lost - loss.lost).0 as f64;
        let prefix = (threshold * before.0 as f64 - lost_before) / (1.0 - threshold);
        before + ByteCount(prefix.max(0.0) as u64)
    }

    fn on_inflight_too_high(&mut self, now: Time, safe: ByteCount) {
        self.cycle.prev_too_high = true;
        self.cycle.probe_sample = false;
        if !self.last_sample_limited {
            self.inflight_long = safe.max(self.target_inflight().scale(BETA));
        }
        if self.state == State::Up {
            if let Some(undo) = &mut self.undo {
                undo.state = Some(State::Up);
            }
            self.start_down(now);
        }
    }

    /// CE marks: never chance, so they need no queue to confirm them.
    pub(super) fn on_marks(&mut self, now: Time) {
        self.loss.marked_in_round = true;
        let safe = self.target_inflight();
        if self.state == State::Startup {
            self.full.reached = true;
            self.inflight_long = safe.max(self.latest.inflight).max(self.min_window());
            self.enter_drain();
        } else if self.cycle.probe_sample {
            self.on_inflight_too_high(now, safe);
        }
    }

    pub(super) fn save_window(&mut self) {
        self.prior_window = if self.state == State::ProbeRtt || self.loss.in_round {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    fn save_state(&mut self) {
        self.save_window();
        self.undo = Some(Undo {
            state: None,
            bw_short: self.bw_short,
            inflight_short: self.inflight_short,
            inflight_long: self.inflight_long,
        });
    }

    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    pub(super) fn undo_spurious_loss(&mut self) {
        let Some(undo) = self.undo.take() else { return };
        self.restore_window();
        self.loss.forgive();
        self.full.reset(Rate::ZERO);
        self.bw_short = self.bw_short.max(undo.bw_short);
        self.inflight_short = self.inflight_short.max(undo.inflight_short);
        self.inflight_long = self.inflight_long.max(undo.inflight_long);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
