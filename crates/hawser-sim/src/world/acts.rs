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
    /// Both ways send at so many Mbit/s.
    Rate(usize, f64),
    /// The way to the remote portal sends at so many Mbit/s.
    RateUp(usize, f64),
    /// The way to the local portal sends at so many Mbit/s.
    RateDown(usize, f64),
    /// The round trip is so many ms.
    RoundTrip(usize, f64),
    /// Both ways carry IP packets of at most so many bytes.
    Mtu(usize, usize),
    /// This share is lost at random, both ways.
    Loss(usize, f64),
    /// The local portal offers the link on these terms.
    Terms(usize, Terms),
    /// The portal of that side is killed.
    Kill(usize),
    /// It says good-bye and stops.
    Close(usize),
    /// It starts again.
    Start(usize),
    /// The local portal has one more link.
    Add(Box<LinkSpec>),
}

impl World {
    /// Does it now.
    pub fn act(&mut self, act: Act) {
        match act {
            Act::Cut(link) => self.change(link, |way| way.hole = true),
            Act::CutUp(link) => self.change_one(link, true, |way| way.hole = true),
            Act::CutDown(link) => self.change_one(link, false, |way| way.hole = true),
            Act::Heal(link) => self.change(link, |way| way.hole = false),
            Act::Stall(link) => self.change(link, |way| way.stalled = true),
            Act::StallUp(link) => self.change_one(link, true, |way| way.stalled = true),
            Act::StallDown(link) => self.change_one(link, false, |way| way.stalled = true),
            Act::Resume(link) => self.change(link, |way| way.stalled = false),
            Act::Down(link) => self.set_up(link, false),
            Act::Up(link) => self.set_up(link, true),
            Act::Rebind(link) => self.links[link].rebind(),
            Act::Move(link) => {
                self.links[link].change_address();
                let portal = &mut self.portals[LOCAL];
                portal.endpoint.handle_link_moved(portal.clock.show(self.now), LinkId(link as u16), Moved::Address);
            }
            Act::Rate(link, mbit) => self.change(link, |way| way.set_rate(mbit)),
            Act::RateUp(link, mbit) => self.change_one(link, true, |way| way.set_rate(mbit)),
            Act::RateDown(link, mbit) => self.change_one(link, false, |way| way.set_rate(mbit)),
            Act::RoundTrip(link, ms) => self.change(link, |way| way.delay = millis(ms) / 2),
            Act::Mtu(link, mtu) => self.change(link, |way| way.mtu = mtu),
            Act::Loss(link, share) => self.change(link, |way| way.loss = Loss::Random(share)),
            Act::Terms(link, terms) => self.portals[LOCAL].endpoint.set_terms(LinkGroup(link as u16), terms),
            Act::Kill(side) => self.portals[side].stopped = true,
            Act::Close(side) => {
                self.portals[side].endpoint.close();
                self.settle(side);
                self.portals[side].stopped = true;
            }
            Act::Start(side) => self.portals[side].restart(self.now),
            Act::Add(spec) => self.add_link(*spec),
        }
    }

    fn change(&mut self, link: usize, change: impl Fn(&mut Way)) {
        for up in [true, false] {
            self.change_one(link, up, &change);
        }
    }

    fn change_one(&mut self, link: usize, up: bool, change: impl FnOnce(&mut Way)) {
        let due = self.links[link].pipe(up).change(self.now, change);
        self.departs(link, up, due);
    }

    fn set_up(&mut self, link: usize, up: bool) {
        self.change(link, |way| way.hole = !up);
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
