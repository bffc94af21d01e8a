//! Chance, from a seed.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::spec::Probability;

/// Bits of a double's mantissa, and the step between the fractions drawn from them.
const MANTISSA_BITS: u32 = 53;
const STEP: f64 = 1.0 / (1_u64 << MANTISSA_BITS) as f64;

/// A seeded source of chance; equal seeds give equal throws. One owner.
#[derive(Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A fraction, at least 0 and below 1.
    #[expect(clippy::cast_precision_loss, reason = "shifted to the mantissa's bits")]
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> (u64::BITS - MANTISSA_BITS)) as f64 * STEP
    }

    /// A whole number below `limit`; 0 where that is 0.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a queue's length"
    )]
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.fraction() * limit as f64) as usize
    }

    /// Whether a thing of this probability happens now. What never happens throws no dice.
    pub(crate) fn happens(&mut self, probability: Probability) -> bool {
        probability > Probability::NEVER && self.fraction() < probability.get()
    }

    /// A standard normal number (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }
}
