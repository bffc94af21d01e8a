//! The monotonic clock in nanoseconds, and sleeping to a point of it.

use std::ops::{Add, Sub};
use std::time::Duration;

use crate::emulate::Timekeeping;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A point of CLOCK_MONOTONIC, in nanoseconds; the same for every thread and process of the machine.
/// Its zero is the boot. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let time = clock_gettime(rustix::time::ClockId::Monotonic);
        Self(time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned())
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment that many nanoseconds after boot.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// This moment moved by signed nanoseconds, never before boot.
    pub(crate) fn moved(self, nanos: i64) -> Self {
        Self(self.0.saturating_add_signed(nanos))
    }

    /// Time since an earlier moment; zero where it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Sleeps until this moment; returns early only where a signal interrupts.
    pub fn sleep_until(self) {
        let time = timespec(self.0);
        // An interrupted sleep is only a shorter one: every caller looks at the clock afterwards.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, before: Duration) -> Self {
        let nanos = u64::try_from(before.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

impl Sub for Moment {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Nanoseconds as the kernel takes them.
pub(crate) fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / SECOND_NS).cast_signed(), tv_nsec: (nanos % SECOND_NS).cast_signed() }
}

/// The lowest real-time priority: above every ordinary thread, below whatever else is real-time.
const PRIORITY: libc::c_int = 1;
/// How much later than asked the kernel may end a sleep, in nanoseconds; its default is 50 µs.
const TIMER_SLACK_NS: libc::c_ulong = 1;

/// Asks for precise sleeps and a real-time priority for the calling thread, so that it keeps time beside a
/// busy system; does without where it is refused, and says so.
pub fn keep_time() -> Timekeeping {
    // SAFETY: this option takes one number and concerns the calling thread only.
    let slack = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS) };
    let priority = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: 0 is the calling thread; the parameter lives through the call, which only reads it.
    let scheduler = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    if scheduler == 0 {
        return Timekeeping::RealTime;
    }
    let refused = std::io::Error::last_os_error();
    tracing::info!(slack, %refused, "run without real-time priority: packets may be late on a busy machine");
    Timekeeping::Ordinary(refused.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_may_not_have_priority_is_told_why() {
        let refused = std::thread::spawn(|| {
            caps::drop(None, caps::CapSet::Effective, caps::Capability::CAP_SYS_NICE).expect("a right is given up");
            keep_time()
        });
        let refused = refused.join().expect("it ends");
        assert_eq!(refused, Timekeeping::Ordinary(std::io::ErrorKind::PermissionDenied));
        let granted = std::thread::spawn(keep_time).join().expect("it ends");
        assert_eq!(granted, Timekeeping::RealTime, "this test needs root");
    }
}
