//! Choices over a small network, and properties of every choice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::*;
use crate::addr::{Asn, Isd, IsdAs};
use crate::path::{Dataplane, Fingerprint, InterfaceId, Path, PathInterface};

/// `1 4 5 2` is the path from AS 1 by its interface 4 to interface 5 of AS 2; more follow in the same way.
fn path(way: &str) -> Path {
    let numbers: Vec<u16> = way.split(' ').map(|number| number.parse().expect("a number")).collect();
    let links = numbers.windows(4).step_by(3);
    let interface = |isd_as: u16, id| PathInterface { isd_as: as_number(isd_as), id: InterfaceId(id) };
    let ends = links.flat_map(|link| [interface(link[0], link[1]), interface(link[3], link[2])]);
    let interfaces = Fingerprint::new(ends);
    let parts = interfaces.interfaces().len() - 1;
    Path {
        source: as_number(numbers[0]),
        destination: as_number(numbers[numbers.len() - 1]),
        dataplane: Dataplane::Empty,
        next_hop: None,
        mtu: 1472,
        interfaces,
        latency: vec![None; parts],
        bandwidth: vec![None; parts],
        expiry: SystemTime::UNIX_EPOCH,
    }
}

fn as_number(number: u16) -> IsdAs {
    IsdAs::new(Isd(1), Asn::new(number.into()).expect("it is small"))
}

/// Four paths from AS 1 to AS 9: two by AS 2, of which the second is longer, one by AS 3, one by AS 4.
fn four() -> Vec<Path> {
    let latency = |ms: [u64; 3]| ms.map(|ms| Some(Duration::from_millis(ms))).to_vec();
    vec![
        Path { mtu: 1400, latency: latency([9, 1, 9]), ..path("1 1 1 2 2 1 9") },
        Path { bandwidth: vec![Some(10), None, Some(90), None, None], ..path("1 1 1 2 3 1 5 2 2 9") },
        Path { mtu: 1280, bandwidth: vec![None, None, Some(50)], ..path("1 2 1 3 2 3 9") },
        Path { mtu: 1500, latency: latency([2, 1, 2]), ..path("1 3 1 4 2 4 9") },
    ]
}

#[test]
fn each_criterion_has_its_order() {
    let healthy = |ms, loss| Health {
        loss: Some(Loss(loss)),
        round_trip: Some(Duration::from_millis(ms)),
        since_failure: Some(FAILURE_MEMORY),
    };
    let paths = four();
    let known = [(0, healthy(5, 50)), (2, healthy(90, 0)), (3, healthy(30, 9))];
    let health: HealthTable = known.map(|(at, health): (usize, _)| (paths[at].interfaces.clone(), health)).into();
    for (criterion, order) in [
        (Criterion::Length, [0, 2, 3, 1]),
        (Criterion::Mtu, [3, 1, 0, 2]),
        (Criterion::Latency, [3, 0, 2, 1]),
        (Criterion::Bandwidth, [2, 1, 0, 3]),
        (Criterion::Health, [3, 2, 0, 1]),
        (Criterion::Sharability, [0, 2, 3, 1]),
    ] {
        assert_eq!(choose(&paths, criterion, 4, &health), order, "{criterion}");
        assert_eq!(choose(&paths, criterion, 9, &health), order, "{criterion}");
    }
}

#[test]
fn a_path_that_failed_lately_comes_last_whatever_is_asked_for() {
    let paths = four();
    let failed = |ago| Health { since_failure: Some(Duration::from_secs(ago)), ..Health::default() };
    let health: HealthTable =
        [(0, failed(3)), (3, failed(30))].map(|(at, health): (usize, _)| (paths[at].interfaces.clone(), health)).into();
    for criterion in Criterion::ALL {
        let order = choose(&paths, criterion, 4, &health);
        assert_eq!(order[2..], [3, 0], "{criterion}: the one that failed longer ago is first");
    }
}

#[test]
fn each_way_is_listed_once_by_the_path_that_lasts_longest() {
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let mut paths = four();
    paths.push(Path { expiry: later, ..paths[2].clone() });
    assert_eq!(listed(&paths), [0, 4, 3, 1]);
}

#[test]
fn disjoint_paths_are_found_where_they_exist() {
    // Each path beginning with the shortest shares a link with it: greedy is caught, the search is not.
    let paths = [path("1 1 1 2 2 1 9"), path("1 1 1 2 5 1 3 2 2 9"), path("1 2 1 4 2 2 2 2 1 9")];
    let ways: Vec<&Fingerprint> = paths.iter().map(|path| &path.interfaces).collect();
    assert_eq!(greedy(&ways, 2), [0, 1]);
    assert_eq!(least_shared(&ways, 2), LeastShared { chosen: vec![1, 2], exactness: Exactness::Best });

    let four = four();
    let two = choose(&four, Criterion::Sharability, 2, &HealthTable::new());
    assert_eq!(two, [0, 2]);
    assert_eq!(choose(&four, Criterion::Sharability, 3, &HealthTable::new()), [0, 2, 3]);
}

