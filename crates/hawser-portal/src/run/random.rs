//! The system's randomness, for the core.

use hawser_core::units::Random;

use super::RunError;

/// The system's random source. Seen to work when it is made; holds nothing.
#[derive(Debug)]
pub struct SystemRandom(());

impl SystemRandom {
    /// # Errors
    /// [`RunError::NoRandomness`] where the system gives none: better found at the start than later.
    pub fn new() -> Result<Self, RunError> {
        let mut probe = [0; 8];
        getrandom::fill(&mut probe).map_err(|_| RunError::NoRandomness)?;
        Ok(Self(()))
    }
}

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        // It worked when this was made. Without it no key would be secret: the portal must not go on.
        getrandom::fill(bytes).expect("the system gives random bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ() {
        let mut random = SystemRandom::new().expect("the system has randomness");
        assert_ne!(random.next_u64(), random.next_u64());
    }
}
