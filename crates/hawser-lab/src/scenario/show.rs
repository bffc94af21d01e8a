//! How often a scenario runs, what was published, and how results are shown.

use hawser_config::reading::{Fault, Faults, Table};
use toml::de::DeTable;

use super::parse::Known;
use super::refer::{Names, section, sections};
use super::{Column, Plot, PlotKind, Published, Repeat, values};
use std::time::Duration;

/// Where the section does not say.
const DEFAULT_REPEAT: (u32, u32, f64, &str, Duration, u64) = (3, 10, 0.05, "goodput_mbps", Duration::from_secs(4), 1);

const KINDS: [(&str, PlotKind); 5] = [
    ("lines", PlotKind::Lines),
    ("bars", PlotKind::Bars),
    ("time", PlotKind::Time),
    ("shares", PlotKind::Shares),
    ("cdf", PlotKind::Cdf),
];

pub(super) fn repeat(tree: &DeTable<'_>, faults: &mut Faults<'_>) -> Repeat {
    let (least, most, cov, metric, quick, seed) = DEFAULT_REPEAT;
    let defaults = Repeat { least, most, cov, metric: metric.to_owned(), quick, seed };
    let Some((raw, span)) = section(tree, "repeat", faults) else { return defaults };
    let mut table = Table::new("[repeat]".to_owned(), raw, span.clone(), faults);
    let least = table.optional("least", |value| values::whole(value, 1)).map(|sited| sited.value);
    let most = table.optional("most", |value| values::whole(value, 1)).map(|sited| sited.value);
    let least = least.unwrap_or_else(|| defaults.least.min(most.unwrap_or(defaults.most)));
    let read = Repeat {
        least,
        most: most.unwrap_or(defaults.most.max(least)),
        cov: table.optional("cov", values::share).map_or(defaults.cov, |sited| sited.value),
        metric: table.optional("metric", values::name).map_or(defaults.metric, |sited| sited.value),
        quick: table.optional("quick", values::some_time).map_or(defaults.quick, |sited| sited.value),
        seed: table.optional("seed", |value| values::whole(value, 0)).map_or(defaults.seed, |sited| sited.value),
    };
    if read.most < read.least {
        table.fault(span, Fault::new(format!("`most` ({}) is below `least` ({})", read.most, read.least)));
    }
    table.finish();
    read
}

/// Figures of the original. Their contender may be one that is not run here.
pub(super) fn published(tree: &DeTable<'_>, known: &Known, faults: &mut Faults<'_>) -> Vec<Published> {
    let mut figures = Vec::new();
    for (raw, span) in sections(tree, "published", "published", faults) {
        let mut table = Table::new("[[published]]".to_owned(), raw, span, faults);
        let case = table.required("case", "case = \"A.1\"", |value| known.cases.read(value));
        let contender = table.required("contender", "contender = \"mptcp\"", values::name);
        let workload = table.optional("workload", |value| known.workloads.read(value)).map(|sited| sited.value);
        let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
        let value = table.required("value", "value = 93.1", values::number);
        let spread = table.optional("spread", values::number).map(|sited| sited.value);
        table.finish();
        if let (Some(case), Some(contender), Some(metric), Some(value)) = (case, contender, metric, value) {
            let (case, contender, metric) = (case.value, contender.value, metric.value);
            figures.push(Published { case, contender, workload, metric, value: value.value, spread });
        }
    }
    figures
}

/// Tables and plots.
pub(super) fn read(
    tree: &DeTable<'_>,
    known: &Known,
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
        let columns = sections(raw, "columns", "table.columns", faults);
        let columns = columns
            .into_iter()
            .filter_map(|(raw, span)| column(Table::new("a column".to_owned(), raw, span, faults), known, &labels));
        let columns = columns.collect();
        if let Some(title) = title {
            tables.push(super::Table { title: title.value, cases, columns });
        }
    }
    let mut plots = Vec::new();
    for (raw, span) in sections(tree, "plot", "plot", faults) {
        let mut table = Table::new("[[plot]]".to_owned(), raw, span, faults);
        plots.extend(plot(&mut table, known, &labels));
        table.finish();
    }
    (tables, plots)
}

fn column(mut table: Table<'_, '_, '_>, known: &Known, labels: &Names) -> Option<Column> {
    let contender = table.optional("contender", |value| labels.read(value)).map(|sited| sited.value);
    let workload = table.optional("workload", |value| known.workloads.read(value)).map(|sited| sited.value);
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let title = table.optional("title", values::text).map(|sited| sited.value);
    let published = table.optional("published", values::flag).is_some_and(|sited| sited.value);
    table.finish();
    let metric = metric?.value;
    // A column for each contender stands under its label.
    let title = title.unwrap_or_else(|| contender.clone().unwrap_or_default());
    Some(Column { title, contender, workload, metric, published })
}

fn plot(table: &mut Table<'_, '_, '_>, known: &Known, labels: &Names) -> Option<Plot> {
    let title = table.required("title", "title = \"Goodput by link\"", values::text);
    let kind = table.required("kind", "kind = \"lines\"", |value| values::word(value, &KINDS));
    let cases = known.cases.chosen(table, "cases").unwrap_or_default();
    let contenders = labels.chosen(table, "contenders").unwrap_or_default();
    let metric = table.required("metric", "metric = \"goodput_mbps\"", values::name);
    let axis = table.optional("axis", values::text).map(|sited| sited.value);
    let (title, kind, metric) = (title?.value, kind?.value, metric?.value);
    Some(Plot { title, kind, cases, contenders, metric, axis })
}
