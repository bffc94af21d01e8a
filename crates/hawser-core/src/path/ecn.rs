//! Whether a path carries ECN marks (RFC 9000 section 13.4.2).
//!
//! ```text
//!              counts rise                      ECT(1) is counted
//!  TESTING -------------------------> CAPABLE -----------------------> FAILED
//!     |                                                                   ^
//!     +-------------------------------------------------------------------+
//!          ten acknowledged and nothing counted, ECT(1), or silence
//! ```
//! Another way (`restart`) is tested anew. Some networks drop what is marked (RFC 9000 section 13.4.2), so that a path
//! is validated, and asked whether it is there, without.

use crate::units::Ecn;
use crate::wire::EcnCounts;

/// Packets acknowledged before a path that echoes nothing counts as one that clears the marks
/// (RFC 9000 section A.4 tests with ten).
const TESTING_PACKETS: u64 = 10;

/// The states of validation.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Testing,
    Capable,
    Failed,
}

/// A path's ECN validation. Testing at first; one path owns it.
#[derive(Clone, Debug, Default)]
pub struct EcnValidation {
    state: State,
    /// Packets sent as ECT(0) and acknowledged.
    acked: u64,
    /// The newest counts, and those when the present way began.
    seen: EcnCounts,
    before: EcnCounts,
}

impl EcnValidation {
    /// The path fell silent: perhaps because marked packets are dropped.
    pub fn on_silence(&mut self) {
        if self.state == State::Testing {
            self.state = State::Failed;
        }
    }

    /// The codepoint to send with, where the path is active.
    pub fn outgoing(&self) -> Ecn {
        if self.state == State::Failed { Ecn::NotEct } else { Ecn::Ect0 }
    }

    /// Takes the peer's counts, and how many packets that bore marks it acknowledged with them; tells how many more were
    /// marked, if any.
    /// Counts that are behind the newest (a late frame) change nothing.
    pub fn on_counts(&mut self, counts: EcnCounts, acked: u64) -> Option<u64> {
        let marked = counts.ce.saturating_sub(self.seen.ce);
        self.seen = EcnCounts {
            ect0: counts.ect0.max(self.seen.ect0),
            ect1: counts.ect1.max(self.seen.ect1),
            ce: counts.ce.max(self.seen.ce),
        };
        if self.state == State::Failed {
            return None;
        }
        self.acked += acked;
        let echoed = self.seen.ect0 > self.before.ect0 || self.seen.ce > self.before.ce;
        if !echoed && self.acked >= TESTING_PACKETS || self.seen.ect1 > self.before.ect1 {
            self.state = State::Failed;
            return None;
        }
        if echoed {
            self.state = State::Capable;
        }
        Some(marked).filter(|marked| *marked > 0)
    }

    /// The path leads another way now, of which nothing is known; the peer's counts go on.
    pub fn restart(&mut self) {
        *self = EcnValidation { seen: self.seen, before: self.seen, ..EcnValidation::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ect0: u64, ect1: u64, ce: u64) -> EcnCounts {
        EcnCounts { ect0, ect1, ce }
    }

    #[test]
    fn marks_are_told_once_on_a_path_that_echoes() {
        let mut ecn = EcnValidation::default();
        assert_eq!(ecn.on_counts(counts(5, 0, 0), 5), None);
        assert_eq!(ecn.on_counts(counts(8, 0, 2), 5), Some(2));
        assert_eq!(ecn.on_counts(counts(8, 0, 2), 0), None);
        assert_eq!(ecn.outgoing(), Ecn::Ect0);
    }

    #[test]
    fn a_path_that_clears_or_changes_the_codepoint_is_not_marked_any_more() {
        for counts in [counts(0, 0, 0), counts(0, 10, 0)] {
            let mut ecn = EcnValidation::default();
            assert_eq!(ecn.on_counts(counts, 10), None);
            assert_eq!(ecn.outgoing(), Ecn::NotEct);
            assert_eq!(ecn.on_counts(self::counts(1, 0, 9), 10), None);
        }
    }

    #[test]
    fn silence_while_it_is_tested_ends_the_marks_and_later_does_not() {
        let mut ecn = EcnValidation::default();
        ecn.on_silence();
        assert_eq!(ecn.outgoing(), Ecn::NotEct);
        ecn.restart();
        assert_eq!(ecn.outgoing(), Ecn::Ect0, "another way");
        ecn.on_counts(counts(1, 0, 0), 1);
        ecn.on_silence();
        assert_eq!(ecn.outgoing(), Ecn::Ect0, "it carried them");
    }

    #[test]
    fn another_way_is_tested_anew_by_what_is_counted_from_there_on() {
        for (first, second, outgoing) in [
            (counts(0, 10, 0), counts(10, 10, 0), Ecn::Ect0),
            (counts(10, 0, 0), counts(10, 0, 0), Ecn::NotEct),
            (counts(10, 0, 0), counts(10, 10, 0), Ecn::NotEct),
        ] {
            let mut ecn = EcnValidation::default();
            assert_eq!(ecn.on_counts(first, 10), None);
            ecn.restart();
            assert_eq!(ecn.outgoing(), Ecn::Ect0);
            assert_eq!(ecn.on_counts(second, 10), None);
            assert_eq!(ecn.outgoing(), outgoing, "{first:?} then {second:?}");
        }
        let mut ecn = EcnValidation::default();
        assert_eq!(ecn.on_counts(counts(8, 0, 2), 10), Some(2));
        ecn.restart();
        assert_eq!(ecn.on_counts(counts(17, 0, 3), 10), Some(1), "marks of before are not told again");
    }
}
