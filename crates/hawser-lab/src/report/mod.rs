//! Tables and plots from what runs found, from the raw results alone.
//!
//! 1. [`results`] reads what `hawser lab run` left: scenario, runs, machine.
//! 2. [`series`] sorts runs; [`statistics`] says of each series' figures how large they are, and how sure.
//! 3. [`claims`] says whether what must hold does; [`tables`] and [`plot`] show figures as the scenario asks, the
//!    published ones beside ours.
//! 4. [`publish`] writes it all: a [`page`], the same as [`markdown`], figures as CSV. None of it needs the network.
//! 5. [`compare`] tells regressions from noise, between two such results; [`saved`] keeps results, tells which are of
//!    code that changed, and writes the page of them all.

mod claims;
mod compare;
mod markdown;
mod metrics;
mod page;
mod plot;
pub(crate) mod results;
pub mod saved;
pub(crate) mod series;
pub(crate) mod statistics;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub use claims::Verdicts;
pub use compare::{Comparison, Finding, Verdict, compare, compare_runs};
pub(crate) use markdown::text;

use crate::error::LabError;
use crate::scenario::Scenario;
use metrics::Metric;
use plot::{Canvas, Drawing};
use results::Results;
use serde_json::Value;
use series::{Book, Trouble};
use statistics::Summary;
use tables::Sheet;

const PAGE: &str = "report.html";
const TEXT: &str = "report.md";
/// Every series' figures: for spreadsheets, and whoever draws plots of their own.
const FIGURES: &str = "results.csv";
/// Their first row.
const COLUMNS: [&str; 12] =
    ["scenario", "case", "contender", "workload", "metric", "unit", "n", "mean", "sd", "median", "least", "most"];
/// Where the text's pictures lie.
const PLOTS: &str = "plots";
const SVG: &str = "svg";

/// A scenario's results, ready to be written. Borrowed from them.
pub(crate) struct Report<'a> {
    book: Book<'a>,
    machine: &'a Value,
    claims: Verdicts,
    tables: Vec<Sheet<'a>>,
    plots: Vec<Drawing>,
    troubles: Vec<Trouble<'a>>,
}

/// What was written. Plain data.
#[derive(Clone, Debug)]
pub struct Written {
    /// The page to open.
    pub page: PathBuf,
    /// Whether what they claim holds.
    pub claims: Verdicts,
}

/// Steps 1 to 4: builds the report of a folder in it.
///
/// # Errors
/// Where results are missing or cannot be read, or the report cannot be written.
pub fn write(folder: &Path) -> Result<Written, LabError> {
    publish(folder, &all(&results::read(folder)?))
}

/// Steps 2 and 3, of each.
pub(crate) fn all(results: &[Results]) -> Vec<Report<'_>> {
    results.iter().map(build).collect()
}

fn build(Results { scenario, runs, machine, .. }: &Results) -> Report<'_> {
    let (book, claims) = (Book::new(scenario, runs), Verdicts::of(scenario, runs));
    let (tables, plots, troubles) = (tables::all(&book), plot::all(&book), series::troubles(&book));
    Report { book, machine, claims, tables, plots, troubles }
}

/// Step 4, of reports in the order in which they are to stand.
pub(crate) fn publish(folder: &Path, reports: &[Report<'_>]) -> Result<Written, LabError> {
    let plots = folder.join(PLOTS);
    fs::create_dir_all(&plots).and_then(|()| remove_pictures(&plots)).map_err(LabError::file("write", &plots))?;
    let figures = figures(reports);
    let figures = figures.map_err(|error| LabError::file("write", &folder.join(FIGURES))(error.into()))?;
    let mut texts: Vec<(PathBuf, Vec<u8>)> = vec![
        (folder.join(PAGE), page::write(reports).into_bytes()),
        (folder.join(TEXT), markdown::write(reports).into_bytes()),
        (folder.join(FIGURES), figures),
    ];
    let pictures = reports.iter().flat_map(|report| &report.plots).flat_map(|drawing| &drawing.panels);
    texts.extend(pictures.map(|canvas| (folder.join(picture(canvas)), canvas.file().into_bytes())));
    texts.iter().try_for_each(|(path, text)| fs::write(path, text).map_err(LabError::file("write", path)))?;
    let claims = Verdicts(reports.iter().flat_map(|report| report.claims.0.clone()).collect());
    Ok(Written { page: folder.join(PAGE), claims })
}

/// An earlier report's pictures: this one may have fewer.
fn remove_pictures(plots: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(plots)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == SVG) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// All reports' figures, in the scenarios' order, then by metric.
fn figures(reports: &[Report<'_>]) -> csv::Result<Vec<u8>> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(COLUMNS)?;
    for Report { book, .. } in reports {
        for series in &book.series {
            let metrics: BTreeSet<&String> = series.found.iter().flat_map(|found| found.metrics.keys()).collect();
            for metric in metrics {
                let Some(Summary { n, mean, deviation, least, median, most }) = series.summary(metric) else {
                    continue;
                };
                let (case, unit) = (&series.case.name, Metric::named(metric).unit);
                let names = [&book.scenario.name, case, series.contender, series.workload, metric, unit];
                let deviation = deviation.map_or(String::new(), |deviation| deviation.to_string());
                let spread = [median, least, most].map(|figure| figure.to_string());
                let numbers = [n.to_string(), mean.to_string(), deviation].into_iter().chain(spread);
                rows.write_record(names.into_iter().map(str::to_owned).chain(numbers))?;
            }
        }
    }
    rows.into_inner().map_err(|error| error.into_error().into())
}

/// A picture's place, from the folder.
fn picture(canvas: &Canvas) -> String {
    format!("{PLOTS}/{}.{SVG}", canvas.name)
}

/// What experiments ran on: each fact, and of which scenarios it holds where it is not of all.
fn machine(reports: &[Report<'_>]) -> Vec<(String, String)> {
    let mut facts: Vec<((String, String), Vec<&str>)> = Vec::new();
    for Report { book, machine, .. } in reports {
        for fact in results::facts("", machine) {
            match facts.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, of)) => of.push(&book.scenario.name),
                None => facts.push((fact, vec![&book.scenario.name])),
            }
        }
    }
    let told = facts.into_iter().map(|((name, value), of)| match of.len() == reports.len() {
        true => (name, value),
        false => (format!("{name} ({})", of.join(", ")), value),
    });
    told.collect()
}
