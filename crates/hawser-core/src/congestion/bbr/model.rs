//! The parts of BBR's model of the path: small filters, each of one quantity.

use super::super::AckEvent;
use super::State;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How long a least round trip stands before PROBE_RTT (draft section 2.15.2, BBR.ProbeRTTInterval).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// How long a least round trip counts (draft section 2.15.1, BBR.MinRTTFilterLen).
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// A round trip within this part of the least shows an empty queue too (departure: see the module).
const RENEWAL_PART: u32 = 16;
/// Rounds that extra acknowledged bytes are remembered (draft section 2.11, BBR.ExtraAckedFilterLen).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Growth that shows that the pipe is not full (draft section 5.3.1.2).
const FULL_PIPE_GROWTH: f64 = 1.25;
/// Rounds without such growth that show that it is (draft section 5.3.1.2).
const FULL_PIPE_ROUNDS: u32 = 3;
/// Round trips that a queue estimate is the least of: one delayed packet is not a queue.
const DELAY_SAMPLES: usize = 8;
/// Part of the least round trip that counts as a queue: well inside a buffer of 0.2 BDP.
const QUEUE_PART: u32 = 8;
/// Least delay that counts as a queue: below it, timers and batches blur the round trip.
const QUEUE_FLOOR: Duration = Duration::from_micros(500);
/// Rounds after which a queue stands.
const STANDING_ROUNDS: u32 = 2;
/// Multiple of the round trip's deviation that a rate is measured over.
const STANDING_JITTERS: u32 = 40;
/// Packets per round that were lost and acknowledged, after which older ones count half.
const BASELINE_MEMORY: ByteCount = ByteCount(2_000_000);
/// The most that is taken for a path's own loss: more is congestion or a link not worth keeping.
const BASELINE_CAP: f64 = 0.05;
/// Loss events remembered to tell what was lost when a packet was sent.
const LOSS_HISTORY: usize = 32;

/// One acknowledgement, as BBR needs it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sample {
    pub(super) now: Time,
    pub(super) rate: Rate,
    pub(super) limited: bool,
    pub(super) prior_delivered: ByteCount,
    pub(super) delivered: ByteCount,
    pub(super) lost: ByteCount,
    pub(super) tx_in_flight: ByteCount,
    pub(super) newly_acked: ByteCount,
    pub(super) in_flight: ByteCount,
    pub(super) total_delivered: ByteCount,
    pub(super) rtt: Duration,
    pub(super) smoothed_rtt: Duration,
}

impl Sample {
    /// `None` when the frame acknowledged nothing new. What was sent before `limited_until` bytes
    /// were delivered counts as limited.
    pub(super) fn of(ack: &AckEvent, limited_until: ByteCount) -> Option<Sample> {
        let rate = ack.rate?;
        Some(Sample {
            now: ack.now,
            rate: rate.rate,
            limited: rate.app_limited || rate.prior_delivered < limited_until,
            prior_delivered: rate.prior_delivered,
            delivered: rate.delivered,
            lost: rate.lost,
            tx_in_flight: rate.tx_in_flight,
            newly_acked: ack.acked,
            in_flight: ack.in_flight,
            total_delivered: ack.delivered,
            rtt: ack.rtt.latest,
            smoothed_rtt: ack.rtt.smoothed,
        })
    }
}

/// Round trips counted by packets (draft section 5.5.1).
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// The acknowledgement at hand began a round.
    pub(super) started: bool,
    pub(super) since_probe: u64,
    next_delivered: ByteCount,
    /// The window held back the sender in this round, and in the last.
    pub(super) window_limited: bool,
    last_window_limited: bool,
}

impl Rounds {
    pub(super) fn update(&mut self, sample: &Sample) {
        self.started = sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.restart(sample.total_delivered);
            self.count += 1;
            self.since_probe += 1;
            self.last_window_limited = std::mem::take(&mut self.window_limited);
        }
    }

    /// The round ends when what is sent from now on is acknowledged.
    pub(super) fn restart(&mut self, delivered: ByteCount) {
        self.next_delivered = delivered;
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited || self.last_window_limited
    }
}

/// The most bandwidth of this probing cycle and the last (draft section 5.5.3).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxBandwidth {
    current: Rate,
    previous: Rate,
}

