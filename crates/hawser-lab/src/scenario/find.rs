//! Scenarios by name: those that come with Hawser, and files on disk; and a part of one.
//!
//! 1. `scenarios/GROUP/NAME.toml` and traces beside them are part of the program (`build.rs` lists them).
//! 2. [`find`]: a path (something with a slash, or ending in .toml) is read from disk, another word is a scenario's
//!    name or a group's.
//! 3. Recordings of links lie in a folder that `--traces` names, beside a scenario, or among the embedded files
//!    (`recorded`).

use std::io;
use std::path::{Path, PathBuf};

use hawser_config::ConfigError;
use hawser_config::reading::did_you_mean;

use super::recorded::Sources;
use super::{Scenario, parse};

/// Files that are part of the program, each with its path below `scenarios` and its text; sorted.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// As errors call it.
const WHAT: &str = "scenario";

/// A scenario, or a topology of SCION's, that cannot be had. Plain data.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("read {what} {}", path.display())]
    Read {
        /// As a user calls it: `scenario`, `topology`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file has faults.
    #[error("read {what} {file}: {} to correct", match errors.len() { 1 => "1 error".to_owned(), n => format!("{n} errors") })]
    Faulty {
        /// As a user calls it.
        what: &'static str,
        /// The file.
        file: String,
        /// Its text, to show the faults in.
        text: String,
        /// The faults in the order of the file; at least one.
        errors: Vec<ConfigError>,
    },
    /// There is none of this name, of no group either where there are any.
    #[error("find {what}")]
    Unknown {
        /// As a user calls it, its name, and that there is none.
        what: String,
        /// What to do about it.
        hint: String,
    },
}

impl FileError {
    /// What to do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Unknown { hint, .. } = self else { return None };
        Some(hint.clone())
    }

    /// None of this name: the nearest of the known ones, or another hint.
    pub(crate) fn unknown(what: String, name: &str, known: &[&str], hint: String) -> Self {
        Self::Unknown { what, hint: did_you_mean(name, known).map_or(hint, |meant| format!("did you mean {meant}?")) }
    }

    /// A file's text.
    pub(crate) fn text_of(what: &'static str, path: &Path) -> Result<String, Self> {
        std::fs::read_to_string(path).map_err(|source| Self::Read { what, path: path.to_owned(), source })
    }
}

/// Whether a file is meant, and not a name.
pub(crate) fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

impl Scenario {
    /// Reads a scenario; `file` is what its faults are reported under, `folder` where its traces are.
    ///
    /// # Errors
    /// Every fault of the text.
    pub fn parse(text: &str, file: &str, folder: Option<&Path>) -> Result<Self, FileError> {
        Self::parse_with(text, file, folder, None)
    }

    /// The same with recordings from a folder of their own.
    fn parse_with(text: &str, file: &str, folder: Option<&Path>, recordings: Option<&Path>) -> Result<Self, FileError> {
        let faulty = |errors| FileError::Faulty { what: WHAT, file: file.to_owned(), text: text.to_owned(), errors };
        parse::parse(text, file, &Sources::new(folder, recordings)).map_err(faulty)
    }

    /// Reads a scenario's file.
    pub(crate) fn read(path: &Path, recordings: Option<&Path>) -> Result<Self, FileError> {
        let text = FileError::text_of(WHAT, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_with(&text, &path.display().to_string(), Some(folder), recordings)
    }

    /// What runs of the scenario, where only these are asked for: of cases, contenders and workloads each, those that
    /// are named, or all where none is.
    ///
    /// # Errors
    /// The first name that is none of the scenario's, and those that are.
    pub fn only(mut self, names: &[String]) -> Result<Self, (String, Vec<String>)> {
        let all: [Vec<String>; 3] = [
            self.cases.iter().map(|case| case.name.clone()).collect(),
            self.contenders.iter().map(|contender| contender.label.clone()).collect(),
            self.workloads.iter().map(|workload| workload.name.clone()).collect(),
        ];
        if let Some(stranger) = names.iter().find(|name| !all.concat().contains(name)) {
            return Err((stranger.clone(), all.concat()));
        }
        let [is_case, is_label, is_workload] = all.map(|of| {
            let is_any = of.iter().any(|name| names.contains(name));
            move |name: &String| !is_any || names.contains(name)
        });
        self.cases.retain(|case| is_case(&case.name));
        for case in &mut self.cases {
            case.contenders.retain(&is_label);
            case.workloads.retain(&is_workload);
        }
        Ok(self)
    }
}

/// Every scenario that comes with Hawser, by group and name.
///
/// # Errors
/// Where one has faults: a test sees to it that none has.
pub fn all() -> Result<Vec<Scenario>, FileError> {
    scenarios().map(|(path, text)| Scenario::parse(text, path, None)).collect()
}

/// Step 1: the scenarios, which are named as their files and groups as their folders.
fn scenarios() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    EMBEDDED.iter().filter(|(path, _)| path.ends_with(".toml"))
}

