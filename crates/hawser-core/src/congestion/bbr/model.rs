//! The parts of BBR's model of the path: small filters, each of one quantity.

use super::super::AckEvent;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// How long a least round trip stands before PROBE_RTT (draft section 2.16.2, BBR.ProbeRTTInterval).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// How long a least round trip counts (draft section 2.16.1, BBR.MinRTTFilterLen).
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// A round trip within this part of the least shows an empty queue too (`Departures::renewal`): batches blur as much.
const RENEWAL_PART: u32 = 16;
/// Rounds that extra acknowledged bytes are remembered (draft section 2.12, BBR.ExtraAckedFilterLen).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Growth that shows that the pipe is not full (draft section 5.3.1.2).
pub(crate) const FULL_PIPE_GROWTH: f64 = 1.25;
/// The same behind a queue, or beside losses.
const QUEUE_GROWTH: f64 = 1.05;
/// Rounds without such growth that show that it is (draft section 5.3.1.2).
const FULL_PIPE_ROUNDS: u32 = 3;

/// One acknowledgement, as BBR needs it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Sample {
    pub(super) now: Time,
    pub(super) received_at: Time,
    pub(super) sent_at: Time,
    pub(super) rate: Rate,
    pub(super) limited: bool,
    pub(super) prior_delivered: ByteCount,
    pub(super) delivered: ByteCount,
    pub(super) lost: ByteCount,
    pub(super) tx_in_flight: ByteCount,
    pub(super) newly_acked: ByteCount,
    pub(super) in_flight: ByteCount,
    pub(super) total_delivered: ByteCount,
    /// The round trip, without what waited on the way back.
    pub(super) rtt: Option<Duration>,
    /// That.
    pub(super) back: Duration,
    pub(super) smoothed_rtt: Duration,
}

impl Sample {
    /// `None` when the frame acknowledged nothing new. What was sent before `limited_until` bytes
    /// were delivered counts as limited.
    pub(super) fn of(ack: &AckEvent, limited_until: ByteCount) -> Option<Sample> {
        let rate = ack.rate?;
        Some(Sample {
            now: ack.now,
            received_at: ack.received_at,
            sent_at: ack.largest_sent_at,
            rate: rate.rate,
            limited: rate.app_limited || rate.prior_delivered < limited_until,
            prior_delivered: rate.prior_delivered,
            delivered: rate.delivered,
            lost: rate.lost,
            tx_in_flight: rate.tx_in_flight,
            newly_acked: ack.acked,
            in_flight: ack.in_flight,
            total_delivered: ack.delivered,
            rtt: ack.round_trip,
            back: ack.round_trip.map_or(Duration::ZERO, |there| ack.rtt.latest.saturating_sub(there)),
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
    /// Everything that there was had been sent at a moment of this round, and of the last.
    pub(super) emptied: bool,
    last_emptied: bool,
}

impl Rounds {
    pub(super) fn update(&mut self, sample: &Sample) {
        self.started = sample.prior_delivered >= self.next_delivered;
        if self.started {
            self.restart(sample.total_delivered);
            self.count += 1;
            self.since_probe += 1;
            self.last_window_limited = std::mem::take(&mut self.window_limited);
            self.last_emptied = std::mem::take(&mut self.emptied);
        }
    }

    /// The round ends when what is sent from now on is acknowledged.
    pub(super) fn restart(&mut self, delivered: ByteCount) {
        self.next_delivered = delivered;
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.window_limited || self.last_window_limited
    }

    pub(super) fn is_emptied(&self) -> bool {
        self.emptied || self.last_emptied
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

    /// What was known is of a path that is no more.
    pub(super) fn replace(&mut self, rate: Rate) {
        *self = MaxBandwidth { current: rate, previous: Rate::ZERO };
    }

    /// A cycle ends. One without a sample tells nothing, and forgets nothing.
    pub(super) fn advance(&mut self) {
        if self.current > Rate::ZERO {
            self.previous = std::mem::take(&mut self.current);
        }
    }
}

/// What the last round delivered (draft section 2.10), and where the loss round ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Latest {
    pub(super) bw: Rate,
    pub(super) inflight: ByteCount,
    pub(super) round_delivered: ByteCount,
    pub(super) round_started: bool,
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

    /// `renewal`: a round trip near the least stands for it.
    pub(super) fn update(&mut self, now: Time, rtt: Duration, renewal: bool) {
        let (recent, stamp) = *self.recent.get_or_insert((rtt, now));
        self.expired = now > stamp + PROBE_RTT_INTERVAL;
        if rtt < recent || self.expired {
            self.recent = Some((rtt, now));
        } else if renewal && rtt <= recent + recent / RENEWAL_PART {
            self.recent = Some((recent, now));
        }
        let (recent, recent_at) = self.recent.expect("set above");
        let stale = self.least.is_none_or(|(least, at)| recent < least || now > at + MIN_RTT_FILTER);
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

    pub(super) fn update(&mut self, sample: &Sample, bw: Rate, window: ByteCount, rounds: &Rounds, full: bool) {
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
    /// A queue stood in this round.
    queued: bool,
    /// The most bandwidth when the last round ended, and whether that one brought no more.
    before: Rate,
    stalled: bool,
}

impl FullPipe {
    /// `stands`: there is a queue, at a most bandwidth of `most`. Tells whether a round ended in which
    /// one stood, without growth since the round before. Limited rounds count too.
    pub(super) fn on_queue(&mut self, stands: bool, most: Rate, round_started: bool) -> bool {
        self.queued |= stands;
        if !round_started {
            return false;
        }
        self.stalled = most < self.before.scale(QUEUE_GROWTH);
        self.before = most;
        std::mem::replace(&mut self.queued, stands) && self.stalled
    }

    pub(super) fn reset(&mut self, baseline: Rate) {
        self.baseline = baseline;
        self.count = 0;
        self.now = false;
    }

    /// A round at least brought no such growth, or the last one nearly none.
    pub(super) fn has_stalled(&self) -> bool {
        self.count > 0 || self.stalled
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
