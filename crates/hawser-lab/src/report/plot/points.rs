//! Figures by case, as lines and bars show them: what was found, and what was published.

use super::super::series::counts;
use super::panel::{Entry, Sample};
use super::strands::{Kind, in_words, kinds};
use super::{Axis, Book, Case, Findings, Metric, Plot, Summary};

/// A contender with a workload, over cases. Borrowed from the scenario.
pub(super) struct Curve<'a> {
    pub kind: Kind<'a>,
    /// One for each case, in the plot's order.
    pub points: Vec<Point>,
}

/// A case's figure. Plain data.
pub(super) struct Point {
    /// Its place on the axis of cases.
    pub at: f64,
    /// What was found.
    pub own: Option<Summary>,
    /// What was published.
    pub published: Option<f64>,
    /// Why nothing was found; none where the case has no such contender.
    pub absence: Option<&'static str>,
}

/// One for each contender and workload that has the plot's metric in some case.
pub(super) fn curves<'a>(
    book: &Book<'a>,
    plot: &Plot,
    cases: &[&'a Case],
    at: impl Fn(&Case) -> f64,
) -> Vec<Curve<'a>> {
    let metric = plot.metric.as_str();
    let has = |found: &Findings| found.metrics.contains_key(metric);
    let point = |kind: &Kind<'a>, case: &'a Case| {
        let of = kind.of(book, case, has);
        let published = of.and_then(|(workload, _)| book.published(&case.name, kind.contender, workload, metric));
        Point {
            at: at(case),
            own: of.and_then(|(_, series)| series.summary(metric)),
            published: published.map(|published| published.value),
            absence: of.map(|(_, series)| series.absence()),
        }
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
    for Point { own, published, .. } in curves.iter().flat_map(|curve| &curve.points) {
        if let Some(own) = own {
            // An error bar is cut where no figure was: below zero, mostly.
            low = low.min(own.least);
            high = high.max(own.mean + own.error_bar());
        }
        high = published.map_or(high, |value| high.max(value));
    }
    Axis::nice(low, high, Metric::named(metric).axis())
}

/// For those who hear a plot.
pub(super) fn described(metric: &str, curves: &[Curve<'_>]) -> String {
    let summary = |Curve { kind, points }: &Curve<'_>| {
        let means: Vec<f64> = points.iter().filter_map(|point| Some(point.own?.mean)).collect();
        Some((kind.label.clone(), Summary::of(&means)?))
    };
    in_words(metric, curves.iter().filter_map(summary))
}

/// A figure, for the pointer that rests on it.
pub(super) fn told(kind: &Kind<'_>, own: &Summary) -> String {
    let spread = own.deviation.map_or(String::new(), |deviation| format!(" ± {deviation:.2}"));
    format!("{}: {:.2}{spread}", kind.label, own.mean)
}