impl MaxBandwidth {
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    pub(super) fn update(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// A cycle ends. One without a sample tells nothing, and forgets nothing.
    pub(super) fn advance(&mut self) {
        if self.current > Rate::ZERO {
            self.previous = std::mem::take(&mut self.current);
        }
    }
}

/// What the last round delivered (draft section 2.9), and where the loss round ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) bw: Rate,
    pub(super) inflight: ByteCount,
    pub(super) round_delivered: ByteCount,
    pub(super) round_started: bool,
}

/// A queue that no round trip of a round was without, and what arrived behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    rounds: u32,
    since: Time,
    arrived: ByteCount,
}

impl Standing {
    /// A round ended without.
    pub(super) fn end(&mut self, now: Time) {
        *self = Standing {
            since: now,
            ..Standing::default()
        };
    }

    /// A round of it ended, in which this much arrived, or was lost on the way.
    pub(super) fn add_round(&mut self, bytes: ByteCount) {
        self.rounds += 1;
        self.arrived += bytes;
    }

    /// The rate of arrival, once the queue stood for long enough to know it: one round may be the
    /// tail of a probe, and jitter blurs both ends.
    pub(super) fn rate(&self, now: Time, jitter: Duration) -> Option<Rate> {
        let elapsed = now.since(self.since);
        let known = self.rounds >= STANDING_ROUNDS && elapsed >= jitter * STANDING_JITTERS;
        known.then(|| Rate::of(self.arrived, elapsed))
    }
}

/// The least round trip, and when it must be probed for (draft section 5.5.7).
#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<(Duration, Time)>,
    recent: Option<(Duration, Time)>,
    pub(super) expired: bool,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.least.map(|(rtt, _)| rtt)
    }

    pub(super) fn update(&mut self, now: Time, rtt: Duration) {
        let (recent, stamp) = *self.recent.get_or_insert((rtt, now));
        self.expired = now > stamp + PROBE_RTT_INTERVAL;
        if rtt < recent || self.expired {
            self.recent = Some((rtt, now));
        } else if rtt <= recent + recent / RENEWAL_PART {
            self.recent = Some((recent, now));
        }
        let (recent, recent_at) = self.recent.expect("set above");
        let stale = self
            .least
            .is_none_or(|(least, at)| recent < least || now > at + MIN_RTT_FILTER);
        if stale {
            self.least = Some((recent, recent_at));
        } else if let Some((least, at)) = &mut self.least
            && recent == *least
        {
            *at = recent_at;
        }
    }

    /// A probe for it ended: the next is due an interval later.
    pub(super) fn probed(&mut self, now: Time) {
        if let Some((_, at)) = &mut self.recent {
            *at = now;
        }
        self.expired = false;
    }
}

/// What arrives beyond the model's rate, because acknowledgements come in clumps (draft section 5.5.9).
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    start: Time,
    delivered: ByteCount,
    /// The most of the present and of the past half window of rounds.
    current: ByteCount,
    previous: ByteCount,
    half_started: u64,
}

impl Aggregation {
    pub(super) fn get(&self) -> ByteCount {
        self.current.max(self.previous)
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.start = now;
        self.delivered = ByteCount::ZERO;
    }

    pub(super) fn update(
        &mut self,
        sample: &Sample,
        bw: Rate,
        window: ByteCount,
        rounds: &Rounds,
        full: bool,
    ) {
        let mut expected = bw.bytes_in(sample.now.since(self.start));
        if self.delivered <= expected {
            self.restart(sample.now);
            expected = ByteCount::ZERO;
        }
        self.delivered += sample.newly_acked;
        let extra = (self.delivered - expected).min(window);
        let half = if full { EXTRA_ACKED_ROUNDS / 2 } else { 1 };
        if rounds.count >= self.half_started + half {
            self.half_started = rounds.count;
            self.previous = std::mem::take(&mut self.current);
        }
        self.current = self.current.max(extra);
    }
}

/// Whether more speed brought more bandwidth (draft section 5.3.1.2).
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    count: u32,
    /// Since the estimate began.
    pub(super) now: bool,
    /// Ever.
    pub(super) reached: bool,
}

impl FullPipe {
    pub(super) fn reset(&mut self, baseline: Rate) {
        self.baseline = baseline;
        self.count = 0;
        self.now = false;
    }

