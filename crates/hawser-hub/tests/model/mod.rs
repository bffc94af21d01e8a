//! A peer, two members or three, and a network that loses, duplicates, delays and reorders, as a model whose
//! transitions are the crate's own functions. stateright searches its states.
//!
//! 1. `actions`: what may happen next. Messages that were sent stay deliverable for ever, any number of times, in any
//!    order; that they are never delivered is a loss. Who is stopped reads them when it is let go on, as from a
//!    socket's buffer.
//! 2. `next_state`: it happens, and everybody who runs says what it then has to say.
//! 3. `properties`: what must hold in each state, and what must be possible.
//!
//! Time goes in ticks, the same for all, from zeros of their own. A handshake is one step, since others check it; it
//! binds messages to the start of a member and the life of a peer that have its keys.
//!
//! With three members the search begins where one owns and one stands by. Members then hear nothing of each other, and
//! no packet waits at one: what a member is to a peer does not depend on how many there are.

pub mod envelope;
pub mod places;
pub mod recovery;
pub mod state;

use hawser_hub::claim::{Forwarding, Phase};
use hawser_hub::units::Epoch;
use state::{LEASE, State};
use stateright::{Model, Property};

/// What bounds the search, and which rule is broken on purpose. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Hub {
    /// How many members there are: two, or three, of which one is spare.
    pub members: usize,
    /// How long it lasts.
    pub ticks: u8,
    /// The highest epoch that a peer may make.
    pub epochs: u64,
    /// How many times members restart, are stopped, and peers restart, all together.
    pub faults: u8,
    /// How many times a member hears from the other, begins or ends to drain, has a packet waiting, is taken for
    /// silent, or is gone back to, all together.
    pub extras: u8,
    /// Liveness costs most of the time: it is checked where this many messages, or a multiple, were sent.
    pub every: usize,
    /// A rule that is broken, which a property must notice.
    pub broken: Option<Broken>,
}

/// A rule of the protocol without which it fails. A plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A peer that restarts makes its epochs again.
    PeerForgets,
    /// A lease counts from when a claim comes.
    LeaseFromArrival,
    /// A member that drains keeps its place as the standby.
    DrainersStandBy,
}

/// What may happen. A plain value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Tick,
    Deliver(envelope::Packed),
    Handshake(usize),
    Restart(usize),
    Stop(usize),
    LetGo(usize),
    EndMove,
    RestartPeer { active: usize },
    Hearsay { to: usize },
    Traffic(usize),
    Drain(usize),
    Miss(usize),
    GoBack,
}

impl Model for Hub {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![if self.has_spare() { State::settled(self) } else { State::new(self) }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.now < self.ticks {
            actions.push(Action::Tick);
        }
        actions.extend(
            state.network.iter().filter(|packed| state.can_open(**packed)).map(|packed| Action::Deliver(*packed)),
        );
        if state.phase() != Phase::Moving {
            actions.push(Action::EndMove);
        }
        for at in 0..self.members {
            let (running, fresh) = (state.members[at].running, state.has_session(at));
            actions.extend((running && !fresh).then_some(Action::Handshake(at)));
            actions.extend((!running).then_some(Action::LetGo(at)));
            if state.faults > 0 {
                actions.extend([Action::Restart(at), Action::RestartPeer { active: at }]);
                actions.extend(running.then_some(Action::Stop(at)));
            }
            if running && state.extras > 0 {
                actions.push(Action::Drain(at));
                if self.has_spare() {
                    actions.push(Action::Miss(at));
                } else {
                    actions.extend([Action::Hearsay { to: at }, Action::Traffic(at)]);
                }
            }
        }
        if state.extras > 0 && self.has_spare() && state.places.standby < state.places.carrier {
            actions.push(Action::GoBack);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut next = last.clone();
        next.happen(self, action);
        (next != *last).then_some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.peer.claim().epoch.get() <= self.epochs
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("an epoch has one owner", an_epoch_has_one_owner),
            Property::always("a fenced member forwards nothing", a_fenced_member_forwards_nothing),
            Property::always("who restarted owns nothing before the peer claims", only_who_was_claimed_forwards),
            Property::always("a stale owner is one for a lease at most", a_stale_owner_is_bounded),
            Property::always("a live peer with a live member comes to an owner", a_live_peer_comes_to_an_owner),
            Property::always("a peer leaves who drains if another member is there", a_peer_leaves_who_drains),
            Property::sometimes("the standby takes over", the_standby_takes_over),
            Property::sometimes("an old owner is beside the new one for a while", two_epochs_have_owners),
            Property::sometimes("a lease ends", a_lease_ends),
        ]
    }
}

impl Hub {
    /// Whether a member is neither the owner nor the standby.
    pub fn has_spare(&self) -> bool {
        self.members > 2
    }
}

fn an_epoch_has_one_owner(_: &Hub, state: &State) -> bool {
    state.owners.values().all(|members| members.count_ones() <= 1)
}

fn a_fenced_member_forwards_nothing(_: &Hub, state: &State) -> bool {
    state.forwarding().all(|(at, epoch)| state.members[at].heard <= Some(epoch))
}

fn only_who_was_claimed_forwards(_: &Hub, state: &State) -> bool {
    state.forwarding().all(|(at, epoch)| state.members[at].claimed == Some(epoch))
}

fn a_stale_owner_is_bounded(_: &Hub, state: &State) -> bool {
    state.forwarding().all(|(_, epoch)| state.now < state.said_at[&epoch] + LEASE)
}

fn a_live_peer_comes_to_an_owner(hub: &Hub, state: &State) -> bool {
    !state.network.len().is_multiple_of(hub.every) || recovery::every_way_leads_to_an_owner(hub, state)
}

fn a_peer_leaves_who_drains(hub: &Hub, state: &State) -> bool {
    let looked_at = hub.has_spare() && state.network.len().is_multiple_of(hub.every);
    !looked_at || recovery::every_way_leaves_who_drains(hub, state)
}

fn the_standby_takes_over(_: &Hub, state: &State) -> bool {
    state.phase() == Phase::Settled && state.forwarding().any(|(at, epoch)| at > 0 && epoch > Epoch::FIRST)
}

fn two_epochs_have_owners(_: &Hub, state: &State) -> bool {
    state.forwarding().count() == 2
}

fn a_lease_ends(_: &Hub, state: &State) -> bool {
    (0..state.members.len()).any(|at| state.members[at].running && state.forwarding_of(at) == Forwarding::Hold)
}
