//! `hawser lab`: experiments that anyone can run again.
//!
//! 1. Scenarios are found: by name, by group, or in a file. 2. They are run one after the other, each into a folder.
//! 3. The report is made from what the folders hold.
//!
//! The policy's laws are judged apart, in virtual time (`lab/ablate.rs`).

mod ablate;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hawser_lab::contender::Programs;
use hawser_lab::experiment::{self, Choice, Progress, Summary};
use hawser_lab::report::{self, Written, saved};
use hawser_lab::scenario::{self, FileError, Scenario};
use hawser_lab::{LabError, cleanup, drives, go};

use super::output::print;
use crate::failure::{Failure, faults};

/// Where results go, where no folder is named: each scenario into a folder of its name.
const RESULTS: &str = "hawser-lab";
/// Names the executable of the portals, where it is not this one: another build is measured by this lab.
const PORTALS: &str = "HAWSER_LAB_HAWSER";
/// Where the repository keeps results.
const SAVED: &str = "docs/results";
/// And those whose page is made of them.
const RUNS: &str = "docs/results/runs";

/// Compare ways to use several links, on emulated networks
#[derive(Debug, Args)]
pub struct Lab {
    #[command(subcommand)]
    task: Task,
}

/// What the lab can be told to do.
#[derive(Debug, Subcommand)]
enum Task {
    /// List the scenarios that come with Hawser, by group
    List,
    /// Print a scenario's file
    Show {
        /// The scenario's name
        name: String,
    },
    /// Run scenarios, and write their report (needs root)
    ///
    /// What a folder of results holds already is not run again: an interrupted run goes on when it is called again.
    Run {
        /// Names of scenarios or groups, or scenario files
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Run each series this often [default: as the scenario says]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        reps: Option<u32>,
        /// Run each series once, and for a few seconds
        #[arg(long)]
        quick: bool,
        /// Run this case, contender or workload alone; may be repeated
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
        /// The folder of recorded links; without it drives are generated for experiments that have them
        #[arg(long, value_name = "DIR")]
        traces: Option<PathBuf>,
        /// The folder for results; of several scenarios each gets a folder in it [default: hawser-lab/NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Compare generated drives with recorded ones, by their statistics
    Drives {
        /// The folder of recordings: tables of drives (.csv)
        #[arg(long, value_name = "DIR")]
        traces: Option<PathBuf>,
        /// Number of drives to generate
        #[arg(long, value_name = "N", default_value_t = 300)]
        #[arg(value_parser = clap::value_parser!(u32).range(2..=100_000))]
        seeds: u32,
    },
    /// Write the report of a folder of results anew
    Report {
        /// The folder
        dir: PathBuf,
    },
    /// Compare two folders of results: exit status 1 where the second is worse
    Compare {
        /// The results before
        old: PathBuf,
        /// The results after
        new: PathBuf,
    },
    /// Keep results for a repository: every figure of every run, without lines and samples
    Save {
        /// The folder of results
        from: PathBuf,
        /// Where each scenario gets a folder
        to: PathBuf,
    },
    /// Write the page of saved results anew: tables of all, and which are of code that has changed since
    Tables {
        /// The folder of saved results
        #[arg(default_value = RUNS)]
        dir: PathBuf,
    },
    /// Tell which saved results are of code that has changed since: exit status 1 where any is
    Stale {
        /// The folder of saved results
        #[arg(default_value = SAVED)]
        dir: PathBuf,
    },
    /// Switch each law of the policy off in turn, on networks drawn by seed, in virtual time
    Ablate(ablate::Ablate),
}

impl Lab {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        match self.task {
            Task::List => list(),
            Task::Show { name } => show(&name),
            Task::Run { names, reps, quick, only, traces, out } => {
                let scenarios = part(chosen(&names, traces.as_deref())?, &only)?;
                run(&names, scenarios, Choice { repetitions: reps, quick }, out)
            }
            Task::Drives { traces, seeds } => print(&drives::compared(seeds, traces.as_deref()).map_err(told)?),
            Task::Report { dir } => write_report(&dir),
            Task::Compare { old, new } => compare(&old, &new),
            Task::Save { from, to } => save(&from, &to),
            Task::Tables { dir } => print(&format!("tables: {}\n", saved::write(&dir).map_err(told)?.display())),
            Task::Stale { dir } => stale(&dir),
            Task::Ablate(ablate) => ablate.run(),
        }
    }
}

fn list() -> Result<(), Failure> {
    let scenarios = scenario::all()?;
    let wide = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut group = "";
    for Scenario { name, group: own, title, .. } in &scenarios {
        if own != group {
            text += &format!("{}{own}\n", if group.is_empty() { "" } else { "\n" });
            group = own;
        }
        text += &format!("  {name:<wide$}  {title}\n");
    }
    print(&text)
}

fn show(name: &str) -> Result<(), Failure> {
    match scenario::find(name, None)?.as_slice() {
        [scenario] => print(&scenario.text),
        group => {
            let names: Vec<&str> = group.iter().map(|scenario| scenario.name.as_str()).collect();
            let hint = format!("name one of its scenarios: {}", names.join(", "));
            Err(Failure::wrong(format!("show scenario {name}: it is a group")).hint(hint))
        }
    }
}

