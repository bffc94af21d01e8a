//! Round-trip times of one path (or of one pair of data path and ack path), as RFC 9002 section 5.

use super::constants::{
    AGE_FIRST, AGE_MEMORY, DEVIATION_MAX, GRANULARITY, LATE_FOR, MAX_ACK_DELAY, MIN_WINDOW, STALE_LEAST,
    STALE_ROUND_TRIPS, TOKEN_LIFE, USUAL_AGE, USUAL_AGE_PART,
};
use super::windowed::WindowedMin;
use crate::congestion::RttSnapshot;
use crate::units::Time;
use std::time::Duration;

/// Smoothed round trip, its deviation and its least over ten seconds. Before the first sample it
/// stands for the initial guess, with half of it as deviation. One path owns it.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    snapshot: RttSnapshot,
    min: WindowedMin,
    has_sample: bool,
    sampled_at: Time,
    /// When a challenge's answer last was overdue, and how long it took; none where a later one came in time.
    answered_late: Option<(Time, Duration)>,
    /// The smoothed age of packets when they are acknowledged, all of them, and its least: the round trip of an average
    /// packet.
    age: Duration,
    /// Frames that it was smoothed over, as far as it matters.
    aged: u32,
    least_age: WindowedMin,
    /// How much longer than the smoothed round trip the last acknowledgement took, where another path brought it.
    detour: Late,
    /// How long packets may wait for those of another session by the same link.
    ahead: Late,
}

/// How much later than they were acknowledgements may come for a second ([`LATE_FOR`]). Not at all by default; a plain
/// value.
#[derive(Copy, Clone, Debug, Default)]
struct Late {
    by: Duration,
    since: Time,
}

impl Late {
    fn expire(&mut self, now: Time) {
        if now.since(self.since) >= LATE_FOR {
            self.by = Duration::ZERO;
        }
    }
}

impl RttEstimator {
    /// Starts from a guess (RFC 9002 section 5.3).
    pub fn new(initial: Duration) -> Self {
        RttEstimator {
            snapshot: RttSnapshot {
                latest: initial,
                smoothed: initial,
                variance: initial / 2,
                min: initial,
                spread: Duration::ZERO,
            },
            min: WindowedMin::new(MIN_WINDOW),
            has_sample: false,
            sampled_at: Time::ZERO,
            answered_late: None,
            age: Duration::ZERO,
            aged: 0,
            least_age: WindowedMin::new(MIN_WINDOW),
            detour: Late::default(),
            ahead: Late::default(),
        }
    }

    /// Takes in the round trip `latest` of the largest newly acknowledged packet, whose
    /// acknowledgement the peer says it held back for `ack_delay` (believed up to [`MAX_ACK_DELAY`]).
    pub fn on_sample(&mut self, now: Time, latest: Duration, ack_delay: Duration) {
        self.detour.expire(now);
        self.ahead.expire(now);
        let nanos = i64::try_from(latest.as_nanos()).unwrap_or(i64::MAX);
        let min = Duration::from_nanos(self.min.record(now, nanos).unsigned_abs());
        self.snapshot.latest = latest;
        self.snapshot.min = min;
        let unheard = now.since(std::mem::replace(&mut self.sampled_at, now));
        let fresh = unheard < (latest * STALE_ROUND_TRIPS).max(STALE_LEAST);
        if !self.has_sample {
            self.has_sample = true;
            self.snapshot.smoothed = latest;
            self.snapshot.variance = latest / 2;
            return;
        }
        let ack_delay = ack_delay.min(MAX_ACK_DELAY);
        // A delay that would put the sample under the least is not the path's (section 5.3).
        let adjusted = if latest >= min + ack_delay { latest - ack_delay } else { latest };
        // Weights of RFC 6298 suppose a sample each round trip. A path that is asked once a second would keep for ten
        // seconds what a stall taught it, and nobody would use it meanwhile.
        if !fresh && adjusted < self.snapshot.smoothed {
            self.snapshot.smoothed = adjusted;
            self.snapshot.variance = self.snapshot.variance.min(adjusted / 2);
            return;
        }
        let deviation = self.snapshot.smoothed.abs_diff(adjusted);
        self.snapshot.variance = (self.snapshot.variance * 3 + deviation) / 4;
        self.snapshot.smoothed = (self.snapshot.smoothed * 7 + adjusted) / 8;
    }

