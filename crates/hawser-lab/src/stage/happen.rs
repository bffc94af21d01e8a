//! What may happen to a link.
//!
//! ```text
//!              cut, handover from it
//!   ┌────────┐ ◄──────────────────── ┌──────┐ ──black hole──► ┌────────────┐
//!   │  down  │                       │  up  │                 │ black hole │
//!   └────────┘ ──restore, handover─► └──────┘ ◄───restore──── └────────────┘
//!       ▲ absent links begin here        │ ▲
//!       └──────────────cut───────────────┼─┼──── from a black hole too
//!                                        └─┘ change, address, nat-rebind: in every state
//! ```

use std::io;
use std::time::Duration;

use hawser_wire::{Trace, Way};

use super::numbering::{END, FAMILIES, Net};
use super::routes::source_rule;
use super::{Stage, number, programs};
use crate::error::LabError;
use crate::scenario::figures::lay;
use crate::scenario::{Event, Happening};

/// Longer than any run: how long a link that stalls holds back.
const STALLED: Duration = Duration::from_secs(600);
/// The last host part of a link's local end, before it begins anew.
const LAST_HOST: u8 = 250;

impl Stage {
    /// Lets an event happen to its link now, and returns when it has.
    ///
    /// # Errors
    /// Where the stage has no such link, as with what happens to programs; or the kernel or the link's backend refuses.
    pub fn happen(&self, event: &Event) -> Result<(), LabError> {
        let link = self.demand(&event.link)?;
        match &event.what {
            Happening::Cut => self.cut(link),
            Happening::BlackHole => Ok(self.links[link].link.black_hole(true)?),
            Happening::Restore => self.restore(link),
            Happening::Change { up, down } => {
                self.links[link].link.set(Way::AToB, |way| lay(up, way))?;
                Ok(self.links[link].link.set(Way::BToA, |way| lay(down, way))?)
            }
            Happening::Handover { to } => {
                let to = self.demand(to)?;
                // Nothing passes from now on, while the other link comes.
                self.links[link].link.black_hole(true)?;
                self.restore(to)?;
                self.cut(link)
            }
            Happening::Address => self.renumber(link),
            Happening::NatRebind => self.rebind(link),
            Happening::Stall => self.stall(link),
            _ => Ok(()),
        }
    }

    /// Lets every recording begin now.
    pub(super) fn replay(&self) -> Result<(), LabError> {
        let bystanders = self.bystanders.iter().map(|bystander| &bystander.link);
        let links: Vec<_> = self.links.iter().map(|link| &link.link).chain(bystanders).collect();
        for (link, way, trace) in &self.recordings {
            links[*link].set(*way, |way| (way.rate, way.trace) = (None, Some(trace.clone())))?;
        }
        Ok(())
    }

    fn demand(&self, link: &str) -> Result<usize, LabError> {
        let missing = || LabError::system(format!("change link {link}"), io::ErrorKind::NotFound);
        self.index(link).ok_or_else(missing)
    }

    /// Takes a link's interfaces down, with their routes.
    ///
    /// # Errors
    /// Where an interface is gone.
    pub fn cut(&self, link: usize) -> Result<(), LabError> {
        let _turn = self.turn();
        // At once; interfaces take some milliseconds.
        self.links[link].link.black_hole(true)?;
        self.links[link].link.cut()?;
        self.state().links[link].up = false;
        self.route_forwarding()
    }

    /// Ends a black hole or a stall, after which a recording begins anew, and brings a link's interfaces up with the
    /// routes they had.
    ///
    /// # Errors
    /// Where an interface is gone, or a route is refused.
    pub fn restore(&self, link: usize) -> Result<(), LabError> {
        let _turn = self.turn();
        self.links[link].link.restore()?;
        let stalled = self.state().links[link].stalled.take();
        for (way, pace) in Way::BOTH.into_iter().zip(stalled.into_iter().flatten()) {
            self.links[link].link.set(way, |way| (way.rate, way.trace) = pace)?;
        }
        if self.is_up(link) {
            return Ok(());
        }
        self.state().links[link].up = true;
        self.route_link(link)?;
        self.route_forwarding()
    }

    /// Lets a link's queues hold what they have, and what comes, as a cell does that is out of reach.
    fn stall(&self, link: usize) -> Result<(), LabError> {
        let failed = |error| LabError::system("make a trace", io::Error::other(error));
        let silence = Trace::rates(STALLED, &[0.0, 1.0]).map_err(failed)?;
        let before = Way::BOTH.map(|way| self.links[link].link.settings(way)).map(|way| (way.rate, way.trace));
        for way in Way::BOTH {
            self.links[link].link.set(way, |way| (way.rate, way.trace) = (None, Some(silence.clone())))?;
        }
        self.state().links[link].stalled.get_or_insert(before);
        Ok(())
    }

    /// Gives a link's local end another address of the same network in the place of the one it has.
    fn renumber(&self, link: usize) -> Result<(), LabError> {
        let _turn = self.turn();
        let (name, net) = (&self.links[link].name, Net::Access(number(link)));
        let old = self.state().links[link].host;
        let new = if old < LAST_HOST { old + 1 } else { END };
        for family in FAMILIES {
            self.local.add_address(name, net.interface(family, new))?;
        }
        self.state().links[link].host = new;
        for family in FAMILIES {
            let rules = [("add", new), ("del", old)].map(|(verb, host)| source_rule(verb, link, family, host));
            programs::batch_of(family, &self.local, &rules)?;
            self.local.remove_address(name, net.interface(family, old))?;
        }
        if self.is_up(link) { self.route_link(link) } else { Ok(()) }
    }

    /// Forgets the translations of a link's router.
    fn rebind(&self, link: usize) -> Result<(), LabError> {
        let _turn = self.turn();
        let rebound = self.state().links[link].rebound.wrapping_add(1);
        self.state().links[link].rebound = rebound;
        programs::rebind(&self.links[link].router, rebound)
    }
}
