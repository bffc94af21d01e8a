//! How often a scenario runs, what was published, and how results are shown.

use std::time::Duration;

use hawser_config::reading::{Fault, Faults, Table};
use toml::de::DeTable;

use super::parse::Known;
use super::refer::{Names, each, section, sections};
use super::{Column, Plot, PlotKind, Published, Repeat, values};

const KINDS: [(&str, PlotKind); 5] = [
    ("lines", PlotKind::Lines),
    ("bars", PlotKind::Bars),
    ("time", PlotKind::Time),
    ("shares", PlotKind::Shares),
    ("cdf", PlotKind::Cdf),
];

pub(super) fn repeat(tree: &DeTable<'_>, faults: &mut Faults<'_>) -> Repeat {
    // Where the section does not say.
    let (metric, quick) = ("goodput_mbps".to_owned(), Duration::from_secs(4));
    let defaults = Repeat { least: 3, most: 10, cov: 0.05, metric, quick, seed: 1 };
    let Some((raw, span)) = section(tree, "repeat", faults) else { return defaults };
    let mut table = Table::new("[repeat]".to_owned(), raw, span.clone(), faults);
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
) -> (Vec<super::Table>, Vec<Plot>) {
    let mut labels = known.contenders.clone();
    for figure in published {
        labels.add(&figure.contender);
    }
    let mut tables = Vec::new();
    for (raw, span) in sections(tree, "table", "table", faults) {
        let mut table = Table::new("[[table]]".to_owned(), raw, span, faults);
        let title = table.required("title", "title = \"Throughput\"", values::text);
        let cases = known.cases.chosen(&mut table, "cases").unwrap_or_default();
        table.required("columns", "columns = [{ title = \"MPTCP\", metric = \"goodput_mbps\" }]", |_| Ok(()));
        table.finish();
        let columns = sections(raw, "columns", "table.columns", faults).into_iter();
        let column = |(raw, span)| column(Table::new("a column".to_owned(), raw, span, faults), known, &labels);
        let columns = columns.filter_map(column).collect();
        if let Some(title) = title {
            tables.push(super::Table { title: title.value, cases, columns });
        }
    }
    (tables, each(tree, "plot", "plot", faults, |table| plot(table, known, &labels)))
}

fn column(mut table: Table<'_, '_, '_>, known: &Known<'_>, labels: &Names) -> Option<Column> {
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

fn plot(table: &mut Table<'_, '_, '_>, known: &Known<'_>, labels: &Names) -> Option<Plot> {
    let title = table.required("title", "title = \"Goodput by link\"", values::text);
    let kind = table.required("kind", "kind = \"lines\"", |value| values::word(value, &KINDS));
    let cases = known.cases.chosen(table, "cases").unwrap_or_default();
    let contenders = labels.chosen(table, "contenders").unwrap_or_default();
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let axis = table.get("axis", values::text);
    let (title, kind, metric) = (title?.value, kind?.value, metric?.value);
    Some(Plot { title, kind, cases, contenders, metric, axis })
}
