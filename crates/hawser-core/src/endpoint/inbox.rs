//! Initiations that wait to be worked on, the newest first.
//!
//! A machine that was asleep finds all that came meanwhile, and a peer takes answers to its last ones alone. Each that is
//! no repetition costs some Diffie-Hellman exchanges: in the order of their coming, the one that is of use would be the
//! last (each takes 20 to 30 ms of an emulated processor). So the newest is first, a few are worked on at a time, and
//! what else came is heard in between. While there is room none is dropped for a younger one, which anybody could have
//! sent: but where one is known to be genuine, as a datagram opened under its keys, those that came by its way before are
//! of no use.

use crate::handshake::InitiationId;
use crate::session::Route;
use crate::wire::handshake::INITIATION_LEN;
use std::collections::VecDeque;

/// Initiations that may wait: those that one look at a few sockets brings. More push the oldest out.
const WAITING_MAX: usize = 256;
/// Initiations that are worked on between two looks at sockets: a round by four links. What costs a hash alone does not
/// count.
pub(super) const WORKED_AT_ONCE: usize = 4;

/// Orders arrivals. A plain number.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Arrival(u64);

/// An initiation by somebody who knows our public key. Owned data.
pub(super) struct Waiting {
    pub route: Route,
    pub arrival: Arrival,
    pub id: InitiationId,
    pub bytes: [u8; INITIATION_LEN],
}

/// Empty at first; the endpoint owns it.
#[derive(Default)]
pub(super) struct Inbox {
    /// The oldest first.
    waiting: VecDeque<Waiting>,
    next: u64,
    /// Something was handled since the last few were worked on.
    due: bool,
}

impl Inbox {
    /// Whether it pushed another one out.
    pub fn push(&mut self, route: Route, id: InitiationId, bytes: [u8; INITIATION_LEN]) -> bool {
        self.next += 1;
        let is_full = self.waiting.len() == WAITING_MAX;
        if is_full {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { route, arrival: Arrival(self.next), id, bytes });
        self.due = true;
        is_full
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sockets were looked at, or time went on: some more may be worked on.
    pub fn go_on(&mut self) {
        self.due = !self.is_empty();
    }

    /// Whether some are to be worked on now.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// The newest.
    pub fn pop(&mut self) -> Option<Waiting> {
        self.waiting.pop_back()
    }

    /// The one that came then by this way is genuine: those before it are of no use. How many there were.
    pub fn outdate(&mut self, route: Route, arrival: Arrival) -> u64 {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.route != route || waiting.arrival > arrival);
        (before - self.waiting.len()) as u64
    }
}
