//! What `pair` adds to its claimant where a member is spare: who stands by, and whom packets go to. Who does is the
//! crate's own decision ([`successor`], [`Draining`]); when a member is away, a search chooses.

use super::state::{IDS, MOST, State};
use super::{Broken, Hub};
use hawser_core::units::Time;
use hawser_hub::claim::{ClaimAck, Phase};
use hawser_hub::pair::{Draining, Fitness, successor};

/// By members' places in the peer's list. A plain value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Places {
    /// Whom packets go to.
    pub carrier: usize,
    /// Who stands by.
    pub standby: usize,
    /// An old owner was not let go yet.
    pub leaving: bool,
    draining: [Draining; MOST],
    /// Who is taken for silent, until it answers.
    pub away: [bool; MOST],
}

impl Places {
    /// A peer that has just started.
    pub fn new(carrier: usize, standby: usize) -> Self {
        Places { carrier, standby, leaving: false, draining: [Draining::default(); MOST], away: [false; MOST] }
    }

    /// A session with a new start of a member began.
    pub fn begin_anew(&mut self, member: usize) {
        (self.draining[member], self.away[member]) = (Draining::default(), false);
    }

    /// A member answers.
    pub fn hear(&mut self, now: Time, member: usize, ack: ClaimAck) {
        self.draining[member].hear(now, ack);
        self.away[member] = false;
    }

    /// A minute passed: what members said before it is not known any more.
    pub fn forget(&mut self) {
        self.draining = [Draining::default(); MOST];
    }
}

impl State {
    /// As `pair` does in each round.
    pub fn follow(&mut self, hub: &Hub, now: Time) {
        let Places { carrier, standby, leaving, .. } = self.places;
        let members = self.members.len();
        let fitness = |place: usize| self.fitness(hub, now, place);
        let is_away = |place: usize| fitness(place) == Fitness::Away;
        let both_gone = is_away(carrier) && is_away(standby) && !(0..members).all(is_away);
        let waits = leaving || self.peer.is_pressed(now) && !is_away(standby);
        let next = successor(members, [carrier, standby], fitness).filter(|_| !waits);
        if self.phase() == Phase::Moving && both_gone {
            self.peer.handle_both_gone();
        }
        if let Some(next) = next.filter(|next| self.peer.replace_standby(IDS[*next])) {
            self.places.standby = next;
        }
        let to = self.peer.carrier().0 as usize;
        if to != self.places.carrier && self.has_any_session(to) {
            self.places.standby = std::mem::replace(&mut self.places.carrier, to);
            self.peer.replace_standby(IDS[self.places.standby]);
            self.places.leaving = self.phase() == Phase::Settled;
        }
    }

    fn fitness(&self, hub: &Hub, now: Time, place: usize) -> Fitness {
        let drains = self.places.draining[place].drains(now) && hub.broken != Some(Broken::DrainersStandBy);
        match drains {
            _ if self.places.away[place] || !self.has_any_session(place) => Fitness::Away,
            true => Fitness::Draining,
            false => Fitness::There,
        }
    }
}
