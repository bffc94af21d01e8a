//! What a namespace is like once the kernel has done what it does a moment after interfaces come up: their state, and
//! addresses and routes of its own. For tests that want it back as it was.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// What did not change for so long stays as it is: the kernel tells of links' states once a second
/// (net/core/link_watch.c).
const REST: Duration = Duration::from_secs(1);
/// On a loaded machine too.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks until two looks are alike.
pub fn at_rest<T: PartialEq>(look: impl Fn() -> T) -> T {
    let late = Instant::now() + PATIENCE;
    let mut now = look();
    loop {
        sleep(REST);
        let before = std::mem::replace(&mut now, look());
        if now == before {
            return now;
        }
        assert!(Instant::now() < late, "it does not come to rest");
    }
}
