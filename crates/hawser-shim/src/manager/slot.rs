//! One address that a subflow may come from, and how far that subflow is.

use std::time::{Duration, Instant};

use crate::kernel::Subflow;

/// A subflow that ended is opened anew after this long; twice as long each time that it fails or ends soon.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// At most this long.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A subflow that lived so long was no failure.
const LIVED: Duration = Duration::from_secs(10);
/// What was asked for and not heard of for so long never came to be: SYNs go after 0, 1, 3 and 7 s (RFC 6298), and not
/// every kernel tells of their failure.
pub const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// From this many failures on pauses are no longer doubled: they are the longest by then.
const DOUBLED: u32 = 6;

/// An address that a subflow may come from.
///
/// ```text
///            ask                there
///    Free ----------> Asked -------------> There
///     ^ ^               |                    |
///     | |        failed | closed      closed |
///     | | time   late   v                    |
///     | +----------- Resting <---------------+
///     |                 |
///     +-----------------+  is_due
/// ```
/// Free by default. The connection owns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    state: State,
    /// How often it failed, or ended soon, in a row.
    failures: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is none.
    #[default]
    Free,
    /// The kernel was asked for one, then.
    Asked(Instant),
    /// There is one, since then.
    There(Subflow, Option<Instant>),
    /// There is none, and none is asked for until then.
    Resting(Instant),
}

impl Slot {
    /// That of a connection's first flow.
    pub fn main(subflow: Subflow) -> Self {
        Self { state: State::There(subflow, None), failures: 0 }
    }

    /// Whether the kernel may be asked for one now.
    pub fn is_due(&self, now: Instant) -> bool {
        match self.state {
            State::Free => true,
            State::Resting(until) => until <= now,
            State::Asked(_) | State::There(..) => false,
        }
    }

    /// What was asked for long ago has failed.
    pub fn look(&mut self, now: Instant) {
        if matches!(self.state, State::Asked(since) if since + ANSWERED_WITHIN <= now) {
            self.rest(now);
        }
    }

    /// When to look at it again, if time changes it.
    pub fn wakes(&self) -> Option<Instant> {
        match self.state {
            State::Resting(until) => Some(until),
            State::Asked(since) => Some(since + ANSWERED_WITHIN),
            State::Free | State::There(..) => None,
        }
    }

    /// Whether the kernel was asked for one, and has not answered yet.
    pub fn is_on_its_way(&self) -> bool {
        matches!(self.state, State::Asked(_))
    }

    /// The one that is there.
    pub fn subflow(&self) -> Option<Subflow> {
        match self.state {
            State::There(subflow, _) => Some(subflow),
            _ => None,
        }
    }

    /// The kernel is asked for one.
    pub fn ask(&mut self, now: Instant) {
        self.state = State::Asked(now);
    }

    /// It is established, whoever asked for it.
    pub fn there(&mut self, subflow: Subflow, now: Instant) {
        self.state = State::There(subflow, Some(now));
    }

    /// One has ended: that which is there, or that which never came to be.
    pub fn closed(&mut self, subflow: Subflow, now: Instant) {
        match self.state {
            // A former one, told late.
            State::There(there, _) if there != subflow => {}
            State::There(_, since) => {
                if since.is_none_or(|since| now.saturating_duration_since(since) >= LIVED) {
                    self.failures = 0;
                }
                self.rest(now);
            }
            State::Asked(_) => self.rest(now),
            State::Free | State::Resting(_) => {}
        }
    }

    /// The kernel would not even try.
    pub fn failed(&mut self, now: Instant) {
        self.rest(now);
    }

    fn rest(&mut self, now: Instant) {
        let pause = (FIRST_PAUSE * 2_u32.saturating_pow(self.failures.min(DOUBLED))).min(LONGEST_PAUSE);
        self.failures += 1;
        self.state = State::Resting(now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subflow(port: u16) -> Subflow {
        let remote = "10.0.0.2:80".parse().expect("an address");
        Subflow { local: ([10, 0, 0, 1], port).into(), remote }
    }

    #[test]
    fn every_arrow_is_walked() {
        let start = Instant::now();
        let mut slot = Slot::default();
        assert!(slot.is_due(start));
        slot.ask(start);
        assert!(slot.is_on_its_way() && !slot.is_due(start));
        slot.there(subflow(1), start);
        assert_eq!(slot.subflow(), Some(subflow(1)));
        slot.closed(subflow(2), start);
        assert_eq!(slot.subflow(), Some(subflow(1)), "a former one, told late");
        slot.closed(subflow(1), start);
        assert_eq!(slot.wakes(), Some(start + FIRST_PAUSE));
        assert!(!slot.is_due(start) && slot.is_due(start + FIRST_PAUSE));
        slot.ask(start);
        slot.failed(start);
        assert_eq!(slot.wakes(), Some(start + 2 * FIRST_PAUSE));
        slot.ask(start);
        slot.closed(subflow(3), start);
        assert_eq!(slot.wakes(), Some(start + 4 * FIRST_PAUSE));
        slot.closed(subflow(3), start);
        assert_eq!(slot.wakes(), Some(start + 4 * FIRST_PAUSE), "it is gone already");
        let later = start + 4 * FIRST_PAUSE;
        slot.ask(later);
        assert_eq!(slot.wakes(), Some(later + ANSWERED_WITHIN));
        slot.look(later + ANSWERED_WITHIN / 2);
        assert!(slot.is_on_its_way());
        slot.look(later + ANSWERED_WITHIN);
        assert_eq!(slot.wakes(), Some(later + ANSWERED_WITHIN + 8 * FIRST_PAUSE), "it took too long");
    }

    #[test]
    fn pauses_grow_to_an_end_and_begin_anew_after_a_life() {
        let start = Instant::now();
        let mut slot = Slot::default();
        for _ in 0..40 {
            slot.ask(start);
            slot.failed(start);
        }
        assert_eq!(slot.wakes(), Some(start + LONGEST_PAUSE));
        slot.ask(start);
        slot.there(subflow(1), start);
        slot.closed(subflow(1), start + LIVED);
        assert_eq!(slot.wakes(), Some(start + LIVED + FIRST_PAUSE));
        let mut main = Slot::main(subflow(1));
        main.closed(subflow(1), start);
        assert_eq!(main.wakes(), Some(start + FIRST_PAUSE));
    }
}
