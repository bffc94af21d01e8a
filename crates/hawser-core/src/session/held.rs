//! Inner packets from a peer of a hub's member that may be this member's in a moment: what it sends first may overtake
//! its claim.

use super::Session;
use super::constants::{HELD_FOR, HELD_PACKETS};
use super::inbound::Inbound;
use crate::drops::{DropReason, Drops};
use crate::resequence::Sink;
use crate::units::Time;
use std::collections::VecDeque;

struct Held {
    since: Time,
    partial: bool,
    packet: Vec<u8>,
}

/// What is held, in the order that it came in. Nothing at first; the session owns it.
#[derive(Default)]
pub(super) struct HeldBack(VecDeque<Held>);

impl HeldBack {
    /// Holds a packet; the oldest is dropped where there are too many. Whether it is the first.
    pub fn push(&mut self, now: Time, packet: &[u8], partial: bool, drops: &mut Drops) -> bool {
        if self.0.len() == HELD_PACKETS {
            self.0.pop_front();
            drops.count(DropReason::NotOwner);
        }
        self.0.push_back(Held { since: now, partial, packet: packet.to_vec() });
        self.0.len() == 1
    }

    /// Drops what was held for too long.
    fn expire(&mut self, now: Time, drops: &mut Drops) {
        while self.0.pop_front_if(|held| now.since(held.since) > HELD_FOR).is_some() {
            drops.count(DropReason::NotOwner);
        }
    }
}

/// Counts what nobody is to have.
struct Nobody<'a>(&'a mut Drops);

impl Sink for Nobody<'_> {
    fn deliver(&mut self, _: &[u8], _: bool) {
        self.0.count(DropReason::NotOwner);
    }
}

impl Inbound {
    /// What waits for its turn is dropped.
    fn drop_undelivered(&mut self, now: Time, drops: &mut Drops) {
        self.resequencer.give_up_all(now, &mut Nobody(drops));
    }
}

impl Session {
    /// Packets from the peer are not forwarded any more: what arrived and waits for its turn neither.
    pub fn drop_undelivered(&mut self, now: Time, drops: &mut Drops) {
        self.inbound.drop_undelivered(now, drops);
    }

    /// What is held is delivered if the peer is `served`, or dropped.
    pub fn release_held(&mut self, now: Time, served: bool, sink: &mut dyn Sink, drops: &mut Drops) {
        self.expire_held(now, drops);
        for Held { partial, packet, .. } in self.inbound.held.0.drain(..) {
            if served { sink.deliver(&packet, partial) } else { drops.count(DropReason::NotOwner) }
        }
    }

    /// Drops what was held for too long.
    pub fn expire_held(&mut self, now: Time, drops: &mut Drops) {
        self.inbound.held.expire(now, drops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Got(Vec<Vec<u8>>);

    impl Sink for Got {
        fn deliver(&mut self, packet: &[u8], _: bool) {
            self.0.push(packet.to_vec());
        }
    }

    #[test]
    fn what_is_held_is_bounded_in_number_and_time_and_counted() {
        let (mut held, mut drops) = (HeldBack::default(), Drops::default());
        let at = |millis| Time::ZERO + std::time::Duration::from_millis(millis);
        assert!(held.push(at(0), &[0], false, &mut drops), "the first");
        for number in 1..=HELD_PACKETS {
            assert!(!held.push(at(number as u64), &[1], true, &mut drops));
        }
        assert_eq!((held.0.len(), drops.of(DropReason::NotOwner)), (HELD_PACKETS, 1));
        let late = HELD_FOR + std::time::Duration::from_millis(10);
        held.expire(Time::ZERO + late, &mut drops);
        assert_eq!((held.0.len(), drops.of(DropReason::NotOwner)), (HELD_PACKETS - 9, 10));
    }

    #[test]
    fn what_waited_for_its_turn_is_dropped_and_counted_once() {
        let (mut inbound, mut drops, mut got) = (Inbound::new(), Drops::default(), Got::default());
        for number in [1, 2, 4] {
            let arrival =
                crate::resequence::Arrival { sequence: crate::wire::FlowSequence::of(number), ..Default::default() };
            inbound.resequencer.on_packet(Time::ZERO, arrival, &[7], std::time::Duration::from_secs(1), &mut got);
        }
        let later = Time::ZERO + std::time::Duration::from_millis(40);
        inbound.drop_undelivered(later, &mut drops);
        inbound.drop_undelivered(later, &mut drops);
        assert_eq!((got.0.len(), drops.of(DropReason::NotOwner)), (0, 3));
        let waited = inbound.resequencer.stats(later).longest_wait;
        assert_eq!(waited, std::time::Duration::from_millis(40), "no longer than it did");
    }
}
