//! How much reordering a path is granted before a packet is lost: RFC 9002's thresholds at first,
//! raised by every loss that was none (after RFC 8985 section 6.2), halved where none is seen for long.

use crate::congestion::RttSnapshot;
use crate::path::constants::{
    GRANULARITY, MAX_PACKET_THRESHOLD, MAX_REORDER_WAIT, PACKET_THRESHOLD, REORDER_EIGHTHS, REORDER_PERSIST_EPISODES,
    REORDER_STEP,
};
use crate::units::Time;
use std::time::Duration;

/// The thresholds of one path. Three packets and 9/8 of a round trip at first. A part of `SentPackets`.
#[derive(Clone, Debug)]
pub(super) struct Reordering {
    packet_threshold: u64,
    /// How old packets were that came after they had been taken for lost by time.
    late: Duration,
    /// The largest distance seen since the last decay, in packets, and the age of the oldest packet that was overtaken.
    seen: u64,
    seen_age: Duration,
    /// Loss episodes since then; one begins with the loss of a packet sent after the last one began.
    episodes: u32,
    episode_at: Option<Time>,
}

impl Default for Reordering {
    fn default() -> Self {
        let (late, seen_age) = (Duration::ZERO, Duration::ZERO);
        Reordering { packet_threshold: PACKET_THRESHOLD, late, seen: 0, seen_age, episodes: 0, episode_at: None }
    }
}

impl Reordering {
    /// How many packets ahead the largest acknowledged one must be.
    pub(super) fn packet_threshold(&self) -> u64 {
        self.packet_threshold
    }

    /// How long ago a packet must have been sent that a later one overtook.
    pub(super) fn loss_delay(&self, rtt: &RttSnapshot) -> Duration {
        let round_trip = rtt.latest.max(rtt.smoothed);
        let first = (round_trip * (REORDER_UNIT + REORDER_EIGHTHS) / REORDER_UNIT).max(GRANULARITY);
        first.max(self.late.min(round_trip + MAX_REORDER_WAIT))
    }

    /// A packet arrived, so old, that the largest acknowledged number was `ahead` of; `spurious`: it was taken for lost.
    pub(super) fn on_overtaken(&mut self, ahead: u64, age: Duration, spurious: bool) {
        (self.seen, self.seen_age) = (self.seen.max(ahead), self.seen_age.max(age));
        if spurious {
            let needed = ahead.saturating_add(1).min(MAX_PACKET_THRESHOLD);
            self.packet_threshold = self.packet_threshold.max(needed);
        }
    }

    /// A packet sent at `sent_at` was taken for lost by time, after `waited`, and arrived: the wait grows.
    pub(super) fn on_late(&mut self, now: Time, sent_at: Time, waited: Duration) {
        let lacked = now.since(sent_at).saturating_sub(waited);
        self.late = self.late.max(waited + lacked / REORDER_STEP + GRANULARITY);
    }

    /// Packets were lost, the newest sent at `sent_at`.
    pub(super) fn on_losses(&mut self, now: Time, sent_at: Time) {
        if self.episode_at.is_some_and(|began| sent_at <= began) {
            return;
        }
        self.episode_at = Some(now);
        self.episodes += 1;
        if self.episodes < REORDER_PERSIST_EPISODES {
            return;
        }
        let still_needed = self.seen.saturating_add(1).min(MAX_PACKET_THRESHOLD);
        let halved = (self.packet_threshold / 2).max(PACKET_THRESHOLD);
        self.packet_threshold = self.packet_threshold.min(halved.max(still_needed));
        self.late = self.late.min((self.late / 2).max(self.seen_age));
        (self.episodes, self.seen, self.seen_age) = (0, 0, Duration::ZERO);
    }
}

