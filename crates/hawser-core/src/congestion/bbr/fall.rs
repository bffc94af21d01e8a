//! A path's rate has fallen under a sender that stops and starts.
//!
//! A scheduler that leaves a path alone while much is queued on it makes every sample a limited one, and limited
//! samples say nothing to the draft. But while packets leave a queue, one behind the other, they come at the path's
//! rate, whoever sent how much:
//!
//! 1. A packet that waited for longer than the gap before it was in the queue when the one before left: the path was
//!    busy.
//! 2. Over a *span* of such packets two rates are known: that of sending and that of arrival.
//! 3. Sent as the model says, arrived with far less: once is chance, several times, with no better sample between, a
//!    fall.

use super::model::Sample;
use crate::units::{ByteCount, Rate, Time};
use std::time::Duration;

/// Waiting, above the least round trip, that is a queue: its part of it, and the least (as `signals::STANDING_PART`).
const QUEUE_PART: u32 = 4;
/// See `QUEUE_PART`.
const QUEUE_FLOOR: Duration = Duration::from_millis(3);
/// A span lasts for one least round trip, and for this long: clumps of acknowledgements blur less.
const SPAN: Duration = Duration::from_millis(25);
/// And for this many of its longest gaps: a link that rests for a while, then passes all at once, has not fallen.
const SPAN_GAPS: u32 = 4;
/// Arriving at less than this part of the model's rate is no longer the same path.
const FALLEN: f64 = 0.6;
/// Sent with at least this part of it: less says nothing. Down sends with 0.75 of it, less the margin.
const SENT: f64 = 0.7;
/// Spans that must agree, and how long they take together at least.
const SPANS: u32 = 3;
/// See `SPANS`.
const SPANS_TIME: Duration = Duration::from_millis(100);

/// The span at hand, and what those before it said. Empty at first; one controller owns it.
#[derive(Clone, Debug, Default)]
pub(super) struct Fall {
    began: Time,
    began_sent: Time,
    bytes: ByteCount,
    longest_gap: Duration,
    latest: Time,
    /// Spans that saw a fall, since when, and the best rate among them.
    spans: u32,
    since: Time,
    best: Rate,
}

impl Fall {
    /// The rate that the path has fallen to, once that is sure.
    pub(super) fn on_sample(&mut self, sample: &Sample, least: Duration, model: Rate) -> Option<Rate> {
        if sample.rate >= model.scale(FALLEN) {
            self.spans = 0;
        }
        let gap = sample.now.since(std::mem::replace(&mut self.latest, sample.now));
        self.bytes += sample.newly_acked;
        self.longest_gap = self.longest_gap.max(gap);
        let waited = sample.rtt?.saturating_sub(least);
        if waited < gap || waited < (least / QUEUE_PART).max(QUEUE_FLOOR) {
            self.begin(sample);
            return None;
        }
        let arriving = sample.now.since(self.began);
        if arriving < least.max(SPAN).max(self.longest_gap * SPAN_GAPS) {
            return None;
        }
        let sending = sample.sent_at.since(self.began_sent);
        let (sent, came) = (Rate::of(self.bytes, sending), Rate::of(self.bytes, arriving));
        let began = self.began;
        self.begin(sample);
        if came >= model.scale(FALLEN) {
            self.spans = 0;
        } else if sent >= model.scale(SENT) {
            return self.add(began, sample.now, came);
        }
        None
    }

    fn begin(&mut self, sample: &Sample) {
        (self.began, self.began_sent) = (sample.now, sample.sent_at);
        (self.bytes, self.longest_gap) = (ByteCount::ZERO, Duration::ZERO);
    }

    fn add(&mut self, began: Time, now: Time, came: Rate) -> Option<Rate> {
        if self.spans == 0 {
            (self.since, self.best) = (began, Rate::ZERO);
        }
        self.spans += 1;
        self.best = self.best.max(came);
        let sure = self.spans >= SPANS && now.since(self.since) >= SPANS_TIME;
        sure.then(|| {
            self.spans = 0;
            self.best
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least round trip, and the model's rate, bytes a second: 50 Mbit/s.
    const LEAST: Duration = Duration::from_millis(20);
    const MODEL: u64 = 6_250_000;
    const PACKET: u64 = 1_250;
    /// A burst of the sender; what follows it is silence.
    const BURST: u64 = 200;

    /// A path, and how it is used: bursts of 200 packets at `pace`, one every `every`.
    struct Road {
        carries: u64,
        pace: u64,
        every: Duration,
        /// The other traffic's queue grows by this part of the time, for two seconds.
        others: f64,
        /// Nothing passes for so long, ten times a second; what waits then passes at once.
        stalls: Duration,
    }

    const HALVED: Road = Road {
        carries: MODEL / 2,
        pace: MODEL,
        every: Duration::from_millis(110),
        others: 0.0,
        stalls: Duration::ZERO,
    };

    /// When a fall was seen, if one was within two seconds, and to which rate.
    fn fall_of(road: &Road) -> Option<(Duration, Rate)> {
        let (mut fall, start) = (Fall::default(), Time::from_nanos(1_000_000_000));
        let (passing, tenth) = (Rate(road.carries).time_for(ByteCount(PACKET)), Duration::from_millis(100));
        let mut free = start;
        for packet in 0..u64::MAX {
            let in_burst = Rate(road.pace).time_for(ByteCount(PACKET * (packet % BURST)));
            let after = road.every * (packet / BURST) as u32 + in_burst;
            if after > Duration::from_secs(2) {
                break;
            }
            let sent_at = start + after;
            free = free.max(sent_at + after.mul_f64(road.others)) + passing;
            let tenths = free.since(start).as_nanos() / tenth.as_nanos();
            let released = start + tenth * tenths as u32 + road.stalls;
            let now = free.max(released) + LEAST;
            let sample = Sample {
                received_at: now,
                now,
                sent_at,
                rate: Rate(road.carries / 2),
                limited: true,
                prior_delivered: ByteCount::ZERO,
                delivered: ByteCount::ZERO,
                lost: ByteCount::ZERO,
                tx_in_flight: ByteCount::ZERO,
                newly_acked: ByteCount(PACKET),
                in_flight: ByteCount::ZERO,
                total_delivered: ByteCount::ZERO,
                rtt: Some(now.since(sent_at)),
                back: Duration::ZERO,
                smoothed_rtt: now.since(sent_at),
            };
            if let Some(rate) = fall.on_sample(&sample, LEAST, Rate(MODEL)) {
                return Some((after, rate));
            }
        }
        None
    }

    #[test]
    fn a_rate_that_halves_under_bursts_is_known_within_half_a_second() {
        let (after, rate) = fall_of(&HALVED).expect("a fall");
        assert!(after < Duration::from_millis(500), "{after:?}");
        assert!((MODEL * 48 / 100..MODEL * 52 / 100).contains(&rate.0), "{rate:?}");
    }

    #[test]
    fn what_is_no_fall_is_not_taken_for_one() {
        for (name, road) in [
            ("the rate is as it was", Road { carries: MODEL, ..HALVED }),
            ("a third less", Road { carries: MODEL * 2 / 3, ..HALVED }),
            ("a sparse flow behind a queue of others that grows", Road { pace: MODEL / 20, others: 0.5, ..HALVED }),
            ("as much was sent as came", Road { pace: MODEL / 2, ..HALVED }),
            (
                "the link rests for 50 ms, ten times a second",
                Road { carries: MODEL, stalls: Duration::from_millis(50), ..HALVED },
            ),
        ] {
            assert_eq!(fall_of(&road), None, "{name}");
        }
    }
}
