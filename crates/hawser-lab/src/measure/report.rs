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

    /// The case's name, and how often it was run.
    pub(super) fn origin(&self) -> (&'static str, usize) {
        (self.case.name, self.runs.values().map(Vec::len).max().unwrap_or(0))
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
        let ratio = |value| ("up", Figures::from([("ratio", value)]));
        assert!(report("equal", &[ratio(0.96), ratio(0.5), ratio(0.97)]).is_ok());
        assert!(!report("equal", &[ratio(0.94), ratio(0.5), ratio(0.97)]).is_ok());
        let gap = |value| ("link1 up", Figures::from([("gap_ms", value), ("recovered_s", 1.0)]));
        assert!(report("cut-silent", &[gap(90.0), gap(200.0)]).is_ok());
        assert!(!report("cut-silent", &[gap(90.0), gap(201.0), gap(80.0)]).is_ok());
    }

    #[test]
    fn what_was_not_measured_is_missed() {
        assert!(!report("equal", &[]).is_ok());
        assert!(!report("equal", &[("up", Figures::new())]).is_ok());
        let never = ("link1 up", Figures::from([("gap_ms", 90.0), ("recovered_s", f64::INFINITY)]));
        let report = report("cut-silent", &[never.clone(), never]);
        assert!(!report.is_ok());
        assert!(report.to_string().contains("worst recovered_s never (≤ 3): MISSED"), "{report}");
        assert!(report.to_string().contains("gap_ms 90.00, recovered_s never"), "{report}");
        assert!(report.json().expect("plain data").contains("\"value\": null"));
    }

    #[test]
    fn parts_are_told_but_not_held_against_targets() {
        let all = Figures::from([("under_too_many", 0.0), ("least", 0.9)]);
        let mut report = report("random", &[("all", all)]);
        report.add_part("seed 3", Figures::from([("ratio", 0.5)]));
        assert!(report.is_ok());
        assert!(report.to_string().contains("seed 3: ratio 0.50"), "{report}");
        assert!(report.json().expect("plain data").contains("\"seed 3\""));
    }

    #[test]
    fn every_way_must_reach_the_target() {
        let runs = [("down", Figures::from([("ratio", 0.90)])), ("up", Figures::from([("ratio", 0.96)]))];
        let report = report("equal", &runs);
        assert!(!report.is_ok());
        let text = report.to_string();
        assert!(text.contains("down        median ratio 0.900 (≥ 0.95): MISSED"), "{text}");
        assert!(text.contains("up          median ratio 0.960 (≥ 0.95): ok"), "{text}");
    }
}