/// Eighths in a whole.
const REORDER_UNIT: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a packet that came in good time.
    const AGE: Duration = Duration::from_millis(81);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn delay_ms(reordering: &Reordering) -> u128 {
        let rtt = Duration::from_millis(80);
        let snapshot =
            RttSnapshot { latest: rtt, smoothed: rtt, variance: Duration::ZERO, min: rtt, spread: Duration::ZERO };
        reordering.loss_delay(&snapshot).as_millis()
    }

    /// This many loss episodes, each a second after the other.
    fn episodes(reordering: &mut Reordering, from_ms: u64, count: u64) {
        for i in 0..count {
            let sent_ms = from_ms + i * 1_000;
            reordering.on_losses(at(sent_ms + 100), at(sent_ms));
            reordering.on_losses(at(sent_ms + 110), at(sent_ms + 50));
        }
    }

    #[test]
    fn it_starts_as_rfc_9002() {
        let reordering = Reordering::default();
        assert_eq!(reordering.packet_threshold(), 3);
        assert_eq!(delay_ms(&reordering), 90);
    }

    #[test]
    fn a_spurious_loss_raises_the_packet_threshold_beyond_it() {
        let mut reordering = Reordering::default();
        reordering.on_overtaken(10, AGE, false);
        assert_eq!(reordering.packet_threshold(), 3, "it was not lost");
        reordering.on_overtaken(10, AGE, true);
        assert_eq!(reordering.packet_threshold(), 11);
        reordering.on_overtaken(5, AGE, true);
        assert_eq!(reordering.packet_threshold(), 11);
        reordering.on_overtaken(u64::MAX, AGE, true);
        assert_eq!(reordering.packet_threshold(), MAX_PACKET_THRESHOLD);
    }

    #[test]
    fn the_wait_grows_by_half_of_what_was_lacking_up_to_a_bound() {
        let mut reordering = Reordering::default();
        reordering.on_late(at(1_130), at(1_000), Duration::from_millis(90));
        assert_eq!(delay_ms(&reordering), 111);
        reordering.on_late(at(1_095), at(1_000), Duration::from_millis(90));
        assert_eq!(delay_ms(&reordering), 111, "less was lacking");
        for _ in 0..10 {
            reordering.on_late(at(2_000), at(1_000), Duration::from_millis(90));
        }
        assert_eq!(delay_ms(&reordering), 80 + 250);
    }

    #[test]
    fn sixteen_episodes_without_reordering_halve_both() {
        let mut reordering = Reordering::default();
        reordering.on_overtaken(99, AGE, true);
        reordering.on_late(at(130), at(0), Duration::from_millis(90));
        episodes(&mut reordering, 1_000, 16);
        assert_eq!(reordering.packet_threshold(), 100, "it was seen in these");
        episodes(&mut reordering, 20_000, 15);
        assert_eq!(reordering.packet_threshold(), 100);
        episodes(&mut reordering, 40_000, 1);
        assert_eq!(reordering.packet_threshold(), 50);
        assert_eq!(delay_ms(&reordering), 90);
        episodes(&mut reordering, 60_000, 16 * 10);
        assert_eq!(reordering.packet_threshold(), PACKET_THRESHOLD);
    }

    #[test]
    fn reordering_still_seen_keeps_what_it_needs() {
        let mut reordering = Reordering::default();
        reordering.on_overtaken(99, AGE, true);
        episodes(&mut reordering, 0, 16);
        reordering.on_overtaken(79, AGE, false);
        episodes(&mut reordering, 20_000, 16);
        assert_eq!(reordering.packet_threshold(), 80);
    }

    #[test]
    fn the_wait_shrinks_to_what_is_still_needed() {
        let mut reordering = Reordering::default();
        reordering.on_late(at(1_500), at(1_000), Duration::from_millis(90));
        assert_eq!(delay_ms(&reordering), 90 + 205 + 1);
        let mut delays = Vec::new();
        for round in 1..4 {
            reordering.on_overtaken(1, Duration::from_millis(100), false);
            episodes(&mut reordering, round * 20_000, 16);
            delays.push(delay_ms(&reordering));
        }
        assert_eq!(delays, [148, 100, 100], "one packet a little late is no reason to wait for long");
    }
}
