//! A scenario's runs, from the first to the last.
//!
//! 1. The next run is chosen by what was run so far, in this process or one before it.
//! 2. It is executed, and what came of it is kept before anything else happens.
//! 3. Until every series is done.

use std::time::{Duration, Instant};

use super::plan::{self, Choice, Left, Planned, Series};
use super::store::Store;
use super::{Outcome, Run, SeriesKey, seconds_since_1970};
use crate::error::LabError;
use crate::scenario::Scenario;

/// Who is told how it goes. Called in this order from one thread: once, then twice a run.
pub trait Watcher {
    /// It begins, with so much left.
    fn begins(&mut self, scenario: &Scenario, left: Left);
    /// A run begins.
    fn run_begins(&mut self, planned: &Planned<'_>);
    /// A run has ended; so much is left, and will take so long.
    fn run_ended(&mut self, run: &Run, left: Left, time: Duration);
}

/// What came of a scenario. Plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that were measured, those of earlier processes included.
    pub found: usize,
    /// Series that were skipped, with the reason.
    pub skipped: Vec<(SeriesKey, String)>,
    /// Series of which no run was measured, with what the last one said.
    pub failed: Vec<(SeriesKey, String)>,
}

/// Runs what is left of a scenario.
///
/// # Errors
/// Where results cannot be kept. A run that fails is a result.
pub fn conduct(
    scenario: &Scenario,
    choice: Choice,
    store: &mut Store,
    execute: &mut dyn FnMut(&Planned<'_>) -> Outcome,
    watcher: &mut dyn Watcher,
) -> Result<Summary, LabError> {
    let (all, repeat) = (Series::all(scenario, choice), choice.apply(&scenario.repeat));
    watcher.begins(scenario, plan::left(&all, store.runs(), &repeat));
    let mut beside = Beside::default();
    while let Some(planned) = plan::next(&all, store.runs(), &repeat) {
        watcher.run_begins(&planned);
        let (started, begun) = (seconds_since_1970(), Instant::now());
        let outcome = match execute(&planned) {
            Outcome::Found(findings) => Outcome::Found(findings.finite()),
            outcome => outcome,
        };
        beside.add(begun.elapsed().saturating_sub(planned.series.workload.duration));
        let Planned { series, repetition, seed } = planned;
        let run = Run { series: series.key.clone(), repetition, seed, started, outcome };
        store.append(run.clone())?;
        let left = plan::left(&all, store.runs(), &repeat);
        watcher.run_ended(&run, left, left.time + beside.mean() * left.runs);
    }
    Ok(Summary::of(&all, store.runs()))
}

/// What runs take beside their workloads: building, settling, removing. Starts unknown.
#[derive(Debug, Default)]
struct Beside {
    sum: Duration,
    runs: u32,
}

impl Beside {
    fn add(&mut self, time: Duration) {
        self.sum += time;
        self.runs += 1;
    }

    fn mean(&self) -> Duration {
        self.sum.checked_div(self.runs).unwrap_or_default()
    }
}

impl Summary {
    fn of(all: &[Series<'_>], runs: &[Run]) -> Self {
        let mut summary = Self::default();
        for series in all {
            let own = || runs.iter().filter(|run| run.series == series.key);
            let found = own().filter(|run| matches!(run.outcome, Outcome::Found(_))).count();
            summary.found += found;
            match own().next_back().map(|run| &run.outcome) {
                Some(Outcome::Skipped(why)) => summary.skipped.push((series.key.clone(), why.clone())),
                Some(Outcome::Failed(said)) if found == 0 => summary.failed.push((series.key.clone(), said.clone())),
                _ => {}
            }
        }
        summary
    }

    /// Whether every series was measured or skipped.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.failed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{failed, found, machine, scenario};
    use super::*;

    /// Notes what it is told.
    #[derive(Default)]
    struct Notes {
        at_first: Left,
        left: Vec<u32>,
        begun: usize,
    }

    impl Watcher for Notes {
        fn begins(&mut self, _: &Scenario, left: Left) {
            self.at_first = left;
        }

        fn run_begins(&mut self, _: &Planned<'_>) {
            self.begun += 1;
        }

        fn run_ended(&mut self, _: &Run, left: Left, time: Duration) {
            assert!(time >= left.time);
            self.left.push(left.runs);
        }
    }

    #[test]
    fn an_interrupted_experiment_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || Store::open(folder.path(), &scenario(), &machine()).expect("it opens");
        let interrupted = std::panic::catch_unwind(|| {
            let mut runs = 0;
            let mut execute = |_: &Planned<'_>| {
                runs += 1;
                assert!(runs <= 4, "interrupted in its fifth run");
                found(90.0)
            };
            conduct(&scenario(), Choice::default(), &mut open(), &mut execute, &mut Notes::default())
        });
        assert!(interrupted.is_err());
        let (mut notes, mut again) = (Notes::default(), Vec::new());
        let mut execute = |planned: &Planned<'_>| {
            again.push((planned.series.key.clone(), planned.repetition));
            found(90.0)
        };
        let summary = conduct(&scenario(), Choice::default(), &mut open(), &mut execute, &mut notes).expect("it runs");
        assert_eq!((summary.found, summary.is_ok()), (9, true));
        assert_eq!((notes.at_first.runs, notes.begun, again.len()), (5, 5, 5));
        assert_eq!(notes.left, [4, 3, 2, 1, 0]);
        let store = open();
        let mut all: Vec<_> = store.runs().iter().map(|run| (run.series.clone(), run.repetition)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 9, "each once");
        drop(store);
        let mut nothing = |_: &Planned<'_>| -> Outcome { panic!("all is done") };
        let summary = conduct(&scenario(), Choice::default(), &mut open(), &mut nothing, &mut notes);
        assert_eq!(summary.expect("it is done").found, 9);
    }

    #[test]
    fn more_repetitions_are_added_to_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        for (repetitions, expected) in [(2, 6), (3, 9), (2, 9)] {
            let mut store = Store::open(folder.path(), &scenario(), &machine()).expect("it opens");
            let choice = Choice { repetitions: Some(repetitions), quick: false };
            let mut execute = |_: &Planned<'_>| found(90.0);
            conduct(&scenario(), choice, &mut store, &mut execute, &mut Notes::default()).expect("it runs");
            assert_eq!(store.runs().len(), expected);
        }
    }

    #[test]
    fn a_summary_names_what_failed_and_what_was_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path(), &scenario(), &machine()).expect("it opens");
        let mut execute = |planned: &Planned<'_>| match planned.series.key.case.as_str() {
            "B" => failed("it is broken"),
            _ if planned.series.key.contender == "tcp" => Outcome::Skipped("not installed".to_owned()),
            _ => found(90.0),
        };
        let summary = conduct(&scenario(), Choice::default(), &mut store, &mut execute, &mut Notes::default());
        let Summary { found, skipped, failed } = summary.expect("it runs");
        assert_eq!((found, skipped.len(), failed.len()), (3, 1, 1));
        assert_eq!((skipped[0].1.as_str(), failed[0].1.as_str()), ("not installed", "it is broken"));
    }

    #[test]
    fn figures_that_json_cannot_say_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(folder.path(), &scenario(), &machine()).expect("it opens");
        let mut execute = |_: &Planned<'_>| found(f64::NAN);
        let choice = Choice { repetitions: Some(1), quick: false };
        conduct(&scenario(), choice, &mut store, &mut execute, &mut Notes::default()).expect("it runs");
        drop(store);
        Store::open(folder.path(), &scenario(), &machine()).expect("it is read again");
    }
}