#[test]
fn paths_through_other_ases_are_better_where_no_link_is_shared_either_way() {
    let paths = [path("1 1 1 2 2 1 9"), path("1 2 3 2 4 2 9"), path("1 3 1 3 2 3 9")];
    let ways: Vec<&Fingerprint> = paths.iter().map(|path| &path.interfaces).collect();
    assert_eq!(least_shared(&ways, 2).chosen, [0, 2]);
}

#[test]
fn a_search_that_is_too_long_ends_with_the_best_so_far() {
    // All alike but for their last link: no set can be ruled out early.
    let paths: Vec<Path> = (1..=300).map(|id| path(&format!("1 {id} {id} 2 {} {id} 9", id % 17 + 1000))).collect();
    let ways: Vec<&Fingerprint> = paths.iter().map(|path| &path.interfaces).collect();
    let found = least_shared(&ways, 40);
    assert_eq!((found.chosen.len(), found.exactness), (40, Exactness::Unproven));
}

#[test]
fn a_set_is_told_in_figures() {
    let paths = four();
    let metrics = SetMetrics::of([&paths[0], &paths[3]]);
    assert_eq!((metrics.paths, metrics.hops, metrics.mtu, metrics.sharability()), (2, 6, Some(1400), 0));
    let ms = Duration::from_millis;
    assert_eq!((metrics.total_latency, metrics.longest_latency), (Some(ms(24)), Some(ms(19))));
    let metrics = SetMetrics::of(&paths);
    assert_eq!((metrics.sharability(), metrics.total_latency), (2, None));
    let shared: Vec<String> = metrics.shared.iter().map(|one| format!("{} {}", one.interface, one.paths)).collect();
    assert_eq!(shared, ["1-1#1 2", "1-2#1 2"]);
    assert_eq!(SetMetrics::of([]), SetMetrics { total_latency: Some(ms(0)), ..SetMetrics::default() });
}

#[test]
fn a_criterion_is_read_as_it_is_written() {
    for criterion in Criterion::ALL {
        assert_eq!(criterion.to_string().parse(), Ok(criterion));
    }
    let error = "shortest".parse::<Criterion>().expect_err("it is none").to_string();
    assert_eq!(error, "read \"shortest\": paths are chosen by mtu, length, latency, bandwidth, sharability or health");
}

#[test]
fn lists_of_what_is_allowed_and_denied_are_an_access_list() {
    let hops = |list: &[&str]| -> Vec<HopPredicate> { list.iter().map(|hop| hop.parse().expect("a hop")).collect() };
    let paths = four();
    for (allow, deny, left) in [
        (&[][..], &[][..], vec![0, 1, 2, 3]),
        (&[], &["1-2"], vec![2, 3]),
        (&[], &["1-1#2", "1-4#2"], vec![0, 1]),
        (&["1-1", "1-9", "1-2", "1-3"], &[], vec![0, 2]),
        (&["1-1#1,1", "1-9", "1-2", "1-5"], &["1-9#1"], vec![1]),
    ] {
        let policy = Policy { acl: Acl::of_lists(&hops(allow), &hops(deny)), ..Policy::default() };
        let admitted: Vec<usize> = (0..paths.len()).filter(|&at| policy.admits(&paths[at])).collect();
        assert_eq!(admitted, left, "{allow:?} {deny:?}");
    }
}

/// A path of one to four links in a network of eight ASes with a few links between each two.
fn any_path() -> impl Strategy<Value = Path> {
    let transit = prop::sample::subsequence((2u16..8).collect::<Vec<_>>(), 0..4).prop_shuffle();
    (transit, prop::collection::vec(1u16..4, 3), 1u16..4, 1000u16..1500, 0u64..3, prop::option::of(0u64..50)).prop_map(
        |(transit, links, last, mtu, expiry, latency)| {
            let mut way = "1".to_owned();
            let mut from = 1;
            for (to, link) in transit.into_iter().zip(links).chain([(9, last)]) {
                // A link's two interfaces are named after the ASes and the link.
                way += &format!(" {} {} {to}", to * 10 + link, from * 10 + link);
                from = to;
            }
            let path = path(&way);
            let parts = path.interfaces.interfaces().len() - 1;
            let expiry = SystemTime::UNIX_EPOCH + Duration::from_secs(expiry);
            Path { mtu, expiry, latency: vec![latency.map(Duration::from_millis); parts], ..path }
        },
    )
}

