//! How many threads carry packets.

use std::num::NonZero;
use std::thread::available_parallelism;

/// From this many processors on there is a second thread by itself. On two that others used, too, it slowed the core down, to 0.8 of one
/// thread's rate (docs/results/threads.json); beside the portal the kernel works on each packet, and the hosts do.
const SECOND_FROM: usize = 4;

/// What `[portal] threads` says, or what pays on the processors that this process may use (sched_setaffinity(2), cgroups(7)).
pub fn threads(configured: Option<u8>) -> usize {
    configured.map_or_else(|| paying(available_parallelism().map_or(1, NonZero::get)), usize::from)
}

const fn paying(processors: usize) -> usize {
    if processors < SECOND_FROM { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_thread_needs_processors_that_are_free() {
        assert_eq!([1, 2, 3, 4, 64].map(paying), [1, 1, 1, 2, 2]);
        assert_eq!([1, 2, 8].map(|count| threads(Some(count))), [1, 2, 8]);
    }
}
