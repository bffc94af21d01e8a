//! Which curves a plot has: contenders and workloads that have its figures, each with a colour that stays its own.

use super::super::series::Series;
use super::{Book, Case, Findings, Metric, Plot, Summary, case_label};

/// A contender with a workload, in one case. Borrowed from the runs.
pub(super) struct Strand<'a> {
    pub label: String,
    /// Of its colour.
    pub slot: usize,
    pub series: &'a Series<'a>,
}

/// A contender, or one with one of its workloads, in every case. Borrowed from the scenario.
pub(super) struct Kind<'a> {
    pub label: String,
    pub slot: usize,
    pub contender: &'a str,
    /// None is each case's only one.
    workload: Option<&'a str>,
}

impl<'a> Kind<'a> {
    /// Its series in a case, and that one's workload; rather one that has what is asked.
    pub(super) fn of<'b>(
        &self,
        book: &'b Book<'a>,
        case: &'a Case,
        has: impl Fn(&Findings) -> bool,
    ) -> Option<(&'a str, &'b Series<'a>)> {
        let series = |workload: &'a str| Some((workload, book.get(&case.name, self.contender, workload)?));
        if let Some(workload) = self.workload {
            return series(workload);
        }
        let all = || case.workloads.iter().filter_map(|workload| series(workload));
        all().find(|(_, series)| series.found.iter().any(|found| has(found))).or_else(|| all().next())
    }
}

/// Those of the plot's contenders that have what is asked in some case. Colours are the scenario's, so that a
/// contender has the same in all its plots; unless it has several curves in this one.
pub(super) fn kinds<'a>(
    book: &Book<'a>,
    plot: &Plot,
    cases: &[&Case],
    has: impl Fn(&Findings) -> bool,
) -> Vec<Kind<'a>> {
    let asked = |contender: &str| plot.contenders.is_empty() || plot.contenders.iter().any(|label| label == contender);
    let strands = |cases: &[&Case]| {
        let all = book.strands(cases, &has).into_iter();
        all.filter(|(contender, _)| asked(contender)).collect::<Vec<(&'a str, &'a str)>>()
    };
    // They come by contender.
    let repeats = |strands: &[(&str, &str)]| strands.windows(2).any(|pair| pair[0].0 == pair[1].0);
    let all = strands(cases);
    if cases.iter().any(|case| repeats(&strands(&[*case]))) {
        let kind = |(slot, (contender, workload)): (usize, (&'a str, &'a str))| Kind {
            label: format!("{contender}, {workload}"),
            slot,
            contender,
            workload: Some(workload),
        };
        return all.into_iter().enumerate().map(kind).collect();
    }
    let has_some = |label: &str| all.iter().any(|(contender, _)| *contender == label);
    let contenders = book.scenario.contenders.iter().map(|contender| contender.label.as_str()).enumerate();
    let kind =
        |(slot, contender): (usize, &'a str)| Kind { label: contender.to_owned(), slot, contender, workload: None };
    contenders.filter(|(_, contender)| has_some(contender)).map(kind).collect()
}

/// Panels with their title and curves: one for each case, or one of all cases where only one kind has them.
pub(super) fn groups<'a, 'b>(
    book: &'b Book<'a>,
    plot: &Plot,
    cases: &[&'a Case],
    has: impl Fn(&Findings) -> bool,
) -> Vec<(String, Vec<Strand<'b>>)> {
    let kinds = kinds(book, plot, cases, &has);
    let series = |case: &'a Case, kind: &Kind<'a>| {
        kind.of(book, case, &has).map(|(_, series)| series).filter(|series| series.found.iter().any(|found| has(found)))
    };
    if let ([kind], true) = (kinds.as_slice(), cases.len() > 1) {
        let strand = |(slot, case): (usize, &&'a Case)| {
            Some(Strand { label: case_label(case), slot, series: series(case, kind)? })
        };
        return vec![(kind.label.clone(), cases.iter().enumerate().filter_map(strand).collect())];
    }
    let of_case = |case: &&'a Case| {
        let strand =
            |kind: &Kind<'a>| Some(Strand { label: kind.label.clone(), slot: kind.slot, series: series(case, kind)? });
        let title = if book.scenario.cases.len() > 1 { case_label(case) } else { String::new() };
        (title, kinds.iter().filter_map(strand).collect())
    };
    cases.iter().map(of_case).collect()
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
