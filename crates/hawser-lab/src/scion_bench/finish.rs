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
const TITLE: &str = "SCION end hosts";

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
    let written = report::write(dir)?;
    let runs: Vec<Run> = results::read(dir)?.into_iter().flat_map(|results| results.runs).collect();
    let report = dir.join("report.md");
    let text = fs::read_to_string(&report);
    let text = text.map_err(|error| LabError::system(format!("read {}", report.display()), error))?;
    let path = dir.join(TEXT);
    fs::write(&path, document(&text)).map_err(|error| LabError::system(format!("write {}", path.display()), error))?;
    Ok(Finish { written, brief: brief(&runs) })
}

/// The report without pictures, which lie beside it.
fn document(report: &str) -> String {
    let mut text = format!("# {TITLE}\n\nMade by `hawser scion bench`; docs/scion.md says what is measured.\n\n");
    let mut heading: Option<&str> = None;
    for line in report.lines().skip_while(|line| !line.starts_with("## ")) {
        if line.starts_with("![") {
            // The heading was the picture's.
            heading = None;
            continue;
        }
        if line.starts_with("### ") {
            if let Some(heading) = heading.replace(line) {
                text += &format!("{heading}\n");
            }
            continue;
        }
        if !line.is_empty()
            && let Some(heading) = heading.take()
        {
            text += &format!("{heading}\n\n");
        }
        if !(line.is_empty() && (heading.is_some() || text.ends_with("\n\n"))) {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_tables_and_no_pictures() {
        let report = "# Both\n\n- list\n\n## scion-one\n\nWords.\n\n### Table A\n\n| case |\n| --- |\n\nNote.\n\n### Plot\n\n![Plot](plots/a.svg)\n\n### Table B\n\n| case |\n";
        let text = document(report);
        let expected = "# SCION end hosts\n\nMade by `hawser scion bench`; docs/scion.md says what is measured.\n\n## scion-one\n\nWords.\n\n### Table A\n\n| case |\n| --- |\n\nNote.\n\n### Table B\n\n| case |\n";
        assert_eq!(text, expected);
    }
}