/// Step 2: the scenario of a name or file, or all of a group; with recorded links from a folder, where one is given.
///
/// # Errors
/// Where there is none of this name, it cannot be read, or a recording is not in the folder or cannot be read.
pub fn find(name: &str, recordings: Option<&Path>) -> Result<Vec<Scenario>, FileError> {
    if is_file(name) {
        return Scenario::read(Path::new(name), recordings).map(|scenario| vec![scenario]);
    }
    let names = |path: &'static str| path.trim_end_matches(".toml").split('/');
    let found: Vec<_> = scenarios().filter(|&&(path, _)| names(path).any(|known| known == name)).collect();
    if found.is_empty() {
        let known: Vec<&str> = scenarios().flat_map(|&(path, _)| names(path)).collect();
        let hint = "hawser lab list names them; a file's name ends in .toml".to_owned();
        let what = format!("{WHAT} {name}: there is none, and no group of this name");
        return Err(FileError::unknown(what, name, &known, hint));
    }
    found.into_iter().map(|(path, text)| Scenario::parse_with(text, path, None, recordings)).collect()
}

/// Step 3: the embedded file of a name that is no scenario.
pub(super) fn embedded(name: &str) -> Option<&'static str> {
    let file = |path: &str| path.rsplit('/').next() == Some(name);
    EMBEDDED.iter().find(|(path, _)| file(path) && !path.ends_with(".toml")).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Choice, Series};

    #[test]
    fn every_embedded_scenario_is_right_and_named_as_its_file() {
        for (path, text) in scenarios() {
            let scenario = Scenario::parse(text, path, None).unwrap_or_else(|error| panic!("{error:#?}"));
            assert_eq!(format!("{}/{}.toml", scenario.group, scenario.name), *path);
        }
    }

    #[test]
    fn what_is_not_there_is_said_with_the_nearest_name() {
        let error = find("no-such-scenario-at-all", None).expect_err("there is none");
        assert!(matches!(error, FileError::Unknown { .. }) && error.hint().is_some());
        let error = find("./no-such-file.toml", None).expect_err("there is none");
        assert!(matches!(error, FileError::Read { .. }), "{error}");
    }

    #[test]
    fn what_is_named_runs_and_of_each_kind_without_a_name_all() {
        let text = "name = \"s\"\n[[network.link]]\nname = \"a\"\n[[contender]]\nkind = \"tcp\"\n[[contender]]\n\
                    kind = \"hawser\"\n[[workload]]\nkind = \"bulk\"\nname = \"up\"\n[[workload]]\nkind = \"bulk\"\n\
                    name = \"down\"\n[[case]]\nname = \"one\"\n[[case]]\nname = \"two\"\n";
        let scenario = Scenario::parse(text, "s.toml", None).unwrap_or_else(|error| panic!("{error:#?}"));
        let run = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let part = scenario.clone().only(&names)?;
            Ok::<_, (String, Vec<String>)>(Series::all(&part, Choice::default()).len())
        };
        assert_eq!([run(&[]), run(&["one"]), run(&["one", "tcp"]), run(&["tcp", "up"])], [Ok(8), Ok(4), Ok(2), Ok(2)]);
        let (stranger, known) = run(&["one", "three"]).expect_err("there is none");
        assert_eq!((stranger.as_str(), known.len()), ("three", 6));
    }
}
