//! Runs by series: what was found in each, and why nothing was.

use std::collections::BTreeMap;

use super::statistics::Summary;
use crate::experiment::{Findings, Outcome, Run, SeriesKey};
use crate::scenario::{Case, Published, Scenario};

/// A series' runs. Starts without any; borrowed from them.
#[derive(Default)]
pub struct Series<'a> {
    /// Those that were measured.
    pub found: Vec<&'a Findings>,
    /// Why they were not run.
    pub skipped: Vec<&'a str>,
    /// What was said when they failed.
    pub failed: Vec<&'a str>,
}

impl Series<'_> {
    /// A metric's figures.
    pub fn values(&self, metric: &str) -> Vec<f64> {
        self.found.iter().filter_map(|found| found.metrics.get(metric).copied()).collect()
    }

    /// In short; none without a figure.
    pub fn summary(&self, metric: &str) -> Option<Summary> {
        Summary::of(&self.values(metric))
    }

    /// Why there is no figure, in a word.
    pub fn absence(&self) -> &'static str {
        match (self.found.is_empty(), self.skipped.is_empty(), self.failed.is_empty()) {
            (true, _, false) => "failed",
            (true, false, true) => "skipped",
            (true, true, true) => "not run",
            (false, ..) => "–",
        }
    }
}

/// A scenario's series. Made from its runs; borrowed from them.
pub struct Book<'a> {
    /// What was asked.
    pub scenario: &'a Scenario,
    /// By case, contender, workload.
    series: BTreeMap<[&'a str; 3], Series<'a>>,
    /// Series that the scenario does not have.
    pub strange: Vec<&'a SeriesKey>,
}

impl<'a> Book<'a> {
    /// Sorts runs into the scenario's series.
    pub fn new(scenario: &'a Scenario, runs: &'a [Run]) -> Self {
        let mut series: BTreeMap<[&str; 3], Series<'a>> = BTreeMap::new();
        for case in &scenario.cases {
            let of_case = pairs(case).map(|(contender, workload)| [case.name.as_str(), contender, workload]);
            series.extend(of_case.map(|key| (key, Series::default())));
        }
        let mut strange: Vec<&SeriesKey> = Vec::new();
        for run in runs {
            let SeriesKey { case, contender, workload, .. } = &run.series;
            match (series.get_mut(&[case, contender, workload].map(String::as_str)), &run.outcome) {
                (Some(series), Outcome::Found(findings)) => series.found.push(findings),
                (Some(series), Outcome::Skipped(reason)) => series.skipped.push(reason),
                (Some(series), Outcome::Failed(reason)) => series.failed.push(reason),
                (None, _) if strange.contains(&&run.series) => {}
                (None, _) => strange.push(&run.series),
            }
        }
        Self { scenario, series, strange }
    }

    /// None where the case does not have it.
    pub fn get(&self, case: &str, contender: &str, workload: &str) -> Option<&Series<'a>> {
        self.series.iter().find(|(key, _)| **key == [case, contender, workload]).map(|(_, series)| series)
    }

    /// The original's figure.
    pub fn published(&self, case: &str, contender: &str, workload: &str, metric: &str) -> Option<&'a Published> {
        self.scenario.published.iter().find(|published| {
            published.case == case
                && published.contender == contender
                && published.metric == metric
                && published.workload.as_ref().is_none_or(|name| name == workload)
        })
    }

    /// Every series, in the scenario's order.
    pub fn all(&self) -> impl Iterator<Item = (&'a Case, &'a str, &'a str, &Series<'a>)> {
        let of_case = move |case: &'a Case| {
            pairs(case).filter_map(move |(contender, workload)| {
                Some((case, contender, workload, self.get(&case.name, contender, workload)?))
            })
        };
        self.scenario.cases.iter().flat_map(of_case)
    }

    /// Cases by name, in that order; all of them where no name is given.
    pub fn cases(&self, names: &[String]) -> Vec<&'a Case> {
        let all = &self.scenario.cases;
        if names.is_empty() {
            return all.iter().collect();
        }
        names.iter().filter_map(|name| all.iter().find(|case| case.name == *name)).collect()
    }

    /// Contenders and workloads of which some case has what is asked, in the scenario's order.
    pub fn strands(&self, cases: &[&Case], has: impl Fn(&Findings) -> bool) -> Vec<(&'a str, &'a str)> {
        let scenario = self.scenario;
        let all = scenario.contenders.iter().flat_map(|contender| {
            scenario.workloads.iter().map(move |workload| (contender.label.as_str(), workload.name.as_str()))
        });
        let has_any = |&(contender, workload): &(&str, &str)| {
            let mut series = cases.iter().filter_map(|case| self.get(&case.name, contender, workload));
            series.any(|series| series.found.iter().any(|found| has(found)))
        };
        all.filter(has_any).collect()
    }
}

fn pairs(case: &Case) -> impl Iterator<Item = (&str, &str)> {
    case.contenders.iter().flat_map(|contender| case.workloads.iter().map(move |w| (contender.as_str(), w.as_str())))
}

/// What a case's title says beyond its name.
pub fn case_title(case: &Case) -> Option<&str> {
    Some(case.title.as_str()).filter(|title| !title.is_empty() && *title != case.name)
}

/// Name and title, once where they are the same.
pub fn case_label(case: &Case) -> String {
    case_title(case).map_or_else(|| case.name.clone(), |title| format!("{} {title}", case.name))
}

/// How many runs series have: `3`, or `3–10`.
pub fn counts(numbers: impl Iterator<Item = usize>) -> String {
    let numbers: Vec<usize> = numbers.filter(|number| *number > 0).collect();
    match (numbers.iter().min(), numbers.iter().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least}–{most}"),
        _ => "0".to_owned(),
    }
}
