//! What drives are drawn from: normal, exponential and heavy-tailed numbers, and a mean-reverting process.

use std::time::Duration;

use super::STEP;
use crate::random::Seeded;

/// A standard Ornstein-Uhlenbeck process in steps: mean 0, variance 1, forgotten with a time constant. Starts where
/// it rests.
#[derive(Debug)]
pub(super) struct OrnsteinUhlenbeck {
    now: f64,
    keep: f64,
}

impl OrnsteinUhlenbeck {
    /// With a time constant in seconds.
    pub(super) fn new(random: &mut Seeded, seconds: f64) -> Self {
        Self { now: normal(random), keep: (-STEP.as_secs_f64() / seconds).exp() }
    }

    pub(super) fn next(&mut self, random: &mut Seeded) -> f64 {
        self.now = self.keep * self.now + (1.0 - self.keep * self.keep).sqrt() * normal(random);
        self.now
    }
}

/// A standard normal number (Box and Muller).
pub(super) fn normal(random: &mut Seeded) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

pub(super) fn exponential(random: &mut Seeded, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// A bounded Pareto number: the exponent says how fast its tail falls.
pub(super) fn pareto(random: &mut Seeded, least: f64, most: f64, tail: f64) -> f64 {
    let [near, far] = [least, most].map(|bound| bound.powf(-tail));
    (near - random.unit() * (near - far)).powf(-1.0 / tail)
}

/// The nearest whole number of steps.
pub(super) fn steps_in(time: Duration) -> usize {
    let steps = (time + STEP / 2).as_nanos() / STEP.as_nanos();
    usize::try_from(steps).unwrap_or(usize::MAX)
}
