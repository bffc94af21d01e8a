use std::time::SystemTime;

use hawser_scion::select::{Acl, Criterion, Policy, Sequence};
use hawser_scion::{Dataplane, InterfaceId, IsdAs, PathInterface};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A path over one link by this interface, renewed this often.
fn path(by: u16, renewed: u8) -> Path {
    let isd_as = |text: &str| text.parse::<IsdAs>().expect("an AS");
    let (source, destination) = (isd_as("1-ff00:0:110"), isd_as("1-ff00:0:120"));
    let crosses = [source, destination].map(|isd_as| PathInterface { isd_as, id: InterfaceId(by) });
    let mut bytes = vec![0, 0, 0x20, 0, 1, 0, 0, renewed, 0, 0, 0, 0];
    bytes.extend([[0; 12], [0; 12]].concat());
    Path {
        source,
        destination,
        dataplane: Dataplane::Scion(bytes.into()),
        next_hop: Some("10.110.0.1:30042".parse().expect("an address")),
        mtu: 1472,
        interfaces: Fingerprint::new(crosses),
        latency: vec![None],
        bandwidth: vec![None],
        expiry: SystemTime::UNIX_EPOCH + SECOND * u32::from(renewed),
    }
}

fn choice(count: u8) -> Choice {
    let endpoint = "1-ff00:0:120,10.120.0.10:31000".parse().expect("an endpoint");
    let policy = Policy { acl: Acl::default(), sequence: Sequence::default() };
    let settings = ScionPaths { daemon: None, count, select: Criterion::Sharability, policy, port: 0 };
    Choice::new(LinkId(2), false, endpoint, settings)
}

/// Interfaces and aliases of the paths in use.
fn used(choice: &Choice) -> Vec<(u16, u32)> {
    let id = |way: &Way| way.path().interfaces.interfaces()[0].id.0;
    choice.ways().iter().map(|way| (id(way), way.alias().name())).collect()
}

#[test]
fn paths_are_chosen_and_renewed_under_the_same_names() {
    let (mut choice, mut names, now) = (choice(2), 1.., Instant::now());
    assert!(choice.on_paths(now, vec![path(1, 0), path(2, 0), path(3, 0)], &mut names));
    assert_eq!((used(&choice), choice.missing()), (vec![(1, 1), (2, 2)], 0));
    assert!(!choice.on_paths(now, vec![path(3, 0), path(2, 0), path(1, 0)], &mut names), "nothing changed");
    assert!(choice.on_paths(now, vec![path(1, 1), path(2, 0), path(2, 1), path(3, 0)], &mut names));
    assert_eq!(used(&choice), [(1, 1), (2, 2)]);
    assert_eq!(choice.ways()[1].path(), &path(2, 1), "of two the one that lasts longer");
}

#[test]
fn a_path_that_is_gone_gives_way_and_one_that_comes_is_taken_when_there_are_too_few() {
    let (mut choice, mut names, now) = (choice(2), 1.., Instant::now());
    assert!(choice.on_paths(now, vec![path(1, 0)], &mut names));
    assert_eq!((used(&choice), choice.missing()), (vec![(1, 1)], 1));
    assert!(choice.on_paths(now, vec![path(1, 0), path(4, 0)], &mut names));
    assert!(choice.on_paths(now, vec![path(4, 0), path(5, 0)], &mut names));
    assert_eq!(used(&choice), [(4, 2), (5, 3)]);
    assert!(choice.on_paths(now, vec![], &mut names));
    assert_eq!((used(&choice), choice.missing()), (vec![], 2));
}

#[test]
fn a_path_that_fails_is_exchanged_if_there_is_another_that_did_not() {
    let (mut choice, mut names, now) = (choice(2), 1.., Instant::now());
    choice.on_paths(now, vec![path(1, 0), path(2, 0), path(3, 0)], &mut names);
    assert!(!choice.on_failure(now, 77, &mut names), "nobody's");
    assert!(choice.on_failure(now, 1, &mut names));
    assert_eq!(used(&choice), [(2, 2), (3, 3)], "the one that works keeps its name");
    assert!(!choice.on_failure(now + SECOND, 2, &mut names), "the other has failed too, just now");
    assert_eq!(used(&choice), [(2, 2), (3, 3)]);
    assert!(choice.on_failure(now + SECOND * 600, 2, &mut names), "long ago");
    assert_eq!(used(&choice), [(3, 3), (1, 4)]);
}

#[test]
fn what_the_policy_forbids_is_never_used() {
    let (mut choice, mut names, now) = (choice(2), 1.., Instant::now());
    choice.settings.policy.acl = Acl::of_lists(&[], &["1-ff00:0:120#2".parse().expect("a hop")]);
    choice.on_paths(now, vec![path(1, 0), path(2, 0)], &mut names);
    assert_eq!((used(&choice), choice.missing()), (vec![(1, 1)], 1));
    assert!(!choice.on_failure(now, 1, &mut names));
}
