//! Scenarios by name: those that come with Hawser, and files on disk.
//!
//! 1. `scenarios/GROUP/NAME.toml` and traces beside them are part of the program (`build.rs` lists them).
//! 2. [`find`]: a path (something with a slash, or ending in .toml) is read from disk, another word is a scenario's name or a
//!    group's.
//! 3. A trace is looked for beside its scenario, and then among the embedded ones.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use hawser_portal::config::ConfigError;
use hawser_portal::config::reading::did_you_mean;

use super::{Scenario, parse};

/// Files that are part of the program, each with its path below `scenarios` and its text; sorted.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// A scenario that cannot be had. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("read scenario {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file has faults.
    #[error("read scenario {file}: {} to correct", match errors.len() { 1 => "1 error".to_owned(), n => format!("{n} errors") })]
    Faulty {
        /// The file.
        file: String,
        /// Its text, to show the faults in.
        text: String,
        /// The faults in the order of the file; at least one.
        errors: Vec<ConfigError>,
    },
    /// There is no scenario or group of this name.
    #[error("find scenario {name}: there is none, and no group of this name")]
    Unknown {
        /// As it was asked for.
        name: String,
        /// The nearest one.
        meant: Option<String>,
    },
}

impl ScenarioError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { meant: Some(meant), .. } => Some(format!("did you mean {meant}?")),
            Self::Unknown { .. } => Some("hawser lab list names them; a file's name ends in .toml".to_owned()),
            Self::Read { .. } | Self::Faulty { .. } => None,
        }
    }
}

impl Scenario {
    /// Reads a scenario; `file` is what its faults are reported under, `folder` where its traces are.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &str, file: &str, folder: Option<&Path>) -> Result<Self, ScenarioError> {
        let named = RefCell::new(BTreeMap::new());
        let traces = |name: &str| {
            let text = trace(name, folder)?;
            named.borrow_mut().insert(name.to_owned(), text.clone());
            Ok(text)
        };
        let faulty = |errors| ScenarioError::Faulty { file: file.to_owned(), text: text.to_owned(), errors };
        let scenario = parse::parse(text, file, &traces).map_err(faulty)?;
        Ok(Self { traces: named.into_inner(), ..scenario })
    }

    /// Reads a scenario's file.
    ///
    /// # Errors
    /// Where it cannot be read, or has faults.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string(), Some(path.parent().unwrap_or(Path::new(""))))
    }
}

/// Every scenario that comes with Hawser, by group and name.
///
/// # Errors
/// Where one has faults: a test sees to it that none has.
pub fn all() -> Result<Vec<Scenario>, ScenarioError> {
    let files = EMBEDDED.iter().filter(|(path, _)| path.ends_with(".toml"));
    files.map(|(path, text)| Scenario::parse(text, path, None)).collect()
}

/// Step 2: the scenario of a name or file, or all of a group.
///
/// # Errors
/// Where there is none of this name, or it cannot be read.
pub fn find(name: &str) -> Result<Vec<Scenario>, ScenarioError> {
    if name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml") {
        return Scenario::read(Path::new(name)).map(|scenario| vec![scenario]);
    }
    let all = all()?;
    let found: Vec<Scenario> =
        all.iter().filter(|scenario| scenario.name == name || scenario.group == name).cloned().collect();
    if found.is_empty() {
        let known: Vec<&str> = all.iter().flat_map(|scenario| [scenario.name.as_str(), &scenario.group]).collect();
        let meant = did_you_mean(name, &known).map(str::to_owned);
        return Err(ScenarioError::Unknown { name: name.to_owned(), meant });
    }
    Ok(found)
}

/// Step 3.
pub(crate) fn trace(name: &str, folder: Option<&Path>) -> Result<String, String> {
    let beside = folder.map(|folder| std::fs::read_to_string(folder.join(name)));
    match beside {
        Some(Ok(text)) => return Ok(text),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(format!("read {name}: {error}")),
        _ => {}
    }
    let file = |path: &str| path.rsplit('/').next() == Some(name);
    let embedded = EMBEDDED.iter().find(|(path, _)| file(path) && !path.ends_with(".toml"));
    embedded.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("there is no trace {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_scenario_is_right_and_named_as_its_file() {
        let mut wrong = Vec::new();
        for (path, text) in EMBEDDED.iter().filter(|(path, _)| path.ends_with(".toml")) {
            match Scenario::parse(text, path, None) {
                Ok(scenario) => assert_eq!(format!("{}/{}.toml", scenario.group, scenario.name), *path),
                Err(ScenarioError::Faulty { errors, .. }) => wrong.extend(errors.iter().map(ToString::to_string)),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_is_not_there_is_said_with_the_nearest_name() {
        let error = find("no-such-scenario-at-all").expect_err("there is none");
        assert!(matches!(error, ScenarioError::Unknown { .. }) && error.hint().is_some());
        let error = find("./no-such-file.toml").expect_err("there is none");
        assert!(matches!(error, ScenarioError::Read { .. }), "{error}");
    }
}
