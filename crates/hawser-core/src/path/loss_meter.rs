//! The share of packets that a path loses, smoothed, once with a long and once with a short memory; and whether a spell
//! of loss was none at all.

use crate::units::Time;
use std::time::Duration;

/// Weight of one packet: the meter forgets over about this many packets.
const MEMORY_PACKETS: f64 = 1_000.0;

/// The same of the average that repair symbols follow: at 200 packets a second it rises within a second or two.
const SHORT_MEMORY_PACKETS: f64 = 200.0;
/// What a path is taken to lose before anything is known of it: repairs would come too late for the first losses.
const PRIOR: f64 = 0.02;

/// Moving averages of loss. The long one is zero at first, the short one careful; one path owns it.
#[derive(Copy, Clone, Debug)]
pub struct LossMeter {
    share: f64,
    recent: f64,
    acked: u64,
    lost: u64,
}

impl Default for LossMeter {
    fn default() -> Self {
        LossMeter { share: 0.0, recent: PRIOR, acked: 0, lost: 0 }
    }
}

impl LossMeter {
    /// A packet arrived.
    pub fn on_acked(&mut self) {
        self.acked += 1;
        self.share -= self.share / MEMORY_PACKETS;
        self.recent -= self.recent / SHORT_MEMORY_PACKETS;
    }

    /// A packet was lost; `typical`: of what the path loses when nobody looks for its rate.
    pub fn on_lost(&mut self, typical: bool) {
        self.lost += 1;
        if typical {
            self.share += (1.0 - self.share) / MEMORY_PACKETS;
        }
        self.recent += (1.0 - self.recent) / SHORT_MEMORY_PACKETS;
    }

    /// The share, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Packets that arrived, and packets declared lost, since the path began or began again.
    pub fn counts(&self) -> (u64, u64) {
        (self.acked, self.lost)
    }

    /// The larger of the two averages: what one does well to be ready for.
    pub fn to_expect(&self) -> f64 {
        self.share.max(self.recent)
    }
}

/// The packets declared lost within one round trip of each other. Empty at first; one path owns it.
#[derive(Copy, Clone, Debug, Default)]
pub struct LossEpisode {
    lost: u32,
    spurious: u32,
    latest: Time,
}

impl LossEpisode {
    /// Packets were declared lost; a new episode if the last loss is a round trip ago.
    pub fn on_lost(&mut self, now: Time, packets: u32, round_trip: Duration) {
        if now.since(self.latest) > round_trip {
            *self = LossEpisode::default();
        }
        self.lost += packets;
        self.latest = now;
    }

    /// Packets declared lost arrived after all; true when thereby nothing of the episode was lost
    /// (as RFC 4015: only then is the response undone).
    pub fn on_spurious(&mut self, packets: u32) -> bool {
        self.spurious += packets;
        let none = packets > 0 && self.spurious >= self.lost;
        if none {
            *self = LossEpisode { latest: self.latest, ..LossEpisode::default() };
        }
        none
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_spurious_only_when_all_of_it_arrived() {
        let (now, round_trip) = (Time::from_nanos(1_000_000_000), Duration::from_millis(20));
        let mut episode = LossEpisode::default();
        episode.on_lost(now, 2, round_trip);
        assert!(!episode.on_spurious(1));
        assert!(episode.on_spurious(1));
        episode.on_lost(now + round_trip * 2, 2, round_trip);
        assert!(!episode.on_spurious(1));
        episode.on_lost(now + round_trip * 4, 1, round_trip);
        assert!(episode.on_spurious(1), "the last episode's loss is not this one's");
    }

    #[test]
    fn one_loss_in_a_hundred_is_one_per_cent() {
        let mut meter = LossMeter::default();
        for packet in 0..20_000 {
            if packet % 100 == 0 { meter.on_lost(true) } else { meter.on_acked() }
        }
        assert!((meter.share() - 0.01).abs() < 0.001, "{}", meter.share());
        assert_eq!(meter.counts(), (19_800, 200));
    }

    #[test]
    fn what_is_to_be_expected_rises_at_once_and_is_forgotten_within_a_thousand_packets() {
        let mut meter = LossMeter::default();
        assert!(meter.to_expect() > 0.01, "nobody knows yet");
        (0..1_000).for_each(|_| meter.on_acked());
        assert!(meter.to_expect() < 0.0005, "{}", meter.to_expect());
        meter.on_lost(false);
        assert!(meter.to_expect() >= 0.005 && meter.share() == 0.0, "{}", meter.to_expect());
        for packet in 0..400 {
            if packet % 20 == 0 { meter.on_lost(false) } else { meter.on_acked() }
        }
        assert!((0.035..0.06).contains(&meter.to_expect()), "{}", meter.to_expect());
    }
}
