//! Runs, and what is kept of them: everything that a report is made from.
//!
//! 1. [`Series`] are what a scenario asks for; [`plan`] says which run is next.
//! 2. [`run()`] executes them one after the other, most as [`Live`] does: network, contender, workload, measures.
//!    [`executor`] knows who executes the others.
//! 3. A [`Store`] keeps each run as it ends, with the [`Machine`] it was found on.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod live;
mod machine;
mod measure;
mod plan;
mod progress;
mod run;
pub(crate) mod store;
#[cfg(test)]
mod tests;

pub use plan::{Choice, Planned, Series};
pub use progress::Progress;
pub(crate) use run::{CAPTURES, Execute};
pub use run::{Summary, executor, run};

use live::Live;
use machine::Machine;
use serde::{Deserialize, Serialize};
use store::Store;

use crate::error::LabError;
use crate::text::told;

/// Which series a run belongs to. Plain data, ordered as the scenario is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesKey {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the case.
    pub case: String,
    /// Label of the contender.
    pub contender: String,
    /// Name of the workload.
    pub workload: String,
}

/// A run, as it is kept in `runs.jsonl`: a line each. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Of which series.
    #[serde(flatten)]
    pub series: SeriesKey,
    /// From 0 on.
    pub repetition: u32,
    /// What its random numbers came from.
    pub seed: u64,
    /// Seconds since 1970 at its start.
    pub started: f64,
    /// What was found, or why not.
    pub outcome: Outcome,
}

impl Run {
    /// A figure by name; none where it was not found.
    pub(crate) fn figure(&self, metric: &str) -> Option<f64> {
        let Outcome::Found(findings) = &self.outcome else { return None };
        findings.metrics.get(metric).copied()
    }
}

/// How a run ended. Plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was measured.
    Found(Findings),
    /// The contender's program is not installed, or the kernel lacks something: said by name in the report.
    Skipped(String),
    /// It failed, with what was said.
    Failed(String),
}

impl From<Result<Findings, LabError>> for Outcome {
    fn from(result: Result<Findings, LabError>) -> Self {
        match result {
            Ok(findings) => Self::Found(findings.finite()),
            Err(LabError::Missing { what, hint }) => Self::Skipped(format!("{what} is missing ({hint})")),
            Err(error) => Self::Failed(told(&error)),
        }
    }
}

/// What a run found: figures by name with the unit as the name's end (`goodput_mbps`, `longest_gap_ms`). Starts empty.
/// Plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// One figure each.
    pub metrics: BTreeMap<String, f64>,
    /// Figures over time.
    pub lines: Vec<Line>,
    /// Samples whose distribution matters, by name: `round_trip_ms`.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// What happened when.
    pub marks: Vec<Mark>,
}

/// A figure over time in equal steps. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// As a metric's: `goodput_mbps`.
    pub name: String,
    /// Which link, where it is of one.
    pub link: Option<String>,
    /// Seconds from one value to the next; the first is of the first step after the start.
    pub step_s: f64,
    /// The values.
    pub values: Vec<f64>,
}

impl Line {
    /// The values of the steps that begin at this time or later.
    pub(crate) fn from(&self, time: Duration) -> &[f64] {
        // What lies within a rounding error of a step's begin is in it.
        let first = (time.as_secs_f64() / self.step_s - 1e-6).max(0.0).ceil() as usize;
        &self.values[first.min(self.values.len())..]
    }
}

/// Something that happened. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// Seconds after the start.
    pub at_s: f64,
    /// In a word or two: `wifi cut`.
    pub what: String,
}

impl Findings {
    /// These figures, by name.
    pub(crate) fn named<'n>(figures: impl IntoIterator<Item = (&'n str, f64)>) -> Self {
        let metrics = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Self { metrics, ..Self::default() }
    }

    /// What another measure found of the same run.
    pub fn add(&mut self, other: Self) {
        self.metrics.extend(other.metrics);
        self.lines.extend(other.lines);
        self.samples.extend(other.samples);
        self.marks.extend(other.marks);
    }

    /// Without what is no number: it was not found, and JSON cannot say it.
    fn finite(mut self) -> Self {
        self.metrics.retain(|_, value| value.is_finite());
        self.lines.retain(|line| line.values.iter().all(|value| value.is_finite()));
        self.samples.values_mut().for_each(|values| values.retain(|value| value.is_finite()));
        self
    }
}

/// Seconds since 1970, as the system's clock has it.
pub(crate) fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
