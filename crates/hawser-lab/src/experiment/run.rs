//! A scenario's runs, from the first to the last, with their results in a folder.
//!
//! 1. The next run is chosen by what was run so far, in this process or one before it.
//! 2. It is executed ([`executor`] knows by whom), and what came of it is kept before anything else happens.
//! 3. Until every series is done.

use std::path::Path;
use std::time::{Duration, Instant};

use super::plan::{self, Choice, Planned, Series};
use super::{Findings, Live, Machine, Outcome, Progress, Run, SeriesKey, Store, seconds_since_1970};
use crate::contender::{self, Programs};
use crate::error::LabError;
use crate::scenario::Scenario;
use crate::{probe, scion_bench, shila, workload};

/// The folder of captures within that of results.
pub(crate) const CAPTURES: &str = "captures";

/// Executes a scenario's runs: one at a time, or they measure each other.
pub type Execute<'s> = Box<dyn Fn(&Planned<'_>) -> Result<Findings, LabError> + 's>;

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

/// Who executes a scenario's runs, whose results are kept in this folder.
///
/// # Errors
/// Where a contender or workload is planned that means nothing.
pub fn executor<'s>(scenario: &'s Scenario, dir: &Path, programs: &Programs) -> Result<Execute<'s>, LabError> {
    let has = |kind: &str| scenario.contenders.iter().any(|contender| contender.kind == kind);
    if has(scion_bench::CONTENDER) {
        return scion_bench::executor(scenario, programs);
    }
    if probe::is_ours(scenario) {
        return probe::executor(scenario, programs);
    }
    if has(shila::CONTENDER) {
        return shila::executor(scenario, programs);
    }
    let made_of = programs.clone();
    let make_contender = move |plan: &_| contender::make(plan, &made_of);
    let captures = Some(dir.join(CAPTURES));
    let live = Live::new(scenario, Box::new(make_contender), Box::new(workload::make), captures)?;
    Ok(Box::new(move |planned| live.run(planned)))
}

/// Runs what a folder does not hold yet of a scenario.
///
/// # Errors
/// [`LabError::Others`] where the folder holds something else; and where a contender or workload is planned that means
/// nothing, or results cannot be kept. A run that fails is a result.
pub fn run(
    scenario: &Scenario,
    choice: Choice,
    dir: &Path,
    programs: &Programs,
    progress: &mut Progress,
) -> Result<Summary, LabError> {
    let machine = Machine::here(&programs.hawser, scenario, choice.quick)?;
    let execute = executor(scenario, dir, programs)?;
    let mut store = Store::open(dir, scenario, &machine)?;
    conduct(scenario, choice, &mut store, &mut |planned| execute(planned).into(), progress)
}

/// Steps 1 to 3.
fn conduct(
    scenario: &Scenario,
    choice: Choice,
    store: &mut Store,
    execute: &mut dyn FnMut(&Planned<'_>) -> Outcome,
    progress: &mut Progress,
) -> Result<Summary, LabError> {
    let (all, repeat) = (Series::all(scenario, choice), choice.apply(&scenario.repeat));
    progress.begins(scenario, plan::left(&all, &store.runs, &repeat));
    // What runs take beside their workloads: building, settling, removing.
    let (mut beside, mut runs) = (Duration::ZERO, 0_u32);
    while let Some(planned) = plan::next(&all, &store.runs, &repeat) {
        progress.run_begins(&planned);
        let (started, begun) = (seconds_since_1970(), Instant::now());
        let outcome = execute(&planned);
        beside += begun.elapsed().saturating_sub(planned.series.workload.duration);
        runs += 1;
        let Planned { series, repetition, seed } = planned;
        let run = Run { series: series.key.clone(), repetition, seed, started, outcome };
        store.append(run.clone())?;
        let left = plan::left(&all, &store.runs, &repeat);
        progress.run_ended(&run, left, left.time + beside / runs * left.runs);
    }
    Ok(Summary::of(&all, &store.runs))
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
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tempfile::TempDir;

    use super::super::tests::{failed, found, scenario, store};
    use super::*;

    /// Runs what is left in a folder, each as often as `repetitions` says or the scenario does; gives how many runs
    /// were told of, too, and how many there were to be.
    fn conducted(
        folder: &TempDir,
        repetitions: Option<u32>,
        mut execute: impl FnMut(&Planned<'_>) -> Outcome,
    ) -> (Summary, [Option<u64>; 2]) {
        let (choice, mut progress) = (Choice { repetitions, quick: false }, Progress::default());
        let summary = conduct(&scenario(), choice, &mut store(folder.path()), &mut execute, &mut progress);
        (summary.expect("it runs"), [Some(progress.bar.position()), progress.bar.length()])
    }

    #[test]
    fn an_interrupted_experiment_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let interrupted = std::panic::catch_unwind(|| {
            let mut runs = 0;
            conducted(&folder, None, |_| {
                runs += 1;
                assert!(runs <= 4, "interrupted in its fifth run");
                found(90.0)
            })
        });
        assert!(interrupted.is_err());
        let mut again = 0;
        let (summary, told) = conducted(&folder, None, |_| {
            again += 1;
            found(90.0)
        });
        assert_eq!((summary.found, summary.failed.len()), (9, 0));
        assert_eq!((told, again), ([Some(5); 2], 5));
        let all: BTreeSet<_> =
            store(folder.path()).runs.iter().map(|run| (run.series.clone(), run.repetition)).collect();
        assert_eq!(all.len(), 9, "each once");
        assert_eq!(conducted(&folder, None, |_| panic!("all is done")).0.found, 9);
    }

    #[test]
    fn more_repetitions_are_added_to_what_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        for (repetitions, expected) in [(2, 6), (3, 9), (2, 9)] {
            conducted(&folder, Some(repetitions), |_| found(90.0));
            assert_eq!(store(folder.path()).runs.len(), expected);
        }
    }

    #[test]
    fn a_summary_names_what_failed_and_what_was_skipped() {
        let folder = tempfile::tempdir().expect("a folder");
        let (summary, _) = conducted(&folder, None, |planned| match planned.series.key.case.as_str() {
            "B" => failed("it is broken"),
            _ if planned.series.key.contender == "tcp" => Outcome::Skipped("not installed".to_owned()),
            _ => found(90.0),
        });
        let Summary { found, skipped, failed } = summary;
        assert_eq!((found, skipped.len(), failed.len()), (3, 1, 1));
        assert_eq!((skipped[0].1.as_str(), failed[0].1.as_str()), ("not installed", "it is broken"));
    }

    #[test]
    fn figures_that_json_cannot_say_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        conducted(&folder, Some(1), |_| Ok::<_, LabError>(Findings::named([("goodput_mbps", f64::NAN)])).into());
        // It is read again.
        store(folder.path());
    }
}