    /// Takes in how long the answer to a challenge took, `overdue` or in time. One that is overdue may have been kept by
    /// an outage. Two that took about as long, soon after each other and with no sample between, are the round trip,
    /// which begins anew with the second: where it grew beyond what is waited for, nothing else would tell.
    pub fn on_answer(&mut self, now: Time, latest: Duration, overdue: bool) {
        let before = std::mem::replace(&mut self.answered_late, overdue.then_some((now, latest)));
        let Some((at, took)) = before.filter(|_| overdue) else { return };
        let alike = latest <= 2 * took && took <= 2 * latest;
        if alike && at > self.sampled_at && now.since(at) <= TOKEN_LIFE {
            self.snapshot.latest = latest;
            self.snapshot.smoothed = latest;
            self.snapshot.variance = latest / 2;
        }
    }

    /// Takes in the round trip of a packet whose acknowledgement came by another path: those of the next second may come
    /// that way too, and are not overdue before. It is no sample of this path. As deviation it counts for a second at
    /// most: what an outage kept says nothing of the next one.
    pub fn on_detour(&mut self, now: Time, latest: Duration) {
        let by = latest.saturating_sub(self.snapshot.smoothed).min(DEVIATION_MAX);
        self.detour = Late { by, since: now };
    }

    /// What another session has under way by the same link goes ahead of this one's packets: a queue that no sample of
    /// the next second may have seen.
    pub fn expect_ahead(&mut self, now: Time, queue: Duration) {
        self.ahead = Late { by: queue, since: now };
    }

    /// Takes in how old the packets were on the average that a frame newly acknowledged.
    pub fn on_ages(&mut self, now: Time, mean: Duration) {
        self.aged = (self.aged + 1).min(AGE_MEMORY);
        self.age = (self.age * (self.aged - 1) + mean) / self.aged;
        // The ages of a few packets are chance, and their least would stand for long.
        if self.aged < AGE_FIRST {
            return;
        }
        let least = self.least_age.record(now, i64::try_from(self.age.as_nanos()).unwrap_or(i64::MAX));
        let usual = self.snapshot.min + (self.snapshot.min / USUAL_AGE_PART).max(USUAL_AGE);
        self.snapshot.spread = Duration::from_nanos(least.unsigned_abs()).saturating_sub(usual);
    }

    /// What a controller sees.
    pub fn snapshot(&self) -> RttSnapshot {
        self.snapshot
    }

    /// How long after a packet its acknowledgement is overdue (RFC 9002 section 6.2.1), by the way that the last one
    /// came. But deviation counts for a round trip or a second at most: a packet that a link kept through an outage of
    /// 13 s would have the next outage be noticed after as long, and twice that.
    pub fn pto(&self, max_ack_delay: Duration) -> Duration {
        let RttSnapshot { smoothed, variance, .. } = self.snapshot;
        let deviation = (variance * 4).max(GRANULARITY).min(smoothed.max(DEVIATION_MAX));
        smoothed + deviation + max_ack_delay + self.detour.by.max(self.ahead.by)
    }

