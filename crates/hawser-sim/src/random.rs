//! All randomness of a simulation comes from one seed.

use hawser_core::units::Random;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::time::Duration;

/// Random numbers by a seed: the same seed, the same numbers. One owner.
#[derive(Debug)]
pub struct Seeded(ChaCha8Rng);

impl Seeded {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Seeded(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Another source whose numbers do not depend on how many of these are drawn from now on.
    pub fn fork(&mut self) -> Self {
        Seeded::new(self.0.next_u64())
    }

    /// True with probability `share` (0 to 1).
    pub fn chance(&mut self, share: f64) -> bool {
        share > 0.0 && self.unit() < share
    }

    /// Uniform in 0 to 1.
    pub fn unit(&mut self) -> f64 {
        // 53 bits are what an f64 holds exactly.
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform below `end`, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// Between `low` and `high`, uniform on a logarithmic scale.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high.ln() - low.ln())).exp()
    }

    /// Uniform up to `longest`.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.unit())
    }
}

impl Random for Seeded {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let draw = |seed| {
            let mut rng = Seeded::new(seed);
            let mut fork = rng.fork();
            (rng.below(1_000_000), fork.below(1_000_000))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_chance_is_met_as_often_as_it_says() {
        let mut rng = Seeded::new(1);
        let met = (0..100_000).filter(|_| rng.chance(0.03)).count();
        assert!((2_700..3_300).contains(&met), "{met} of 100,000 at 3 %");
        assert!(!rng.chance(0.0));
    }
}
