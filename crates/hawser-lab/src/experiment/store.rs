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
//! 2. [`Store::append`] adds a run, and returns once the disk has it; the first notes which build and commit it is of.
//!    The CSV file follows, and is made anew at each start.
//!
//! Reports read the folder by themselves (`report::results`).

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use super::{Machine, Outcome, Run, SeriesKey};
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
    dir: PathBuf,
    /// All so far.
    pub(super) runs: Vec<Run>,
    lines: Locked,
    rows: csv::Writer<File>,
    /// What the machine's file is to say before this process adds a run; none once it does.
    mixed: Option<Machine>,
}

/// A file that this process alone writes to, until it goes.
#[derive(Debug)]
struct Locked(File);

/// A child that another thread has forked, and that has not begun its program yet, would hold the lock for a moment
/// longer.
impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Store {
    /// Step 1. [`LabError::Others`] where the folder holds results of something else or another process writes there.
    pub fn open(dir: &Path, scenario: &Scenario, machine: &Machine) -> Result<Self, LabError> {
        fs::create_dir_all(dir).map_err(LabError::file("make", dir))?;
        let lines_path = dir.join(RUNS);
        let options = File::options().read(true).append(true).create(true).open(&lines_path);
        let lines = options.map_err(LabError::file("open", &lines_path))?;
        lines.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => others(dir, "another hawser writes there"),
            TryLockError::Error(error) => LabError::file("lock", &lines_path)(error),
        })?;
        let lines = Locked(lines);
        let text = fs::read_to_string(&lines_path).map_err(LabError::file("read", &lines_path))?;
        let runs = parse(&lines_path, &text)?;
        // What comes after the last line's end was cut short.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        lines.0.set_len(whole as u64).map_err(LabError::file("shorten", &lines_path))?;
        let mixed = claim(dir, scenario, machine, !runs.is_empty())?;
        let rows_path = dir.join(FIGURES);
        let rows =
            File::create(&rows_path).map(csv::Writer::from_writer).map_err(LabError::file("write", &rows_path))?;
        let mut store = Self { dir: dir.to_owned(), runs: Vec::new(), lines, rows, mixed };
        store.write_rows(|rows| rows.write_record(COLUMNS))?;
        for run in runs {
            store.note(run)?;
        }
        Ok(store)
    }

    /// Step 2.
    pub fn append(&mut self, run: Run) -> Result<(), LabError> {
        if let Some(machine) = &self.mixed {
            write_machine(&self.dir, machine)?;
            self.mixed = None;
        }
        let written = serde_json::to_vec(&run).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.lines.0.write_all(&line)?;
            self.lines.0.sync_data()
        });
        written.map_err(LabError::file("write", &self.dir.join(RUNS)))?;
        self.note(run)
    }

    fn note(&mut self, run: Run) -> Result<(), LabError> {
        self.write_rows(|rows| {
            let Outcome::Found(findings) = &run.outcome else { return Ok(()) };
            let SeriesKey { scenario, case, contender, workload } = &run.series;
            let (repetition, seed) = (run.repetition.to_string(), run.seed.to_string());
            findings.metrics.iter().try_for_each(|(metric, value)| {
                let value = &value.to_string();
                rows.write_record([scenario, case, contender, workload, &repetition, &seed, metric, value])
            })
        })?;
        self.runs.push(run);
        Ok(())
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut csv::Writer<File>) -> csv::Result<()>) -> Result<(), LabError> {
        let written = write(&mut self.rows).map_err(io::Error::from).and_then(|()| self.rows.flush());
        written.map_err(LabError::file("write", &self.dir.join(FIGURES)))
    }
}

/// Step 1: the folder becomes this experiment's, or is so already. What the machine's file is to say once there are
/// runs of both processes, where that differs.
fn claim(dir: &Path, scenario: &Scenario, machine: &Machine, has_runs: bool) -> Result<Option<Machine>, LabError> {
    let (text_path, machine_path) = (dir.join(SCENARIO), dir.join(MACHINE));
    let (mut kept, mut mixed) = (machine.clone(), None);
    if has_runs {
        let read = |path: &Path| fs::read_to_string(path).map_err(LabError::file("read", path));
        let before = serde_json::from_str(&read(&machine_path)?).map_err(io::Error::from);
        let before: Machine = before.map_err(LabError::file("read", &machine_path))?;
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
        let both = Machine { builds: &before.builds | &machine.builds, commit, ..before.clone() };
        mixed = Some(both).filter(|both| *both != before);
        kept = before;
    }
    write(&text_path, scenario.text.as_bytes())?;
    write_traces(dir, scenario)?;
    write_machine(dir, &kept)?;
    Ok(mixed)
}

