//! Delay that varies, with and without reordering.
//!
//! With reordering each packet draws an extra delay of its own, and overtakes where it drew less.
//! Without, the extra delay *wanders*: a new value is drawn now and then and approached in a straight
//! line, never falling faster than time passes, so that no packet can overtake and yet the mean stays
//! the delay. (Drawing per packet and holding back what would overtake makes the mean the maximum.)
//!
//! ```text
//!  extra  ▲      •                      •  drawn every PERIOD × range
//!  +amp   │     ╱ ╲         •
//!    0    ├────╱───╲───────╱─╲──────────►  time
//!  -amp   │   •     ╲_____╱   ╲___•
//! ```

use std::time::Duration;

use super::dice::Dice;
use crate::clock::Moment;

/// A wandering delay takes this times its whole range from one drawn value to the next: above 1, so that
/// it falls slower than time passes and packets keep their order.
const PERIOD: f64 = 1.25;
/// Where a normal jitter is cut, in standard deviations: beyond lie 0.3 % of the draws.
const NORMAL_CUT: f64 = 3.0;

/// How a delay varies around its mean; the sum is never below zero. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Uniform: the most it differs from the mean. Normal: the standard deviation, cut at three of them.
    pub amplitude: Duration,
    /// How values are drawn.
    pub spread: Spread,
    /// Whether packets may overtake.
    pub reorder: bool,
}

/// How a jitter's values are drawn. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All within the amplitude alike.
    Uniform,
    /// Normal with the amplitude as standard deviation.
    Normal,
}

impl Jitter {
    /// A value in nanoseconds.
    fn draw(&self, dice: &mut Dice) -> f64 {
        let amplitude = self.amplitude.as_secs_f64() * 1e9;
        match self.spread {
            Spread::Uniform => amplitude * (2.0 * dice.fraction() - 1.0),
            Spread::Normal => amplitude * dice.normal().clamp(-NORMAL_CUT, NORMAL_CUT),
        }
    }

    /// From one drawn value to the next, while wandering, in nanoseconds.
    fn period(&self) -> f64 {
        let half_range = match self.spread {
            Spread::Uniform => 1.0,
            Spread::Normal => NORMAL_CUT,
        };
        PERIOD * 2.0 * half_range * self.amplitude.as_secs_f64() * 1e9
    }
}

/// Where a wandering delay is. Starts at the mean. One owner.
#[derive(Debug, Default)]
pub(crate) struct Wander {
    from: (f64, f64),
    to: (f64, f64),
}

impl Wander {
    /// The extra delay, in nanoseconds, of a packet sent at a moment; moments never go back.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "nanoseconds")]
    pub(crate) fn extra(&mut self, jitter: &Jitter, sent: Moment, dice: &mut Dice) -> i64 {
        if jitter.amplitude.is_zero() {
            return 0;
        }
        if jitter.reorder {
            return jitter.draw(dice) as i64;
        }
        let (now, period) = (sent.as_nanos() as f64, jitter.period());
        if now >= self.to.0 + period {
            // Long idle: whatever was approached is past.
            self.to = (now, jitter.draw(dice));
        }
        while now >= self.to.0 {
            self.from = self.to;
            self.to = (self.from.0 + period, jitter.draw(dice));
        }
        let share = (now - self.from.0) / (self.to.0 - self.from.0);
        (self.from.1 + share * (self.to.1 - self.from.1)) as i64
    }
}
