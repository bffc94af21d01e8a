//! Whether trains arrive on a path. Some ways out of a host spoil what the kernel cuts trains into: behind a NAT that
//! rewrites ports before the cut (nftables `masquerade random`), Linux sends every segment with a wrong UDP checksum.
//!
//! 1. `on_lost`, `on_acked`, `on_single`: what became of datagrams that left in trains, and that others arrived.
//! 2. Trains alone are lost, again and again: their datagrams leave one by one for a while.
//! 3. If they arrive then, they go on so; else trains were not to blame.
//!
//! ```text
//!            3 times trains alone lost                 8 arrived, more than were lost
//!   TRAINS -------------------------------> TRYING -------------------------------------> SINGLES
//!     ^                                       |                                              |
//!     +---- 24 lost, none of them arrived; 2 s+          the path leads another way          |
//!     +--------------------------------------------------------------------------------------+
//! ```

use crate::units::Time;
use std::time::Duration;

/// The times that a datagram that left alone must arrive after trains were lost: an outage ends but once.
const ROUNDS: u32 = 3;
/// Datagrams of trains lost in a row before anything is tried: 0.5^12 by chance, where every second one is lost.
const LOST_MIN: u32 = 12;
/// Datagrams that must arrive while they leave one by one.
const ARRIVED_MIN: u32 = 8;
/// Datagrams lost while they left one by one, and none arrived: it was not the trains.
const TRIED_MAX: u32 = 24;
/// A try takes no longer; three of the longest probe timeouts that a path begins with (RFC 9002 section 6.2.2).
const TRY_MAX: Duration = Duration::from_secs(2);
/// The time between a try that failed and the next.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// What is to change for the path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Datagrams leave one by one from now on, to see whether they arrive so.
    Try,
    /// They do, and they stay so.
    Confirmed,
    /// They do not: trains again.
    GivenUp,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum State {
    /// None of `lost` datagrams of trains arrived, of `least` bytes or more; `rounds` times others did meanwhile.
    Trains { lost: u32, least: u32, rounds: u32, since_single: bool },
    /// Since then datagrams leave one by one; those of `least` bytes or more count.
    Trying { since: Time, least: u32, arrived: u32, lost: u32 },
    /// They leave one by one for good.
    Singles,
}

/// What is known of trains on one path. At first they are taken to arrive. One path owns it.
#[derive(Clone, Debug)]
pub struct TrainWatch {
    state: State,
    /// No try before this time.
    next_try: Time,
}

const FRESH: State = State::Trains { lost: 0, least: u32::MAX, rounds: 0, since_single: false };

impl Default for TrainWatch {
    fn default() -> Self {
        TrainWatch { state: FRESH, next_try: Time::ZERO }
    }
}

impl TrainWatch {
    /// Whether datagrams are to leave one by one.
    pub fn apart(&self) -> bool {
        !matches!(self.state, State::Trains { .. })
    }

    /// Whether that is for good.
    pub fn is_settled(&self) -> bool {
        self.state == State::Singles
    }

    /// A datagram of `bytes` bytes, which the core wrote together with others, was lost.
    pub fn on_lost(&mut self, sent_at: Time, bytes: u32) {
        match &mut self.state {
            State::Trains { lost, least, since_single, .. } => {
                *lost = lost.saturating_add(1);
                *least = (*least).min(bytes);
                *since_single = true;
            }
            State::Trying { since, least, lost, .. } if sent_at >= *since && bytes >= *least => *lost += 1,
            State::Trying { .. } | State::Singles => {}
        }
    }

    /// One arrived.
    pub fn on_acked(&mut self, sent_at: Time, bytes: u32) {
        match &mut self.state {
            State::Trains { lost: 0, .. } | State::Singles => {}
            State::Trains { .. } => self.state = FRESH,
            State::Trying { since, least, arrived, .. } if sent_at >= *since && bytes >= *least => *arrived += 1,
            State::Trying { .. } => {}
        }
    }

    /// A datagram that left alone arrived.
    pub fn on_single(&mut self) {
        if let State::Trains { rounds, since_single, .. } = &mut self.state
            && std::mem::take(since_single)
        {
            *rounds += 1;
        }
    }

    /// What follows from what became of datagrams.
    pub fn poll(&mut self, now: Time) -> Option<Turn> {
        match self.state {
            State::Trains { lost, least, rounds, .. }
                if rounds >= ROUNDS && lost >= LOST_MIN && now >= self.next_try =>
            {
                self.state = State::Trying { since: now, least, arrived: 0, lost: 0 };
                Some(Turn::Try)
            }
            State::Trying { arrived, lost, .. } if arrived >= ARRIVED_MIN && arrived > lost => {
                self.state = State::Singles;
                Some(Turn::Confirmed)
            }
            State::Trying { since, arrived, lost, .. }
                if now.since(since) >= TRY_MAX || (arrived == 0 && lost >= TRIED_MAX) =>
            {
                (self.state, self.next_try) = (FRESH, now + TRY_AGAIN);
                Some(Turn::GivenUp)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 1_500;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    /// Trains of four are lost and a single arrives, this many times.
    fn spoiled(watch: &mut TrainWatch, rounds: u32) {
        for _ in 0..rounds {
            (0..4).for_each(|_| watch.on_lost(at(0), FULL));
            watch.on_single();
        }
    }

    #[test]
    fn trains_that_alone_are_lost_leave_one_by_one_once_that_helps() {
        let mut watch = TrainWatch::default();
        spoiled(&mut watch, 2);
        assert_eq!((watch.poll(at(1)), watch.apart()), (None, false), "twice is not enough");
        spoiled(&mut watch, 1);
        assert_eq!((watch.poll(at(100)), watch.apart()), (Some(Turn::Try), true));
        watch.on_lost(at(99), FULL);
        (0..8).for_each(|_| watch.on_acked(at(99), FULL));
        assert_eq!(watch.poll(at(150)), None, "what left before says nothing");
        (0..8).for_each(|_| watch.on_acked(at(101), FULL));
        assert_eq!((watch.poll(at(200)), watch.apart(), watch.is_settled()), (Some(Turn::Confirmed), true, true));
    }

    #[test]
    fn an_outage_loss_and_a_black_hole_are_none_of_the_trains_doing() {
        let mut outage = TrainWatch::default();
        (0..500).for_each(|_| outage.on_lost(at(0), FULL));
        (0..500).for_each(|_| outage.on_single());
        assert_eq!(outage.poll(at(1)), None, "it ended once");
        let mut loss = TrainWatch::default();
        for _ in 0..50 {
            spoiled(&mut loss, 2);
            loss.on_acked(at(0), FULL);
        }
        assert_eq!(loss.poll(at(1)), None, "some arrive");
        let mut hole = TrainWatch::default();
        spoiled(&mut hole, 3);
        assert_eq!(hole.poll(at(0)), Some(Turn::Try));
        (0..100).for_each(|_| hole.on_acked(at(1), FULL - 200));
        assert_eq!(hole.poll(at(1)), None, "smaller ones prove nothing");
        (0..24).for_each(|_| hole.on_lost(at(1), FULL));
        assert_eq!((hole.poll(at(2)), hole.apart()), (Some(Turn::GivenUp), false));
        spoiled(&mut hole, 3);
        assert_eq!(hole.poll(at(1_000)), None, "not again at once");
        assert_eq!(hole.poll(at(60_002)), Some(Turn::Try));
        assert_eq!(hole.poll(at(62_002)), Some(Turn::GivenUp), "a try has an end");
    }
}
