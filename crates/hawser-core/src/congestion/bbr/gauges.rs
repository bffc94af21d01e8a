//! What tells congestion from a path's nature: queues in the round trip, losses above the usual.

use super::State;
use crate::units::{ByteCount, Time};
use std::time::Duration;

/// Round trips that a queue estimate is the least of: one delayed packet is not a queue.
const DELAY_SAMPLES: usize = 8;
/// Deviations of the round trip that jitter raises the least of several by, when packets keep their
/// order: the delayed ones hold up those behind.
const JITTER_DEVIATIONS: u32 = 2;
/// Deviations that jitter may lift all round trips of a round by (RFC 6298's K): more is a queue of others.
const LIFT_DEVIATIONS: u32 = 4;
/// Part of the least round trip that counts as a queue: well inside a buffer of 0.2 BDP.
const QUEUE_PART: u32 = 8;
/// Least delay that counts as a queue: below it, timers and batches blur the round trip.
const QUEUE_FLOOR: Duration = Duration::from_micros(500);
/// Packets per round that were lost and acknowledged, after which older ones count half.
const BASELINE_MEMORY: ByteCount = ByteCount(2_000_000);
/// The most that is taken for a path's own loss: more is congestion or a link not worth keeping.
const BASELINE_CAP: f64 = 0.05;
/// Losses remembered to tell what was lost when a packet was sent: of two round trips, together where they are closer
/// than a part of one.
const LOSS_HISTORY: usize = 32;
/// See `LOSS_HISTORY`.
const LOSS_PART: u32 = 16;

/// How much the round trip shows of a queue. Starts without an opinion.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayGauge {
    recent: [Duration; DELAY_SAMPLES],
    next: usize,
    round_least: Option<Duration>,
    /// The least of a round in the present cruise, and in the last: where a path delays packets that
    /// follow each other closely, this lies above the least round trip without any queue.
    cruise: Option<Duration>,
    last_cruise: Option<Duration>,
    variance: Duration,
    /// The round trip's deviation while cruising, where no probe of ours moves it.
    usual: Option<Duration>,
    /// What no round trip of a round was without beyond the least in PROBE_RTT, when the path was not full.
    lift: Duration,
    in_probe_rtt: bool,
}

impl DelayGauge {
    pub(super) fn add(&mut self, rtt: Duration, variance: Duration) {
        self.recent[self.next] = rtt;
        self.next = (self.next + 1) % DELAY_SAMPLES;
        self.round_least = Some(self.round_least.map_or(rtt, |least| least.min(rtt)));
        self.variance = variance;
    }

    /// The least of a handful of round trips lies above what cruising showed by more than jitter.
    pub(super) fn shows_queue(&self, min_rtt: Duration) -> bool {
        let least = self.recent.iter().min().copied().unwrap_or_default();
        let empty = match (self.cruise, self.last_cruise) {
            (Some(cruise), Some(last)) => cruise.min(last),
            (cruise, last) => cruise.or(last).unwrap_or(min_rtt),
        };
        least > empty + (min_rtt / QUEUE_PART).max(QUEUE_FLOOR).max(self.jitter())
    }

    /// The least of a handful of round trips is this long.
    pub(super) fn stands_at_least(&self, rtt: Duration) -> bool {
        self.recent.iter().min().is_some_and(|least| *least >= rtt)
    }

    /// The round trip's mean deviation, queues of our own included.
    pub(super) fn deviation(&self) -> Duration {
        self.variance
    }

    /// What jitter alone may raise the least of several round trips by.
    pub(super) fn jitter(&self) -> Duration {
        self.deviation_usual() * JITTER_DEVIATIONS
    }

    fn deviation_usual(&self) -> Duration {
        self.usual.unwrap_or(self.variance)
    }

    /// What jitter may lift all round trips of a round by at most, where packets keep their order and wait for a delayed
    /// one.
    pub(super) fn held(&self) -> Duration {
        self.deviation_usual() * LIFT_DEVIATIONS
    }

    /// What it was seen to lift them by.
    pub(super) fn lift(&self) -> Duration {
        self.lift.min(self.held())
    }

    /// A round ended. The first one of PROBE_RTT still has what those before it left.
    fn learn_lift(&mut self, delay: Duration, state: State) {
        let probed = std::mem::replace(&mut self.in_probe_rtt, state == State::ProbeRtt);
        if self.in_probe_rtt {
            self.lift = if probed { self.lift.min(delay) } else { delay };
        }
    }

    /// The delay above `min_rtt` that no round trip of the round was without, but for what jitter makes; a new round
    /// starts.
    pub(super) fn end_round(&mut self, min_rtt: Duration, state: State) -> Duration {
        let Some(least) = self.round_least.take() else {
            return Duration::ZERO;
        };
        self.learn_lift(least.saturating_sub(min_rtt), state);
        if state == State::Cruise {
            self.usual = Some((self.deviation_usual() * 7 + self.variance) / 8);
            self.cruise = Some(self.cruise.map_or(least, |cruise| cruise.min(least)));
        } else if let Some(cruise) = self.cruise.take() {
            self.last_cruise = Some(cruise);
        }
        least.saturating_sub(min_rtt + self.lift())
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

    pub(super) fn add_lost(&mut self, now: Time, bytes: ByteCount, total: ByteCount, rtt: Duration) {
        let (last, _) = self.history[(self.next + LOSS_HISTORY - 1) % LOSS_HISTORY];
        if now >= last + rtt / LOSS_PART {
            // What each entry holds is what was lost before it.
            self.history[self.next] = (now, total - bytes);
            self.next = (self.next + 1) % LOSS_HISTORY;
        }
        self.total = total;
        self.round_lost += bytes;
    }

    /// What was lost since a packet was sent, but for what came together with losses before it.
    pub(super) fn lost_since(&self, sent_at: Time) -> ByteCount {
        let before = self.history.iter().filter(|(at, _)| *at > sent_at).map(|(_, before)| *before).min();
        before.map_or(ByteCount::ZERO, |before| self.total - before)
    }

    /// The round ends; while cruising, and not beside a queue, it teaches the path's own loss.
    pub(super) fn end_round(&mut self, state: State, queued: bool) {
        if state == State::Cruise && !queued {
            self.baseline_lost += self.round_lost;
            self.baseline_sent += self.round_lost + self.round_acked;
            if self.baseline_sent > BASELINE_MEMORY {
                self.baseline_lost = ByteCount(self.baseline_lost.0 / 2);
                self.baseline_sent = ByteCount(self.baseline_sent.0 / 2);
            }
        }
        self.forget_round();
    }

    /// The round's losses were none.
    pub(super) fn forgive(&mut self) {
        self.round_lost = ByteCount::ZERO;
        self.in_round = false;
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
