//! Which member is a peer's active one, and which its standby: weighted rendezvous hashing.
//!
//! Each member has a score for each peer, and the least two are taken (Thaler and Ravishankar, "Using Name-Based
//! Mappings to Increase Hit Rates", IEEE/ACM Transactions on Networking 6(1), 1998). The score is `-ln(u) / weight`,
//! where the hash `u` is uniform in (0, 1): the logarithmic method (Schindelhauer and Schomaker, "Weighted Distributed
//! Hash Tables", SPAA 2005), by which a member is the first with a probability proportional to its weight.
//!
//! Whoever knows the members computes the same, without a table. A member that joins or leaves changes only the pairs
//! that it is in, and each of those by itself alone. Where the active one leaves, its standby is the new active one, or
//! another member of the old one's rack: by the chance that the second least score is of this rack.
//!
//! Logarithms may differ in the last bit between mathematical libraries. Two members could then order two scores
//! differently that are equal to 2⁻⁵², which harms nobody: the peer decides.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::units::{MemberId, PeerTag};

/// What fails together: a rack, a zone, a power line. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rack(pub u32);

/// A member's share, relative to the others'; zero takes no peer. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weight(pub u32);

/// A member as placement sees it. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    /// Who.
    pub id: MemberId,
    /// Where.
    pub rack: Rack,
    /// Its share.
    pub weight: Weight,
}

/// A peer's pair. A plain value.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Placement {
    /// The one that serves it.
    pub active: MemberId,
    /// The one that is ready to: in another rack where there is one; none in a hub of one member.
    pub standby: Option<MemberId>,
}

/// Where `peer` belongs, among `members` in any order; none where nobody has a weight. Takes time in proportion to the
/// members.
pub fn place(peer: PeerTag, members: &[Member]) -> Option<Placement> {
    let scored = || members.iter().filter(|member| member.weight.0 > 0).map(|member| Scored::new(peer, member));
    let first = scored().min_by(Scored::order)?;
    let standby = scored().filter(|other| other.id != first.id).min_by(|one, other| first.order_behind(one, other));
    Some(Placement { active: first.id, standby: standby.map(|standby| standby.id) })
}

/// All members in the order in which `peer` is to ask them, its [`Placement`] first; those without a weight last.
pub fn order(peer: PeerTag, members: &[Member]) -> Vec<MemberId> {
    let mut scored: Vec<Scored> = members.iter().map(|member| Scored::new(peer, member)).collect();
    scored.sort_by(Scored::order);
    if let [first, others @ ..] = &mut scored[..] {
        others.sort_by(|one, other| first.order_behind(one, other));
    }
    scored.into_iter().map(|member| member.id).collect()
}

/// The `most` of `others` that stand beside `kept` in a list for `peer`: the best of each rack, then the second best of
/// each, and on, so that as few as can be fail together; those without a weight last. `kept` is its rack's best.
pub fn spread(peer: PeerTag, kept: &Member, others: &[Member], most: usize) -> Vec<MemberId> {
    let mut scored: Vec<Scored> = others.iter().map(|member| Scored::new(peer, member)).collect();
    scored.sort_by(Scored::order);
    let mut before = BTreeMap::from([(kept.rack, 1)]);
    // With how many of its rack are better, or kept.
    let ranked = scored.into_iter().map(|member| {
        let better = before.entry(member.rack).or_insert(0_usize);
        *better += 1;
        (member.score.is_infinite(), *better, member.id)
    });
    let mut ranked: Vec<_> = ranked.collect();
    // Those of one rank stay in the order of their scores.
    ranked.sort_by_key(|(is_last, better, _)| (*is_last, *better));
    ranked.into_iter().take(most).map(|(_, _, id)| id).collect()
}

#[derive(Copy, Clone)]
struct Scored {
    /// Infinite without a weight.
    score: f64,
    id: MemberId,
    rack: Rack,
}

impl Scored {
    fn new(peer: PeerTag, member: &Member) -> Self {
        Self { score: score(peer, member), id: member.id, rack: member.rack }
    }

    fn order(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(self.id.cmp(&other.id))
    }

    /// The order of those behind this one: who may take a peer, those of other racks first.
    fn order_behind(&self, one: &Self, other: &Self) -> Ordering {
        let last = |member: &Self| (member.score.is_infinite(), member.rack == self.rack);
        last(one).cmp(&last(other)).then(one.order(other))
    }
}

/// Exponentially distributed with the member's weight as its rate: the least of several is a member's by its part of
/// the weights.
fn score(peer: PeerTag, member: &Member) -> f64 {
    // The upper 53 bits, and half a step so that neither 0 nor 1 comes out.
    let uniform = ((mix(mix(peer.0) ^ member.id.0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    -uniform.ln() / f64::from(member.weight.0)
}

/// A bijection that spreads each bit over all (SplitMix64's step and finaliser: Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014). Names are hashes of keys already: nobody chooses them but by trying
/// keys.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