    /// Whether anything was measured yet.
    pub fn has_sample(&self) -> bool {
        self.has_sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::constants::INITIAL_RTT;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn sampled(samples: &[(u64, u64, u64)]) -> RttEstimator {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        for &(now, latest, delay) in samples {
            rtt.on_sample(Time::ZERO + ms(now), ms(latest), ms(delay));
        }
        rtt
    }

    #[test]
    fn a_path_that_is_asked_once_a_second_forgets_a_stall_with_the_next_answer() {
        for (every_ms, expected_ms) in [(1_000, 50), (100, 208)] {
            let steady = (0..100).map(|number| (number * every_ms, 50, 0));
            let samples: Vec<_> = steady.chain([(100 * every_ms, 1_500, 0), (101 * every_ms, 50, 0)]).collect();
            let smoothed = sampled(&samples).snapshot().smoothed.as_millis() as u64;
            assert!(smoothed.abs_diff(expected_ms) < 10, "{smoothed} ms where asked every {every_ms} ms");
        }
    }

    #[test]
    fn two_late_answers_with_no_sample_between_are_the_round_trip() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        rtt.on_answer(Time::ZERO + ms(5_000), ms(4_000), true);
        rtt.on_sample(Time::ZERO + ms(5_020), ms(20), ms(0));
        rtt.on_answer(Time::ZERO + ms(60_000), ms(4_000), true);
        assert_eq!(rtt.snapshot().smoothed, ms(20), "each was kept by an outage");
        for (at, took, overdue) in [(61_000, 30, false), (65_000, 4_000, true), (69_000, 9_000, true)] {
            rtt.on_answer(Time::ZERO + ms(at), ms(took), overdue);
            assert_eq!(rtt.snapshot().smoothed, ms(20), "one in time came between, or the last took half as long");
        }
        rtt.on_answer(Time::ZERO + ms(130_000), ms(9_000), true);
        assert_eq!(rtt.snapshot().smoothed, ms(20), "another minute's");
        rtt.on_answer(Time::ZERO + ms(134_500), ms(4_500), true);
        rtt.on_answer(Time::ZERO + ms(139_000), ms(4_000), true);
        assert_eq!((rtt.snapshot().smoothed, rtt.pto(ms(5))), (ms(4_000), ms(8_005)));
        rtt.on_sample(Time::ZERO + ms(150_000), ms(20), ms(0));
        assert_eq!(rtt.snapshot().smoothed, ms(20), "they were after all");
    }

    #[test]
    fn before_a_sample_the_guess_stands() {
        let rtt = RttEstimator::new(ms(100));
        assert!(!rtt.has_sample());
        assert_eq!(rtt.snapshot().smoothed, ms(100));
        assert_eq!(rtt.pto(ms(5)), ms(100 + 200 + 5));
    }

    #[test]
    fn the_first_sample_replaces_the_guess() {
        let rtt = sampled(&[(0, 20, 5)]);
        assert!(rtt.has_sample());
        let seen = rtt.snapshot();
        assert_eq!((seen.latest, seen.smoothed, seen.variance, seen.min), (ms(20), ms(20), ms(10), ms(20)));
    }

    #[test]
    fn a_believable_ack_delay_is_taken_off() {
        // smoothed 20; sample 28 less 4: 24, so 20 + 4/8; variance (30 + 4) / 4.
        let rtt = sampled(&[(0, 20, 0), (20, 28, 4)]);
        assert_eq!(rtt.snapshot().smoothed, Duration::from_micros(20_500));
        assert_eq!(rtt.snapshot().variance, Duration::from_micros(8_500));
    }

