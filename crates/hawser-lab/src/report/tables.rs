//! Tables in the scenario's order, the published figures beside ours.
//!
//! 1. A column that names no contender or workload becomes one for each that there is.
//! 2. A row for each case: what was found, what was published, and the difference.
//! 3. A scenario that asks for no table gets one of its own metric.

use super::series::{Cell, counts};
use super::statistics::number;
use super::{Book, Metric};
use crate::scenario::{Case, Column, Table};

/// From this difference on, in percent, it is the factor that says something.
const MANY_TIMES: f64 = 900.0;
/// What stands where there is nothing to say.
const NOTHING: &str = "–";

/// A table, ready to be written. Borrowed from the scenario.
pub struct Sheet<'a> {
    pub title: String,
    pub columns: Vec<Head>,
    /// Of each case the cells, one for each column.
    pub rows: Vec<(&'a Case, Vec<Cell>)>,
    /// How many runs, and what the figures are.
    pub note: String,
}

/// A column's head. Plain data.
pub struct Head {
    /// With its unit.
    pub title: String,
    /// Whether published figures and differences stand beside ours.
    pub published: bool,
    /// After the point.
    decimals: usize,
}

impl Head {
    /// A figure of this column with its spread, with true minuses.
    fn figure(&self, value: f64, spread: Option<f64>) -> String {
        let number = |value: f64| number(value, self.decimals);
        spread.map_or_else(|| number(value), |spread| format!("{} ± {}", number(value), number(spread)))
    }
}

impl Cell {
    /// The mean, and where there is one the standard deviation; else why there is none.
    pub fn own(&self, head: &Head) -> String {
        self.own.map_or_else(|| self.absence.unwrap_or(NOTHING).to_owned(), |own| head.figure(own.mean, own.deviation))
    }

    /// The original's.
    pub fn published(&self, head: &Head) -> String {
        self.published.map_or_else(|| NOTHING.to_owned(), |(value, spread)| head.figure(value, spread))
    }

    /// The original's with the difference.
    pub fn published_with_difference(&self, head: &Head) -> String {
        match self.own.and(self.published) {
            Some(_) => format!("{} ({})", self.published(head), self.difference()),
            None => self.published(head),
        }
    }

    /// Ours less the original's, in percent of the original's.
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

/// As many digits after the point as figures of that size deserve; none where all are whole.
fn decimals(figures: &[f64]) -> usize {
    if figures.iter().all(|figure| figure.fract() == 0.0) {
        return 0;
    }
    match figures.iter().fold(0.0, |largest: f64, figure| largest.max(figure.abs())) {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    }
}

/// Steps 1 to 3.
pub(super) fn all<'a>(book: &Book<'a>) -> Vec<Sheet<'a>> {
    if !book.scenario.tables.is_empty() {
        return book.scenario.tables.iter().map(|table| sheet(book, table)).collect();
    }
    let metric = book.scenario.repeat.metric.clone();
    let title = Metric::named(&metric).axis();
    let column = Column { title: title.clone(), contender: None, workload: None, metric, published: true };
    vec![sheet(book, &Table { title, cases: Vec::new(), columns: vec![column] })]
}

/// Step 2.
fn sheet<'a>(book: &Book<'a>, table: &Table) -> Sheet<'a> {
    let cases = book.cases(&table.cases);
    let asked: Vec<Column> = table.columns.iter().flat_map(|column| asked(book, &cases, column, table)).collect();
    let cell = |case: &Case, Column { contender, workload, metric, published, .. }: &Column| {
        let contender = contender.as_ref().or(case.contenders.first()).map_or("", String::as_str);
        let cell = book.cell(case, contender, workload.as_deref(), metric);
        Cell { published: cell.published.filter(|_| *published), ..cell }
    };
    let row = |case: &'a Case| (case, asked.iter().map(|column| cell(case, column)).collect());
    let rows: Vec<(&Case, Vec<Cell>)> = cases.iter().copied().map(row).collect();
    let columns = heads(&asked, &rows);
    let n = counts(rows.iter().flat_map(|(_, cells)| cells).filter_map(|cell| cell.own).map(|own| own.n));
    let note = match n.as_str() {
        "0" => "Nothing was measured.".to_owned(),
        "1" => "One run each (n = 1).".to_owned(),
        _ => format!("Means over n = {n} runs, ± one standard deviation where there are several."),
    };
    Sheet { title: table.title.clone(), columns, rows, note }
}

