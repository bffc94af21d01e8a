//! Room on the links for what another session carries, while packets move there by plan (`hawser-hub`): sparse flows go
//! by that one at once, each by two paths (`hedge`, step 4), and what waits here still goes by this one.
//!
//! 1. `SparseRate::note`: what sparse flows take.
//! 2. `leave_room`: the peer is asked to claim another member. Each path is paced as much slower
//!    (`policy::pace_beside`), for as long as that may take.

use super::Session;
use super::hub::MEASURED_OVER;
use crate::units::{ByteCount, Rate, Time};

/// Bytes on the wire that sparse flows take. Nothing is known at first; the session owns it.
#[derive(Default)]
pub(super) struct SparseRate {
    since: Option<Time>,
    bytes: ByteCount,
    rate: Rate,
}

impl SparseRate {
    /// Step 1.
    pub fn note(&mut self, now: Time, bytes: ByteCount) {
        self.measure(now);
        self.bytes += bytes;
    }

    fn measure(&mut self, now: Time) -> Rate {
        let time = now.since(*self.since.get_or_insert(now));
        if time >= MEASURED_OVER {
            (self.rate, self.since) = (Rate::of(std::mem::take(&mut self.bytes), time), Some(now));
        }
        self.rate
    }
}

impl Session {
    /// Step 2; or no longer.
    pub fn leave_room(&mut self, now: Time, leaves: bool) {
        let room = leaves.then(|| self.outbound.sparse_rate.measure(now));
        for path in self.paths.iter_mut() {
            path.capacity.room = room;
            path.follow_controller();
        }
    }
}
