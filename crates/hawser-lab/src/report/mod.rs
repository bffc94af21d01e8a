//! Tables and plots from what runs found, from the raw results alone.
//!
//! 1. [`results`] reads what `hawser lab run` left: scenario, runs, machine.
//! 2. [`series`] sorts runs; [`statistics`] says of each series' figures how large they are, and how sure.
//! 3. [`claims`] says whether what must hold does; [`tables`] and [`plot`] show figures as the scenario asks, the
//!    published ones beside ours.
//! 4. [`page`], [`markdown`] and [`figures`] write it all; nothing in them needs the network.
//! 5. [`compare`] tells regressions from noise, between two such results; [`age`] which saved ones are of code that
//!    changed, and [`saved`] writes the page of them all.

mod age;
mod claims;
mod compare;
mod figures;
mod markdown;
mod metrics;
mod page;
mod plot;
pub(crate) mod results;
pub mod saved;
mod series;
pub(crate) mod statistics;
mod tables;
mod troubles;

use std::fs;
use std::path::{Path, PathBuf};

pub use age::{Age, ages, save};
pub use claims::Verdicts;
pub use compare::{Comparison, Finding, Verdict, compare, compare_runs};
pub(crate) use markdown::text;

use crate::error::LabError;
use crate::scenario::Scenario;
use metrics::Metric;
use plot::{Canvas, Drawing};
use results::{Machine, Results};
use series::Book;
use statistics::Summary;
use tables::Sheet;
use troubles::Trouble;

/// The page.
const PAGE: &str = "report.html";
/// The same as text.
const TEXT: &str = "report.md";
/// Every series' figures.
const FIGURES: &str = "results.csv";
/// Where the text's pictures lie.
const PLOTS: &str = "plots";
/// What pictures' names end in.
const SVG: &str = "svg";

/// A scenario's results, ready to be written. Plain data.
pub(crate) struct Report {
    scenario: Scenario,
    /// How much was run, in words.
    extent: String,
    claims: Verdicts,
    tables: Vec<Sheet>,
    plots: Vec<Drawing>,
    troubles: Vec<Trouble>,
    figures: Vec<figures::Figure>,
    machine: Machine,
}

/// What was written. Plain data.
#[derive(Clone, Debug)]
pub struct Written {
    /// The page to open.
    pub page: PathBuf,
    /// Every file, the page among them.
    pub files: Vec<PathBuf>,
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
pub(crate) fn all(results: &[Results]) -> Vec<Report> {
    results.iter().map(build).collect()
}

fn build(Results { scenario, runs, machine, .. }: &Results) -> Report {
    // Cases that a quick run leaves out are none of its report's.
    let mut scenario = scenario.clone();
    scenario.cases.retain(|case| case.quick || !machine.is_quick());
    let book = Book::new(&scenario, runs);
    Report {
        extent: extent(&book),
        claims: Verdicts::of(&scenario, runs),
        tables: tables::all(&book),
        plots: plot::all(&book),
        troubles: troubles::all(&book),
        figures: figures::all(&book),
        machine: machine.clone(),
        scenario,
    }
}

fn extent(book: &Book<'_>) -> String {
    let (mut series, mut found, mut failed) = (0, 0, 0);
    for (.., of) in book.all() {
        series += 1;
        found += of.found.len();
        failed += of.failed.len();
    }
    let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{} cases, {series} series, {found} runs measured{failures}", book.scenario.cases.len())
}

/// Step 4, of reports in the order in which they are to stand.
pub(crate) fn publish(folder: &Path, reports: &[Report]) -> Result<Written, LabError> {
    let plots = folder.join(PLOTS);
    fs::create_dir_all(&plots).and_then(|()| remove_pictures(&plots)).map_err(LabError::file("write", &plots))?;
    let figures = figures::write(reports);
    let figures = figures.map_err(|error| LabError::file("write", &folder.join(FIGURES))(error.into()))?;
    let mut texts: Vec<(PathBuf, Vec<u8>)> = vec![
        (folder.join(PAGE), page::write(reports).into_bytes()),
        (folder.join(TEXT), markdown::write(reports).into_bytes()),
        (folder.join(FIGURES), figures),
    ];
    let pictures = reports.iter().flat_map(|report| &report.plots).flat_map(|drawing| &drawing.panels);
    texts.extend(pictures.map(|canvas| (folder.join(picture(canvas)), canvas.file().into_bytes())));
    for (path, text) in &texts {
        fs::write(path, text).map_err(LabError::file("write", path))?;
    }
    let files = texts.into_iter().map(|(path, _)| path).collect();
    let claims = Verdicts::all(reports.iter().map(|report| &report.claims));
    Ok(Written { page: folder.join(PAGE), files, claims })
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

/// A picture's place, from the folder.
fn picture(canvas: &Canvas) -> String {
    format!("{PLOTS}/{}.{SVG}", canvas.name)
}

/// What experiments ran on: each fact, and of which scenarios it holds where it is not of all.
fn machine(reports: &[Report]) -> Vec<(String, String)> {
    let mut facts: Vec<((String, String), Vec<&str>)> = Vec::new();
    for Report { scenario, machine, .. } in reports {
        for fact in machine.facts() {
            match facts.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, of)) => of.push(&scenario.name),
                None => facts.push((fact, vec![&scenario.name])),
            }
        }
    }
    let told = facts.into_iter().map(|((name, value), of)| match of.len() == reports.len() {
        true => (name, value),
        false => (format!("{name} ({})", of.join(", ")), value),
    });
    told.collect()
}
