//! How an announcement is told to routers: the metric of the kernel's route.
//!
//! *Principle*: a router prefers the least metric, and the newer of two owners counts: so a higher epoch has a lower
//! metric, and each owner's is below a standby's. BGP compares it as MED between members of one AS (RFC 4271, section
//! 9.1.2.2 c).
//!
//! FRR and BIRD read 32 bits from the kernel; FRR takes the upper eight of a `kernel` route for its administrative
//! distance, and an exterior BGP route has 20. So 24 bits are used. Epochs come round in them after four million
//! moves, where for as long as a lease lasts an old owner may be preferred to the new one.

use crate::claim::Announcement;
use crate::units::Epoch;

/// Epochs that are told apart.
const EPOCHS: u64 = 1 << 22;
/// The least of an owner's, so that an operator has room below it.
const OWNER: u32 = EPOCHS as u32;
/// A standby's.
const STANDBY: u32 = 3 * EPOCHS as u32;

/// The metric of a route that is announced so; none where there is to be none. An owner without an epoch has a peer
/// without a hub.
pub fn metric(announcement: Announcement, epoch: Option<Epoch>) -> Option<u32> {
    let newer = |epoch: Epoch| (EPOCHS - 1 - epoch.get() % EPOCHS) as u32;
    match announcement {
        Announcement::Withdrawn => None,
        Announcement::Standby => Some(STANDBY),
        Announcement::Owner => Some(OWNER + epoch.map_or(0, newer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_owners_the_newer_is_preferred_and_any_to_a_standby() {
        let owner = |epoch| metric(Announcement::Owner, Epoch::new(epoch)).expect("a route");
        let standby = metric(Announcement::Standby, Epoch::new(9)).expect("a route");
        for epoch in [1, 2, 127, 4_000_000, EPOCHS - 2] {
            assert!(owner(epoch + 1) < owner(epoch), "{epoch}");
        }
        for epoch in [1, EPOCHS - 1, EPOCHS, Epoch::LAST.get()] {
            assert!(owner(epoch) < standby && owner(epoch) >= OWNER, "{epoch}");
        }
        assert!(standby < 1 << 24, "FRR's distance stays zero");
        assert_eq!(metric(Announcement::Withdrawn, None), None);
    }
}
