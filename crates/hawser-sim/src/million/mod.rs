//! A million peers over 200 members in racks of 20, in virtual time: a member dies, or a rack. Who moves, and how fast?
//!
//! 1. Peers start within the standby's refresh, claim as placement says, and settle. Round trips are 10 to 100 ms, one
//!    message of a hundred is lost.
//! 2. Then the members of the case fall silent. Some peers send a packet each 100 ms; for some one comes: routers bring
//!    it to the standby, once BFD has noticed the death, which says so; and some have nothing to say but their claims.
//! 3. Other members notice, each of which looks at three of them, five times a second. They say so in [`etcd`], and
//!    standbys tell their peers, once and by two paths.
//! 4. Each of their peers has moved when the other member has confirmed its claim. That member changes the kernel's
//!    route, one peer after the other, and then has an epoch to write in etcd.
//!
//! A session's packets and its other frames are left out: what they cost members is measured by itself ([`upkeep`]).

pub mod costs;
pub mod etcd;
mod peer;
mod report;
pub mod spread;
pub mod upkeep;
mod world;

pub use report::Figures;

use costs::Costs;
use hawser_core::session::constants::IDLE_KEEPALIVE;
use hawser_core::units::Time;
use hawser_hub::claim::Timing;
use std::time::Duration;
use world::World;

/// Members, and how many of them are in a rack.
pub const MEMBERS: u32 = 200;
const RACK: u32 = 20;
/// All of these are in milliseconds: from the last start to the death, and from there to the end, less a refresh.
const SETTLED: u64 = 2_000;
const AFTER: u64 = 3_000;
/// Between two packets of a busy peer's.
pub const PACKETS: u64 = 100;
/// How many members look at each, how often, how long an answer takes at most in round trips and at least, and how many
/// are not to come (hawser-portal, `etcd/failure_detector.rs`).
const LOOKED_AT: usize = 3;
const LOOKS: u64 = 200;
const ANSWERS: [u64; 2] = [2, 100];
const UNANSWERED: u64 = 2;
/// How long a standby waits until it says what it is brought, and says it again (hawser-hub, BROUGHT).
const BROUGHT: u64 = 100;
/// One message of this many is lost.
const LOST: u64 = 100;
/// etcd goes on for so long at most, until all members know the wave's epochs.
const KNOWN_MOST: Duration = Duration::from_secs(1_200);

/// What dies. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Dies {
    /// The first member.
    Member,
    /// The first rack.
    Rack,
}

/// What peers have to do beside their claims. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Has {
    /// They send a packet each 100 ms.
    PacketsUp,
    /// They are sent one.
    PacketsDown,
    /// Nothing.
    Nothing,
}

/// What is tried. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Setup {
    /// How many peers.
    pub peers: u32,
    /// What dies.
    pub dies: Dies,
    /// What all peers do.
    pub has: Has,
    /// What etcd and routes take.
    pub costs: Costs,
}

impl Dies {
    fn is_dead(self, member: u32) -> bool {
        member < if self == Dies::Member { 1 } else { RACK }
    }
}

impl Has {
    /// Between two claims, to the owner and to the standby.
    pub fn refresh(self) -> [Duration; 2] {
        let Timing { refresh, standby_refresh, .. } = Timing::DEFAULT;
        if self == Has::Nothing { [IDLE_KEEPALIVE; 2] } else { [refresh, standby_refresh] }
    }
}

/// Steps 1 to 4, and what came of it.
pub fn run(setup: Setup) -> Figures {
    let mut world = World::new(setup);
    world.pass();
    world.etcd.finish(time(world.death) + KNOWN_MOST);
    world.report()
}

fn time(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[cfg(test)]
mod tests;
