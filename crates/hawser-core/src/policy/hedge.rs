//! What sparse flows have under way on a path that is late goes by another one too.
//!
//! *Principle*: a packet whose answer is overdue is late, whether it was lost or waits in a link whose rate fell: a
//! copy is sent before anybody can call it lost (reinjection by age: XLINK, SIGCOMM 2021, section 5). A packet that
//! waits so holds up whatever came after it in its flow. Sparse packets are few, so copies are cheap; they cost at most
//! a share of what is sent, and what there is no credit for is not copied.

use super::tuning::Hedge as Tuning;
use super::{PathSet, PathView};
use crate::units::ByteCount;
use std::time::Duration;

/// How long after a packet its answer is overdue, on a path with this round trip. A stall that is over makes the
/// averages long for some time, and the next one is not to be waited for the longer.
pub fn answer_time(tuning: &Tuning, smoothed: Duration, latest: Duration, deviation: Duration) -> Duration {
    let usual = smoothed.min(latest);
    usual + (deviation * tuning.deviations).min(usual).max(tuning.patience)
}

/// The path that carries copies of what `late` holds: that of least delay beside it, of those that may.
pub fn copies_by(paths: &[PathView], set: PathSet, late: usize) -> Option<usize> {
    let others = paths.iter().enumerate().filter(|(index, _)| *index != late && set.contains(*index));
    others.min_by_key(|(_, view)| view.delay_us).map(|(index, _)| index)
}

/// What copies may cost: a share of what is sent, saved up to a bound. A session owns one.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Credit(f64);

impl Credit {
    /// All that can be saved: what a flow sends first is hedged as well.
    pub fn new(tuning: &Tuning) -> Credit {
        Credit(if tuning.share > 0.0 { tuning.saved.0 as f64 } else { 0.0 })
    }

    /// `sent` bytes went out.
    pub fn earn(&mut self, tuning: &Tuning, sent: ByteCount) {
        self.0 = (self.0 + sent.0 as f64 * tuning.share).min(tuning.saved.0 as f64);
    }

    /// Whether a copy of this size may go; it is paid for then.
    #[must_use]
    pub fn pay(&mut self, size: ByteCount) -> bool {
        let enough = self.0 >= size.0 as f64;
        if enough {
            self.0 -= size.0 as f64;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;

    #[test]
    fn an_answer_is_overdue_after_a_round_trip_and_what_that_varies_by() {
        let ms = Duration::from_millis;
        let answer_time = |smoothed, latest, deviation| {
            answer_time(&Tuning::default(), ms(smoothed), ms(latest), ms(deviation)).as_millis()
        };
        assert_eq!([answer_time(40, 41, 2), answer_time(40, 80, 5)], [50, 60]);
        assert_eq!(answer_time(150, 40, 160), 80, "after a stall");
    }

    #[test]
    fn copies_go_by_the_best_other_path() {
        let paths = [path(50, 10), path(50, 40), path(50, 30), path(50, 1)];
        let copies_by = |set: &[usize]| copies_by(&paths, set.iter().copied().collect(), 0);
        assert_eq!(copies_by(&[0, 1, 2]), Some(2));
        assert_eq!(copies_by(&[0]), None, "there is none");
    }

    #[test]
    fn copies_cost_a_twentieth_of_what_is_sent_and_what_was_saved() {
        let tuning = Tuning::default();
        let copies = |tuning: &Tuning, sent: u64| {
            let mut credit = Credit::new(tuning);
            let mut copies = 0;
            while credit.pay(ByteCount(200)) {
                copies += 1;
            }
            credit.earn(tuning, ByteCount(sent));
            copies + u64::from(credit.pay(ByteCount(200)))
        };
        let saved = tuning.saved.0 / 200;
        assert_eq!((copies(&tuning, 0), copies(&tuning, 4_000)), (saved, saved + 1));
        let neutral = super::super::Tuning::neutral(Law::named("hedge").expect("a law")).hedge;
        assert_eq!(copies(&neutral, 1_000_000), 0);
    }
}