fn any_health() -> impl Strategy<Value = Health> {
    let times = (prop::option::of(0u64..100), prop::option::of(0u64..300));
    (prop::option::of(0u16..1000), times).prop_map(|(loss, (round_trip, failure))| Health {
        loss: loss.map(Loss),
        round_trip: round_trip.map(Duration::from_millis),
        since_failure: failure.map(Duration::from_secs),
    })
}

/// How often interfaces, and then ASes between the ends, are used beyond once.
fn sharing(paths: &[&Fingerprint]) -> (usize, usize) {
    let (mut links, mut ases) = (BTreeMap::new(), BTreeMap::new());
    for path in paths {
        path.interfaces().iter().for_each(|interface| *links.entry(*interface).or_insert(0) += 1);
        let inner = hops(path).filter(|hop| hop.ingress != InterfaceId(0) && hop.egress != InterfaceId(0));
        inner.for_each(|hop| *ases.entry(hop.isd_as).or_insert(0) += 1);
    }
    let beyond_one = |uses: usize| uses - 1;
    (links.into_values().map(beyond_one).sum(), ases.into_values().map(beyond_one).sum())
}

/// The least sharing that any set of this many has: all of them are looked at.
fn least_by_trying(ways: &[&Fingerprint], count: usize) -> (usize, usize) {
    let sets = (0u32..1 << ways.len()).filter(|set| set.count_ones() as usize == count);
    let costs = sets.map(|set| {
        let chosen: Vec<&Fingerprint> = (0..ways.len()).filter(|at| set >> at & 1 == 1).map(|at| ways[at]).collect();
        sharing(&chosen)
    });
    costs.min().expect("there is a set")
}

proptest! {
    #[test]
    fn every_choice_is_a_set_of_the_paths_it_was_made_from(
        paths in prop::collection::vec(any_path(), 0..12),
        healths in prop::collection::vec(any_health(), 12),
        count in 0usize..14,
    ) {
        let ways: BTreeSet<&Fingerprint> = paths.iter().map(|path| &path.interfaces).collect();
        let health: HealthTable = paths.iter().map(|path| path.interfaces.clone()).zip(healths).collect();
        for criterion in Criterion::ALL {
            let chosen = choose(&paths, criterion, count, &health);
            prop_assert_eq!(chosen.len(), count.min(ways.len()));
            let different: BTreeSet<&Fingerprint> = chosen.iter().map(|&at| &paths[at].interfaces).collect();
            prop_assert_eq!(different.len(), chosen.len());
            // The order they came in changes nothing.
            let mut other = paths.clone();
            other.reverse();
            let again: Vec<&Path> = choose(&other, criterion, count, &health).into_iter().map(|at| &other[at]).collect();
            let ways = |paths: Vec<&Path>| paths.into_iter().map(|path| (path.interfaces.clone(), path.expiry)).collect::<Vec<_>>();
            prop_assert_eq!(ways(again), ways(chosen.into_iter().map(|at| &paths[at]).collect()));
        }
    }

    #[test]
    fn the_search_is_never_worse_than_greedy_and_as_good_as_trying_all(
        paths in prop::collection::vec(any_path(), 1..10),
        count in 1usize..5,
    ) {
        let ways: Vec<&Fingerprint> = listed(&paths).into_iter().map(|at| &paths[at].interfaces).collect();
        let of = |set: &[usize]| sharing(&set.iter().map(|&at| ways[at]).collect::<Vec<_>>());
        let found = least_shared(&ways, count);
        prop_assert_eq!(found.exactness, Exactness::Best);
        prop_assert!(of(&found.chosen) <= of(&greedy(&ways, count)));
        prop_assert_eq!(of(&found.chosen), least_by_trying(&ways, count.min(ways.len())));
    }

    #[test]
    fn ranks_follow_the_criterion(paths in prop::collection::vec(any_path(), 0..12)) {
        let none = HealthTable::new();
        let by = |criterion| choose(&paths, criterion, usize::MAX, &none).into_iter().map(|at| &paths[at]).collect::<Vec<_>>();
        prop_assert!(by(Criterion::Mtu).is_sorted_by_key(|path| std::cmp::Reverse(path.mtu)));
        prop_assert!(by(Criterion::Length).is_sorted_by_key(|path| path.hops()));
        let latency = |path: &&Path| path.announced_latency().unwrap_or(Duration::MAX);
        prop_assert!(by(Criterion::Latency).is_sorted_by_key(latency));
    }
}
