//! Handshakes that we answered, until the first datagram opens under their keys.
//!
//! Anybody on the way can record a peer's initiations and send them again, and each would take a place here. None may
//! keep a genuine one out, and no clock tells them apart:
//!
//! 1. What does not count on from the last one known to be genuine, of the same start of the peer, is a recording.
//!    All of one round, one by each of the peer's links, have one count: each may be answered until one is taken up.
//! 2. While a place is free, any other gets it: in peace a handshake takes one round trip.
//! 3. Where none is free, a cookie is asked for, and one that was made for it gets the place of the oldest that was
//!    not.

use super::inbox::Arrival;
use crate::handshake::{HALF_OPEN_FOR, InitiationId};
use crate::session::{KeySet, Route};
use crate::units::{KeyId, Time};
use crate::wire::handshake::RESPONSE_LEN;
use crate::wire::{InstanceId, Offer};
use std::collections::VecDeque;

/// Half-open handshakes kept for one peer: what four links initiate within a minute without an answer, as each repeats
/// its initiation for 5, 10, 20 and 40 s.
const PENDING_MAX: usize = 16;
/// Starts of the peer's portal whose count is remembered: a cookie's life sees no more of them.
const STARTS_KEPT: usize = 4;

/// A handshake that we answered. The table of its peer owns it.
pub(super) struct Pending {
    pub id: InitiationId,
    /// How and when it came.
    pub route: Route,
    pub arrival: Arrival,
    pub response: [u8; RESPONSE_LEN],
    pub keys: KeySet,
    /// What the peer said of itself.
    pub offer: Offer,
    /// It was made for a cookie of late.
    pub fresh: bool,
    /// Its place among the initiations of that instance.
    pub count: u32,
}

/// What becomes of an answered handshake.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// It has a place; another may have lost its own.
    Kept { evicted: Option<KeyId> },
    /// There is none: its sender is to prove that it was made lately.
    AskCookie,
    /// It is a recording.
    Recorded,
}

/// A peer's half-open handshakes, oldest first. Empty at first; the peer owns it.
#[derive(Default)]
pub(super) struct PendingTable {
    places: Vec<Pending>,
    /// The highest count of each start of the peer known to be genuine, the latest start last.
    counts: VecDeque<Genuine>,
}

/// The latest round of a start of the peer that is known to be genuine.
#[derive(Copy, Clone)]
struct Genuine {
    instance: InstanceId,
    count: u32,
    /// One of it was taken up: the others of that round are of no use any more.
    over: bool,
}

impl Genuine {
    /// Whether this initiation comes too late.
    fn outdates(&self, instance: InstanceId, count: u32) -> bool {
        self.instance == instance && (count < self.count || count == self.count && self.over)
    }
}

impl PendingTable {
    /// Those that wait.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.places.iter()
    }

    /// Gives a handshake a place, if it is to have one.
    pub fn admit(&mut self, now: Time, pending: Pending) -> Admission {
        if self.counts.iter().any(|last| last.outdates(pending.offer.instance, pending.count)) {
            return Admission::Recorded;
        }
        let evicted = if self.places.len() < PENDING_MAX {
            None
        } else {
            let free = |place: &Pending| place.keys.made_at + HALF_OPEN_FOR <= now;
            let unproven = |place: &Pending| pending.fresh && !place.fresh;
            let oldest = |which: &dyn Fn(&Pending) -> bool| self.places.iter().position(which);
            let Some(at) = oldest(&free).or(oldest(&unproven)).or(pending.fresh.then_some(0)) else {
                return Admission::AskCookie;
            };
            Some(self.places.remove(at).keys.id)
        };
        if pending.fresh {
            self.note_genuine(Genuine { instance: pending.offer.instance, count: pending.count, over: false });
        }
        self.places.push(pending);
        Admission::Kept { evicted }
    }

    /// Takes out the handshake of these keys, which a datagram opened under. Others that its start of the peer made
    /// until then are of no use any more, nor are those of other starts that we answered before: `retire` them. A
    /// first datagram of a start that has ended may still be under way, and would replace the session of the one that
    /// lives.
    pub fn take(&mut self, key: KeyId, mut retire: impl FnMut(&Pending)) -> Option<Pending> {
        let at = self.places.iter().position(|place| place.keys.id == key)?;
        let taken = self.places.remove(at);
        self.note_genuine(Genuine { instance: taken.offer.instance, count: taken.count, over: true });
        self.places.retain(|place| {
            let useless = if place.offer.instance == taken.offer.instance {
                place.count <= taken.count
            } else {
                place.keys.made_at <= taken.keys.made_at
            };
            if useless {
                retire(place);
            }
            !useless
        });
        Some(taken)
    }

    /// Gives up those that are `useless`, and tells their keys.
    pub fn forget(&mut self, useless: impl Fn(&Pending) -> bool, mut retire: impl FnMut(KeyId)) {
        self.places.retain(|place| {
            let useless = useless(place);
            if useless {
                retire(place.keys.id);
            }
            !useless
        });
    }

    fn note_genuine(&mut self, new: Genuine) {
        let known = self.counts.iter().position(|known| known.instance == new.instance);
        let last = known.and_then(|at| self.counts.remove(at));
        let latest = match last {
            Some(last) if last.outdates(new.instance, new.count) => last,
            _ => new,
        };
        if self.counts.len() == STARTS_KEPT {
            self.counts.pop_front();
        }
        self.counts.push_back(latest);
    }
}
