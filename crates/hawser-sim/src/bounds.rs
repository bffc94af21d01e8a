//! What a portal may hold at any moment, and how long it may sleep.

use hawser_core::endpoint::{Endpoint, Snapshot};
use hawser_core::units::Time;
use std::time::Duration;

/// Bytes that a resequencer holds at most, and a packet more (`resequence::MAX_HELD`).
const HELD_MAX: u64 = (32 << 20) + (1 << 16);
/// Paths of a session: 64 of the peer's, and our own, of which links come and go.
const PATHS_MAX: usize = 160;
/// No portal sleeps longer: it looks after its buffers every second.
const SLEEP_MAX: Duration = Duration::from_millis(1_001);

/// Holds a portal that runs against its bounds; `trains` is the most of bytes that its trains may have.
///
/// # Panics
/// Where it is beyond one.
pub fn check(name: &str, endpoint: &mut Endpoint, now: Time, trains: u64) -> Snapshot {
    let due = endpoint.poll_timeout(now).map(|(at, _)| at).expect("a portal always has something to do");
    assert!(due <= now + SLEEP_MAX, "{name} sleeps until {due:?}, now {now:?}");
    let snapshot = endpoint.snapshot(now);
    assert!(snapshot.trains.0 <= trains, "{name} holds {:?} of trains", snapshot.trains);
    for session in snapshot.peers.iter().flatten() {
        assert!(session.held.0 <= HELD_MAX, "{name} holds {:?} back", session.held);
        assert!(session.paths.len() <= PATHS_MAX, "{name} has {} paths", session.paths.len());
    }
    snapshot
}