/// Steps 1 to 3.
fn run(names: &[String], scenarios: Vec<Scenario>, choice: Choice, out: Option<PathBuf>) -> Result<(), Failure> {
    tell_generated(&scenarios);
    let programs = Programs { hawser: portals()?, cache: go::cache() };
    cleanup::start().map_err(|error| match error {
        LabError::NotRoot => {
            Failure::failed(error).hint(format!("run it with sudo: sudo hawser lab run {}", names.join(" ")))
        }
        error => told(error),
    })?;
    let is_alone = out.is_some() && scenarios.len() == 1;
    let root = out.unwrap_or_else(|| PathBuf::from(RESULTS));
    let mut progress = Progress::default();
    let mut summaries = Vec::new();
    for scenario in &scenarios {
        let dir = if is_alone { root.clone() } else { root.join(&scenario.name) };
        summaries.push(experiment::run(scenario, choice, &dir, &programs, &mut progress).map_err(told)?);
    }
    write_report(&root)?;
    judge(&summaries)
}

/// The executable of the portals.
fn portals() -> Result<PathBuf, Failure> {
    let Some(told) = std::env::var_os(PORTALS).map(PathBuf::from) else {
        return std::env::current_exe().map_err(|error| Failure::failed(format!("find this executable: {error}")));
    };
    let missing = || Failure::failed(format!("find the portals' executable: {} is no file", told.display()));
    if told.is_file() { Ok(told) } else { Err(missing().hint(format!("unset {PORTALS}, or name a hawser executable"))) }
}

/// Step 1: each scenario once, in the order asked for.
fn chosen(names: &[String], traces: Option<&Path>) -> Result<Vec<Scenario>, Failure> {
    let mut chosen: Vec<Scenario> = Vec::new();
    for name in names {
        for scenario in scenario::find(name, traces)? {
            if chosen.iter().all(|other| other.name != scenario.name) {
                chosen.push(scenario);
            }
        }
    }
    Ok(chosen)
}

/// Step 1: what is named of them alone.
fn part(scenarios: Vec<Scenario>, only: &[String]) -> Result<Vec<Scenario>, Failure> {
    let part = |scenario: Scenario| {
        let name = scenario.name.clone();
        scenario.only(only).map_err(|(stranger, known)| {
            let hint = format!("of {name} there are: {}", known.join(", "));
            Failure::wrong(format!("run {stranger} alone: {name} has no such case, contender or workload")).hint(hint)
        })
    };
    scenarios.into_iter().map(part).collect()
}

/// Whoever gave no recordings is told what stands in their place.
fn tell_generated(scenarios: &[Scenario]) {
    for Scenario { name, generated, .. } in scenarios.iter().filter(|scenario| !scenario.generated.is_empty()) {
        let links =
            if generated.len() == 1 { "1 link is".to_owned() } else { format!("{} links are", generated.len()) };
        eprintln!("{name}: {links} generated, by the seeds that the report names");
        eprintln!("hint: give a folder of recordings: --traces DIR");
    }
}

/// Step 3.
fn write_report(dir: &Path) -> Result<(), Failure> {
    tell(&report::write(dir).map_err(told)?)
}

/// Whether what scenarios claim holds, and where to read more.
pub(super) fn tell(written: &Written) -> Result<(), Failure> {
    print(&format!("{}report: {}\n", written.claims, written.page.display()))
}

/// What could not be measured is told; what failed is a failure.
pub(super) fn judge(summaries: &[Summary]) -> Result<(), Failure> {
    let all = |of: fn(&Summary) -> &Vec<_>| summaries.iter().flat_map(of).collect::<Vec<_>>();
    let (skipped, failed) = (all(|summary| &summary.skipped), all(|summary| &summary.failed));
    for (what, series) in [("skipped", &skipped), ("failed", &failed)] {
        for (key, why) in series {
            eprintln!("{what}: {} {}, {}, {}: {why}", key.scenario, key.case, key.contender, key.workload);
        }
    }
    match failed.len() {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{count} series could not be measured"))
            .hint("what they said stands in the report; the same command tries them no more, another --out does")),
    }
}

fn save(from: &Path, to: &Path) -> Result<(), Failure> {
    print(&format!("saved in {}: {}\n", to.display(), saved::save(from, to).map_err(told)?.join(", ")))
}

fn stale(dir: &Path) -> Result<(), Failure> {
    let ages = saved::ages(dir).map_err(told)?;
    let lines: String = ages.iter().map(|age| format!("{age}\n")).collect();
    print(&lines)?;
    match ages.iter().filter(|age| age.stale.is_some()).count() {
        0 => Ok(()),
        count => Err(Failure::failed(format!("{count} of {} results are stale", ages.len()))
            .hint("measure them anew: make results")),
    }
}

fn compare(old: &Path, new: &Path) -> Result<(), Failure> {
    let comparison = report::compare(old, new).map_err(told)?;
    print(&format!("{comparison}\n"))?;
    if comparison.is_regression() {
        return Err(Failure::failed(format!("{} is worse than {}", new.display(), old.display())));
    }
    Ok(())
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let hint = error.hint();
        let shown = match &error {
            FileError::Faulty { text, errors, .. } => faults(text, errors),
            _ => String::new(),
        };
        Failure::faulty(hint, shown, error)
    }
}

pub(super) fn told(error: LabError) -> Failure {
    let hint = error.hint().map(str::to_owned);
    Failure::hinted(hint, error)
}
