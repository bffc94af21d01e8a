//! The packet thread's clock.

use std::time::Duration;

use hawser_core::units::Time;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds in a second.
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The system's clock since it was started, time asleep included: keys grow older in suspend too. No state; reading it
/// is no system call (vdso(7)).
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Now. The clock is never negative and stands for 584 years.
    pub fn now(self) -> Time {
        let now = clock_gettime(ClockId::Boottime);
        Time::from_nanos(now.tv_sec.unsigned_abs() * NANOS_PER_SEC + now.tv_nsec.unsigned_abs())
    }

    /// Processor time of the calling thread so far. A system call.
    pub fn spent(self) -> Duration {
        let spent = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far ahead the namespace's clock is, in seconds, and which test runs in it (time_namespaces(7)).
    const AHEAD: u64 = 864_000;
    const INSIDE: &str = "run::clock::tests::it_goes_forward";

    #[test]
    fn it_counts_the_time_asleep() {
        // Nothing but sleep moves this clock against the monotonic one, and a namespace of its own.
        let before = Clock.now();
        let this = std::env::current_exe().expect("a program");
        let mut inside = std::process::Command::new("unshare");
        inside.args(["--time", "--boottime", &AHEAD.to_string()]).arg(this).args(["--exact", INSIDE, "--nocapture"]);
        let told = inside.output().expect("unshare runs (util-linux; this test needs root)");
        let text = String::from_utf8_lossy(&told.stdout);
        let told = text.lines().find_map(|line| line.split("now ").nth(1)?.trim().parse().ok());
        let inside = Time::from_nanos(told.unwrap_or_else(|| panic!("no time: {text}")));
        let ahead = inside.since(before).as_secs();
        assert!((AHEAD..AHEAD + 60).contains(&ahead), "{ahead} s ahead");
    }

    #[test]
    fn it_goes_forward() {
        println!("now {}", Clock.now().as_nanos());
        let before = Clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = Clock.now().since(before);
        assert!(passed >= std::time::Duration::from_millis(2), "{passed:?}");
    }
}
