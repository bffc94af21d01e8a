//! What goes by a second path too.
//!
//! *Principle*: a loss costs an in-order flow the time of its repair, and repairs that are lost cost it again
//! (reinjection in multipath QUIC: XLINK, SIGCOMM 2021). What was lost twice goes by two paths, since a third loss
//! would hold its flow up. Few packets are lost twice, so this costs next to nothing.
//!
//! A slower path that keeps what it was given holds up all that overtook it, until the sender's window is full and the
//! faster paths are idle: what they would bring home sooner goes by the fastest one too then (opportunistic
//! retransmission: Raiciu et al., NSDI 2012, section 4.2). It costs what nobody else would have sent, and at most what
//! hedging may.
//!
//! What is lost is retransmitted before what is new, but a lost link leaves a window of it: sparse flows' packets, which
//! take next to nothing, go before it (`sparse-first`), as they go before bulk flows' new ones (RFC 8290, section 4.2).
//!
//! What a suspect path has in flight goes by the others at once (`session::timeout`).

use super::PathView;
use super::delay::micros;
use super::tuning::Reinjection as Tuning;
use std::time::Duration;

/// Whether anything is to go by a second path. There is no second one by default; a plain value.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Reinjection {
    /// More than one path may carry inner packets.
    pub second_path: bool,
    /// A segment goes by one path alone up to this try.
    pub tries_alone: u8,
    /// Of what a path lets go at once, this part is sparse flows' before anything is retransmitted.
    pub sparse_part: f64,
}

impl Reinjection {
    /// What these paths allow.
    pub fn decide(tuning: &Tuning, paths: &[PathView]) -> Reinjection {
        let second_path = paths.iter().filter(|view| view.usable).count() > 1;
        Reinjection { second_path, tries_alone: tuning.tries_alone, sparse_part: tuning.sparse_part }
    }

    /// Whether what is sent for the `tries`th time goes by a second path too.
    pub fn duplicates(&self, tries: u8) -> bool {
        self.second_path && tries > self.tries_alone
    }
}

/// Whether a copy by path `here`, sent now, may be home before what path `there` was given so long ago: it is by the
/// delays, or nobody knows, because an answer would have been there by now if nothing waited in that path.
pub fn is_sooner(tuning: &Tuning, elapsed: Duration, there: &PathView, here: &PathView) -> bool {
    let copied = micros(elapsed).saturating_add(here.delay_us);
    copied < there.delay_us || elapsed > there.least_rtt + tuning.patience
}

#[cfg(test)]
mod tests {
    use super::super::Law;
    use super::super::tests::path;
    use super::*;

    #[test]
    fn what_was_lost_twice_goes_by_a_second_path_if_there_is_one() {
        let gone = PathView { usable: false, ..path(50, 10) };
        let first_duplicate = |tuning: &Tuning, paths: &[PathView]| {
            let decided = Reinjection::decide(tuning, paths);
            (1..=u8::MAX).find(|tries| decided.duplicates(*tries))
        };
        let tuning = Tuning::default();
        assert_eq!(first_duplicate(&tuning, &[path(50, 10), path(50, 10)]), Some(3));
        assert_eq!(first_duplicate(&tuning, &[path(50, 10), gone]), None);
        let neutral = super::super::Tuning::neutral(Law::named("duplicate").expect("a law")).reinjection;
        assert_eq!(first_duplicate(&neutral, &[path(50, 10), path(50, 10)]), None);
    }

    #[test]
    fn a_copy_is_sooner_by_its_delay_or_where_an_answer_would_have_been_there_by_now() {
        // Round trips of 20 and 120 ms; the second one's delay shows a queue of 100 ms, or none.
        let (here, queued) = (path(50, 10), PathView { delay_us: 160_000, ..path(5, 60) });
        let sooner = |there: &PathView| {
            [0, 49, 51, 129, 131, 149, 151]
                .map(|ms| is_sooner(&Tuning::default(), Duration::from_millis(ms), there, &here))
        };
        assert_eq!(sooner(&path(5, 60)), [true, true, false, false, true, true, true]);
        assert_eq!(sooner(&queued), [true; 7]);
        assert_eq!(sooner(&path(5, 10)), [false, true, true, true, true, true, true]);
    }
}
