//! What members see of a peer's sessions beside its packets, as the packet-level simulation counts it.
//!
//! A peer has a session with every member that it lists. Packets go by that with its owner; the standby is told claims,
//! keepalives keep the paths of it and of the others (spares), and all sessions renew their keys.

use super::{Has, MEMBERS, PACKETS};
use crate::host::ping::{Echo, Ping};
use crate::net::{LinkSpec, link};
use crate::portal::Recipe;
use crate::situation::{address, second};
use crate::world::{LOCAL, REMOTE};
use crate::{hub, world};
use hawser_core::congestion::Kind;
use hawser_core::rules::Rules;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// From the start until all is as it then stays, and for how long it is counted, seconds: ten renewals of an idle
/// session's keys (hawser-core, IDLE_REKEY).
const SETTLED: f64 = 60.0;
const COUNTED: f64 = 1_720.0;
/// Questions and answers of members that look at each other, a second and member: each looks at three, and three look
/// at it, five times a second (hawser-portal, `etcd/failure_detector.rs`).
const LOOKS: f64 = 2.0 * (3.0 + 3.0) * 5.0;

/// Datagrams a second between a peer of two links and one member, both ways together. A plain value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Upkeep {
    /// Its owner, without its packets: claims, acknowledgements, probes of the path that packets do not take.
    pub owner: f64,
    /// Its standby.
    pub standby: f64,
    /// A member that is neither.
    pub spare: f64,
}

impl Upkeep {
    /// Counts them, where peers have this to do.
    pub fn measure(has: Has) -> Self {
        let packets = if has == Has::Nothing { 0.0 } else { 2.0 * 1e3 / PACKETS as f64 };
        let [owner, standby] = with_two_members(has);
        Upkeep { owner: owner - packets, standby, spare: spare() }
    }

    /// What each of [`MEMBERS`] sees a second, where each of these peers lists this number of members, beside packets
    /// and what any portal's session has; `claims` is what was counted of these, of owners and standbys.
    pub fn messages(&self, has: Has, peers: u32, listed: u32, claims: f64) -> f64 {
        let [_, refresh] = has.refresh();
        // Each claim has its answer.
        let beside_claims = self.standby - 2.0 / refresh.as_secs_f64();
        let spares = f64::from(listed - 2) * self.spare;
        claims + LOOKS + f64::from(peers) / f64::from(MEMBERS) * (beside_claims + spares)
    }
}

fn links() -> [LinkSpec; 2] {
    [link(20.0, 20.0), link(20.0, 40.0)]
}

/// To and from the owner and the standby.
fn with_two_members(has: Has) -> [f64; 2] {
    let links = links().map(|link| (link, [Duration::from_millis(1); 2])).to_vec();
    let mut world = hub::World::new(hub::Setup { seed: 1, links, rules: Rules::default() });
    let ends = [LOCAL, REMOTE].map(|side| address(side, 10));
    let (from, to) = if has == Has::PacketsDown { (REMOTE, LOCAL) } else { (LOCAL, REMOTE) };
    if has != Has::Nothing {
        let every = Duration::from_millis(PACKETS);
        world.add_host(to, ends[to], Echo::default());
        let ping = Ping::new(ends[from], ends[to], every, second(2.0), second(SETTLED + COUNTED));
        world.add_host(from, ends[from], ping);
    }
    world.run_until(second(SETTLED));
    let before = world.datagrams.clone();
    world.run_until(second(SETTLED + COUNTED));
    assert!(world.moved.is_empty(), "nothing happens: {:?}", world.moved);
    let count =
        |member: usize| (0..2).map(|way: usize| world.datagrams[member][way] - before[member][way]).sum::<u64>();
    [count(0), count(1)].map(|count| count as f64 / COUNTED)
}

/// To and from a member that nothing is said to: an idle session's.
fn spare() -> f64 {
    let recipes = [LOCAL, REMOTE].map(|side| Recipe { in_hub: true, ..Recipe::of(side, Kind::Bbr) });
    let setup = world::Setup { seed: 1, links: links().to_vec(), recipes, clocks: None, both_initiate: false };
    let mut world = world::World::new(setup);
    world.run_until(second(SETTLED));
    let count = Rc::new(Cell::new(0u64));
    let counted = Rc::clone(&count);
    world.witness = Some(Box::new(move |_, _, _, _| counted.set(counted.get() + 1)));
    world.run_until(second(SETTLED + COUNTED));
    count.get() as f64 / COUNTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spare_costs_its_keepalives_and_a_standby_its_claims_beside() {
        let [busy, idle] = [Has::PacketsUp, Has::Nothing].map(Upkeep::measure);
        println!("{busy:?}, {idle:?}");
        // Two links' keepalives each 29 s, and a handshake each 172 s, of three datagrams or a few more.
        assert!((0.07..0.13).contains(&busy.spare), "{busy:?}");
        // A claim each 17 s with its answer, and the other link's keepalives.
        assert!((0.15..0.4).contains(&busy.standby) && busy.owner > 1.0, "{busy:?}");
        assert!((0.1..0.4).contains(&idle.standby) && (0.1..0.4).contains(&idle.owner), "{idle:?}");
    }

    #[test]
    fn more_listed_members_cost_each_member_their_spares_sessions() {
        let upkeep = Upkeep { owner: 5.0, standby: 0.2, spare: 0.1 };
        let at = |listed| upkeep.messages(Has::PacketsUp, MEMBERS * 1_000, listed, 1_000.0);
        let two = 1_000.0 + LOOKS + 1_000.0 * (0.2 - 2.0 / 17.0);
        assert!((at(2) - two).abs() < 1e-6 && (at(8) - two - 600.0).abs() < 1e-6, "{} and {}", at(2), at(8));
    }
}
