//! What happens to the hub's world.

use super::{Happening, World};

/// What may happen. A plain value.
#[derive(Copy, Clone, Debug)]
pub enum Act {
    /// A member's machine dies.
    Kill(usize),
    /// It starts, and its portal with it.
    Start(usize),
    /// A member's portal is stopped (SIGSTOP); the machine goes on.
    Freeze(usize),
    /// It is let go on.
    Thaw(usize),
    /// The way of a link to a member has holes from now on: (link, member, up, down).
    Holes(usize, usize, [bool; 2]),
    /// The router's session with a member's daemon is cut, or is back.
    Unroute(usize, bool),
    /// A member's operator takes peers off it.
    Drain(usize),
    /// Its portal ends in order: it closes its sessions.
    Close(usize),
    /// The peer is moved to the other member, as the hub wants it.
    Move,
}

impl World {
    /// Does it now.
    pub(super) fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Kill(member) => {
                self.members[member].kill();
                let (at, heard) = self.router.on_death(now, member);
                self.events.push(at, Happening::Route(heard));
            }
            Act::Start(member) => self.members[member].restart(now),
            Act::Freeze(member) => self.members[member].freeze(),
            Act::Thaw(member) => self.members[member].thaw(now, &mut self.inbox),
            Act::Holes(link, member, holes) => self.lines[link].beyond[member].1 = holes,
            Act::Unroute(member, cut) => {
                let (at, heard) = self.router.on_cut(now, member, cut);
                self.events.push(at, Happening::Route(heard));
            }
            Act::Drain(member) => self.members[member].drain(now, &mut self.inbox),
            Act::Close(member) => self.members[member].portal.endpoint.close(),
            Act::Move => drop(self.pair.handle_move(self.peer.clock.show(now))),
        }
        self.settle();
        (0..self.members.len()).for_each(|member| self.flush(member));
        if let Act::Close(member) = act {
            self.act(Act::Kill(member));
        }
    }
}
