//! How often a scenario runs, what was published, and how results are shown.

use std::time::Duration;

use hawser_config::keyword;
use hawser_config::reading::{Fault, Faults, Table as Keys};
use toml::de::DeTable;

use super::parse::Known;
use super::refer::{Names, each, section, sections};
use super::values;

/// How often a series is run. Plain data.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// Runs at least.
    pub least: u32,
    /// Runs at most.
    pub most: u32,
    /// Enough, once the metric's standard deviation is within this share of its mean.
    pub cov: f64,
    /// Which metric.
    pub metric: String,
    /// With `--quick`: one run, and workloads no longer than this.
    pub quick: Duration,
    /// Of the first run; each has its own.
    pub seed: u64,
}

/// A figure of the original. Plain data.
#[derive(Clone, Debug)]
pub struct Published {
    /// Of which case.
    pub case: String,
    /// Label.
    pub contender: String,
    /// Name of the workload; none: any.
    pub workload: Option<String>,
    /// Name of the metric.
    pub metric: String,
    /// In the metric's unit.
    pub value: f64,
    /// Standard deviation, where it was given.
    pub spread: Option<f64>,
}

/// A table: a row for each case, a column for each of these. Plain data.
#[derive(Clone, Debug)]
pub struct Table {
    /// As the original's, where it has one: `Table 6.1`.
    pub title: String,
    /// Names of cases, in order; none: all.
    pub cases: Vec<String>,
    /// In order.
    pub columns: Vec<Column>,
}

/// A column of a table, or a curve of a plot. Plain data.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Label of the contender; none: the case's only one, or one column for each.
    pub contender: Option<String>,
    /// Name of the workload; none: the case's only one.
    pub workload: Option<String>,
    /// Name of the metric.
    pub metric: String,
    /// Whether the published value stands beside it.
    pub published: bool,
}

/// A plot. Plain data.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub kind: PlotKind,
    /// Names of cases; none: all.
    pub cases: Vec<String>,
    /// Labels of contenders; none: all.
    pub contenders: Vec<String>,
    /// The metric, or the line of each run over time.
    pub metric: String,
    /// What the cases' `x` is, with its unit.
    pub axis: Option<String>,
}

keyword! {
    /// What a plot shows. Plain data.
    PlotKind {
        /// A metric over the cases' `x`, with error bars.
        Lines = "lines",
        /// A metric as bars by case and contender, with error bars.
        Bars = "bars",
        /// A line of runs over time, mean and band, with marks of events.
        Time = "time",
        /// Goodput by link over time, stacked, with marks of events.
        Shares = "shares",
        /// The distribution of samples.
        Cdf = "cdf",
    }
}

pub(super) fn repeat(tree: &DeTable<'_>, faults: &mut Faults<'_>) -> Repeat {
    // Where the section does not say.
    let (metric, quick) = ("goodput_mbps".to_owned(), Duration::from_secs(4));
    let defaults = Repeat { least: 3, most: 10, cov: 0.05, metric, quick, seed: 1 };
    let Some((raw, span)) = section(tree, "repeat", faults) else { return defaults };
    let mut table = Keys::new("[repeat]".to_owned(), raw, span.clone(), faults);
    let least = table.get("least", |value| values::whole(value, 1));
    let most = table.get("most", |value| values::whole(value, 1));
    let least = least.unwrap_or_else(|| defaults.least.min(most.unwrap_or(defaults.most)));
    let read = Repeat {
        least,
        most: most.unwrap_or(defaults.most.max(least)),
        cov: table.get("cov", values::share).unwrap_or(defaults.cov),
        metric: table.get("metric", values::name).unwrap_or(defaults.metric),
        quick: table.get("quick", values::some_time).unwrap_or(defaults.quick),
        seed: table.get("seed", |value| values::whole(value, 0)).unwrap_or(defaults.seed),
    };
    if read.most < read.least {
        table.fault(span, Fault::new(format!("`most` ({}) is below `least` ({})", read.most, read.least)));
    }
    table.finish();
    read
}

/// Figures of the original. Their contender may be one that is not run here.
pub(super) fn published(tree: &DeTable<'_>, known: &Known<'_>, faults: &mut Faults<'_>) -> Vec<Published> {
    each(tree, "published", "published", faults, |table| {
        let case = table.required("case", "case = \"A.1\"", |value| known.cases.read(value));
        let contender = table.required("contender", "contender = \"mptcp\"", values::name);
        let workload = table.get("workload", |value| known.workloads.read(value));
        let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
        let value = table.required("value", "value = 93.1", values::number);
        let spread = table.get("spread", values::number);
        let (case, contender, metric) = (case?.value, contender?.value, metric?.value);
        Some(Published { case, contender, workload, metric, value: value?.value, spread })
    })
}

/// Tables and plots.
pub(super) fn read(
    tree: &DeTable<'_>,
    known: &Known<'_>,
    published: &[Published],
    faults: &mut Faults<'_>,
) -> (Vec<Table>, Vec<Plot>) {
    let mut labels = known.contenders.clone();
    for figure in published {
        labels.add(&figure.contender);
    }
    let mut tables = Vec::new();
    for (raw, span) in sections(tree, "table", "table", faults) {
        let mut table = Keys::new("[[table]]".to_owned(), raw, span, faults);
        let title = table.required("title", "title = \"Throughput\"", values::text);
        let cases = known.cases.chosen(&mut table, "cases").unwrap_or_default();
        table.required("columns", "columns = [{ title = \"MPTCP\", metric = \"goodput_mbps\" }]", |_| Ok(()));
        table.finish();
        let columns = sections(raw, "columns", "table.columns", faults).into_iter();
        let column = |(raw, span)| column(Keys::new("a column".to_owned(), raw, span, faults), known, &labels);
        let columns = columns.filter_map(column).collect();
        if let Some(title) = title {
            tables.push(Table { title: title.value, cases, columns });
        }
    }
    (tables, each(tree, "plot", "plot", faults, |table| plot(table, known, &labels)))
}

fn column(mut table: Keys<'_, '_, '_>, known: &Known<'_>, labels: &Names) -> Option<Column> {
    let contender = table.get("contender", |value| labels.read(value));
    let workload = table.get("workload", |value| known.workloads.read(value));
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let title = table.get("title", values::text);
    let published = table.is("published");
    table.finish();
    let metric = metric?.value;
    // A column for each contender stands under its label.
    let title = title.unwrap_or_else(|| contender.clone().unwrap_or_default());
    Some(Column { title, contender, workload, metric, published })
}

fn plot(table: &mut Keys<'_, '_, '_>, known: &Known<'_>, labels: &Names) -> Option<Plot> {
    let title = table.required("title", "title = \"Goodput by link\"", values::text);
    let kind = table.required("kind", "kind = \"lines\"", values::keyword);
    let cases = known.cases.chosen(table, "cases").unwrap_or_default();
    let contenders = labels.chosen(table, "contenders").unwrap_or_default();
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let axis = table.get("axis", values::text);
    let (title, kind, metric) = (title?.value, kind?.value, metric?.value);
    Some(Plot { title, kind, cases, contenders, metric, axis })
}
