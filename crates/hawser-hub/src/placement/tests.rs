//! Pairs are in two racks, move little, and are even.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PEERS: u64 = 100_000;
/// No member may have more than this part of the mean by weight.
const EVEN: f64 = 1.2;

fn member(id: u64, rack: u32, weight: u32) -> Member {
    Member { id: MemberId(mix(id)), rack: Rack(rack), weight: Weight(weight) }
}

/// 200 members in racks of 20.
fn hub() -> Vec<Member> {
    (0..200).map(|id| member(id, id as u32 / 20, 1)).collect()
}

fn pair(placement: Option<Placement>) -> Vec<MemberId> {
    placement.into_iter().flat_map(|pair| [Some(pair.active), pair.standby]).flatten().collect()
}

/// The most that a member has of `by`, as a part of what its weight says it should.
fn worst(members: &[Member], by: impl Fn(Placement) -> MemberId) -> f64 {
    let mut counts = BTreeMap::new();
    for placement in (0..PEERS).filter_map(|peer| place(PeerTag(peer), members)) {
        *counts.entry(by(placement)).or_insert(0.0) += 1.0;
    }
    let total: f64 = members.iter().map(|member| f64::from(member.weight.0)).sum();
    let share = |member: &Member| PEERS as f64 * f64::from(member.weight.0) / total;
    members.iter().map(|member| counts.get(&member.id).unwrap_or(&0.0) / share(member)).fold(0.0, f64::max)
}

#[test]
fn no_member_has_much_more_than_its_part() {
    let weighted: Vec<_> = (0..50).map(|id| member(id, id as u32 % 10, 1 + id as u32 % 4)).collect();
    assert!(worst(&hub(), |pair| pair.active) < EVEN);
    assert!(worst(&hub(), |pair| pair.standby.expect("there are racks")) < EVEN);
    assert!(worst(&weighted, |pair| pair.active) < EVEN);
}

#[test]
fn what_a_dead_member_or_rack_leaves_is_spread_over_all_others() {
    let member_died = hub()[1..].to_vec();
    let rack_died = hub()[20..].to_vec();
    assert!(worst(&member_died, |pair| pair.active) < EVEN);
    assert!(worst(&rack_died, |pair| pair.active) < EVEN);
}

#[test]
fn a_dead_rack_leaves_its_peers_to_their_standbys() {
    let (all, left) = (hub(), &hub()[20..]);
    for peer in (0..PEERS / 10).map(PeerTag) {
        let before = place(peer, &all).expect("members");
        let after = place(peer, left).expect("members");
        let died = all[..20].iter().any(|member| member.id == before.active);
        assert_eq!(Some(after.active), if died { before.standby } else { Some(before.active) });
    }
}

#[test]
fn small_hubs_have_what_they_can() {
    let one = [member(1, 0, 1)];
    let two = [member(1, 0, 1), member(2, 0, 1)];
    let drained = [member(1, 0, 0), member(2, 0, 1)];
    assert_eq!(place(PeerTag(1), &[]), None);
    assert_eq!(place(PeerTag(1), &drained[..1]), None);
    assert_eq!(place(PeerTag(1), &one), Some(Placement { active: one[0].id, standby: None }));
    assert_eq!(pair(place(PeerTag(1), &two)).len(), 2);
    assert_eq!(pair(place(PeerTag(1), &drained)), [two[1].id]);
}

