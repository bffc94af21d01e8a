//! What a case came to: medians, held against its targets; as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use hawser_wire::traffic::Sample;
use serde::Serialize;

use super::bench::Figures;
use super::cases::{Bound, Case, Of, Target};

/// What labels are padded to at least.
const LABEL_WIDTH: usize = 11;

/// The figures of a case's runs. Starts without any; one owner.
#[derive(Clone, Debug)]
pub struct Report {
    case: &'static Case,
    runs: BTreeMap<String, Vec<Figures>>,
    /// Of what the figures are made: told, not held against targets.
    parts: BTreeMap<String, Vec<Figures>>,
}

/// A target and what was reached. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Verdict {
    label: String,
    figure: &'static str,
    of: &'static str,
    /// None where it was never measured, or never came.
    value: Option<f64>,
    target: String,
    ok: bool,
}

/// The JSON form. Plain data.
#[derive(Serialize)]
struct Document<'a> {
    case: &'static str,
    about: &'static str,
    ok: bool,
    targets: Vec<Verdict>,
    medians: BTreeMap<&'a str, BTreeMap<&'static str, f64>>,
    runs: &'a BTreeMap<String, Vec<Figures>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: &'a BTreeMap<String, Vec<Figures>>,
}

impl Report {
    /// Before the first run.
    pub(super) fn new(case: &'static Case) -> Self {
        Self { case, runs: BTreeMap::new(), parts: BTreeMap::new() }
    }

    /// Adds a run's figures under a label.
    pub(super) fn add(&mut self, label: &str, figures: Figures) {
        self.runs.entry(label.to_owned()).or_default().push(figures);
    }

    /// Adds a part's figures under a label.
    pub(super) fn add_part(&mut self, label: &str, figures: Figures) {
        self.parts.entry(label.to_owned()).or_default().push(figures);
    }

    /// Whether every target was reached.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        let verdicts = self.verdicts();
        !verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.ok)
    }

    /// One JSON object, with every run.
    ///
    /// # Errors
    /// Never, for plain data.
    pub fn json(&self) -> serde_json::Result<String> {
        let Case { name, about, .. } = *self.case;
        let (targets, medians) = (self.verdicts(), self.medians());
        let (runs, parts) = (&self.runs, &self.parts);
        serde_json::to_string_pretty(&Document { case: name, about, ok: self.is_ok(), targets, medians, runs, parts })
    }

    /// The median of every figure, by label and name.
    pub(super) fn medians(&self) -> BTreeMap<&str, BTreeMap<&'static str, f64>> {
        self.runs.iter().map(|(label, runs)| (label.as_str(), medians(runs))).collect()
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let each = |target: &'static Target| {
            let is_meant = move |label: &str| target.label.is_empty() || target.label == label;
            let verdicts = self.runs.iter().filter(move |(label, _)| is_meant(label));
            let mut verdicts: Vec<_> = verdicts.map(|(label, runs)| verdict(label, runs, target)).collect();
            if verdicts.is_empty() && !target.label.is_empty() {
                verdicts.push(verdict(target.label, &[], target));
            }
            verdicts
        };
        self.case.targets.iter().flat_map(each).collect()
    }
}

fn verdict(label: &str, runs: &[Figures], target: &Target) -> Verdict {
    let sample: Sample = runs.iter().filter_map(|figures| figures.get(target.figure).copied()).collect();
    let value = match (target.of, target.bound) {
        (Of::Median, _) => median(&sample),
        (Of::Worst, Bound::AtMost(_)) => sample.max(),
        (Of::Worst, Bound::AtLeast(_) | Bound::Above(_)) => sample.min(),
    };
    Verdict {
        label: label.to_owned(),
        figure: target.figure,
        of: if target.of == Of::Median { "median" } else { "worst" },
        value: value.filter(|value| value.is_finite()),
        target: match target.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::Above(bound) => format!("> {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        },
        ok: value.is_some_and(|value| target.bound.holds(value)),
    }
}

fn medians(runs: &[Figures]) -> BTreeMap<&'static str, f64> {
    let names: Vec<&'static str> = runs.iter().flat_map(|figures| figures.keys().copied()).collect();
    let of = |name: &'static str| {
        let sample: Sample = runs.iter().filter_map(|figures| figures.get(name).copied()).collect();
        Some((name, median(&sample)?))
    };
    names.into_iter().filter_map(of).collect()
}

/// The median; what lies among figures that never came (infinite ones, between which nothing can be interpolated) never came.
fn median(sample: &Sample) -> Option<f64> {
    sample.median().map(|value| if value.is_nan() { f64::INFINITY } else { value })
}

/// Figures in a line.
pub(super) fn words(figures: &Figures) -> String {
    let word = |(name, value): (&&str, &f64)| match value.is_finite() {
        true => format!("{name} {value:.2}"),
        false => format!("{name} never"),
    };
    figures.iter().map(word).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let wide = self.runs.keys().map(String::len).fold(LABEL_WIDTH, usize::max);
        writeln!(text, "{}: {}", self.case.name, self.case.about)?;
        for (label, figures) in self.parts.iter().flat_map(|(label, all)| all.iter().map(move |one| (label, one))) {
            writeln!(text, "  {label}: {}", words(figures))?;
        }
        for (label, runs) in &self.runs {
            writeln!(text, "  {label:<wide$} median of {}: {}", runs.len(), words(&medians(runs)))?;
        }
        for Verdict { label, figure, of, value, target, ok } in self.verdicts() {
            let value = value.map_or("never".to_owned(), |value| format!("{value:.3}"));
            let word = if ok { "ok" } else { "MISSED" };
            writeln!(text, "  {label:<wide$} {of} {figure} {value} ({target}): {word}")?;
        }
        f.write_str(text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(case: &str, runs: &[(&str, Figures)]) -> Report {
        let mut report = Report::new(Case::named(case).expect("a case"));
        runs.iter().for_each(|(label, figures)| report.add(label, figures.clone()));
        report
    }

    #[test]
    fn a_median_forgives_one_run_but_the_worst_does_not() {
        let jain = |value| ("200", Figures::from([("jain", value), ("mib_a_peer", 1.0)]));
        assert!(report("peers", &[jain(0.96), jain(0.5), jain(0.97)]).is_ok());
        assert!(!report("peers", &[jain(0.94), jain(0.5), jain(0.97)]).is_ok());
        let late = |value| ("all", Figures::from([("late", value), ("too_loud", 0.0)]));
        assert!(report("outages", &[late(0.0), late(0.0)]).is_ok());
        assert!(!report("outages", &[late(0.0), late(1.0), late(0.0)]).is_ok());
    }

    #[test]
    fn what_was_not_measured_is_missed() {
        assert!(!report("peers", &[]).is_ok());
        assert!(!report("peers", &[("200", Figures::new())]).is_ok());
        let never = ("all", Figures::from([("too_loud", 0.0), ("late", f64::INFINITY)]));
        let report = report("outages", &[never.clone(), never]);
        assert!(!report.is_ok());
        assert!(report.to_string().contains("worst late never (≤ 0): MISSED"), "{report}");
        assert!(report.json().expect("plain data").contains("\"value\": null"));
    }
}
