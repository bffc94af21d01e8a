//! Results in a folder: what a report is made from, and what an interrupted experiment goes on from.
//!
//! ```text
//! DIR/scenario.toml   the scenario's text, and beside it the traces that it names
//! DIR/machine.json    where and with what
//! DIR/runs.jsonl      a line for each run, written as it ends
//! DIR/runs.csv        a row for each figure of each run that was measured
//! ```
//!
//! 1. [`Store::open`] makes the folder, or takes up one of the same scenario and version. A line that a kill cut short
//!    goes.
//! 2. [`Store::append`] adds a run, and returns once the disk has it. The CSV file follows, and is made anew at each
//!    start.
//!
//! Reports read the folder by themselves (`report::results`).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{Machine, Outcome, Run};
use crate::error::LabError;
use crate::scenario::Scenario;

/// The scenario's text.
pub(crate) const SCENARIO: &str = "scenario.toml";
/// Versions, kernel, settings.
pub(crate) const MACHINE: &str = "machine.json";
/// A line for each run.
pub(crate) const RUNS: &str = "runs.jsonl";
const FIGURES: &str = "runs.csv";
/// The CSV file's heading.
const COLUMNS: [&str; 8] = ["scenario", "case", "contender", "workload", "repetition", "seed", "metric", "value"];

/// A folder that is written to. Starts with what it holds already; one owner, and no other process meanwhile.
#[derive(Debug)]
pub struct Store {
    runs: Vec<Run>,
    lines: Locked,
    lines_path: PathBuf,
    rows: csv::Writer<File>,
    rows_path: PathBuf,
}

/// A file that this process alone writes to, until it goes.
#[derive(Debug)]
struct Locked(File);

impl Locked {
    fn new(file: File) -> rustix::io::Result<Self> {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self(file))
    }
}

/// A child that another thread has forked, and that has not begun its program yet, would hold the lock for a moment
/// longer.
impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Store {
    /// Step 1.
    ///
    /// # Errors
    /// [`LabError::Others`] where the folder holds results of something else or another process writes there, and where
    /// a file cannot be read or written.
    pub fn open(dir: &Path, scenario: &Scenario, machine: &Machine) -> Result<Self, LabError> {
        fs::create_dir_all(dir).map_err(|error| fault("make", dir, error))?;
        let lines_path = dir.join(RUNS);
        let options = File::options().read(true).append(true).create(true).open(&lines_path);
        let lines = options.map_err(|error| fault("open", &lines_path, error))?;
        let lines = Locked::new(lines).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => others(dir, "another hawser writes there"),
            error => fault("lock", &lines_path, error),
        })?;
        let text = fs::read_to_string(&lines_path).map_err(|error| fault("read", &lines_path, error))?;
        let runs = parse(&lines_path, &text)?;
        // What comes after the last line's end was cut short.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        lines.0.set_len(whole as u64).map_err(|error| fault("shorten", &lines_path, error))?;
        claim(dir, scenario, machine, !runs.is_empty())?;
        let rows_path = dir.join(FIGURES);
        let rows = csv::Writer::from_path(&rows_path).map_err(|error| fault("write", &rows_path, error))?;
        let mut store = Self { runs: Vec::new(), lines, lines_path, rows, rows_path };
        store.write_rows(|rows| rows.write_record(COLUMNS))?;
        for run in runs {
            store.note(run)?;
        }
        Ok(store)
    }

    /// All runs so far.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Step 2.
    ///
    /// # Errors
    /// Where the disk does not take it.
    pub fn append(&mut self, run: Run) -> Result<(), LabError> {
        let failed = |error: io::Error| fault("write", &self.lines_path, error);
        let mut line = serde_json::to_vec(&run).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.lines.0.write_all(&line).and_then(|()| self.lines.0.sync_data()).map_err(failed)?;
        self.note(run)
    }

    fn note(&mut self, run: Run) -> Result<(), LabError> {
        self.write_rows(|rows| {
            let Outcome::Found(findings) = &run.outcome else { return Ok(()) };
            let (key, repetition, seed) = (&run.series, run.repetition.to_string(), run.seed.to_string());
            for (metric, value) in &findings.metrics {
                let value = value.to_string();
                let names = [&key.scenario, &key.case, &key.contender, &key.workload];
                rows.write_record(names.into_iter().chain([&repetition, &seed, metric, &value]))?;
            }
            Ok(())
        })?;
        self.runs.push(run);
        Ok(())
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut csv::Writer<File>) -> csv::Result<()>) -> Result<(), LabError> {
        let written = write(&mut self.rows).map_err(io::Error::from).and_then(|()| self.rows.flush());
        written.map_err(|error| fault("write", &self.rows_path, error))
    }
}

