//! Which curves a plot has: contenders and workloads that have its figures, each with a colour that stays its own; and
//! their figures by case, as lines and bars show them: what was found, and what was published.

use super::super::series::{Cell, Series, counts};
use super::panel::{Entry, Sample};
use super::{Axis, Book, Case, Findings, Metric, Plot, Summary, case_label};

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
    pub workload: Option<&'a str>,
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
        let kind = |((contender, workload), slot)| {
            let label = format!("{contender}, {workload}");
            Kind { label, slot, contender, workload: Some(workload) }
        };
        return all.into_iter().zip(0..).map(kind).collect();
    }
    let contenders = book.scenario.contenders.iter().map(|contender| contender.label.as_str()).enumerate();
    let shown = contenders.filter(|(_, label)| all.iter().any(|(contender, _)| contender == label));
    shown.map(|(slot, contender)| Kind { label: contender.to_owned(), slot, contender, workload: None }).collect()
}

/// Panels with their title and curves: one for each case, or one of all cases where only one kind has them.
pub(super) fn groups<'a, 'b>(
    book: &'b Book<'a>,
    plot: &Plot,
    cases: &[&'a Case],
    has: impl Fn(&Findings) -> bool,
) -> Vec<(String, Vec<Strand<'b>>)> {
    let kinds = kinds(book, plot, cases, &has);
    let series = |case: &Case, kind: &Kind<'_>| {
        book.get(&case.name, kind.contender, kind.workload, &has).filter(|series| series.has(&has))
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
pub(super) fn in_words<'l>(metric: &str, curves: impl Iterator<Item = (&'l str, Summary)>) -> String {
    let Metric { title, unit, .. } = Metric::named(metric);
    let curve = |(label, Summary { mean, least, most, .. }): (&str, Summary)| {
        format!("{label}: {mean:.1} {unit} in the mean, from {least:.1} to {most:.1}")
    };
    format!("{title}. {}.", curves.map(curve).collect::<Vec<_>>().join("; "))
}

/// A contender with a workload, over cases. Borrowed from the scenario.
pub(super) struct Curve<'a> {
    pub kind: Kind<'a>,
    /// One for each case, in the plot's order.
    pub points: Vec<Cell>,
}

/// One for each contender and workload that has the plot's metric in some case.
pub(super) fn curves<'a>(book: &Book<'a>, plot: &Plot, cases: &[&'a Case]) -> Vec<Curve<'a>> {
    let metric = plot.metric.as_str();
    let has = |found: &Findings| found.metrics.contains_key(metric);
    let point = |kind: &Kind<'a>, case: &Case| {
        let cell = book.cell(case, kind.contender, kind.workload, metric);
        Cell { published: cell.published.filter(|_| cell.absence.is_some()), ..cell }
    };
    let curve = |kind: Kind<'a>| Curve { points: cases.iter().map(|case| point(&kind, case)).collect(), kind };
    kinds(book, plot, cases, has).into_iter().map(curve).collect()
}

/// With how many runs each has, and the published where there are any.
pub(super) fn legend(curves: &[Curve<'_>], sample: Sample) -> Vec<Entry> {
    let entry = |Curve { kind, points }: &Curve<'_>| {
        let n = counts(points.iter().filter_map(|point| Some(point.own?.n)));
        Entry { slot: kind.slot, label: format!("{} (n = {n})", kind.label), sample }
    };
    let mut legend: Vec<Entry> = curves.iter().map(entry).collect();
    if curves.iter().flat_map(|curve| &curve.points).any(|point| point.published.is_some()) {
        legend.push(Entry { slot: 0, label: "published".to_owned(), sample: Sample::Published });
    }
    legend
}

/// For the least and the most of what is drawn, zero among it.
pub(super) fn axis(metric: &str, curves: &[Curve<'_>]) -> Axis {
    let (mut low, mut high): (f64, f64) = (0.0, 0.0);
    for Cell { own, published, .. } in curves.iter().flat_map(|curve| &curve.points) {
        if let Some(own) = own {
            // An error bar is cut where no figure was: below zero, mostly.
            low = low.min(own.least);
            high = high.max(own.mean + own.error_bar());
        }
        high = published.map_or(high, |(value, _)| high.max(value));
    }
    Axis::nice(low, high, Metric::named(metric).axis())
}

/// For those who hear a plot.
pub(super) fn described(metric: &str, curves: &[Curve<'_>]) -> String {
    let summaries = curves.iter().filter_map(|Curve { kind, points }| {
        let means: Vec<f64> = points.iter().filter_map(|point| Some(point.own?.mean)).collect();
        Some((kind.label.as_str(), Summary::of(&means)?))
    });
    in_words(metric, summaries)
}
