//! What is run, in which order, and when a series was run often enough.
//!
//! 1. Each case, contender and workload that belong together are a [`Series`]. With `--quick` its workload is
//!    shortened, and what happens meanwhile comes earlier by the same share.
//! 2. Runs go in rounds: one run of each series that is not done, in an order of its own. So the repetitions of a
//!    series lie apart in time, and what slows the machine for a while meets all alike.
//! 3. A series is done as [`Series::next`] says.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use super::{Outcome, Run, SeriesKey};
use crate::report::statistics;
use crate::scenario::{Case, ContenderPlan, Event, Repeat, Scenario, WorkloadPlan};

/// How often a repetition is tried before it counts as lost.
const ATTEMPTS: usize = 2;

/// What the command line says about how often and how long. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// This many runs of each series, whatever the scenario says.
    pub repetitions: Option<u32>,
    /// One run, and a short one.
    pub quick: bool,
}

impl Choice {
    /// How often, by this choice.
    pub(super) fn apply(self, repeat: &Repeat) -> Repeat {
        let fixed = self.repetitions.or(self.quick.then_some(1));
        let (least, most) = fixed.map_or((repeat.least, repeat.most), |runs| (runs, runs));
        Repeat { least, most: most.max(least), ..repeat.clone() }
    }
}

/// Runs that differ by chance alone. Plain data, with references into the scenario.
#[derive(Clone, Debug)]
pub struct Series<'s> {
    /// Its names.
    pub key: SeriesKey,
    /// Which row.
    pub case: &'s Case,
    /// Who.
    pub contender: &'s ContenderPlan,
    /// What is sent, as long as it is to be.
    pub workload: WorkloadPlan,
    /// What happens meanwhile, in order.
    pub events: Vec<Event>,
}

/// A run that is to be. Plain data.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// Of which series.
    pub series: &'a Series<'a>,
    /// From 0 on.
    pub repetition: u32,
    /// Of whatever is random. Contenders meet the same fortune in the same repetition.
    pub seed: u64,
}

impl<'s> Series<'s> {
    /// Step 1: all of a scenario, as it orders them.
    pub fn all(scenario: &'s Scenario, choice: Choice) -> Vec<Self> {
        let mut all = Vec::new();
        for case in scenario.cases.iter().filter(|case| case.quick || !choice.quick) {
            for contender in scenario.contenders.iter().filter(|one| case.contenders.contains(&one.label)) {
                for workload in scenario.workloads.iter().filter(|one| case.workloads.contains(&one.name)) {
                    let key = SeriesKey {
                        scenario: scenario.name.clone(),
                        case: case.name.clone(),
                        contender: contender.label.clone(),
                        workload: workload.name.clone(),
                    };
                    let (duration, events) = meanwhile(scenario, choice, case, workload.duration);
                    let workload = WorkloadPlan { duration, ..workload.clone() };
                    all.push(Self { key, case, contender, workload, events });
                }
            }
        }
        all
    }

    /// Step 3: which repetition is to be run next, given all runs so far; none where the series is done:
    /// it was skipped, run as often as it may be, lost more often than it was measured, or its figure is steady.
    pub fn next(&self, runs: &[Run], repeat: &Repeat) -> Option<u32> {
        let own: Vec<&Run> = runs.iter().filter(|run| run.series == self.key).collect();
        if own.iter().any(|run| matches!(run.outcome, Outcome::Skipped(_))) {
            return None;
        }
        let (mut found, mut lost, mut repetition) = (0, 0, 0);
        loop {
            let of_this = || own.iter().filter(|run| run.repetition == repetition);
            if of_this().any(|run| matches!(run.outcome, Outcome::Found(_))) {
                found += 1;
            } else if of_this().count() >= ATTEMPTS {
                lost += 1;
            } else {
                break;
            }
            repetition += 1;
        }
        let is_steady = || spread(&own, &repeat.metric).is_none_or(|cov| cov <= repeat.cov);
        let is_done = repetition >= repeat.most || lost > found || (found >= repeat.least && is_steady());
        (!is_done).then_some(repetition)
    }
}

