//! How old saved results are: whether the code that counts for them has changed since.
//!
//! 1. [`save`] keeps of results what a repository shall: every run's figures, the scenario, commit, date, machine,
//!    command; no lines and samples.
//! 2. [`ages`] looks at every folder of results below one: which commit it is of, and what has changed since in the
//!    files that the scenario says count, by git.
//! 3. A result whose commit is not known, or was not whole, is stale.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{LabError, Results, results};
use crate::experiment::{CAPTURES, Outcome, Run, store};

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
        let lines: String = runs.iter().map(|run| line(run) + "\n").collect();
        let machine = serde_json::to_string_pretty(&machine.0).unwrap_or_default() + "\n";
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
fn line(run: &Run) -> String {
    let mut run = run.clone();
    if let Outcome::Found(findings) = &mut run.outcome {
        findings.lines.clear();
        findings.samples.clear();
    }
    serde_json::to_string(&run).unwrap_or_default()
}

/// Steps 2 and 3, by folder.
///
/// # Errors
/// Where results cannot be read, or it is no repository.
pub fn ages(folder: &Path) -> Result<Vec<Age>, LabError> {
    let root = git(folder, &["rev-parse", "--show-toplevel"])
        .map_err(|said| LabError::results(format!("ask git about {}", folder.display()), said))?;
    let folders = results::folders(folder)?;
    folders.iter().map(|folder| Ok(age(Path::new(&root), &results::read_one(folder)?))).collect()
}

fn age(root: &Path, results: &Results) -> Age {
    let Results { scenario, machine, .. } = results;
    let commit = machine.0.get("commit").and_then(Value::as_str).unwrap_or_default().to_owned();
    let page = scenario.source.rsplit(' ').next().unwrap_or_default().to_owned();
    let counts: Vec<&str> = match scenario.counts.as_slice() {
        [] => COUNTS.to_vec(),
        told => told.iter().map(String::as_str).collect(),
    };
    let stale = stale(root, &commit, &counts);
    Age { scenario: scenario.name.clone(), page, commit, stale }
}

/// Why results of a commit are not of today's code.
fn stale(root: &Path, commit: &str, counts: &[&str]) -> Option<String> {
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
    let since = |arguments: &[&str]| git(root, &[arguments, &["--"], counts].concat()).unwrap_or_default();
    let changed = since(&["diff", "--name-only", commit]);
    let files = changed.lines().count();
    let first = changed.lines().next()?;
    let more = if files > 1 { format!(" and {} more", files - 1) } else { String::new() };
    Some(format!("changed since: {first}{more}"))
}

/// What git says, or why it refuses.
fn git(at: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(at).args(arguments).output().map_err(|error| error.to_string())?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "name = \"s\"\nsource = \"Us, 2026: docs/results/page.md\"\ncounts = [\"code\"]\n\
                            [[network.link]]\nname = \"a\"\n[[contender]]\nkind = \"tcp\"\n[[workload]]\nkind = \"bulk\"\n";
    const RUN: &str = "{\"scenario\":\"s\",\"case\":\"all\",\"contender\":\"tcp\",\"workload\":\"bulk\",\"repetition\":0,\
                       \"seed\":1,\"started\":1.5,\"outcome\":{\"found\":{\"metrics\":{\"goodput_mbps\":9.5},\"lines\":[{\"name\":\
                       \"goodput_mbps\",\"link\":null,\"step_s\":0.5,\"values\":[1.0]}],\"samples\":{},\"marks\":[{\"at_s\":3.0,\
                       \"what\":\"a cut\"}]}}}\n";

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
