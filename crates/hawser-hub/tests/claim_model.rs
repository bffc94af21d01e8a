//! The claim protocol keeps its promises in every state of a small bound, and the model notices where a rule of it is
//! broken.

#![allow(clippy::disallowed_macros, reason = "a search tells how far it came")]

mod model;

use model::{Broken, Hub};
use proptest::prelude::*;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

const CALM: Hub = Hub { members: 2, ticks: 4, epochs: 4, faults: 0, extras: 0, every: 16, broken: None };
const LONG: Hub = Hub { members: 2, ticks: 30, epochs: 60, faults: 12, extras: 200, every: 4, broken: None };
const WILD: Hub = Hub { members: 2, ticks: 4, epochs: 4, faults: 2, extras: 2, every: 4, broken: None };
/// Three members, of which two may drain.
const SPARE: Hub = Hub { members: 3, ticks: 3, epochs: 4, faults: 0, extras: 2, every: 2, broken: None };
const LONG_SPARE: Hub = Hub { members: 3, ticks: 24, epochs: 40, faults: 8, extras: 100, every: 16, broken: None };

/// The promises that are broken within this many steps.
fn broken_promises(hub: Hub, steps: usize) -> Vec<&'static str> {
    // Its depth counts states, the first one too, and leaves out the last.
    let checker = hub.checker().target_max_depth(steps + 2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    eprintln!("{hub:?}: {} states that differ, depth {}", checker.unique_state_count(), checker.max_depth());
    promises(hub).map(|promise| promise.name).filter(|name| checker.discovery(name).is_some()).collect()
}

fn promises(hub: Hub) -> impl Iterator<Item = Property<Hub>> {
    hub.properties().into_iter().filter(|property| property.expectation == Expectation::Always)
}

#[test]
fn every_state_of_eight_steps_on_a_bad_network_keeps_what_is_promised() {
    assert!(broken_promises(CALM, 8).is_empty());
}

#[test]
fn every_state_of_six_steps_with_faults_keeps_what_is_promised() {
    assert!(broken_promises(WILD, 6).is_empty());
}

/// It begins where a peer has an owner and a standby, which may both drain while the third member does not.
#[test]
fn every_state_of_six_steps_of_a_hub_of_three_keeps_what_is_promised() {
    assert!(broken_promises(SPARE, 6).is_empty());
}

/// The promise that is broken on the way, if one is.
fn walk(hub: Hub, choices: &[prop::sample::Index]) -> Result<(), &'static str> {
    let mut state = hub.init_states().remove(0);
    for choice in choices {
        let mut actions = Vec::new();
        hub.actions(&state, &mut actions);
        if actions.is_empty() {
            break;
        }
        let next = hub.next_state(&state, *choice.get(&actions));
        let Some(next) = next.filter(|next| hub.within_boundary(next)) else { continue };
        state = next;
        if let Some(promise) = promises(hub).find(|promise| !(promise.condition)(&hub, &state)) {
            return Err(promise.name);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    /// Further than a search comes: through many faults, moves and lapses in a row.
    #[test]
    fn random_walks_of_hundreds_of_steps_keep_what_is_promised(choices in proptest::collection::vec(any::<prop::sample::Index>(), 400)) {
        prop_assert_eq!(walk(LONG, &choices), Ok(()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_walks_of_a_hub_of_three_keep_what_is_promised(choices in proptest::collection::vec(any::<prop::sample::Index>(), 400)) {
        prop_assert_eq!(walk(LONG_SPARE, &choices), Ok(()));
    }
}

#[test]
fn a_peer_that_makes_an_epoch_twice_is_noticed() {
    let hub = Hub { broken: Some(Broken::PeerForgets), ticks: 0, extras: 0, faults: 1, every: usize::MAX, ..WILD };
    assert_eq!(broken_promises(hub, 8), ["an epoch has one owner"]);
}

#[test]
fn a_lease_that_counts_from_a_claims_arrival_is_noticed() {
    let hub = Hub { broken: Some(Broken::LeaseFromArrival), extras: 0, faults: 0, every: usize::MAX, ..WILD };
    assert_eq!(broken_promises(hub, 7), ["a stale owner is one for a lease at most"]);
}

#[test]
fn a_standby_that_drains_and_keeps_its_place_is_noticed() {
    let hub = Hub { broken: Some(Broken::DrainersStandBy), ticks: 0, every: 1, ..SPARE };
    assert_eq!(broken_promises(hub, 2), ["a peer leaves who drains if another member is there"]);
}