/// Step 1: how long a workload takes, and what happens meanwhile, in order.
fn meanwhile(scenario: &Scenario, choice: Choice, case: &Case, whole: Duration) -> (Duration, Vec<Event>) {
    let duration = if choice.quick { whole.min(scenario.repeat.quick) } else { whole };
    let earlier =
        |at: Duration| if duration == whole { at } else { at.mul_f64(duration.as_secs_f64() / whole.as_secs_f64()) };
    let chosen = scenario.events.iter().filter(|event| case.events.contains(&event.name));
    let mut events: Vec<Event> = chosen.map(|event| Event { at: earlier(event.at), ..event.clone() }).collect();
    events.sort_by_key(|event| event.at);
    (duration, events)
}

/// The standard deviation over the mean of a figure; none where it was found less than twice, or is zero.
fn spread(runs: &[&Run], metric: &str) -> Option<f64> {
    let all = statistics::Summary::of(&runs.iter().filter_map(|run| run.figure(metric)).collect::<Vec<_>>())?;
    all.deviation.filter(|_| all.mean != 0.0).map(|deviation| deviation / all.mean.abs())
}

/// Step 2: the next run, by what was run so far; none where all are done.
pub fn next<'a>(all: &'a [Series<'a>], runs: &[Run], repeat: &Repeat) -> Option<Planned<'a>> {
    let open: Vec<Option<u32>> = all.iter().map(|series| series.next(runs, repeat)).collect();
    let round = open.iter().flatten().copied().min()?;
    let order = order(all.len(), repeat.seed, round);
    let last = runs.last().map(|run| &run.series);
    let due = || order.iter().copied().filter(|&index| open[index] == Some(round));
    // What ran just now waits where anything else is due.
    let index = due().find(|&index| Some(&all[index].key) != last).or_else(|| due().next())?;
    Some(Planned { series: &all[index], repetition: round, seed: repeat.seed.wrapping_add(round.into()) })
}

/// A round's order of this many series.
fn order(count: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(round.into());
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // The remainder's bias is of one in 2^64 for a handful of series.
        let chosen = rng.next_u64() % (last as u64 + 1);
        order.swap(last, usize::try_from(chosen).unwrap_or(last));
    }
    order
}

/// What is left at least. Plain data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Runs.
    pub runs: u32,
    /// Of their workloads alone.
    pub time: Duration,
}

