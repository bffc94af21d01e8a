//! Two results of the same scenarios: what is better, what is worse, and what is noise.
//!
//! 1. Figures of both are set side by side, by series and metric; metrics without a good direction are left out.
//! 2. Each pair is tested (Welch). The tests are corrected for their number (Holm): the scenario's own metric in a
//!    family of its own, all others in another, so that asking for more figures does not hide the one that matters.
//! 3. A difference counts where chance rarely makes it and it is large enough to matter; the rest is noise.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hawser_config::keyword;

use super::metrics::Better;
use super::statistics::{LEVEL, Welch, holm, welch};
use super::tables::signed_percent;
use super::{LabError, Metric, Results, Summary, results};
use crate::experiment::{Outcome, Run, SeriesKey};

/// Differences under this share of the old mean do not matter, however sure they are.
const RELEVANT: f64 = 0.05;

keyword! {
    /// What became of a figure. Plain data.
    Verdict {
        /// In the bad direction, surely and by enough.
        Worse = "worse",
        /// In the good direction, surely and by enough.
        Better = "better",
        /// Nothing that chance would not do, or too little to matter.
        Noise = "within noise",
        /// A side has too few runs to tell.
        Unknown = "too few runs",
    }
}

/// A figure of both results. Plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Of which series.
    pub series: SeriesKey,
    /// Name of the metric.
    pub metric: String,
    /// Before.
    pub old: Summary,
    /// After.
    pub new: Summary,
    /// The test, its p value corrected; none where a side has a single run.
    pub test: Option<Welch>,
    /// What is made of it.
    pub verdict: Verdict,
}

impl Finding {
    /// New less old, as a share of old; infinite from nothing.
    pub fn change(&self) -> f64 {
        let difference = self.new.mean - self.old.mean;
        if difference == 0.0 { 0.0 } else { difference / self.old.mean.abs() }
    }
}

/// What two results differ in. Plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// By scenario, series and metric.
    pub findings: Vec<Finding>,
    /// Series that had figures, and have none.
    pub lost: Vec<SeriesKey>,
    /// Series that had none, and have.
    pub gained: Vec<SeriesKey>,
}

impl Comparison {
    /// Whether anything became worse, or was lost.
    pub fn is_regression(&self) -> bool {
        !self.lost.is_empty() || self.findings.iter().any(|finding| finding.verdict == Verdict::Worse)
    }
}

/// Compares the results in two folders.
///
/// # Errors
/// Where either cannot be read, or they have no series in common.
pub fn compare(old: &Path, new: &Path) -> Result<Comparison, LabError> {
    let (before, after) = (results::read(old)?, results::read(new)?);
    let runs = |results: &[Results]| results.iter().flat_map(|results| results.runs.clone()).collect::<Vec<Run>>();
    let named = |name: &str| before.iter().find(|results| results.scenario.name == name);
    let own = |name: &str| Some(named(name)?.scenario.repeat.metric.as_str());
    let comparison = compare_runs(&runs(&before), &runs(&after), own);
    if comparison.findings.is_empty() && comparison.lost.is_empty() {
        let action = format!("compare {} with {}", old.display(), new.display());
        return Err(LabError::refused(action, "they have no series in common".to_owned()));
    }
    Ok(comparison)
}

/// Steps 1 to 3; `own` names a scenario's own metric.
pub fn compare_runs<'a>(old: &[Run], new: &[Run], own: impl Fn(&str) -> Option<&'a str>) -> Comparison {
    let (before, after) = (values(old), values(new));
    let mut comparison = Comparison::default();
    for (series, new) in &after {
        match before.get(series).filter(|old| !old.is_empty()) {
            Some(_) if new.is_empty() => comparison.lost.push(series.clone()),
            Some(old) => comparison.findings.extend(pairs(series, old, new)),
            None if new.is_empty() => {}
            None => comparison.gained.push(series.clone()),
        }
    }
    let mut families: BTreeMap<(String, bool), Vec<&mut Finding>> = BTreeMap::new();
    for finding in comparison.findings.iter_mut().filter(|finding| finding.test.is_some()) {
        let scenario = finding.series.scenario.clone();
        let is_own = own(&scenario) == Some(finding.metric.as_str());
        families.entry((scenario, is_own)).or_default().push(finding);
    }
    families.into_values().for_each(judge);
    comparison
}

