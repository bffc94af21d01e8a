//! What was found before: a file with a JSON object a line, the newest last, so that a regression shows.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::error::LabError;

/// Figures are rounded to one part of this many.
const GRAINS: f64 = 1e3;
/// From here on a figure is named as worse.
const WORSE: f64 = 0.10;
/// How figures begin of which more is better; of all others less is.
const MORE_IS_BETTER: [&str; 5] = ["mbps", "one_mbps", "streams_", "kpps_", "small_"];
/// Figures that are zero on a good day: any is an infinity more than none.
const NOT_COMPARED: [&str; 3] = ["lost_pct_", "calls_lost", "others"];

/// A file of results. It may not exist yet; read and appended to by one process at a time.
#[derive(Clone, Debug)]
pub struct History(PathBuf);

/// A case's result. Plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    case: String,
    date: String,
    commit: String,
    machine: String,
    /// Of the last minute, as the run ended.
    load: String,
    runs: usize,
    medians: BTreeMap<String, BTreeMap<String, f64>>,
}

impl History {
    /// The history in a file.
    #[must_use]
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self(file.into())
    }

    /// Every figure that is more than a tenth worse than the last one saved on a machine like this, in words.
    ///
    /// # Errors
    /// Where the file cannot be read, or is not what was written.
    pub fn worse(&self, report: &Report) -> Result<Vec<String>, LabError> {
        let new = Entry::of(report);
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| self.fault("read", error))?,
        };
        let entries = text.lines().map(serde_json::from_str::<Entry>).collect::<Result<Vec<_>, _>>();
        let entries = entries.map_err(|error| self.fault("read", error.into()))?;
        let last = entries.iter().rev().find(|old| old.case == new.case && old.machine == new.machine);
        Ok(last.map(|old| worse(old, &new)).unwrap_or_default())
    }

    /// Adds a report.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn append(&self, report: &Report) -> Result<(), LabError> {
        let write = || -> io::Result<()> {
            let line = serde_json::to_string(&Entry::of(report))?;
            let mut file = fs::File::options().create(true).append(true).open(&self.0)?;
            writeln!(file, "{line}")
        };
        write().map_err(|error| self.fault("write", error))
    }

    fn fault(&self, action: &str, error: io::Error) -> LabError {
        LabError::system(format!("{action} {}", self.0.display()), error)
    }
}

impl Entry {
    /// A report with where it comes from. Figures that never came are left out, and digits that say nothing.
    fn of(report: &Report) -> Self {
        let (case, runs) = report.origin();
        let finite = |(name, value): (&str, f64)| {
            value.is_finite().then(|| (name.to_owned(), (value * GRAINS).round() / GRAINS))
        };
        let medians = report.medians().into_iter();
        let medians =
            medians.map(|(label, figures)| (label.to_owned(), figures.into_iter().filter_map(finite).collect()));
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            case: case.to_owned(),
            date: said(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%MZ"])),
            commit: said(
                Command::new("git").current_dir(env!("CARGO_MANIFEST_DIR")).args(["describe", "--always", "--dirty"]),
            ),
            machine: machine(),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
            runs,
            medians: medians.collect(),
        }
    }
}

/// What a command said; nothing where it could not.
fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// Processor, how many of them, kernel.
fn machine() -> String {
    let read = |file: &str| fs::read_to_string(Path::new("/proc").join(file)).unwrap_or_default();
    let text = read("cpuinfo");
    let model = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("processor");
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("sys/kernel/osrelease");
    format!("{count} × {}, Linux {}", model.trim_start_matches(['\t', ' ', ':']), kernel.trim())
}

fn worse(old: &Entry, new: &Entry) -> Vec<String> {
    let mut words = Vec::new();
    for (label, figures) in &new.medians {
        for (name, &value) in figures {
            let before = old.medians.get(label).and_then(|figures| figures.get(name));
            let Some(&before) = before.filter(|&&before| before > 0.0) else { continue };
            if NOT_COMPARED.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            let is_more_better = MORE_IS_BETTER.iter().any(|prefix| name.starts_with(prefix));
            let difference = if is_more_better { before - value } else { value - before };
            let lost = difference / before;
            if lost > WORSE {
                let percent = lost * 100.0;
                words.push(format!(
                    "{label} {name}: {value:.2}, was {before:.2} at {}: {percent:.0} % worse",
                    old.commit
                ));
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::bench::Figures;
    use crate::measure::{Case, PAIRED};

    fn case() -> &'static Case {
        PAIRED.first().expect("a case")
    }

    fn report(mbps: f64, cost: f64) -> Report {
        let mut report = Report::new(case());
        report.add("hawser", Figures::from([("mbps", mbps), ("machine_s_per_gb", cost), ("calls_lost", cost)]));
        report
    }

    #[test]
    fn what_got_worse_by_more_than_a_tenth_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let history = History::new(folder.path().join("results.jsonl"));
        assert_eq!(history.worse(&report(1.0, 1.0)).expect("no file is no history"), Vec::<String>::new());
        history.append(&report(1.0, 9.0)).expect("writes");
        history.append(&report(5000.0, 2.0)).expect("writes");
        let table: [(f64, f64, &[&str]); 6] = [
            (5000.0, 2.0, &[]),
            (4600.0, 2.15, &[]),
            (9000.0, 1.0, &[]),
            (4400.0, 2.0, &["mbps"]),
            (5000.0, 2.3, &["machine_s_per_gb"]),
            (4400.0, 2.3, &["machine_s_per_gb", "mbps"]),
        ];
        for (mbps, cost, expected) in table {
            let words = history.worse(&report(mbps, cost)).expect("reads");
            let names: Vec<&str> = words.iter().filter_map(|words| words.split([' ', ':']).nth(1)).collect();
            assert_eq!(names, expected, "{mbps} {cost}");
        }
    }

    #[test]
    fn another_machine_is_not_compared() {
        let new = Entry::of(&report(1.0, 1.0));
        let old = Entry { machine: "1 × another".to_owned(), ..Entry::of(&report(9.0, 1.0)) };
        assert!(!worse(&old, &new).is_empty(), "it would be named");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("results.jsonl");
        fs::write(&file, serde_json::to_string(&old).expect("plain data") + "\n").expect("writes");
        assert!(History::new(file).worse(&report(1.0, 1.0)).expect("reads").is_empty());
    }

    #[test]
    fn a_file_that_is_no_history_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("results.jsonl");
        fs::write(&file, "{}\n").expect("writes");
        assert!(History::new(file).worse(&report(1.0, 1.0)).is_err());
    }
}
