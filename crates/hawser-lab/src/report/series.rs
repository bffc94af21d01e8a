//! Runs by series: what was found in each, and why nothing was.

use super::statistics::Summary;
use crate::experiment::{Findings, Outcome, Run, SeriesKey};
use crate::scenario::{Case, Scenario};

/// A series and its runs. Starts without any; borrowed from the scenario and from them.
pub struct Series<'a> {
    pub case: &'a Case,
    pub contender: &'a str,
    pub workload: &'a str,
    pub found: Vec<&'a Findings>,
    /// Why they were not run.
    pub skipped: Vec<&'a str>,
    pub failed: Vec<&'a str>,
}

impl Series<'_> {
    /// A metric's figures in short; none without one.
    pub fn summary(&self, metric: &str) -> Option<Summary> {
        let figures = self.found.iter().filter_map(|found| found.metrics.get(metric).copied());
        Summary::of(&figures.collect::<Vec<_>>())
    }

    /// Whether some run found what is asked.
    pub fn has(&self, has: impl Fn(&Findings) -> bool) -> bool {
        self.found.iter().any(|found| has(found))
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

/// A figure, and the original's. Plain data.
pub struct Cell {
    pub own: Option<Summary>,
    /// With its standard deviation, where that was given.
    pub published: Option<(f64, Option<f64>)>,
    /// Why nothing was found; none where the case has no such series.
    pub absence: Option<&'static str>,
}

/// A scenario's series. Made from its runs; borrowed from them.
pub struct Book<'a> {
    pub scenario: &'a Scenario,
    /// In the scenario's order.
    pub series: Vec<Series<'a>>,
    /// Series that the scenario does not have.
    pub strange: Vec<&'a SeriesKey>,
}

impl<'a> Book<'a> {
    /// Sorts runs into the scenario's series.
    pub fn new(scenario: &'a Scenario, runs: &'a [Run]) -> Self {
        let mut series: Vec<Series<'a>> = Vec::new();
        for case in &scenario.cases {
            for contender in &case.contenders {
                for workload in &case.workloads {
                    series.push(Series { case, contender, workload, found: vec![], skipped: vec![], failed: vec![] });
                }
            }
        }
        let mut strange: Vec<&SeriesKey> = Vec::new();
        for run in runs {
            let SeriesKey { case, contender, workload, .. } = &run.series;
            let own = series
                .iter_mut()
                .find(|one| one.case.name == *case && one.contender == contender && one.workload == workload);
            match (own, &run.outcome) {
                (Some(series), Outcome::Found(findings)) => series.found.push(findings),
                (Some(series), Outcome::Skipped(reason)) => series.skipped.push(reason),
                (Some(series), Outcome::Failed(reason)) => series.failed.push(reason),
                (None, _) if strange.contains(&&run.series) => {}
                (None, _) => strange.push(&run.series),
            }
        }
        Self { scenario, series, strange }
    }

    /// The series of a contender that is meant in a case: that of the named workload, or the first that has what is
    /// asked, or the first. None where the case does not have it.
    pub fn get(
        &self,
        case: &str,
        contender: &str,
        workload: Option<&str>,
        has: impl Fn(&Findings) -> bool,
    ) -> Option<&Series<'a>> {
        let is_named = |one: &Series<'_>| workload.is_none_or(|name| name == one.workload);
        let is_its = |one: &&Series<'_>| one.case.name == case && one.contender == contender && is_named(one);
        let mut its = self.series.iter().filter(is_its);
        let first = its.clone().next();
        its.find(|one| one.has(&has)).or(first)
    }

    /// A contender's figure in a case, of the workload that is meant.
    pub fn cell(&self, case: &Case, contender: &str, workload: Option<&str>, metric: &str) -> Cell {
        let series = self.get(&case.name, contender, workload, |found| found.metrics.contains_key(metric));
        let first = case.workloads.first().map(String::as_str);
        let workload = series.map(|one| one.workload).or(workload).or(first);
        let published = self.scenario.published.iter().find(|published| {
            published.case == case.name
                && published.contender == contender
                && published.metric == metric
                && published.workload.as_deref().is_none_or(|name| workload == Some(name))
        });
        Cell {
            own: series.and_then(|series| series.summary(metric)),
            published: published.map(|published| (published.value, published.spread)),
            absence: series.map(Series::absence),
        }
    }

    /// How much was run, in words.
    pub fn extent(&self) -> String {
        let sum = |count: fn(&Series<'_>) -> usize| self.series.iter().map(count).sum::<usize>();
        let (found, failed) = (sum(|one| one.found.len()), sum(|one| one.failed.len()));
        let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        let (cases, series) = (self.scenario.cases.len(), self.series.len());
        format!("{cases} cases, {series} series, {found} runs measured{failures}")
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
            self.series.iter().any(|one| {
                (one.contender, one.workload) == (contender, workload)
                    && cases.iter().any(|case| case.name == one.case.name)
                    && one.has(&has)
            })
        };
        all.filter(has_any).collect()
    }
}

/// Series of a contender that have no figures, or had to be tried again, for one reason. Borrowed from the runs.
pub struct Trouble<'a> {
    /// `skipped`, `failed`, `not run`, `not in the scenario`.
    pub what: &'static str,
    pub contender: &'a str,
    /// Cases and workloads, with how many runs where they were several.
    pub of: Vec<String>,
    /// All that was said.
    pub reason: &'a str,
}

impl Trouble<'_> {
    /// The reason's first line.
    pub fn short(&self) -> &str {
        self.reason.lines().next().unwrap_or_default()
    }
}

/// In the scenario's order; equal reasons of one contender stand together.
pub fn troubles<'a>(book: &Book<'a>) -> Vec<Trouble<'a>> {
    let mut troubles: Vec<Trouble<'a>> = Vec::new();
    let mut add = |what: &'static str, contender: &'a str, of: String, reason: &'a str| match troubles
        .iter_mut()
        .find(|t| (t.what, t.contender, t.reason) == (what, contender, reason))
    {
        Some(trouble) if trouble.of.contains(&of) => {}
        Some(trouble) => trouble.of.push(of),
        None => troubles.push(Trouble { what, contender, of: vec![of], reason }),
    };
    for Series { case, contender, workload, found, skipped, failed } in &book.series {
        let name = if case.workloads.len() > 1 { format!("{} {workload}", case.name) } else { case.name.clone() };
        skipped.iter().for_each(|&reason| add("skipped", contender, name.clone(), reason));
        let share = format!("{name} ({} of {} runs)", failed.len(), found.len() + failed.len());
        failed.iter().for_each(|&reason| add("failed", contender, share.clone(), reason));
        if found.is_empty() && skipped.is_empty() && failed.is_empty() {
            add("not run", contender, name, "the experiment was interrupted, or is not over");
        }
    }
    for &SeriesKey { case, contender, workload, .. } in &book.strange {
        add("not in the scenario", contender, format!("{case} {workload}"), "the scenario was changed");
    }
    troubles
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
