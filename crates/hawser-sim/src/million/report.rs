//! What came of it.

use super::peer::Peer;
use super::spread::{Spread, spread};
use super::world::World;
use super::{MEMBERS, etcd, time};

/// What is within the second that is promised.
const PROMISED: u64 = 1_000;

/// What came of a death. Plain data; times from it on, in ms.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// Peers whose active member died.
    pub lost: usize,
    /// When the other one had confirmed their claims, and which part of them within a second.
    pub moved: Spread,
    /// See `moved`.
    pub within_a_second: f64,
    /// When that one had set their routes: those that routers follow where nobody withdraws the old ones.
    pub routed: Spread,
    /// Peers that moved without need.
    pub needless: usize,
    /// The most loaded living member, in parts of the mean.
    pub most_loaded: f64,
    /// Claims and their answers, a second and member, in the second before.
    pub claims: f64,
    /// What etcd was asked.
    pub etcd: etcd::Figures,
}

impl World {
    pub(super) fn report(&self) -> Figures {
        let is_dead = |member: u32| self.setup.dies.is_dead(member);
        let lost: Vec<&Peer> =
            self.peers.iter().filter(|peer| is_dead(peer.members[0]) && !is_dead(peer.members[1])).collect();
        let after = |at: Option<u64>| at.map(|at| at.saturating_sub(self.death));
        let moved: Vec<Option<u64>> = lost.iter().map(|peer| after(peer.moved_at)).collect();
        let in_time = moved.iter().flatten().filter(|wait| **wait <= PROMISED).count();
        // Who had moved before has its route.
        let wave = lost.iter().filter(|peer| peer.moved_at.is_none_or(|at| at >= self.death));
        let needless = self.peers.iter().filter(|peer| peer.moved_at.is_some() && !is_dead(peer.members[0])).count();
        Figures {
            lost: lost.len(),
            within_a_second: in_time as f64 / lost.len() as f64,
            moved: spread(moved),
            routed: spread(wave.map(|peer| after(peer.routed_at)).collect()),
            needless,
            most_loaded: self.most_loaded(),
            claims: self.messages as f64 / f64::from(MEMBERS),
            etcd: self.etcd.figures(time(self.death)),
        }
    }

    fn most_loaded(&self) -> f64 {
        let mut load = [0u32; MEMBERS as usize];
        self.peers.iter().for_each(|peer| load[peer.claimant.claim().owner.0 as usize] += 1);
        let living = load.iter().zip(0..).filter(|(_, member)| !self.setup.dies.is_dead(*member));
        let living: Vec<u32> = living.map(|(load, _)| *load).collect();
        let most = living.iter().max().copied().unwrap_or(0);
        f64::from(most) * living.len() as f64 / self.peers.len() as f64
    }
}