/// A series' figures by metric.
type Figures<'a> = BTreeMap<&'a str, Vec<f64>>;

fn values(runs: &[Run]) -> BTreeMap<SeriesKey, Figures<'_>> {
    let mut series: BTreeMap<SeriesKey, Figures<'_>> = BTreeMap::new();
    for run in runs {
        let figures = series.entry(run.series.clone()).or_default();
        if let Outcome::Found(findings) = &run.outcome {
            findings.metrics.iter().for_each(|(name, value)| figures.entry(name).or_default().push(*value));
        }
    }
    series
}

/// Step 1.
fn pairs(series: &SeriesKey, old: &Figures<'_>, new: &Figures<'_>) -> Vec<Finding> {
    let pair = |(metric, values): (&&str, &Vec<f64>)| {
        Metric::named(metric).better?;
        let (old, new) = (Summary::of(values)?, Summary::of(new.get(metric)?)?);
        let (series, metric, test) = (series.clone(), (*metric).to_owned(), welch(&old, &new));
        Some(Finding { series, metric, old, new, test, verdict: Verdict::Unknown })
    };
    old.iter().filter_map(pair).collect()
}

/// Steps 2 and 3, for one family of tests.
fn judge(family: Vec<&mut Finding>) {
    let corrected = holm(&family.iter().filter_map(|finding| Some(finding.test?.p)).collect::<Vec<_>>());
    for (finding, p) in family.into_iter().zip(corrected) {
        finding.test = finding.test.map(|test| Welch { p, ..test });
        finding.verdict = verdict(finding, p);
    }
}

fn verdict(finding: &Finding, p: f64) -> Verdict {
    let change = finding.change();
    if p >= LEVEL || change.abs() < RELEVANT {
        return Verdict::Noise;
    }
    match (Metric::named(&finding.metric).better, change > 0.0) {
        (Some(Better::Higher), true) | (Some(Better::Lower), false) => Verdict::Better,
        (Some(_), _) => Verdict::Worse,
        (None, _) => Verdict::Noise,
    }
}

impl fmt::Display for Comparison {
    /// A line for each figure: the worse first; then what was lost and gained, and the sum of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut findings: Vec<&Finding> = self.findings.iter().collect();
        findings.sort_by_key(|finding| finding.verdict);
        let rows: Vec<[String; 5]> = findings.iter().map(|finding| row(finding)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2, 3].map(width);
        for [verdict, series, figures, change, p] in &rows {
            let [a, b, c, d] = widths;
            writeln!(f, "{verdict:<a$}  {series:<b$}  {figures:<c$}  {change:>d$}  {p}")?;
        }
        for (what, all) in [("lost", &self.lost), ("gained", &self.gained)] {
            for key in all {
                writeln!(f, "{what:<0$}  {1}", widths[0], name(key))?;
            }
        }
        let counts = findings.chunk_by(|a, b| a.verdict == b.verdict);
        let counts: Vec<String> = counts.map(|same| format!("{} {}", same.len(), same[0].verdict)).collect();
        let (all, counts, relevant) = (findings.len(), counts.join(", "), RELEVANT * 100.0);
        write!(f, "{all} figures: {counts} (Welch's t-test with Holm's correction at {LEVEL}; ")?;
        write!(f, "changes under {relevant:.0} % do not count)")
    }
}

fn name(key: &SeriesKey) -> String {
    let SeriesKey { scenario, case, contender, workload } = key;
    format!("{scenario} {case} {contender} {workload}")
}

fn row(finding: &Finding) -> [String; 5] {
    let unit = Metric::named(&finding.metric).unit;
    let figures = format!("{} {} → {} {unit}", finding.metric, finding.old, finding.new);
    let change = finding.change();
    let change = if change.is_finite() { signed_percent(change * 100.0) } else { "from 0".to_owned() };
    let test = finding.test.map_or(String::new(), |Welch { p, relevant, .. }| {
        let p = if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") };
        let is_told = finding.verdict == Verdict::Noise && relevant > finding.old.mean.abs() * RELEVANT;
        if is_told { format!("{p}, told from {relevant:.2} {unit} on") } else { p }
    });
    [finding.verdict.to_string(), name(&finding.series), figures, change, test]
}
