//! From a state on, faults end: does the peer come to an owner? stateright's `eventually` cannot see cycles, and "can
//! always" is a branching-time property; so each state is continued by the code itself, on a network that delivers at
//! once.

use super::state::State;
use super::{Action, Hub};
use hawser_hub::claim::Phase;

/// Ticks until then: the longest patience (16 silences of a tick), a claim each way, and a refresh.
const ENOUGH: u8 = 24;

/// Whether the peer gets an owner where both members live and are reached, and where either one alone is.
pub fn every_way_leads_to_an_owner(hub: &Hub, state: &State) -> bool {
    [[true, true], [true, false], [false, true]].into_iter().all(|reached| leads_to_an_owner(hub, state, reached))
}

fn leads_to_an_owner(hub: &Hub, state: &State, reached: [bool; 2]) -> bool {
    let mut state = state.clone();
    for (at, reached) in reached.into_iter().enumerate() {
        if !reached {
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
    for _ in 0..ENOUGH {
        state.happen(hub, Action::Tick);
        while let Some(first) = state.network.pop() {
            if state.can_open(first) {
                state.happen(hub, Action::Deliver(first));
            }
        }
        let claim = state.peer.claim();
        if state.phase() == Phase::Settled
            && state.forwarding().any(|(at, epoch)| at as u64 == claim.owner.0 && epoch == claim.epoch)
        {
            return true;
        }
    }
    false
}