/// Step 1: the folder becomes this experiment's, or is so already.
fn claim(dir: &Path, scenario: &Scenario, machine: &Machine, has_runs: bool) -> Result<(), LabError> {
    let (text_path, machine_path) = (dir.join(SCENARIO), dir.join(MACHINE));
    let mut machine = machine.clone();
    if has_runs {
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| fault("read", path, error));
        let before: Machine =
            serde_json::from_str(&read(&machine_path)?).map_err(|error| fault("read", &machine_path, error))?;
        let differs = [
            (read(&text_path)? != scenario.text, "another scenario, or this one before it was changed"),
            (before.hawser != machine.hawser, "another version of hawser"),
            (before.kernel != machine.kernel, "another kernel"),
            (
                before.recordings != machine.recordings,
                "other recorded links: with --traces, without, or another folder",
            ),
            (before.quick != machine.quick, "runs of another length: one was with --quick, one is not"),
        ];
        if let Some((_, what)) = differs.iter().find(|(differs, _)| *differs) {
            return Err(others(dir, &format!("it holds results of {what}")));
        }
        // Of several commits none is the results' own: they are stale.
        let commit = if before.commit == machine.commit { before.commit.clone() } else { String::new() };
        machine = Machine { builds: &before.builds | &machine.builds, commit, ..before };
    }
    write(&text_path, scenario.text.as_bytes())?;
    for (name, text) in &scenario.traces {
        let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            return Err(others(dir, &format!("trace {name} would lie outside: it belongs beside the scenario's file")));
        }
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(|error| fault("make", folder, error))?;
        write(&path, text.as_bytes())?;
    }
    let json = serde_json::to_vec_pretty(&machine).map_err(|error| fault("write", &machine_path, error))?;
    write(&machine_path, &json)
}

/// A file that is there whole, or as it was.
fn write(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    let part = path.with_extension("part");
    let written = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&part, path)
    };
    written().map_err(|error| fault("write", path, error))
}

/// Runs of a file. A last line without an end was being written when the program was killed: that run did not end.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Run>, LabError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let run = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| LabError::results(format!("read {}:{}", path.display(), number + 1), error.to_string()))
    };
    whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(run).collect()
}

fn fault(action: &str, path: &Path, error: impl Into<io::Error>) -> LabError {
    LabError::system(format!("{action} {}", path.display()), error)
}

