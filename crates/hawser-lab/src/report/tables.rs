//! Tables in the scenario's order, the published figures beside ours.
//!
//! 1. A column that names no contender or workload becomes one for each that there is.
//! 2. A row for each case: what was found, what was published, and the difference.
//! 3. A scenario that asks for no table gets one of its own metric.

use super::metrics::Metric;
use super::series::{Book, counts};
use super::statistics::Summary;
use crate::scenario::{Case, Column, Table};

/// From this difference on, in percent, it is the factor that says something.
const MANY_TIMES: f64 = 900.0;
/// What stands where there is nothing to say.
const NOTHING: &str = "–";

/// A table, ready to be written. Plain data.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// As the scenario gives it.
    pub title: String,
    /// In order.
    pub columns: Vec<Head>,
    /// One for each case.
    pub rows: Vec<Row>,
    /// How many runs, and what the figures are.
    pub note: String,
}

/// A column's head. Plain data.
#[derive(Clone, Debug)]
pub struct Head {
    /// With its unit.
    pub title: String,
    /// Whether published figures and differences stand beside ours.
    pub published: bool,
    /// After the point.
    decimals: usize,
}

/// A row. Plain data.
#[derive(Clone, Debug)]
pub struct Row {
    /// As the original calls the case.
    pub name: String,
    /// A line about it.
    pub title: String,
    /// One for each column.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Whether the title says more than the name.
    #[must_use]
    pub fn has_title(&self) -> bool {
        !self.title.is_empty() && self.title != self.name
    }

    /// Both.
    #[must_use]
    pub fn label(&self) -> String {
        if self.has_title() { format!("{} {}", self.name, self.title) } else { self.name.clone() }
    }
}

/// A figure and the published one. Plain data.
#[derive(Clone, Debug)]
pub struct Cell {
    own: Option<Summary>,
    absence: &'static str,
    published: Option<(f64, Option<f64>)>,
}

impl Cell {
    /// The mean, and where there is one the standard deviation; else why there is none.
    #[must_use]
    pub fn own(&self, head: &Head) -> String {
        match self.own {
            Some(Summary { mean, deviation: Some(deviation), .. }) => {
                format!("{} ± {}", number(mean, head.decimals), number(deviation, head.decimals))
            }
            Some(Summary { mean, .. }) => number(mean, head.decimals),
            None => self.absence.to_owned(),
        }
    }

    /// Whether there is a figure.
    #[must_use]
    pub fn is_figure(&self) -> bool {
        self.own.is_some()
    }

    /// The original's.
    #[must_use]
    pub fn published(&self, head: &Head) -> String {
        match self.published {
            Some((value, Some(spread))) => {
                format!("{} ± {}", number(value, head.decimals), number(spread, head.decimals))
            }
            Some((value, None)) => number(value, head.decimals),
            None => NOTHING.to_owned(),
        }
    }

    /// The original's with the difference.
    #[must_use]
    pub fn published_with_difference(&self, head: &Head) -> String {
        match self.own.and(self.published) {
            Some(_) => format!("{} ({})", self.published(head), self.difference()),
            None => self.published(head),
        }
    }

    /// Ours less the original's, in percent of the original's.
    #[must_use]
    pub fn difference(&self) -> String {
        let share = self.own.zip(self.published).map(|(own, (value, _))| (own.mean - value) / value.abs() * 100.0);
        share.filter(|share| share.is_finite()).map_or_else(|| NOTHING.to_owned(), signed_percent)
    }
}

/// `+3.2 %`, `−14 %`; many times as much is said so: `× 25`.
pub(super) fn signed_percent(share: f64) -> String {
    if share >= MANY_TIMES {
        return format!("× {:.0}", share / 100.0 + 1.0);
    }
    let decimals = usize::from(share.abs() < 10.0);
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{:.decimals$} %", share.abs())
}

/// With a true minus.
fn number(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}").replace('-', "−")
}

/// As many digits after the point as figures of that size deserve.
fn decimals(largest: f64) -> usize {
    match largest.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    }
}

/// Steps 1 to 3.
pub(super) fn all(book: &Book<'_>) -> Vec<Sheet> {
    if book.scenario.tables.is_empty() {
        return vec![sheet(book, &usual(book))];
    }
    book.scenario.tables.iter().map(|table| sheet(book, table)).collect()
}

/// Step 3.
fn usual(book: &Book<'_>) -> Table {
    let metric = book.scenario.repeat.metric.clone();
    let title = Metric::named(&metric).axis();
    let column = Column { title: title.clone(), contender: None, workload: None, metric, published: true };
    Table { title, cases: Vec::new(), columns: vec![column] }
}

