//! Raw results, read back from where `hawser lab run` left them.
//!
//! A folder has `runs.jsonl` (a line for each run), `scenario.toml` and `machine.json`; or folders below it have, at
//! whatever depth.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{LabError, Scenario};
use crate::experiment::Run;
use crate::experiment::store::{self, MACHINE, RUNS, SCENARIO};
use crate::scenario::FileError;

/// The order in which groups are shown; others come after, by name.
const GROUPS: [&str; 7] = ["testbed", "proxy", "aggregation", "environments", "drives", "links", "scion"];

/// A scenario and what its runs found. As read.
#[derive(Debug)]
pub struct Results {
    pub scenario: Scenario,
    /// In the order in which they ran.
    pub runs: Vec<Run>,
    /// What they ran on: a JSON document of any shape.
    pub machine: Value,
    pub folder: PathBuf,
}

/// Each value of a document, with the names that lead to it.
pub fn facts(name: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(fields) => {
            let inner = |(key, value): (&String, &Value)| facts(format!("{name} {key}").trim_start(), value);
            fields.iter().flat_map(inner).collect()
        }
        Value::Array(values) => vec![(name.to_owned(), values.iter().map(plain).collect::<Vec<_>>().join(", "))],
        Value::Null => Vec::new(),
        other => vec![(name.to_owned(), plain(other))],
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// All results in a folder, by group and name; at least one.
pub fn read(folder: &Path) -> Result<Vec<Results>, LabError> {
    let mut all = folders(folder)?.iter().map(|folder| read_one(folder)).collect::<Result<Vec<_>, _>>()?;
    if all.is_empty() {
        return Err(LabError::refused(format!("read {}", folder.display()), format!("it has no {RUNS}")));
    }
    let rank = |group: &str| GROUPS.iter().position(|known| *known == group).unwrap_or(GROUPS.len());
    all.sort_by_cached_key(|results| {
        let Scenario { group, name, .. } = &results.scenario;
        (rank(group), group.clone(), name.clone())
    });
    Ok(all)
}

/// The folder itself, or those below it, by name.
pub(super) fn folders(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    if folder.join(RUNS).exists() {
        return Ok(vec![folder.to_owned()]);
    }
    let failed = LabError::file("read", folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let path = entry.path();
        // A symbolic link may lead in a circle: it leads to results, or nowhere.
        if entry.file_type().map_err(&failed)?.is_dir() || path.join(RUNS).exists() {
            found.extend(folders(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn read_one(folder: &Path) -> Result<Results, LabError> {
    let mut scenario = Scenario::read(&folder.join(SCENARIO), None).map_err(misread)?;
    let [runs, machine] = [RUNS, MACHINE].map(|name| folder.join(name));
    let text = |path: &Path| fs::read_to_string(path).map_err(LabError::file("read", path));
    let wrong = |error: serde_json::Error| LabError::refused(format!("read {}", machine.display()), error.to_string());
    let runs = store::parse(&runs, &text(&runs)?)?;
    let machine: Value = serde_json::from_str(&text(&machine)?).map_err(wrong)?;
    // Cases that a quick run leaves out are none of its results'.
    let is_quick = machine["quick"].as_bool().unwrap_or_default();
    scenario.cases.retain(|case| case.quick || !is_quick);
    Ok(Results { scenario, runs, machine, folder: folder.to_owned() })
}

/// With each of its faults in a line.
fn misread(error: FileError) -> LabError {
    let FileError::Faulty { errors, .. } = &error else {
        return LabError::refused("read results".to_owned(), error.to_string());
    };
    let faults: Vec<String> = errors.iter().map(ToString::to_string).collect();
    LabError::refused(error.to_string(), faults.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_named_by_what_leads_to_them() {
        let value = serde_json::json!({"kernel": "6.18", "sysctls": {"tcp_sack": "1"}, "seeds": [1, 2], "none": null});
        let mut facts = facts("", &value);
        facts.sort_unstable();
        let expected = [("kernel", "6.18"), ("seeds", "1, 2"), ("sysctls tcp_sack", "1")];
        assert_eq!(facts, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn results_are_found_at_every_depth() {
        let top = tempfile::tempdir().expect("a folder");
        let path = |name: &str| top.path().join(name);
        for name in ["b", "a/deep", "b/captures"] {
            fs::create_dir_all(path(name)).and_then(|()| fs::write(path(name).join(RUNS), "")).expect("written");
        }
        std::os::unix::fs::symlink(top.path(), path("a/circle")).expect("made");
        std::os::unix::fs::symlink(path("b"), path("linked")).expect("made");
        assert_eq!(folders(top.path()).expect("read"), ["a/deep", "b", "linked"].map(path));
        assert_eq!(folders(&path("b")).expect("read"), [path("b")]);
    }

    #[test]
    fn a_folder_without_results_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = read(folder.path()).expect_err("it is empty").to_string();
        assert!(error.contains("it has no runs.jsonl"), "{error}");
    }
}
