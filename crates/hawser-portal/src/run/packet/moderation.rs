//! How long the thread leaves packets be while there are many: as network cards moderate their interrupts.
//!
//! Woken for each burst, the thread costs whoever wakes it more than its packets do, and it hands the host many small
//! super-packets. Above a rate it therefore sleeps for a moment without listening, and finds more at once; for longer
//! while a batch of full packets takes longer to come. Below the rate, which
//! is where one waits for a single packet, nothing changes.

use std::time::Duration;

use hawser_core::units::Time;

/// The rate is taken over so long.
const WINDOW: Duration = Duration::from_millis(1);
/// From this many packets in a window on: 10,000 a second, or 110 Mbit/s of full ones.
const LEAST: u64 = 10;
/// How long packets are left be. Most network cards let 50 to 250 µs pass between interrupts under load; measured here:
/// 100 µs bring half of what 200 do, 300 no more, and 500 less (docs/results/tuning.md).
const REST: Duration = Duration::from_micros(200);
/// From this many bytes in a window on, 100 Mbit/s, it is no conversation, in which each waits for the other's few
/// bytes.
const BULK: u64 = 12_500;
/// Of bulk, a round should find this many packets, ...
const BATCH: u32 = 8;
/// ... but they are not left be for longer: measured with 150 Mbit/s, this brings most of what longer ones do.
const LONG_REST: Duration = Duration::from_micros(400);

/// Whether there are many packets. Few at first; the packet thread owns it.
#[derive(Debug)]
pub struct Moderation {
    since: Time,
    packets: u64,
    bytes: u64,
    rest: Option<Duration>,
}

impl Moderation {
    /// Few packets, at first.
    pub const fn new() -> Self {
        Self { since: Time::ZERO, packets: 0, bytes: 0, rest: None }
    }

    /// This many packets were received or read, of this many bytes in all.
    pub const fn count(&mut self, packets: usize, bytes: usize) {
        self.packets += packets as u64;
        self.bytes += bytes as u64;
    }

    /// How long to leave packets be, at the end of a round in which there were none left.
    pub fn rest(&mut self, now: Time) -> Option<Duration> {
        let window = now.since(self.since);
        if window >= WINDOW {
            self.rest = self.measured(window);
            (self.since, self.packets, self.bytes) = (now, 0, 0);
        }
        self.rest
    }

    /// By what came in a window just ended.
    fn measured(&self, window: Duration) -> Option<Duration> {
        let at_least =
            |came: u64, least: u64| u128::from(came) * WINDOW.as_nanos() >= u128::from(least) * window.as_nanos();
        let batch = || window * BATCH / u32::try_from(self.packets).unwrap_or(u32::MAX);
        let rest = || if at_least(self.bytes, BULK) { batch().clamp(REST, LONG_REST) } else { REST };
        at_least(self.packets, LEAST).then(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_packets_for_a_while_are_left_be() {
        let mut moderation = Moderation::new();
        for (micros, packets, bytes, rest, name) in [
            (1_000_000, 5, 7_000, None, "the first after long"),
            (1_000_100, 30, 40_000, None, "a burst, so far"),
            (1_001_100, 0, 0, Some(293), "30 in a window: until 8 more came"),
            (1_001_400, 1, 1_400, Some(293), "until the next window ends"),
            (1_002_200, 1, 1_400, None, "few again"),
            (1_003_200, 10, 1_000, Some(200), "just enough, of little"),
            (1_004_200, 10, 14_000, Some(400), "just enough, of much"),
            (1_005_200, 600, 840_000, Some(200), "more than a batch at a time"),
            (2_005_200, 500, 700_000, None, "500 in a second are few"),
        ] {
            moderation.count(packets, bytes);
            let found = moderation.rest(Time::from_nanos(micros * 1_000));
            assert_eq!(found.map(|rest| rest.as_micros()), rest, "{name}");
        }
    }
}
