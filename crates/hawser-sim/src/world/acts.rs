//! What may happen to a world.

use super::{LOCAL, World};
use crate::net::spec::millis;
use crate::net::{LinkSpec, Loss, Way};
use hawser_core::path::health::DownReason;
use hawser_core::session::{Moved, Terms};
use hawser_core::units::{LinkGroup, LinkId};

/// One change. Links and sides are counted from zero; side 0 is the local portal.
#[derive(Clone, Debug)]
pub enum Act {
    /// All that is sent on the link vanishes, and nobody is told.
    Cut(usize),
    /// All that is sent to the remote portal vanishes.
    CutUp(usize),
    /// All that is sent to the local portal vanishes.
    CutDown(usize),
    /// Nothing vanishes any more.
    Heal(usize),
    /// All that is sent on the link is kept, and sent when this ends; what no longer fits its queues is dropped.
    Stall(usize),
    /// The same of what is sent to the remote portal.
    StallUp(usize),
    /// The same of what is sent to the local portal.
    StallDown(usize),
    /// What was kept is sent.
    Resume(usize),
    /// The interface goes: nothing is sent, and the local portal is told.
    Down(usize),
    /// It comes back, and the local portal is told.
    Up(usize),
    /// The link's NAT gives it another port.
    Rebind(usize),
    /// The link's address changes, and the local portal is told.
    Move(usize),
    /// Both ways send at this rate, Mbit/s.
    Rate(usize, f64),
    /// The way to the remote portal sends at this rate, Mbit/s.
    RateUp(usize, f64),
    /// The way to the local portal sends at this rate, Mbit/s.
    RateDown(usize, f64),
    /// The round trip is this many ms.
    RoundTrip(usize, f64),
    /// Both ways carry IP packets of at most this many bytes.
    Mtu(usize, usize),
    /// This share is lost at random, both ways.
    Loss(usize, f64),
    /// The local portal offers the link on these terms.
    Terms(usize, Terms),
    /// The portal of that side is killed.
    Kill(usize),
    /// It closes its sessions and stops.
    Close(usize),
    /// It starts again.
    Start(usize),
    /// The local portal has one more link.
    Add(Box<LinkSpec>),
}

impl Act {
    /// The link whose ways it changes: the one to the remote portal, the one back.
    pub fn touches(&self) -> Option<(usize, [bool; 2])> {
        match self {
            Act::Cut(link) | Act::Heal(link) | Act::Down(link) | Act::Up(link) => Some((*link, [true, true])),
            Act::Stall(link) | Act::Resume(link) => Some((*link, [true, true])),
            Act::CutUp(link) | Act::StallUp(link) | Act::RateUp(link, _) => Some((*link, [true, false])),
            Act::CutDown(link) | Act::StallDown(link) | Act::RateDown(link, _) => Some((*link, [false, true])),
            Act::Rate(link, _) | Act::RoundTrip(link, _) | Act::Loss(link, _) => Some((*link, [true, true])),
            Act::Mtu(link, _) => Some((*link, [true, true])),
            _ => None,
        }
    }

    /// Changes such a way.
    pub fn change(&self, way: &mut Way) {
        match self {
            Act::Cut(_) | Act::CutUp(_) | Act::CutDown(_) | Act::Down(_) => way.hole = true,
            Act::Heal(_) | Act::Up(_) => way.hole = false,
            Act::Stall(_) | Act::StallUp(_) | Act::StallDown(_) => way.stalled = true,
            Act::Resume(_) => way.stalled = false,
            Act::Rate(_, mbit) | Act::RateUp(_, mbit) | Act::RateDown(_, mbit) => way.set_rate(*mbit),
            Act::RoundTrip(_, ms) => way.delay = millis(*ms) / 2,
            Act::Mtu(_, mtu) => way.mtu = *mtu,
            Act::Loss(_, share) => way.loss = Loss::Random(*share),
            _ => {}
        }
    }
}

impl World {
    /// Does it now.
    pub fn act(&mut self, act: Act) {
        if let Some((link, ways)) = act.touches() {
            for (up, touched) in [true, false].into_iter().zip(ways) {
                if touched {
                    self.change_way(link, up, |way| act.change(way));
                }
            }
        }
        self.act_on_portals(act);
    }

    /// What of it is not of a way.
    fn act_on_portals(&mut self, act: Act) {
        match act {
            Act::Down(link) => self.set_up(link, false),
            Act::Up(link) => self.set_up(link, true),
            Act::Rebind(link) => self.links[link].rebind(),
            Act::Move(link) => {
                self.links[link].change_address();
                let portal = &mut self.portals[LOCAL];
                portal.endpoint.handle_link_moved(portal.clock.show(self.now), LinkId(link as u16), Moved::Address);
            }
            Act::Terms(link, terms) => self.portals[LOCAL].endpoint.set_terms(LinkGroup(link as u16), terms),
            Act::Kill(side) => self.portals[side].stopped = true,
            Act::Close(side) => {
                self.portals[side].endpoint.close();
                self.settle(side);
                self.portals[side].stopped = true;
            }
            Act::Start(side) => self.portals[side].restart(self.now),
            Act::Add(spec) => self.add_link(*spec),
            _ => {}
        }
    }

    /// The socket of a link goes or comes back, and the local portal is told.
    pub fn set_up(&mut self, link: usize, up: bool) {
        let (portal, id) = (&mut self.portals[LOCAL], LinkId(link as u16));
        portal.set_up(id, up);
        let now = portal.clock.show(self.now);
        if up {
            portal.endpoint.handle_link_up(now, id);
        } else {
            portal.endpoint.handle_link_down(now, id, DownReason::LinkLost);
        }
    }
}
