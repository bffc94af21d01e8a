//! The packet thread's clock.

use hawser_core::units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The system's monotonic clock since its own epoch. No state; reading it is no system call (vdso(7)).
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Now. The clock is never negative and stands for 584 years.
    pub fn now(self) -> Time {
        let now = clock_gettime(ClockId::Monotonic);
        Time::from_nanos(now.tv_sec.unsigned_abs() * NANOS_PER_SEC + now.tv_nsec.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward() {
        let before = Clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = Clock.now().since(before);
        assert!(passed >= std::time::Duration::from_millis(2), "{passed:?}");
    }
}
