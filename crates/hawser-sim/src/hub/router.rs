//! The router before the members: the peer's networks lead to whoever announced them best, a moment after it did.
//!
//! A member's portal puts the peer's prefixes into a kernel table, which a routing daemon announces; BFD tells that a
//! machine is gone. The daemon runs on while a portal is stopped, and so do its routes.

use crate::random::Seeded;
use hawser_core::units::Time;
use hawser_hub::claim::Announcement;
use hawser_hub::gate::Announced;
use hawser_hub::units::Epoch;
use std::time::Duration;

/// From a change of a member's table to the router's: both daemons, and the FIB.
const ANNOUNCED_IN: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];
/// A machine is taken for gone after so long: five times 30 ms (RFC 5880 section 6.8.4; docs/hub.md has the daemons'
/// configuration), and what the daemon then takes.
pub(crate) const GONE_IN: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(180)];

/// What the router hears of a member.
#[derive(Copy, Clone, Debug)]
pub struct Heard {
    /// Which.
    pub member: usize,
    /// How it announces the peer's networks from now on.
    pub route: (Announcement, Option<Epoch>),
}

/// Nobody has announced anything at first; the world owns it.
#[derive(Debug)]
pub struct Router {
    routes: Vec<(Announcement, Option<Epoch>)>,
    /// What each member's daemon says, and whether the router hears it.
    said: Vec<(Announcement, Option<Epoch>)>,
    hears: Vec<bool>,
    /// When each was last to hear of a member: daemons keep the order.
    last: Vec<Time>,
    rng: Seeded,
}

impl Router {
    /// Of this many members. `rng` decides how long things take.
    pub fn new(members: usize, rng: Seeded) -> Self {
        let none = vec![(Announcement::Withdrawn, None); members];
        Router { routes: none.clone(), said: none, hears: vec![true; members], last: vec![Time::ZERO; members], rng }
    }

    /// A member announces something: when the router hears of it, and what.
    pub fn on_announced(&mut self, now: Time, member: usize, announced: &Announced) -> (Time, Heard) {
        self.said[member] = (announced.announcement, announced.epoch);
        (self.delayed(now, member, ANNOUNCED_IN), self.heard(member))
    }

    /// A member's machine dies.
    pub fn on_death(&mut self, now: Time, member: usize) -> (Time, Heard) {
        self.said[member] = (Announcement::Withdrawn, None);
        (self.delayed(now, member, GONE_IN), self.heard(member))
    }

    /// The daemons' session with a member is cut, or is back.
    pub fn on_cut(&mut self, now: Time, member: usize, cut: bool) -> (Time, Heard) {
        self.hears[member] = !cut;
        (self.delayed(now, member, if cut { GONE_IN } else { ANNOUNCED_IN }), self.heard(member))
    }

    fn heard(&self, member: usize) -> Heard {
        let route = if self.hears[member] { self.said[member] } else { (Announcement::Withdrawn, None) };
        Heard { member, route }
    }

    /// It hears of it.
    pub fn hear(&mut self, heard: Heard) {
        self.routes[heard.member] = heard.route;
    }

    /// The member that the peer's networks lead to: the best preference, then the higher epoch.
    pub fn next_hop(&self) -> Option<usize> {
        let offered = (0..self.routes.len()).filter(|member| self.routes[*member].0 != Announcement::Withdrawn);
        offered.max_by_key(|member| self.routes[*member])
    }

    fn delayed(&mut self, now: Time, member: usize, [least, most]: [Duration; 2]) -> Time {
        let at = now + least + self.rng.up_to(most - least);
        self.last[member] = self.last[member].max(at);
        self.last[member]
    }
}