fn others(dir: &Path, reason: &str) -> LabError {
    LabError::Others { dir: dir.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::super::tests::{failed, found, machine, run_of, scenario};
    use super::super::{Findings, SeriesKey};
    use super::*;

    fn key() -> SeriesKey {
        let word = |text: &str| text.to_owned();
        SeriesKey { scenario: word("s"), case: word("A, \"one\""), contender: word("tcp"), workload: word("down") }
    }

    fn kept(dir: &Path) -> Machine {
        serde_json::from_str(&fs::read_to_string(dir.join(MACHINE)).expect("it is there")).expect("its own text")
    }

    fn refusal(dir: &Path, scenario: &Scenario, machine: &Machine) -> String {
        let error = Store::open(dir, scenario, machine).expect_err("it is not the same");
        assert!(error.hint().expect("what to do").contains("--out"), "{error}");
        error.to_string()
    }

    #[test]
    fn what_was_kept_is_read_again_and_gone_on_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("new");
        let mut store = Store::open(&dir, &scenario(), &machine()).expect("it opens");
        store.append(run_of(key(), 0, found(93.5))).expect("it is written");
        store.append(run_of(key(), 1, failed("it said\n\"no\""))).expect("it is written");
        drop(store);
        let mut store = Store::open(&dir, &scenario(), &machine()).expect("it opens");
        store.append(run_of(key(), 1, Outcome::Skipped("not there".to_owned()))).expect("it is written");
        assert_eq!(store.runs().len(), 3);
        drop(store);
        let store = Store::open(&dir, &scenario(), &machine()).expect("it opens");
        let runs = store.runs();
        assert_eq!(runs.iter().map(|run| run.repetition).collect::<Vec<_>>(), [0, 1, 1]);
        assert!(matches!(&runs[0].outcome, Outcome::Found(findings) if findings.metrics["goodput_mbps"] == 93.5));
        assert!(matches!(&runs[1].outcome, Outcome::Failed(said) if said == "it said\n\"no\""));
        assert_eq!(fs::read_to_string(dir.join(SCENARIO)).expect("it is there"), scenario().text);
        assert_eq!(fs::read_to_string(dir.join("cell.trace")).expect("it is there"), "1\n2\n");
        assert_eq!(kept(&dir), machine());
        let csv = fs::read_to_string(dir.join(FIGURES)).expect("it is there");
        let expected = "scenario,case,contender,workload,repetition,seed,metric,value\n\
                        s,\"A, \"\"one\"\"\",tcp,down,0,7,goodput_mbps,93.5\n";
        assert_eq!(csv, expected);
    }

    #[test]
    fn a_line_that_was_cut_short_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let mut store = Store::open(dir, &scenario(), &machine()).expect("it opens");
        store.append(run_of(key(), 0, found(1.0))).expect("it is written");
        drop(store);
        let mut lines = File::options().append(true).open(dir.join(RUNS)).expect("it opens");
        lines.write_all(b"{\"scenario\":\"s\",\"ca").expect("writes");
        let mut store = Store::open(dir, &scenario(), &machine()).expect("it opens");
        assert_eq!(store.runs().len(), 1);
        store.append(run_of(key(), 1, found(2.0))).expect("it is written");
        drop(store);
        assert_eq!(Store::open(dir, &scenario(), &machine()).expect("it opens").runs().len(), 2);
        lines.write_all(b"{}\n").expect("writes");
        let error = Store::open(dir, &scenario(), &machine()).expect_err("a whole line that says nothing");
        assert!(error.to_string().contains("runs.jsonl:3"), "{error}");
    }

    #[test]
    fn a_folder_is_free_when_its_owner_ends_also_where_a_child_still_has_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), &scenario(), &machine()).expect("it opens");
        let _inherited = store.lines.0.try_clone().expect("a copy, as a fork makes it");
        drop(store);
        assert!(Store::open(folder.path(), &scenario(), &machine()).is_ok());
    }

    #[test]
    fn a_folder_is_free_after_each_refusal_while_other_threads_start_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let mut store = Store::open(dir, &scenario(), &machine()).expect("it opens");
        store.append(run_of(key(), 0, Outcome::Found(Findings::default()))).expect("it is written");
        drop(store);
        let changed = Scenario { text: "name = \"t\"".to_owned(), ..scenario() };
        thread::scope(|scope| {
            let programs = scope.spawn(|| {
                for _ in 0..300 {
                    Command::new("true").status().expect("run true");
                }
            });
            while !programs.is_finished() {
                assert!(refusal(dir, &changed, &machine()).contains("another scenario"));
            }
        });
    }

    #[test]
    fn results_of_something_else_are_not_added_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        let mut store = Store::open(dir, &scenario(), &machine()).expect("it opens");
        assert!(refusal(dir, &scenario(), &machine()).contains("another hawser writes there"));
        store.append(run_of(key(), 0, Outcome::Found(Findings::default()))).expect("it is written");
        drop(store);
        let changed = Scenario { text: "name = \"t\"".to_owned(), ..scenario() };
        assert!(refusal(dir, &changed, &machine()).contains("another scenario"));
        let outside = Scenario { traces: [("../cell.trace".to_owned(), String::new())].into(), ..scenario() };
        assert!(refusal(dir, &outside, &machine()).contains("would lie outside"));
        let newer = Machine { hawser: "9.9.9".to_owned(), ..machine() };
        assert!(refusal(dir, &scenario(), &newer).contains("another version"));
        let recorded = Machine { recordings: vec!["drives.csv".to_owned()], ..machine() };
        assert!(refusal(dir, &scenario(), &recorded).contains("--traces"));
        let quick = Machine { quick: true, ..machine() };
        assert!(refusal(dir, &scenario(), &quick).contains("--quick"));
        let rebuilt = Machine { builds: ["b".to_owned()].into(), ..machine() };
        drop(Store::open(dir, &scenario(), &rebuilt).expect("a build is noted, not refused"));
        assert_eq!(kept(dir).builds.len(), 2);
    }
}
