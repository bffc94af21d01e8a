//! The page of saved results: claims and tables of each, with what they are of.
//!
//! 1. [`write()`] puts it beside them, where whoever opens the folder sees it.
//! 2. Each tells its commit, day and machine, and whether code that counts for it has changed since ([`super::age`]).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use time::OffsetDateTime;

use super::age::{Age, ages};
use super::markdown::{claims, plain, table};
use super::{LabError, Machine, Report, all, results};

/// The page's name: what a repository's pages show of a folder.
pub const PAGE: &str = "README.md";
/// How the line begins that tells a result's age: it changes with the code, the rest with the runs alone.
pub const AGE: &str = "Code: ";
const HEAD: &str = "# Saved results\n\n\
    Written by `hawser lab tables` from the folders beside it, which have every figure of every run. Code is what counts for a \
    result, as it was when this was written; `hawser lab stale` tells of today's.\n";

/// Step 1; its place.
///
/// # Errors
/// Where results cannot be read, are in no repository, or the page cannot be written.
pub fn write(folder: &Path) -> Result<PathBuf, LabError> {
    let page = folder.join(PAGE);
    fs::write(&page, text(folder, &ages(folder)?)?).map_err(LabError::file("write", &page))?;
    Ok(page)
}

/// The page of results whose ages are told where they are given.
///
/// # Errors
/// Where results cannot be read.
pub fn text(folder: &Path, ages: &[Age]) -> Result<String, LabError> {
    let mut text = HEAD.to_owned();
    for report in all(&results::read(folder)?) {
        section(&mut text, &report, ages.iter().find(|age| age.scenario == report.scenario.name));
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// Step 2. Writing to a string does not fail.
fn section(text: &mut String, report: &Report, age: Option<&Age>) {
    let Report { scenario, extent, machine, .. } = report;
    let (name, title) = (&scenario.name, plain(&scenario.title));
    let _ = writeln!(text, "\n## {name}\n\n**{title}**. {extent}; {}.\n", provenance(machine));
    if let Some(age) = age {
        let _ = writeln!(text, "{AGE}{}.\n", age.stale.as_deref().map_or_else(|| "current".to_owned(), plain));
    }
    claims(text, &report.claims);
    report.tables.iter().for_each(|sheet| table(text, sheet));
}

/// Commit, day, machine and command of runs.
fn provenance(Machine(machine): &Machine) -> String {
    let told = |name: &str| machine.get(name).and_then(Value::as_str).unwrap_or("unknown");
    let day = machine.get("begun").and_then(Value::as_f64);
    let day = day.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds as i64).ok());
    let day = day.map_or_else(|| "a day that nobody noted".to_owned(), |time| time.date().to_string());
    let (commit, command) = (told("commit"), told("command"));
    let processors = machine.get("processors").and_then(Value::as_u64).unwrap_or_default();
    format!(
        "commit {commit}, {day}, {processors} processors ({}), Linux {}, `{command}`",
        told("processor"),
        told("kernel")
    )
}
