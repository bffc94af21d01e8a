//! From a state on, faults end: does the peer come to an owner? stateright's `eventually` cannot see cycles, and "can
//! always" is a branching-time property; so each state is continued by the code itself, on a network that delivers at
//! once.

use super::state::{MOST, State};
use super::{Action, Hub};
use hawser_hub::claim::Phase;

/// Ticks until then: the longest patience (16 silences of a tick), a claim each way, and a refresh; with a spare member
/// three moves more.
const ENOUGH: u8 = 24;
const ENOUGH_WITH_SPARE: u8 = 32;

/// Whether the peer gets an owner where all members live and are reached, and where any some or one alone are.
pub fn every_way_leads_to_an_owner(hub: &Hub, state: &State) -> bool {
    every_way_leads(hub, state, |_, _, _| true)
}

/// Whether it then gets one that does not drain, if there is one.
pub fn every_way_leaves_who_drains(hub: &Hub, state: &State) -> bool {
    every_way_leads(hub, state, |state, owner, reached| {
        let drains = |at: usize| state.members[at].draining;
        !drains(owner) || (0..hub.members).all(|at| !reached[at] || drains(at))
    })
}

fn every_way_leads(hub: &Hub, state: &State, to: impl Fn(&State, usize, [bool; MOST]) -> bool) -> bool {
    let reached = |some: u32| -> [bool; MOST] { std::array::from_fn(|at| (some >> at) & 1 == 1) };
    (1..1 << hub.members).map(reached).all(|reached| leads(hub, state, reached, &to))
}

/// Whether there is an owner in the end, of which `to` holds, where these members alone are reached.
fn leads(hub: &Hub, state: &State, reached: [bool; MOST], to: impl Fn(&State, usize, [bool; MOST]) -> bool) -> bool {
    let mut state = state.clone();
    state.places.forget();
    for (at, is_reached) in reached.into_iter().enumerate().take(hub.members) {
        state.places.away[at] = hub.has_spare() && !is_reached;
        if !is_reached {
            state.members[at].running = false;
            continue;
        }
        state.happen(hub, Action::LetGo(at));
        if !state.has_session(at) {
            state.happen(hub, Action::Handshake(at));
        }
    }
    // What was under way is lost.
    state.network.clear();
    let enough = if hub.has_spare() { ENOUGH_WITH_SPARE } else { ENOUGH };
    for _ in 0..enough {
        state.happen(hub, Action::Tick);
        state.deliver_all(hub);
        let (claim, owner) = (state.peer.claim(), state.peer.claim().owner.0 as usize);
        let owns = state.forwarding().any(|(at, epoch)| at == owner && epoch == claim.epoch);
        if state.phase() == Phase::Settled && owns && to(&state, owner, reached) {
            return true;
        }
        if hub.has_spare() && state.phase() != Phase::Moving {
            state.happen(hub, Action::EndMove);
        }
    }
    false
}
