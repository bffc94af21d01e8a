//! Which curves a plot has: contenders and workloads that have its figures, each with a colour that stays its own.

use super::super::metrics::Metric;
use super::super::series::{Book, Series};
use super::super::statistics::Summary;
use crate::experiment::Findings;
use crate::scenario::{Case, Plot};

/// A contender with a workload, in one case. Borrowed from the runs.
#[derive(Clone, Debug)]
pub(super) struct Strand<'a> {
    pub label: String,
    /// Of its colour.
    pub slot: usize,
    pub series: &'a Series<'a>,
}

/// A contender with a workload, in every case. Borrowed from the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind<'a> {
    pub label: String,
    pub slot: usize,
    pub contender: &'a str,
    pub workload: &'a str,
}

/// Those of the plot's contenders that have what is asked in some case. Colours are the scenario's, so that a
/// contender has the same in all its plots.
pub(super) fn kinds<'a>(
    book: &Book<'a>,
    plot: &Plot,
    cases: &[&Case],
    has: impl Fn(&Findings) -> bool,
) -> Vec<Kind<'a>> {
    let scenario = book.scenario;
    let is_asked =
        |contender: &str| plot.contenders.is_empty() || plot.contenders.iter().any(|label| label == contender);
    let strands: Vec<(&str, &str)> =
        book.strands(cases, has).into_iter().filter(|(contender, _)| is_asked(contender)).collect();
    let several = strands.iter().any(|(_, workload)| strands.iter().any(|(_, other)| other != workload));
    let kind = |(contender, workload): (&'a str, &'a str)| {
        let place = scenario.contenders.iter().position(|known| known.label == contender).unwrap_or(0);
        let turn = scenario.workloads.iter().position(|known| known.name == workload).unwrap_or(0);
        let label = if several { format!("{contender}, {workload}") } else { contender.to_owned() };
        let slot = if several { place * scenario.workloads.len() + turn } else { place };
        Kind { label, slot, contender, workload }
    };
    strands.into_iter().map(kind).collect()
}

/// Panels with their title and curves: one for each case, or one of all cases where only one kind has them.
pub(super) fn groups<'b>(
    book: &'b Book<'_>,
    plot: &Plot,
    cases: &[&Case],
    has: impl Fn(&Findings) -> bool,
) -> Vec<(String, Vec<Strand<'b>>)> {
    let kinds = kinds(book, plot, cases, &has);
    let series = |case: &Case, kind: &Kind<'_>| {
        book.get(&case.name, kind.contender, kind.workload).filter(|series| series.found.iter().any(|found| has(found)))
    };
    if let ([kind], true) = (kinds.as_slice(), cases.len() > 1) {
        let strand =
            |(slot, case): (usize, &&Case)| Some(Strand { label: case_label(case), slot, series: series(case, kind)? });
        return vec![(kind.label.clone(), cases.iter().enumerate().filter_map(strand).collect())];
    }
    let of_case = |case: &&Case| {
        let strand =
            |kind: &Kind<'_>| Some(Strand { label: kind.label.clone(), slot: kind.slot, series: series(case, kind)? });
        let title = if book.scenario.cases.len() > 1 { case_label(case) } else { String::new() };
        (title, kinds.iter().filter_map(strand).collect())
    };
    cases.iter().map(of_case).collect()
}

/// Name and title, once where they are the same.
pub(super) fn case_label(case: &Case) -> String {
    if case.title.is_empty() || case.title == case.name {
        case.name.clone()
    } else {
        format!("{} {}", case.name, case.title)
    }
}

/// A plot's title and a panel's.
pub(super) fn titled(plot: &str, panel: &str) -> String {
    if panel.is_empty() { plot.to_owned() } else { format!("{plot}: {panel}") }
}

/// For those who hear a plot: each curve's mean, least and most.
pub(super) fn in_words(metric: &str, curves: impl Iterator<Item = (String, Summary)>) -> String {
    let Metric { title, unit, .. } = Metric::named(metric);
    let curve = |(label, summary): (String, Summary)| {
        let Summary { mean, least, most, .. } = summary;
        format!("{label}: {mean:.1} {unit} in the mean, from {least:.1} to {most:.1}")
    };
    format!("{title}. {}.", curves.map(curve).collect::<Vec<_>>().join("; "))
}