#[test]
fn a_list_that_has_not_all_of_them_is_spread_over_racks_and_members() {
    let mut others: Vec<_> = (1..20).map(|id| member(id, id as u32 % 5, 1)).collect();
    let (kept, drained) = (member(0, 0, 1), member(99, 7, 0));
    others.push(drained);
    let (mut counts, peers) = (BTreeMap::new(), 10_000);
    for peer in (0..peers).map(PeerTag) {
        let list = spread(peer, &kept, &others, 7);
        let mut racks = BTreeMap::from([(kept.rack, 1)]);
        for id in &list {
            *counts.entry(*id).or_insert(0) += 1;
            let rack = others.iter().find(|other| other.id == *id).expect("it is one of them").rack;
            *racks.entry(rack).or_insert(0) += 1;
        }
        assert_eq!(racks.len(), 5, "{racks:?}");
        assert!(racks.values().all(|of_rack| (1..=2).contains(of_rack)), "{racks:?}");
    }
    let mean = peers as u32 * 7 / 19;
    assert_eq!((counts.len(), counts.values().sum::<u32>()), (19, peers as u32 * 7));
    assert!(
        counts.values().all(|count| (mean / 2..mean * 3 / 2).contains(count)),
        "{counts:?}, and the mean is {mean}"
    );
    let all = spread(PeerTag(1), &kept, &others, 30);
    assert_eq!((all.len(), all.last()), (20, Some(&drained.id)), "who takes nobody is the last");
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    proptest::collection::btree_map(0..1000u64, (0..4u32, 0..4u32), 0..12)
        .prop_map(|map| map.into_iter().map(|(id, (rack, weight))| member(id, rack, weight)).collect())
}

/// The definition, by sorting.
fn by_definition(peer: PeerTag, members: &[Member]) -> Option<Placement> {
    let mut order: Vec<_> = members.iter().filter(|member| member.weight.0 > 0).collect();
    order.sort_by(|a, b| score(peer, a).total_cmp(&score(peer, b)));
    let active = order.first()?;
    let standby = order.iter().find(|member| member.rack != active.rack).or(order.get(1));
    Some(Placement { active: active.id, standby: standby.map(|member| member.id) })
}

proptest! {
    #[test]
    fn two_passes_find_what_the_definition_says(members in members(), peer: u64) {
        prop_assert_eq!(place(PeerTag(peer), &members), by_definition(PeerTag(peer), &members));
    }

    #[test]
    fn all_are_asked_in_an_order_that_begins_with_the_pair_and_ends_with_who_takes_nobody(members in members(), peer: u64) {
        let order = order(PeerTag(peer), &members);
        let pair = pair(place(PeerTag(peer), &members));
        prop_assert_eq!(&order[..pair.len()], &pair[..]);
        let takes = |id: &MemberId| members.iter().any(|member| member.id == *id && member.weight.0 > 0);
        prop_assert!(order.is_sorted_by_key(|id| !takes(id)));
        let all: std::collections::BTreeSet<_> = order.iter().copied().collect();
        prop_assert_eq!((all.len(), order.len()), (members.len(), members.len()));
    }

    #[test]
    fn the_order_in_which_members_are_listed_does_not_matter(members in members(), peer: u64) {
        let reversed: Vec<_> = members.iter().rev().copied().collect();
        prop_assert_eq!(place(PeerTag(peer), &members), place(PeerTag(peer), &reversed));
        let kept = member(2000, 1, 1);
        prop_assert_eq!(spread(PeerTag(peer), &kept, &members, 4), spread(PeerTag(peer), &kept, &reversed, 4));
    }

    #[test]
    fn who_joins_or_leaves_changes_only_its_own_pairs_and_each_by_itself(members in members(), peer: u64, weight in 1..4u32, rack in 0..4u32) {
        let joiner = member(2000, rack, weight);
        let without = pair(place(PeerTag(peer), &members));
        let mut members = members;
        members.push(joiner);
        let with = pair(place(PeerTag(peer), &members));
        if with.contains(&joiner.id) {
            prop_assert!(with.iter().all(|id| *id == joiner.id || without.contains(id)));
        } else {
            prop_assert_eq!(with, without);
        }
    }

    #[test]
    fn more_weight_takes_peers_from_nobody_to_somebody_else(members in members(), peer: u64, at: prop::sample::Index) {
        prop_assume!(!members.is_empty());
        let mut heavier = members.clone();
        let grown = at.index(members.len());
        heavier[grown].weight.0 += 1;
        let (before, after) = (place(PeerTag(peer), &members), place(PeerTag(peer), &heavier));
        let (before, after) = (before.map(|pair| pair.active), after.map(|pair| pair.active));
        prop_assert!(before == after || after == Some(heavier[grown].id));
    }
}
