//! CoDel: packets that waited too long for too long are dropped as they leave the queue.

use std::time::Duration;

/// Acceptable standing delay, and how long it may be exceeded. Source: RFC 8289, sections 4.3 and 4.4.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

/// What CoDel aims at. Plain data. Source: RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codel {
    /// The standing wait that is fine.
    pub target: Duration,
    /// How long a wait above it is tolerated: the longest usual round trip.
    pub interval: Duration,
}

impl Default for Codel {
    /// 5 and 100 milliseconds.
    fn default() -> Self {
        Self { target: TARGET, interval: INTERVAL }
    }
}
