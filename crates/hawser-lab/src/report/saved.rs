//! Saved results: what a repository keeps of them, how old they are, and the page of them all.
//!
//! 1. [`save`] keeps of results what a repository shall: every run's figures, the scenario, commit, date, machine,
//!    command; no lines and samples.
//! 2. [`ages`] looks at every folder of results below one: which commit it is of, and what has changed since in the
//!    files that the scenario says count, by git. A result whose commit is not known, or was not whole, is stale.
//! 3. [`write()`] puts a page beside them, where whoever opens the folder sees it: claims and tables of each, with
//!    commit, day, machine and age.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use time::OffsetDateTime;

use super::markdown::{self, plain};
use super::{LabError, Report, Results, all, results};
use crate::experiment::{CAPTURES, Outcome, Run, store};

/// The page's name: what a repository's pages show of a folder.
pub const PAGE: &str = "README.md";
/// How the line begins that tells a result's age: it changes with the code, the rest with the runs alone.
pub const AGE: &str = "Code: ";
const HEAD: &str = "# Saved results\n\n\
    Written by `hawser lab tables` from the folders beside it, which have every figure of every run. Code is what counts for a \
    result, as it was when this was written; `hawser lab stale` tells of today's.\n";
/// What counts where a scenario does not say: what carries packets.
const COUNTS: [&str; 3] = ["crates/hawser-core/src", "crates/hawser-net/src", "crates/hawser-portal/src"];
/// How `git describe` ends where files differ from the commit's.
const DIRTY: &str = "-dirty";

/// A saved result's age. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    /// Name of the scenario.
    pub scenario: String,
    /// The page that has its figures.
    pub page: String,
    /// The commit it is of.
    pub commit: String,
    /// Why it is stale; none while it is not.
    pub stale: Option<String>,
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, page, commit, stale } = self;
        match stale {
            None => write!(f, "current  {scenario} ({page}), commit {commit}"),
            Some(why) => write!(f, "stale    {scenario} ({page}), commit {commit}: {why}"),
        }
    }
}

/// Step 1: each of a folder's results into a folder of its name; their names.
///
/// # Errors
/// Where they cannot be read or written.
pub fn save(from: &Path, to: &Path) -> Result<Vec<String>, LabError> {
    let mut names = Vec::new();
    for Results { scenario, runs, machine, folder: here } in results::read(from)? {
        let folder = to.join(&scenario.name);
        let lines: String = runs.into_iter().map(|run| line(run) + "\n").collect();
        let machine = format!("{machine:#}\n");
        let files = [(store::SCENARIO, &scenario.text), (store::RUNS, &lines), (store::MACHINE, &machine)];
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(&folder)?;
            let traces = scenario.traces.iter().map(|(name, text)| (name.as_str(), text));
            files.into_iter().chain(traces).try_for_each(|(name, text)| fs::write(folder.join(name), text))?;
            copy_all(&here.join(CAPTURES), &folder.join(CAPTURES))
        };
        write().map_err(LabError::file("save results in", &folder))?;
        names.push(scenario.name);
    }
    Ok(names)
}

/// The files of a folder, where it is there.
fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

/// A run without lines and samples.
fn line(mut run: Run) -> String {
    if let Outcome::Found(findings) = &mut run.outcome {
        findings.lines.clear();
        findings.samples.clear();
    }
    serde_json::to_string(&run).unwrap_or_default()
}

/// Step 2, by folder.
///
/// # Errors
/// Where results cannot be read, or it is no repository.
pub fn ages(folder: &Path) -> Result<Vec<Age>, LabError> {
    let root = git(folder, &["rev-parse", "--show-toplevel"])
        .map_err(|said| LabError::refused(format!("ask git about {}", folder.display()), said))?;
    let age = |folder: &PathBuf| -> Result<Age, LabError> {
        let Results { scenario, machine, .. } = results::read_one(folder)?;
        let commit = machine["commit"].as_str().unwrap_or_default().to_owned();
        let page = scenario.source.rsplit(' ').next().unwrap_or_default().to_owned();
        let counts = if scenario.counts.is_empty() { COUNTS.map(str::to_owned).to_vec() } else { scenario.counts };
        let stale = stale(Path::new(&root), &commit, &counts);
        Ok(Age { scenario: scenario.name, page, commit, stale })
    };
    results::folders(folder)?.iter().map(age).collect()
}

/// Why results of a commit are not of today's code.
fn stale(root: &Path, commit: &str, counts: &[String]) -> Option<String> {
    if commit.is_empty() {
        return Some("nobody noted its commit, or its runs are of several".to_owned());
    }
    if commit.ends_with(DIRTY) {
        return Some("it was measured with changes that no commit has".to_owned());
    }
    let object = format!("{commit}^{{commit}}");
    if git(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &object]).is_err() {
        return Some("there is no such commit".to_owned());
    }
    let arguments = ["diff", "--name-only", commit, "--"].into_iter().chain(counts.iter().map(String::as_str));
    let changed = git(root, &arguments.collect::<Vec<_>>()).unwrap_or_default();
    let files = changed.lines().count();
    let first = changed.lines().next()?;
    let more = if files > 1 { format!(" and {} more", files - 1) } else { String::new() };
    Some(format!("changed since: {first}{more}"))
}

