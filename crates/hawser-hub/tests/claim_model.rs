//! The claim protocol keeps its promises in every state of a small bound, and the model notices where a rule of it is broken.

mod model;

use model::{Broken, Hub};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

const CALM: Hub = Hub { ticks: 2, epochs: 2, faults: 0, extras: 0, every: 16, broken: None };
const WILD: Hub = Hub { ticks: 4, epochs: 4, faults: 2, extras: 2, every: 4, broken: None };

/// Searches `hub`, up to so many steps, and tells the promises that are broken.
fn broken_promises(hub: Hub, steps: usize) -> Vec<&'static str> {
    let checker = hub.checker().target_max_depth(steps).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("{hub:?}: {} states that differ, depth {}", checker.unique_state_count(), checker.max_depth());
    let promises = hub.properties().into_iter().filter(|property| property.expectation == Expectation::Always);
    promises.map(|property| property.name).filter(|name| checker.discovery(name).is_some()).collect()
}

#[test]
fn every_state_of_two_ticks_without_faults_keeps_what_is_promised() {
    assert!(broken_promises(CALM, 100).is_empty());
}

#[test]
fn every_state_of_seven_steps_keeps_what_is_promised() {
    assert!(broken_promises(WILD, 7).is_empty());
}

#[test]
fn a_peer_that_makes_an_epoch_twice_is_noticed() {
    let hub = Hub { broken: Some(Broken::PeerForgets), ticks: 0, extras: 0, faults: 1, every: usize::MAX, ..WILD };
    assert_eq!(broken_promises(hub, 10), ["an epoch has one owner"]);
}

#[test]
fn a_lease_that_counts_from_a_claims_arrival_is_noticed() {
    let hub = Hub { broken: Some(Broken::LeaseFromArrival), extras: 0, faults: 0, every: usize::MAX, ..WILD };
    assert_eq!(broken_promises(hub, 9), ["a stale owner is one for a lease at most"]);
}
