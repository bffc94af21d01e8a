//! How long the thread leaves packets be while there are many: as network cards moderate their interrupts.
//!
//! Woken for each burst, the thread costs whoever wakes it more than its packets do, and it hands the host many small
//! super-packets. Above a rate it therefore sleeps for a moment without listening, and finds more at once. Below the rate, which
//! is where one waits for a single packet, nothing changes.

use std::time::Duration;

use hawser_core::units::Time;

/// The rate is taken over so long.
const WINDOW: Duration = Duration::from_millis(1);
/// From so many packets in a window on: 10,000 a second, or 110 Mbit/s of full ones.
const LEAST: usize = 10;
/// How long packets are left be. Most network cards let 50 to 250 µs pass between interrupts under load; measured here: 100 µs
/// bring half of what 200 do, 300 no more, and 500 less (docs/performance.md).
const REST: Duration = Duration::from_micros(200);

/// Whether there are many packets. Few at first; the packet thread owns it.
#[derive(Debug)]
pub struct Moderation {
    since: Time,
    packets: usize,
    many: bool,
}

impl Moderation {
    /// Few packets, at first.
    pub const fn new() -> Self {
        Self { since: Time::ZERO, packets: 0, many: false }
    }

    /// So many packets were received or read.
    pub fn count(&mut self, packets: usize) {
        self.packets += packets;
    }

    /// How long to leave packets be, at the end of a round in which there were none left.
    pub fn rest(&mut self, now: Time) -> Option<Duration> {
        let window = now.since(self.since);
        if window >= WINDOW {
            self.many = self.packets as u128 * WINDOW.as_nanos() >= LEAST as u128 * window.as_nanos();
            (self.since, self.packets) = (now, 0);
        }
        self.many.then_some(REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_packets_for_a_while_are_left_be() {
        let mut moderation = Moderation::new();
        for (micros, packets, rests, name) in [
            (1_000_000, 5, false, "the first after long"),
            (1_000_100, 30, false, "a burst, so far"),
            (1_001_100, 0, true, "30 in a window"),
            (1_001_400, 1, true, "until the next window ends"),
            (1_002_200, 1, false, "few again"),
            (1_003_200, 10, true, "just enough"),
            (2_003_200, 500, false, "500 in a second are few"),
        ] {
            moderation.count(packets);
            assert_eq!(moderation.rest(Time::from_nanos(micros * 1_000)).is_some(), rests, "{name}");
        }
    }
}