/// What git says, or why it refuses.
pub(crate) fn git(at: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(at).args(arguments).output().map_err(|error| error.to_string())?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

/// Step 3; the page's place.
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
        section(&mut text, &report, ages.iter().find(|age| age.scenario == report.book.scenario.name));
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// Writing to a string does not fail.
fn section(text: &mut String, Report { book, machine, claims, tables, .. }: &Report<'_>, age: Option<&Age>) {
    let (name, title, extent) = (&book.scenario.name, plain(&book.scenario.title), book.extent());
    let _ = writeln!(text, "\n## {name}\n\n**{title}**. {extent}; {}.\n", provenance(machine));
    if let Some(age) = age {
        let _ = writeln!(text, "{AGE}{}.\n", age.stale.as_deref().map_or_else(|| "current".to_owned(), plain));
    }
    markdown::claims(text, claims);
    tables.iter().for_each(|sheet| markdown::table(text, sheet));
}

/// Commit, day, machine and command of runs.
fn provenance(machine: &Value) -> String {
    let [commit, processor, kernel, command] =
        ["commit", "processor", "kernel", "command"].map(|name| machine[name].as_str().unwrap_or("unknown"));
    let time = machine["begun"].as_f64().and_then(|begun| OffsetDateTime::from_unix_timestamp(begun as i64).ok());
    let day = time.map_or_else(|| "a day that nobody noted".to_owned(), |time| time.date().to_string());
    let processors = machine["processors"].as_u64().unwrap_or_default();
    format!("commit {commit}, {day}, {processors} processors ({processor}), Linux {kernel}, `{command}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = include_str!("golden/saved.toml");
    const RUN: &str = include_str!("golden/saved.jsonl");

    /// A repository with a file that counts, one that does not, and its first commit.
    fn repository() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir(root.join("code")).expect("a folder");
        fs::write(root.join("code/file"), "1").and_then(|()| fs::write(root.join("other"), "1")).expect("written");
        git(root, &["init", "--quiet"]).expect("git is there");
        let commit = commit(root);
        (folder, commit)
    }

    fn commit(root: &Path) -> String {
        let identity = ["-c", "user.name=us", "-c", "user.email=us@example.org"];
        git(root, &["add", "-A"]).expect("added");
        git(root, &[&identity[..], &["commit", "--quiet", "--allow-empty", "-m", "one"]].concat()).expect("committed");
        git(root, &["rev-parse", "HEAD"]).expect("a commit")
    }

    fn told(root: &Path, commit: &str) -> Age {
        let kept = root.join("results/s");
        fs::create_dir_all(&kept).expect("a folder");
        let machine = format!("{{\"commit\":\"{commit}\"}}");
        for (name, text) in [("scenario.toml", SCENARIO), ("runs.jsonl", RUN), ("machine.json", &machine)] {
            fs::write(kept.join(name), text).expect("written");
        }
        ages(&root.join("results")).expect("they are read").remove(0)
    }

    #[test]
    fn a_result_is_stale_once_what_counts_for_it_has_changed() {
        let (folder, first) = repository();
        let root = folder.path();
        assert_eq!(told(root, &first).stale, None);
        assert_eq!(told(root, &first).page, "docs/results/page.md");
        fs::write(root.join("other"), "2").expect("written");
        commit(root);
        assert_eq!(told(root, &first).stale, None, "that does not count");
        fs::write(root.join("code/file"), "2").expect("written");
        let last = commit(root);
        assert_eq!(told(root, &first).stale.as_deref(), Some("changed since: code/file"));
        assert_eq!(told(root, &last).stale, None);
    }

    #[test]
    fn a_commit_that_is_not_there_or_was_not_whole_is_stale() {
        let (folder, first) = repository();
        let doctored = format!("{}{}", if first.starts_with('0') { '1' } else { '0' }, &first[1..]);
        for commit in [doctored, "--output=x".to_owned(), String::new(), format!("{first}-dirty")] {
            assert!(told(folder.path(), &commit).stale.is_some(), "{commit}");
        }
    }

    #[test]
    fn what_is_saved_has_every_figure_and_no_lines() {
        let (folder, first) = repository();
        told(folder.path(), &first);
        let to = folder.path().join("saved");
        let captures = folder.path().join("results/s/captures");
        fs::create_dir(&captures).and_then(|()| fs::write(captures.join("a.pcap"), "c")).expect("written");
        assert_eq!(save(&folder.path().join("results"), &to).expect("saved"), ["s"]);
        let runs = fs::read_to_string(to.join("s/runs.jsonl")).expect("it is there");
        assert!(runs.contains("9.5") && runs.contains("a cut") && !runs.contains("step_s"), "{runs}");
        assert_eq!(fs::read(to.join("s/captures/a.pcap")).expect("it is there"), b"c");
        assert_eq!(ages(&to).expect("read").len(), 1);
    }
}
