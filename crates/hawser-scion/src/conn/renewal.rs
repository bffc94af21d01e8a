//! When a path is asked for again. All times are arguments.
//!
//! ```text
//!             due                         answered, lasts longer
//!   Fresh ───────────► Asking ───────────────────────────────────► Fresh
//!     │                 │   ▲
//!     │ hurry           │   │ due
//!     └──► Waiting ◄────┘   │   failed, or the same answer again: 1 s, then twice as long, 64 s at most
//!             │ └───────────┘
//!             └─ hurry: due at once, but not before a failed try's wait is over
//! ```
//!
//! Whether the path in use still holds is another question: it does until its expiry.

use std::time::{Duration, SystemTime};

/// How long before its expiry a path is asked for again, at least: time for some tries, and for the
/// daemon's own renewal (the reference daemon asks five minutes ahead too).
const MARGIN: Duration = Duration::from_secs(300);

/// A path that lasts shorter is asked for again when a third of its time is left.
const SHORT_LIVED_PART: u32 = 3;

/// Up to so much of the margin earlier, by chance, so that a host's flows do not ask all at once.
const JITTER_PART: f64 = 0.25;

/// The wait after the first failed try, and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(64);

/// What the renewal is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The path is good for a while.
    Fresh,
    /// Somebody asks.
    Asking,
    /// It is asked (again) when the wait is over.
    Waiting,
}

/// A number from 0 up to 1, by chance. Plain data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance(pub f64);

/// When one path is to be asked for again. Begins fresh. For one thread: its owner keeps it behind a lock.
#[derive(Debug)]
pub(super) struct Renewal {
    phase: Phase,
    expiry: SystemTime,
    /// When it would be asked for had nothing happened.
    planned: SystemTime,
    due: SystemTime,
    wait: Duration,
}

impl Renewal {
    /// For a path obtained now.
    pub(super) fn new(now: SystemTime, expiry: SystemTime, chance: Chance) -> Renewal {
        let planned = due(now, expiry, chance);
        Renewal { phase: Phase::Fresh, expiry, planned, due: planned, wait: FIRST_WAIT }
    }

    /// When it is to be asked for; `None` while somebody asks.
    pub(super) fn due(&self) -> Option<SystemTime> {
        (self.phase != Phase::Asking).then_some(self.due)
    }

    /// Somebody asks now.
    pub(super) fn ask(&mut self) {
        self.phase = Phase::Asking;
    }

    /// A path was found (the same or another) that lasts until `expiry`.
    pub(super) fn answered(&mut self, now: SystemTime, expiry: SystemTime, chance: Chance) {
        let no_better = expiry <= self.expiry && self.planned <= now;
        self.expiry = expiry;
        if no_better {
            return self.failed(now);
        }
        self.planned = due(now, expiry, chance).max(now + FIRST_WAIT);
        (self.phase, self.due, self.wait) = (Phase::Fresh, self.planned, FIRST_WAIT);
    }

    /// Nothing was found.
    pub(super) fn failed(&mut self, now: SystemTime) {
        (self.phase, self.due) = (Phase::Waiting, now + self.wait);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// The path died: it is asked for at once, unless a try just failed.
    pub(super) fn hurry(&mut self, now: SystemTime) {
        if self.phase == Phase::Fresh {
            (self.phase, self.due) = (Phase::Waiting, now);
        }
    }
}

/// When a path with this expiry is to be asked for.
fn due(now: SystemTime, expiry: SystemTime, Chance(chance): Chance) -> SystemTime {
    let left = expiry.duration_since(now).unwrap_or_default();
    let margin = MARGIN.min(left / SHORT_LIVED_PART);
    expiry - margin - margin.mul_f64(JITTER_PART * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS_6: Duration = Duration::from_secs(6 * 3600);

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_path_is_asked_for_ahead_of_its_expiry_and_not_by_all_at_once() {
        for (left, chance, ahead) in [(21_600, 0.0, 300.0), (21_600, 1.0, 375.0), (90, 0.0, 30.0), (3, 1.0, 1.25)] {
            let renewal = Renewal::new(at(1000), at(1000 + left), Chance(chance));
            let due = renewal.due().expect("nobody asks");
            assert_eq!(at(1000 + left).duration_since(due).expect("before").as_secs_f64(), ahead, "{left} {chance}");
        }
    }

    #[test]
    fn every_arrow_is_taken() {
        let now = at(1000);
        let mut renewal = Renewal::new(now, now + HOURS_6, Chance(0.0));
        let due = renewal.due().expect("fresh");
        renewal.ask();
        assert_eq!(renewal.due(), None, "asking");
        renewal.answered(due, due + HOURS_6, Chance(0.0));
        assert_eq!(renewal.due(), Some(due + HOURS_6 - MARGIN), "fresh again");
        assert_eq!(renewal.expiry, due + HOURS_6);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            renewal.ask();
            renewal.failed(due);
            assert_eq!(renewal.due(), Some(due + Duration::from_secs(seconds)), "waiting");
            renewal.hurry(due);
            assert_eq!(renewal.due(), Some(due + Duration::from_secs(seconds)), "a hurry waits too");
        }
        renewal.ask();
        renewal.answered(due, due + HOURS_6, Chance(0.0));
        renewal.hurry(due);
        assert_eq!(renewal.due(), Some(due), "a hurry from fresh");
        renewal.ask();
        renewal.failed(due);
        assert_eq!(renewal.due(), Some(due + FIRST_WAIT), "the wait began anew");
    }

    #[test]
    fn the_same_answer_again_is_a_failure_and_nothing_spins() {
        let (now, expiry) = (at(1000), at(1100));
        let mut renewal = Renewal::new(now, expiry, Chance(0.0));
        let late = at(1099);
        renewal.ask();
        renewal.answered(late, expiry, Chance(0.0));
        assert_eq!(renewal.due(), Some(late + FIRST_WAIT));
        renewal.ask();
        renewal.answered(at(1101), expiry, Chance(0.0));
        assert_eq!(renewal.due(), Some(at(1103)));
        renewal.ask();
        renewal.answered(at(1103), at(1104), Chance(1.0));
        assert_eq!(renewal.due(), Some(at(1104)), "a moment at least");
    }
}