/// Step 1: columns of one contender and workload; none is the case's only one.
fn asked(book: &Book<'_>, cases: &[&Case], column: &Column, table: &Table) -> Vec<Column> {
    let Column { title, contender, workload, metric, .. } = column;
    let one_each = cases.iter().all(|case| case.contenders.len() <= 1);
    let is_there = |label: &&str| cases.iter().any(|case| case.contenders.iter().any(|name| name == label));
    let contenders: Vec<Option<&str>> = match contender {
        Some(label) => vec![Some(label)],
        None if one_each => vec![None],
        None => book.scenario.contenders.iter().map(|plan| plan.label.as_str()).filter(is_there).map(Some).collect(),
    };
    let expanded = contenders.len() > 1;
    let mut columns = Vec::new();
    for contender in contenders {
        let named = workload.as_deref().map(|name| vec![Some(name)]);
        let workloads = named.unwrap_or_else(|| workloads(book, cases, contender, metric));
        let several = workloads.len() > 1;
        for workload in workloads {
            let mut parts: Vec<&str> = Vec::new();
            parts.extend(contender.filter(|_| expanded));
            parts.extend(workload.filter(|_| several));
            if parts.is_empty() || table.columns.len() > 1 {
                parts.push(title);
            }
            let (contender, workload) = (contender.map(str::to_owned), workload.map(str::to_owned));
            columns.push(Column { title: parts.join(", "), contender, workload, ..column.clone() });
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

/// Columns of one metric have equally many digits.
fn heads(asked: &[Column], rows: &[(&Case, Vec<Cell>)]) -> Vec<Head> {
    let cells = |place: usize| rows.iter().map(move |(_, cells)| &cells[place]);
    let figures = |metric: &str| {
        let columns = (0..asked.len()).filter(move |&place| asked[place].metric == metric);
        let figures = |cell: &Cell| [cell.own.map(|own| own.mean), cell.published.map(|(value, _)| value)];
        columns.flat_map(cells).flat_map(figures).flatten().collect::<Vec<f64>>()
    };
    let head = |(place, column): (usize, &Column)| {
        let unit = Metric::named(&column.metric).unit;
        let has_unit = unit.is_empty() || column.title.contains(unit);
        let title = if has_unit { column.title.clone() } else { format!("{} ({unit})", column.title) };
        let published = cells(place).any(|cell| cell.published.is_some());
        Head { title, published, decimals: decimals(&figures(&column.metric)) }
    };
    asked.iter().enumerate().map(head).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Summary;
    use super::*;

    #[test]
    fn figures_have_the_digits_that_they_deserve() {
        let rows: [(&[f64], usize); 6] =
            [(&[21.0, 48.0], 0), (&[1234.5], 0), (&[93.14, 7.7], 1), (&[7.71], 2), (&[0.93], 3), (&[], 0)];
        rows.into_iter().for_each(|(figures, expected)| assert_eq!(decimals(figures), expected, "{figures:?}"));
    }

    #[test]
    fn differences_are_told_in_percent_or_as_a_factor() {
        let cell = |own: &[f64], published| Cell { own: Summary::of(own), absence: None, published };
        let rows = [
            (cell(&[110.0], Some((100.0, None))), "100 (+10 %)"),
            (cell(&[96.8], Some((100.0, None))), "100 (−3.2 %)"),
            (cell(&[40.2], Some((0.2, Some(0.1)))), "0 ± 0 (× 201)"),
            (cell(&[5.0], Some((0.0, None))), "0 (–)"),
            (cell(&[], Some((7.0, None))), "7"),
            (cell(&[7.0], None), "–"),
        ];
        let head = Head { title: String::new(), published: true, decimals: 0 };
        rows.into_iter().for_each(|(cell, expected)| assert_eq!(cell.published_with_difference(&head), expected));
    }
}
