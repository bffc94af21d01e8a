//! The share of packets that a path loses, smoothed; and whether a spell of loss was none at all.

use crate::units::Time;
use std::time::Duration;

/// Weight of one packet: the meter forgets over about so many packets.
const MEMORY_PACKETS: f64 = 1_000.0;

/// A moving average of loss. Zero at first; one path owns it.
#[derive(Copy, Clone, Debug, Default)]
pub struct LossMeter {
    share: f64,
}

impl LossMeter {
    /// A packet arrived.
    pub fn on_acked(&mut self) {
        self.share -= self.share / MEMORY_PACKETS;
    }

    /// A packet was lost.
    pub fn on_lost(&mut self) {
        self.share += (1.0 - self.share) / MEMORY_PACKETS;
    }

    /// The share, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
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
            if packet % 100 == 0 { meter.on_lost() } else { meter.on_acked() }
        }
        assert!((meter.share() - 0.01).abs() < 0.001, "{}", meter.share());
    }
}
