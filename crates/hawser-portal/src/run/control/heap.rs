//! Free memory back to the system.
//!
//! The core frees the buffers that a second did not need. The GNU allocator keeps their pages all the same, unless they
//! lie at its heap's end: after each outage that filled a queue the process was as large as that queue, for ever.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// The heap is walked this often.
const EVERY: Duration = Duration::from_secs(60);

/// When it is due; after a halt of hours once.
pub fn due() -> Interval {
    let mut due = interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    due
}

/// Whole free pages go back, of all threads' heaps (malloc_trim(3)).
#[cfg(target_env = "gnu")]
pub fn give_back() {
    // SAFETY: it takes no pointer, touches only what is free, and is safe among threads (malloc_trim(3), ATTRIBUTES).
    unsafe { libc::malloc_trim(0) };
}

/// Musl gives free memory back by itself.
#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    fn anonymous_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux 4.5 or later");
        line.trim().trim_end_matches(" kB").parse().expect("kibibytes")
    }

    #[test]
    fn what_was_freed_between_what_is_kept_goes_back() {
        const BUFFER: usize = 16 << 10;
        let mut buffers: Vec<Vec<u8>> = (0..4_096).map(|_| vec![1; BUFFER]).collect();
        let full = anonymous_kib();
        // Each that stays keeps the heap's end from moving past it.
        let mut turn = 0;
        buffers.retain(|_| {
            turn += 1;
            turn % 16 == 0
        });
        give_back();
        let freed = full.saturating_sub(anonymous_kib());
        // Other tests of this process may have taken some meanwhile.
        assert!(freed > 24 << 10, "60 MiB were freed, {freed} KiB went back");
        drop(buffers);
    }
}