fn sheet(book: &Book<'_>, table: &Table) -> Sheet {
    let cases = book.cases(&table.cases);
    let asked: Vec<Asked<'_>> = table.columns.iter().flat_map(|column| asked(book, &cases, column, table)).collect();
    let rows: Vec<Row> = cases
        .iter()
        .map(|case| {
            let cells = asked.iter().map(|column| cell(book, case, column)).collect();
            Row { name: case.name.clone(), title: case.title.clone(), cells }
        })
        .collect();
    let columns =
        asked.iter().enumerate().map(|(place, column)| head(column, rows.iter().map(|row| &row.cells[place])));
    let columns = columns.collect();
    let n = counts(rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.own).map(|own| own.n));
    let note = format!("Means over n = {n} runs, ± one standard deviation where there are several.");
    Sheet { title: table.title.clone(), columns, rows, note }
}

/// A column of one contender and workload; none is the case's only one.
struct Asked<'a> {
    title: String,
    contender: Option<&'a str>,
    workload: Option<&'a str>,
    metric: &'a str,
    published: bool,
}

/// Step 1.
fn asked<'a>(book: &Book<'a>, cases: &[&'a Case], column: &'a Column, table: &Table) -> Vec<Asked<'a>> {
    let Column { title, contender, workload, metric, published } = column;
    let one_each = cases.iter().all(|case| case.contenders.len() <= 1);
    let contenders: Vec<Option<&str>> = match contender {
        Some(label) => vec![Some(label)],
        None if one_each => vec![None],
        None => {
            let labels = book.scenario.contenders.iter().map(|contender| contender.label.as_str());
            labels
                .filter(|label| cases.iter().any(|case| case.contenders.iter().any(|c| c == label)))
                .map(Some)
                .collect()
        }
    };
    let expanded = contenders.len() > 1;
    let mut columns = Vec::new();
    for contender in contenders {
        let workloads = match workload {
            Some(name) => vec![Some(name.as_str())],
            None => workloads(book, cases, contender, metric),
        };
        let several = workloads.len() > 1;
        for workload in workloads {
            let mut parts: Vec<&str> = Vec::new();
            parts.extend(contender.filter(|_| expanded));
            parts.extend(workload.filter(|_| several));
            if parts.is_empty() || table.columns.len() > 1 {
                parts.push(title);
            }
            columns.push(Asked { title: parts.join(", "), contender, workload, metric, published: *published });
        }
    }
    columns
}

/// None alone where no case has more than one with such a figure.
fn workloads<'a>(book: &Book<'a>, cases: &[&Case], contender: Option<&str>, metric: &str) -> Vec<Option<&'a str>> {
    let strands = |cases: &[&Case]| {
        let strands = book.strands(cases, |found| found.metrics.contains_key(metric));
        let mut names: Vec<&str> = Vec::new();
        for (label, workload) in strands {
            if contender.is_none_or(|contender| contender == label) && !names.contains(&workload) {
                names.push(workload);
            }
        }
        names
    };
    if cases.iter().all(|case| strands(&[*case]).len() <= 1) {
        return vec![None];
    }
    strands(cases).into_iter().map(Some).collect()
}

/// Step 2.
fn cell(book: &Book<'_>, case: &Case, column: &Asked<'_>) -> Cell {
    let contender = column.contender.or_else(|| case.contenders.first().map(String::as_str)).unwrap_or_default();
    let summary = |workload: &str| book.get(&case.name, contender, workload)?.summary(column.metric);
    let of_case = || case.workloads.iter().map(String::as_str);
    let found = || of_case().find(|workload| summary(workload).is_some());
    let workload = column.workload.or_else(found).or_else(|| of_case().next()).unwrap_or_default();
    let published = book.published(&case.name, contender, workload, column.metric).filter(|_| column.published);
    Cell {
        own: summary(workload),
        absence: book.get(&case.name, contender, workload).map_or(NOTHING, |series| series.absence()),
        published: published.map(|published| (published.value, published.spread)),
    }
}

fn head<'a>(column: &Asked<'_>, cells: impl Iterator<Item = &'a Cell>) -> Head {
    let (mut largest, mut published): (f64, bool) = (0.0, false);
    for cell in cells {
        let figures = cell.own.map(|own| own.mean).into_iter().chain(cell.published.map(|(value, _)| value));
        largest = figures.fold(largest, |largest, value| largest.max(value.abs()));
        published |= cell.published.is_some();
    }
    let unit = Metric::named(column.metric).unit;
    let has_unit = unit.is_empty() || column.title.contains(unit);
    let title = if has_unit { column.title.clone() } else { format!("{} ({unit})", column.title) };
    Head { title, published, decimals: decimals(largest) }
}
