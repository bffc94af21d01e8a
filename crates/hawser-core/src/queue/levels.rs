//! Priorities: whose turn it is when flows of several wait.
//!
//! 1. Flows of the highest priority that waits have their turns first, as RFC 8290 gives them out; then those of the
//!    next.
//! 2. Lower ones are not starved: once 16 turns went before them they have one, in turn among them. So they get
//!    together at least one byte in 17 of what leaves while they wait, if the paths that pull may carry them.

use crate::treatment::PRIORITY_MOST;
use crate::units::ByteCount;

/// Priorities that there are.
pub(super) const LEVELS: usize = 2 * PRIORITY_MOST as usize + 1;
/// Bytes of higher priorities that go before one of a lower one: a download then still has 6 Mbit/s of 100.
const BEFORE: u64 = 16;
/// What can be owed at most, bytes: more than any turn is worth.
const OWED_MOST: u64 = BEFORE << 20;

/// The level of flows with this priority: zero is the lowest.
pub(super) fn level(priority: i8) -> usize {
    (priority.clamp(-PRIORITY_MOST, PRIORITY_MOST) + PRIORITY_MOST).unsigned_abs().into()
}

/// The levels at which flows wait. None by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Waiting(u8);

impl Waiting {
    /// These and that one.
    pub(super) fn with(self, level: usize) -> Waiting {
        Waiting(self.0 | 1 << level)
    }

    fn has(self, level: usize) -> bool {
        self.0 & 1 << level != 0
    }

    /// The highest below `level`.
    fn below(self, level: usize) -> Option<usize> {
        (0..level).rev().find(|at| self.has(*at))
    }
}

/// What lower priorities are owed. Nothing at first; the queue's flows own it.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Precedence {
    owed: u64,
    /// The level that was last served before its time.
    lifted: usize,
}

/// The levels in the order of one pull. A plain value.
#[derive(Copy, Clone, Debug)]
pub(super) struct Walk {
    lifted: Option<usize>,
    skipped: Option<usize>,
    below: usize,
}

impl Precedence {
    /// The order of the next pull, where a turn is worth `quantum`.
    pub(super) fn walk(&self, waiting: Waiting, quantum: ByteCount) -> Walk {
        let top = waiting.below(LEVELS);
        let due = self.owed >= BEFORE * quantum.0;
        let lifted = top.filter(|_| due).and_then(|top| waiting.below(self.lifted.min(top)).or(waiting.below(top)));
        Walk { lifted, skipped: lifted, below: LEVELS }
    }

    /// A flow of this level sent so much.
    pub(super) fn note_served(&mut self, level: usize, waiting: Waiting, bytes: ByteCount) {
        let paid = waiting.below(LEVELS).is_some_and(|top| level < top);
        if paid {
            self.owed = self.owed.saturating_sub(BEFORE * bytes.0);
            self.lifted = level;
        } else if waiting.below(level).is_some() {
            self.owed = (self.owed + bytes.0).min(OWED_MOST);
        } else {
            self.owed = 0;
        }
    }
}

impl Walk {
    /// The next level at which flows wait.
    pub(super) fn next(&mut self, waiting: Waiting) -> Option<usize> {
        if let Some(lifted) = self.lifted.take() {
            return Some(lifted);
        }
        let mut next = waiting.below(self.below);
        if next.is_some() && next == self.skipped {
            next = next.and_then(|at| waiting.below(at));
        }
        self.below = next.unwrap_or(0);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: ByteCount = ByteCount(1_500);

    /// Which level is served, turn by turn, while all of these wait.
    fn served(levels: &[usize], turns: usize) -> Vec<u64> {
        let waiting = levels.iter().fold(Waiting::default(), |waiting, at| waiting.with(*at));
        let (mut precedence, mut bytes) = (Precedence::default(), vec![0; LEVELS]);
        for _ in 0..turns {
            let first = precedence.walk(waiting, QUANTUM).next(waiting).expect("one waits");
            precedence.note_served(first, waiting, QUANTUM);
            bytes[first] += 1;
        }
        bytes
    }

    #[test]
    fn the_highest_goes_first_and_the_others_have_one_turn_in_seventeen() {
        assert_eq!(served(&[3], 100), [0, 0, 0, 100, 0, 0, 0]);
        assert_eq!(served(&[0, 6], 1_700), [100, 0, 0, 0, 0, 0, 1_600]);
        assert_eq!(served(&[0, 2, 3, 6], 5_100), [100, 0, 100, 100, 0, 0, 4_800], "in turn among them");
    }

    #[test]
    fn a_walk_meets_each_level_that_waits_once() {
        let waiting = [1, 3, 5].into_iter().fold(Waiting::default(), Waiting::with);
        let order = |precedence: Precedence| {
            let mut walk = precedence.walk(waiting, QUANTUM);
            std::iter::from_fn(move || walk.next(waiting)).collect::<Vec<_>>()
        };
        let owed = |lifted| Precedence { owed: BEFORE * QUANTUM.0, lifted };
        assert_eq!(order(Precedence::default()), [5, 3, 1]);
        assert_eq!(order(owed(0)), [3, 5, 1]);
        assert_eq!(order(owed(3)), [1, 5, 3]);
    }

    #[test]
    fn priorities_beyond_the_bounds_count_as_those() {
        assert_eq!([-100, -3, 0, 3, 100].map(level), [0, 0, 3, 6, 6]);
    }
}
