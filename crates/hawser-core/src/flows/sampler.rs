//! Which packets are looked at: each where there are few, a random sample where there are many (RFC 5475 section 5.2;
//! sFlow, RFC 3176). So counting costs the packet thread the same at any rate, less than a thousandth of it.

use crate::units::{Random, Time};
use std::time::Duration;

/// Looks a second, for each of what is counted: a look takes 100 to 200 ns, and a flow that has a tenth of the packets
/// is told within 14 per cent each second, 95 times of 100 (196 · sqrt(1 / looks): Phaal and Panchen, "Packet sampling
/// basics", 2003).
const MOST: f64 = 2_000.0;
/// How often the part that is looked at follows the rate.
const WINDOW: Duration = Duration::from_millis(100);

/// Says which packets to look at, and for how many each stands. It looks at each at first; its watch owns it.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// Packets up to the next look, that one included; never zero.
    left: u32,
    /// One of this many is looked at, in the mean.
    every: u32,
    /// Packets since then, by what the looks stood for.
    seen: u64,
    since: Time,
    /// The state of a generator that need not be a good one (xorshift64, Marsaglia 2003); never zero.
    draw: u64,
}

impl Sampler {
    pub(super) fn new(now: Time, rng: &mut dyn Random) -> Sampler {
        Sampler { left: 1, every: 1, seen: 0, since: now, draw: rng.next_u64() | 1 }
    }

    /// A packet is there: whether to look at it, and then to [`take`](Self::take) it.
    #[inline]
    pub(super) fn is_next(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// For how many packets this one stands.
    pub(super) fn take(&mut self, now: Time) -> u64 {
        let weight = u64::from(self.every);
        self.seen += weight;
        self.follow(now);
        self.left = self.draw_left();
        weight
    }

    /// The rate may be another: what waits for a look that comes ever later does not wait for it.
    pub(super) fn follow(&mut self, now: Time) {
        let elapsed = now.since(self.since);
        if elapsed < WINDOW {
            return;
        }
        let every = (self.seen as f64 / (elapsed.as_secs_f64() * MOST)).ceil().clamp(1.0, f64::from(u32::MAX / 2));
        (self.every, self.seen, self.since) = (every as u32, 0, now);
        self.left = self.left.min(self.draw_left());
    }

    /// Uniform from one to twice the mean less one, so that no pattern of flows is met in step.
    fn draw_left(&mut self) -> u32 {
        self.draw ^= self.draw << 13;
        self.draw ^= self.draw >> 7;
        self.draw ^= self.draw << 17;
        1 + ((self.draw >> 32) % u64::from(2 * self.every - 1)) as u32
    }
}
