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
pub mod plot;
pub(crate) mod results;
pub mod saved;
mod series;
pub mod statistics;
mod tables;
mod troubles;

use std::fs;
use std::path::{Path, PathBuf};

pub use age::{Age, ages, save};
pub use claims::Verdicts;
pub use compare::{Comparison, Finding, Verdict, compare, compare_runs};
pub use metrics::{Better, Metric};
pub use results::Machine;

use crate::error::LabError;
use crate::experiment::Run;
use crate::scenario::Scenario;
use plot::Drawing;
use results::Results;
use series::Book;
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
#[derive(Clone, Debug)]
pub struct Report {
    /// What the scenario is called.
    pub name: String,
    group: String,
    title: String,
    finding: String,
    source: String,
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
    /// How many scenarios it tells of.
    pub scenarios: usize,
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
    results.iter().map(|results| build(&results.scenario, &results.runs, &results.machine)).collect()
}

/// Reports as Markdown below this head, without pictures.
pub(crate) fn text(head: &str, reports: &[Report]) -> String {
    markdown::text(head, reports, false)
}

/// Steps 2 and 3.
#[must_use]
pub fn build(scenario: &Scenario, runs: &[Run], machine: &Machine) -> Report {
    // Cases that a quick run leaves out are none of its report's.
    let mut scenario = scenario.clone();
    scenario.cases.retain(|case| case.quick || !machine.is_quick());
    let scenario = &scenario;
    let book = Book::new(scenario, runs);
    Report {
        name: scenario.name.clone(),
        group: scenario.group.clone(),
        title: scenario.title.clone(),
        finding: scenario.finding.clone(),
        source: scenario.source.clone(),
        extent: extent(&book),
        claims: Verdicts::of(scenario, runs),
        tables: tables::all(&book),
        plots: plot::all(&book),
        troubles: troubles::all(&book),
        figures: figures::all(&book),
        machine: machine.clone(),
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
///
/// # Errors
/// Where a file cannot be written.
pub fn publish(folder: &Path, reports: &[Report]) -> Result<Written, LabError> {
    let plots = folder.join(PLOTS);
    let failed = |path: &Path| {
        let action = format!("write {}", path.display());
        move |error| LabError::system(action, error)
    };
    fs::create_dir_all(&plots).map_err(failed(&plots))?;
    remove_pictures(&plots).map_err(failed(&plots))?;
    let figures_path = folder.join(FIGURES);
    let figures = figures::write(reports).map_err(|error| failed(&figures_path)(error.into()))?;
    let mut texts: Vec<(PathBuf, Vec<u8>)> = vec![
        (folder.join(PAGE), page::write(reports).into_bytes()),
        (folder.join(TEXT), markdown::write(reports).into_bytes()),
        (figures_path, figures),
    ];
    for (name, _, canvas) in reports.iter().flat_map(pictures) {
        texts.push((folder.join(picture(&name)), canvas.file().into_bytes()));
    }
    for (path, text) in &texts {
        fs::write(path, text).map_err(failed(path))?;
    }
    let files = texts.into_iter().map(|(path, _)| path).collect();
    let claims = Verdicts::all(reports.iter().map(|report| &report.claims));
    Ok(Written { page: folder.join(PAGE), files, scenarios: reports.len(), claims })
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

/// Each panel with its name, unique among reports, and which plot it is of.
fn pictures(report: &Report) -> Vec<(String, usize, &plot::Canvas)> {
    let mut pictures = Vec::new();
    for (number, drawing) in report.plots.iter().enumerate() {
        for (part, canvas) in drawing.panels.iter().enumerate() {
            let part = if drawing.panels.len() > 1 { format!("-{}", part + 1) } else { String::new() };
            pictures.push((format!("{}-{}{part}", report.name, number + 1), number, canvas));
        }
    }
    pictures
}

/// A picture's place, from the folder.
fn picture(name: &str) -> String {
    format!("{PLOTS}/{name}.{SVG}")
}

/// What experiments ran on: each fact, and of which scenarios it holds where it is not of all.
fn machine(reports: &[Report]) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String, Vec<&str>)> = Vec::new();
    for report in reports {
        for (name, value) in report.machine.facts() {
            match facts.iter_mut().find(|(known, known_value, _)| *known == name && *known_value == value) {
                Some((_, _, of)) => of.push(&report.name),
                None => facts.push((name, value, vec![&report.name])),
            }
        }
    }
    let told = |(name, value, of): (String, String, Vec<&str>)| {
        let name = if of.len() == reports.len() { name } else { format!("{name} ({})", of.join(", ")) };
        (name, value)
    };
    facts.into_iter().map(told).collect()
}
