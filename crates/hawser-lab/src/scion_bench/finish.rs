//! What the bench leaves: the lab's report, also as one text for docs/results, and what one connection carries.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::brief::{Brief, brief};
use crate::error::LabError;
use crate::experiment::Run;
use crate::report::{self, Written, results};

/// The text.
const TEXT: &str = "scion.md";
const HEAD: &str = "# SCION end hosts\n\nMade by `hawser scion bench`; docs/scion.md says what is measured.\n\n";

/// What was found, ready to be told. Plain data.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The page with tables and plots, and whether what is claimed holds.
    pub written: Written,
    /// One connection within an AS, by candidate.
    pub brief: BTreeMap<String, Brief>,
}

/// Writes the report of a folder of results in it.
///
/// # Errors
/// Where results are missing or cannot be read, or the report cannot be written.
pub fn finish(dir: &Path) -> Result<Finish, LabError> {
    let results = results::read(dir)?;
    let reports = report::all(&results);
    let written = report::publish(dir, &reports)?;
    let path = dir.join(TEXT);
    fs::write(&path, report::text(HEAD, &reports))
        .map_err(|error| LabError::system(format!("write {}", path.display()), error))?;
    let runs: Vec<Run> = results.into_iter().flat_map(|results| results.runs).collect();
    Ok(Finish { written, brief: brief(&runs) })
}