/// What is left at least, by what was run so far.
pub fn left(all: &[Series<'_>], runs: &[Run], repeat: &Repeat) -> Left {
    let mut left = Left::default();
    for series in all {
        if let Some(next) = series.next(runs, repeat) {
            let more = repeat.least.saturating_sub(next).max(1);
            left.runs += more;
            left.time += series.workload.duration * more;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::Findings;
    use super::super::tests::{failed, found, run_of, scenario};
    use super::*;

    /// Plays a scenario to its end with figures of runs, and gives the runs.
    fn played(choice: Choice, outcome: &dyn Fn(&Planned<'_>, &[Run]) -> Outcome) -> Vec<Run> {
        let scenario = scenario();
        let (all, repeat) = (Series::all(&scenario, choice), choice.apply(&scenario.repeat));
        let mut runs: Vec<Run> = Vec::new();
        while let Some(planned) = next(&all, &runs, &repeat) {
            let outcome = outcome(&planned, &runs);
            runs.push(run_of(planned.series.key.clone(), planned.repetition, outcome));
            assert!(runs.len() < 1000, "it never ends");
        }
        runs
    }

    #[test]
    fn every_case_has_a_series_for_each_of_its_contenders_and_workloads() {
        let scenario = scenario();
        let all = Series::all(&scenario, Choice::default());
        let names: Vec<String> =
            all.iter().map(|one| format!("{} {} {}", one.key.case, one.key.contender, one.key.workload)).collect();
        assert_eq!(names, ["A hawser down", "A tcp down", "B tcp down"]);
        assert_eq!(all[2].events.len(), 0);
    }

    #[test]
    fn a_quick_run_is_shorter_and_what_happens_comes_earlier() {
        let scenario = scenario();
        let all = Series::all(&scenario, Choice { quick: true, repetitions: None });
        assert_eq!(all[0].workload.duration, Duration::from_secs(4));
        let at: Vec<Duration> = all[0].events.iter().map(|event| event.at).collect();
        assert_eq!(at, [Duration::from_secs(1), Duration::from_secs(2)], "of 12 s they were at 3 and 6");
    }

    /// How a run goes, given those before it.
    type Goes = fn(&Planned<'_>, &[Run]) -> Outcome;

    #[test]
    fn a_series_is_run_until_it_is_steady_or_used_up_or_given_up() {
        let noisy: Goes = |planned, _| {
            let is_noisy = planned.series.key.contender == "tcp";
            found(if is_noisy && planned.repetition.is_multiple_of(2) { 50.0 } else { 90.0 })
        };
        let broken: Goes = |planned, runs| match planned.series.key.contender.as_str() {
            "tcp" => failed("it is broken"),
            _ if runs.iter().all(|run| run.series.contender == "tcp") => failed("the first time"),
            _ => found(90.0),
        };
        let missing: Goes = |planned, _| match planned.series.key.contender.as_str() {
            "tcp" => Outcome::Skipped("not installed".to_owned()),
            _ => found(90.0),
        };
        let unmeasured: Goes = |_, _| Outcome::Found(Findings::default());
        let [all, five] = [None, Some(5)].map(|repetitions| Choice { repetitions, quick: false });
        let table = [
            (all, noisy, [3, 10, 10], "until it is steady, or its runs are used up"),
            (five, noisy, [5; 3], "what is asked for goes before both"),
            (Choice { quick: true, ..all }, noisy, [1; 3], "a quick run is one"),
            (all, broken, [4, 2, 2], "a failed run is tried again once, and what only fails is given up"),
            (all, missing, [3, 1, 1], "what is not there is skipped for good"),
            (all, unmeasured, [3; 3], "without the figure the least number is enough"),
        ];
        for (choice, goes, expected, why) in table {
            let runs = played(choice, &goes);
            let counts = [("hawser", "A"), ("tcp", "A"), ("tcp", "B")].map(|key| {
                runs.iter().filter(|run| (run.series.contender.as_str(), run.series.case.as_str()) == key).count()
            });
            assert_eq!(counts, expected, "{why}");
        }
    }

    #[test]
    fn repetitions_lie_apart_and_every_round_has_an_order_of_its_own() {
        let runs = played(Choice { repetitions: Some(40), quick: false }, &|_, _| found(1.0));
        let neighbours = runs.windows(2).filter(|pair| pair[0].series == pair[1].series).count();
        assert_eq!(neighbours, 0);
        let rounds: Vec<Vec<&SeriesKey>> =
            runs.chunks(3).map(|round| round.iter().map(|run| &run.series).collect()).collect();
        assert!(rounds.iter().all(|round| round.iter().collect::<BTreeSet<_>>().len() == 3), "one of each");
        assert!(rounds.iter().collect::<BTreeSet<_>>().len() >= 4, "more than one order");
        assert!(runs.iter().all(|run| run.seed == 7 + u64::from(run.repetition)), "fortune is shared by a repetition");
    }

    #[test]
    fn what_is_left_shrinks_to_nothing() {
        let scenario = scenario();
        let all = Series::all(&scenario, Choice::default());
        let at_first = left(&all, &[], &scenario.repeat);
        assert_eq!((at_first.runs, at_first.time), (9, Duration::from_secs(9 * 12)));
        let runs = played(Choice::default(), &|_, _| found(90.0));
        let after = |count: usize| left(&all, &runs[..count], &scenario.repeat);
        assert_eq!((0..=9).map(|count| after(count).runs).collect::<Vec<_>>(), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(after(9), Left::default());
    }
}