    /// A round that was not limited by the sender ended with `rate`.
    pub(super) fn on_round(&mut self, rate: Rate) {
        if self.now {
            return;
        }
        if rate >= self.baseline.scale(FULL_PIPE_GROWTH) {
            self.reset(rate);
            return;
        }
        self.count += 1;
        if self.count >= FULL_PIPE_ROUNDS {
            self.now = true;
            self.reached = true;
        }
    }
}

/// How much the round trip shows of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayGauge {
    recent: [Duration; DELAY_SAMPLES],
    next: usize,
    round_least: Option<Duration>,
    variance: Duration,
}

impl DelayGauge {
    pub(super) fn add(&mut self, rtt: Duration, variance: Duration) {
        self.recent[self.next] = rtt;
        self.next = (self.next + 1) % DELAY_SAMPLES;
        self.round_least = Some(self.round_least.map_or(rtt, |least| least.min(rtt)));
        self.variance = variance;
    }

    /// The least of a handful of round trips lies above `min_rtt` by more than jitter: a queue.
    pub(super) fn shows_queue(&self, min_rtt: Duration) -> bool {
        let least = self.recent.iter().min().copied().unwrap_or_default();
        least > min_rtt + (min_rtt / QUEUE_PART).max(QUEUE_FLOOR).max(self.variance)
    }

    pub(super) fn jitter(&self) -> Duration {
        self.variance
    }

    /// The delay above `min_rtt` that no round trip of the round was without; a new round starts.
    pub(super) fn end_round(&mut self, min_rtt: Duration) -> Duration {
        self.round_least
            .take()
            .map_or(Duration::ZERO, |least| least.saturating_sub(min_rtt))
    }
}

/// What a path loses: in the round at hand, and by its nature.
#[derive(Clone, Debug, Default)]
pub(super) struct LossGauge {
    pub(super) round_lost: ByteCount,
    pub(super) round_acked: ByteCount,
    pub(super) in_round: bool,
    pub(super) marked_in_round: bool,
    baseline_lost: ByteCount,
    baseline_sent: ByteCount,
    history: [(Time, ByteCount); LOSS_HISTORY],
    next: usize,
    total: ByteCount,
}

impl LossGauge {
    pub(super) fn add_acked(&mut self, bytes: ByteCount) {
        self.round_acked += bytes;
    }

    pub(super) fn add_lost(&mut self, now: Time, bytes: ByteCount, total: ByteCount) {
        // What each entry holds is what was lost before it.
        self.history[self.next] = (now, total - bytes);
        self.next = (self.next + 1) % LOSS_HISTORY;
        self.total = total;
        self.round_lost += bytes;
    }

    /// What was lost since a packet was sent; too little when that was too many loss events ago.
    pub(super) fn lost_since(&self, sent_at: Time) -> ByteCount {
        let before = self
            .history
            .iter()
            .filter(|(at, _)| *at > sent_at)
            .map(|(_, before)| *before)
            .min();
        before.map_or(ByteCount::ZERO, |before| self.total - before)
    }

    /// The round ends; while cruising it teaches the path's own loss.
    pub(super) fn end_round(&mut self, state: State) {
        if state == State::Cruise {
            self.baseline_lost += self.round_lost;
            self.baseline_sent += self.round_lost + self.round_acked;
            if self.baseline_sent > BASELINE_MEMORY {
                self.baseline_lost = ByteCount(self.baseline_lost.0 / 2);
                self.baseline_sent = ByteCount(self.baseline_sent.0 / 2);
            }
        }
        self.forget_round();
    }

    pub(super) fn forget_round(&mut self) {
        self.round_lost = ByteCount::ZERO;
        self.round_acked = ByteCount::ZERO;
        self.in_round = false;
        self.marked_in_round = false;
    }

    /// The share that the path loses by its nature, at most 5 %.
    pub(super) fn baseline(&self) -> f64 {
        if self.baseline_sent == ByteCount::ZERO {
            return 0.0;
        }
        (self.baseline_lost.0 as f64 / self.baseline_sent.0 as f64).min(BASELINE_CAP)
    }
}

/// Steele, Lea and Flood's SplitMix64: enough for probe times, and the same on every machine.
#[derive(Clone, Debug)]
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