    #[test]
    fn an_acknowledgement_that_comes_round_by_another_path_is_awaited_as_long_as_the_last_one_took() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        rtt.on_detour(Time::ZERO, ms(75));
        assert_eq!((rtt.pto(ms(5)), rtt.snapshot().smoothed), (ms(20 + 40 + 5 + 55), ms(20)));
        rtt.on_detour(Time::ZERO, ms(15));
        assert_eq!(rtt.pto(ms(5)), ms(20 + 40 + 5), "it came before its own would have");
        rtt.on_detour(Time::ZERO, ms(75));
        rtt.on_sample(Time::ZERO + ms(20), ms(20), ms(0));
        assert_eq!(rtt.pto(ms(5)), ms(20 + 30 + 5 + 55), "one came by its own, and the next may come by the other");
        rtt.on_sample(Time::ZERO + LATE_FOR, ms(20), ms(0));
        assert_eq!(rtt.pto(ms(5)), Duration::from_micros(20_000 + 22_500 + 5_000), "they come by its own again");
        rtt.on_detour(Time::ZERO + LATE_FOR, ms(13_000));
        assert_eq!(rtt.pto(ms(5)), Duration::from_micros(20_000 + 22_500 + 5_000) + DEVIATION_MAX, "an outage kept it");
    }

    #[test]
    fn behind_another_sessions_packets_nothing_is_overdue_for_a_second() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        rtt.expect_ahead(Time::ZERO, ms(100));
        assert_eq!((rtt.pto(ms(5)), rtt.snapshot().smoothed), (ms(20 + 40 + 5 + 100), ms(20)));
        rtt.on_detour(Time::ZERO, ms(75));
        assert_eq!(rtt.pto(ms(5)), ms(20 + 40 + 5 + 100), "the longer of the two counts");
        rtt.on_sample(Time::ZERO + ms(999), ms(20), ms(0));
        assert_eq!(rtt.pto(ms(5)), ms(20 + 30 + 5 + 100));
        rtt.on_sample(Time::ZERO + ms(1_000), ms(20), ms(0));
        assert_eq!(rtt.pto(ms(5)), Duration::from_micros(20_000 + 22_500 + 5_000));
    }

    #[test]
    fn a_packet_that_an_outage_kept_does_not_have_the_next_one_noticed_as_late() {
        let kept = sampled(&[(0, 20, 0), (20, 20, 0), (13_000, 13_000, 0)]);
        let RttSnapshot { smoothed, variance, .. } = kept.snapshot();
        assert!(variance * 4 > ms(12_000), "{variance:?}");
        assert_eq!(kept.pto(ms(5)), smoothed * 2 + ms(5));
        let steady = sampled(&[(0, 20, 0), (20, 900, 0)]);
        assert_eq!(steady.pto(ms(5)), steady.snapshot().smoothed + steady.snapshot().variance * 4 + ms(5));
    }

    #[test]
    fn an_ack_delay_that_undercuts_the_least_is_ignored() {
        let rtt = sampled(&[(0, 20, 0), (20, 20, 4)]);
        assert_eq!(rtt.snapshot().smoothed, ms(20));
    }

    #[test]
    fn what_packets_take_beyond_the_least_is_the_paths_spread_once_enough_were_seen() {
        // The fastest of those that overtake each other take 10 ms, all of them 50 on the average.
        let mut rtt = sampled(&[(0, 10, 0)]);
        for frame in 1..u64::from(AGE_FIRST) {
            rtt.on_ages(Time::ZERO + ms(frame), ms(50));
            assert_eq!(rtt.snapshot().spread, Duration::ZERO);
        }
        rtt.on_ages(Time::ZERO + ms(40), ms(50));
        assert_eq!(rtt.snapshot().spread, ms(50) - ms(10) - Duration::from_micros(2_500));
        assert_eq!(rtt.snapshot().base(), Duration::from_micros(47_500));
    }

    #[test]
    fn a_queue_is_no_spread_and_neither_is_the_wait_for_an_acknowledgement() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        for frame in 0..200 {
            // Empty for half a second, with frames of up to a quarter of a round trip; then a queue of 100 ms.
            let age = if frame < 100 { 20 + frame % 5 } else { 120 };
            rtt.on_ages(Time::ZERO + ms(frame * 5), ms(age));
        }
        assert_eq!(rtt.snapshot().spread, Duration::ZERO);
    }

    #[test]
    fn a_lying_ack_delay_takes_off_no_more_than_the_largest() {
        let rtt = sampled(&[(0, 20, 0), (20, 100, 1_000_000)]);
        let expected = (ms(20) * 7 + (ms(100) - MAX_ACK_DELAY)) / 8;
        assert_eq!(rtt.snapshot().smoothed, expected);
    }

    #[test]
    fn the_least_forgets_a_faster_past() {
        let mut rtt = sampled(&[(0, 20, 0)]);
        for second in 1..30 {
            rtt.on_sample(Time::ZERO + ms(second * 1000), ms(80), ms(0));
        }
        assert_eq!(rtt.snapshot().min, ms(80));
    }

    #[test]
    fn a_steady_path_still_has_a_millisecond_of_slack() {
        let samples: Vec<_> = (0..200).map(|i| (i * 10, 10, 0)).collect();
        assert_eq!(sampled(&samples).pto(ms(0)), ms(11));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = RttEstimator::new(INITIAL_RTT);
        let ages = Duration::from_nanos(u64::MAX);
        rtt.on_sample(Time::NEVER, ages, ages);
        rtt.on_sample(Time::NEVER, ages, ages);
        assert!(rtt.pto(ages) > ages);
    }
}
