//! What goes by a second path too.
//!
//! *Principle*: a loss costs an in-order flow the time of its repair, and repairs that are lost cost it again
//! (reinjection in multipath QUIC: XLINK, SIGCOMM 2021). What was lost twice goes by two paths, since a third loss would
//! hold its flow up. Few packets are lost twice, so this costs next to nothing.
//!
//! What a suspect path has in flight goes by the others at once (`session::timeout`).

use super::PathView;
use super::tuning::Reinjection as Tuning;

/// Whether anything is to go by a second path. There is no second one by default; a plain value.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Reinjection {
    /// More than one path may carry inner packets.
    pub second_path: bool,
    /// A segment goes by one path alone up to this try.
    pub tries_alone: u8,
}

impl Reinjection {
    /// What these paths allow.
    pub fn decide(tuning: &Tuning, paths: &[PathView]) -> Reinjection {
        let second_path = paths.iter().filter(|view| view.usable).count() > 1;
        Reinjection { second_path, tries_alone: tuning.tries_alone }
    }

    /// Whether what is sent for the `tries`th time goes by a second path too.
    pub fn duplicates(&self, tries: u8) -> bool {
        self.second_path && tries > self.tries_alone
    }
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
}