fn write_traces(dir: &Path, scenario: &Scenario) -> Result<(), LabError> {
    for (name, text) in &scenario.traces {
        let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            return Err(others(dir, &format!("trace {name} would lie outside: it belongs beside the scenario's file")));
        }
        let path = dir.join(name);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(LabError::file("make", folder))?;
        write(&path, text.as_bytes())?;
    }
    Ok(())
}

fn write_machine(dir: &Path, machine: &Machine) -> Result<(), LabError> {
    let path = dir.join(MACHINE);
    let json = serde_json::to_vec_pretty(machine).map_err(io::Error::from).map_err(LabError::file("write", &path))?;
    write(&path, &json)
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
    written().map_err(LabError::file("write", path))
}

/// Runs of a file. A last line without an end was being written when the program was killed: that run did not end.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<Run>, LabError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let run = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| LabError::refused(format!("read {}:{}", path.display(), number + 1), error.to_string()))
    };
    whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(run).collect()
}

fn others(dir: &Path, reason: &str) -> LabError {
    LabError::Others { dir: dir.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;

    use super::super::tests::{failed, found, machine, run_of, scenario, store};
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
        let mut first = store(&dir);
        first.append(run_of(key(), 0, found(93.5))).expect("it is written");
        first.append(run_of(key(), 1, failed("it said\n\"no\""))).expect("it is written");
        drop(first);
        let mut second = store(&dir);
        second.append(run_of(key(), 1, Outcome::Skipped("not there".to_owned()))).expect("it is written");
        assert_eq!(second.runs.len(), 3);
        drop(second);
        let third = store(&dir);
        let runs = &third.runs;
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
        store(dir).append(run_of(key(), 0, found(1.0))).expect("it is written");
        let mut lines = File::options().append(true).open(dir.join(RUNS)).expect("it opens");
        lines.write_all(b"{\"scenario\":\"s\",\"ca").expect("writes");
        let mut again = store(dir);
        assert_eq!(again.runs.len(), 1);
        again.append(run_of(key(), 1, found(2.0))).expect("it is written");
        drop(again);
        assert_eq!(store(dir).runs.len(), 2);
        lines.write_all(b"{}\n").expect("writes");
        let error = Store::open(dir, &scenario(), &machine()).expect_err("a whole line that says nothing");
        assert!(error.to_string().contains("runs.jsonl:3"), "{error}");
    }

    #[test]
    fn a_folder_is_free_when_its_owner_ends_also_where_a_child_still_has_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = store(folder.path());
        let _inherited = first.lines.0.try_clone().expect("a copy, as a fork makes it");
        drop(first);
        assert!(Store::open(folder.path(), &scenario(), &machine()).is_ok());
    }

    #[test]
    fn a_folder_is_free_after_each_refusal_while_other_threads_start_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        store(dir).append(run_of(key(), 0, found(1.0))).expect("it is written");
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
        let mut first = store(dir);
        assert!(refusal(dir, &scenario(), &machine()).contains("another hawser writes there"));
        first.append(run_of(key(), 0, found(1.0))).expect("it is written");
        drop(first);
        let traces = [("../cell.trace".to_owned(), String::new())].into();
        let table = [
            (Scenario { text: "name = \"t\"".to_owned(), ..scenario() }, machine(), "another scenario"),
            (Scenario { traces, ..scenario() }, machine(), "would lie outside"),
            (scenario(), Machine { hawser: "9.9.9".to_owned(), ..machine() }, "another version"),
            (scenario(), Machine { recordings: vec!["drives.csv".to_owned()], ..machine() }, "--traces"),
            (scenario(), Machine { quick: true, ..machine() }, "--quick"),
        ];
        for (scenario, machine, reason) in table {
            assert!(refusal(dir, &scenario, &machine).contains(reason), "{reason}");
        }
    }

    #[test]
    fn a_build_and_a_commit_are_noted_with_the_first_run_of_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |build: &str, commit: &str| {
            let machine = Machine { builds: [build.to_owned()].into(), commit: commit.to_owned(), ..machine() };
            Store::open(folder.path(), &scenario(), &machine).expect("a build is noted, not refused")
        };
        let noted = || (kept(folder.path()).builds.len(), kept(folder.path()).commit);
        of("a", "1").append(run_of(key(), 0, found(1.0))).expect("it is written");
        drop(of("b", "2"));
        assert_eq!(noted(), (1, "1".to_owned()), "it had nothing to add");
        of("b", "1").append(run_of(key(), 1, found(1.0))).expect("it is written");
        assert_eq!(noted(), (2, "1".to_owned()));
        of("b", "2").append(run_of(key(), 2, found(1.0))).expect("it is written");
        assert_eq!(noted(), (2, String::new()), "of several commits none is theirs");
    }
}
