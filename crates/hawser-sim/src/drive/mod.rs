//! Drives: what links of a car could carry, made up from a seed.
//!
//! 1. [`Drive::new`] draws where the car is: areas, and how good the place is for every cellular link at once.
//! 2. [`Drive::rates`] draws a link: its logarithm wanders back to its mean, it fades, and for a while it has nothing.

use std::time::Duration;

use crate::random::Seeded;

/// From one rate to the next.
pub const STEP: Duration = Duration::from_millis(200);

/// What a link is. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cellular, fourth generation.
    Lte,
    /// Cellular, fifth generation.
    FiveG,
    /// A satellite of low orbit.
    Starlink,
}

/// A drive. Made from its seed; plain data.
#[derive(Clone, Debug)]
pub struct Drive {
    seed: u64,
    place: Vec<f64>,
}

impl Drive {
    /// Step 1: the drive of a seed, so long.
    pub fn new(seed: u64, length: Duration) -> Self {
        let steps = (length.as_nanos() / STEP.as_nanos()) as usize;
        let mut random = Seeded::new(seed);
        Self { seed, place: wander(&mut random, steps, 15.0) }
    }

    /// Step 2: rates in Mbit/s, one for each step. Links of different numbers are different ones.
    pub fn rates(&self, kind: Kind, number: u64) -> Vec<f64> {
        let mut random = Seeded::new(self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (mean, spread, shared) = match kind {
            Kind::Lte => (66.0_f64, 0.6_f64, 0.3_f64),
            Kind::FiveG => (140.0, 0.8, 0.3),
            Kind::Starlink => (140.0, 0.6, 0.0),
        };
        let own = wander(&mut random, self.place.len(), 8.0);
        let mut dark = 0;
        let rate = |(own, place): (&f64, &f64)| {
            if dark == 0 && random.chance(0.004) {
                dark = random.log_between(2.0, 60.0) as usize;
            }
            dark = usize::saturating_sub(dark, 1);
            let level = spread * ((1.0 - shared).sqrt() * own + shared.sqrt() * place) - spread * spread / 2.0;
            if dark > 0 { 0.0 } else { mean * level.exp() }
        };
        own.iter().zip(&self.place).map(rate).collect()
    }
}

/// A standard Ornstein-Uhlenbeck process with this time constant in seconds.
fn wander(random: &mut Seeded, steps: usize, seconds: f64) -> Vec<f64> {
    let keep = (-STEP.as_secs_f64() / seconds).exp();
    let mut now = normal(random);
    (0..steps)
        .map(|_| {
            now = keep * now + (1.0 - keep * keep).sqrt() * normal(random);
            now
        })
        .collect()
}

/// A standard normal number (Box and Muller).
fn normal(random: &mut Seeded) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}
