//! What is looked at in the hub's world.

use super::World;
use hawser_core::drops::{DropReason, Drops};
use hawser_core::session::SessionSnapshot;
use hawser_core::units::Time;

impl World {
    /// What a member's core counted as dropped.
    pub fn drops(&self, member: usize) -> Drops {
        self.members[member].portal.endpoint.snapshot(Time::ZERO + self.members[member].portal.clock.offset).drops
    }

    /// Claims that a member heard.
    pub fn claims(&self, member: usize) -> u64 {
        self.members[member].claims
    }

    /// How often a member's lease was over before the next claim came.
    pub fn lapses(&self, member: usize) -> u64 {
        self.members[member].lapses
    }

    /// How many epochs had an owner.
    pub fn epochs(&self) -> usize {
        self.owners.len()
    }

    /// The session between the peer and a member, if there is one: as the peer has it, and as the member does.
    pub fn sessions(&self, member: usize) -> [Option<SessionSnapshot>; 2] {
        let peers = self.peer.endpoint.snapshot(self.peer.clock.show(self.now)).peers;
        [peers.into_iter().nth(member).flatten(), self.members[member].portal.session(self.now)]
    }

    /// Step 3, of what is counted: at the end of a run, since it takes a snapshot.
    pub(super) fn check_refused(&self) {
        for portal in self.members.iter().map(|member| &member.portal).chain([&self.peer]) {
            let refused = portal.endpoint.snapshot(portal.clock.show(self.now)).drops.of(DropReason::BadFrame);
            assert_eq!(refused, 0, "seed {}: datagrams refused until {:?}", self.seed, self.now);
        }
    }
}
