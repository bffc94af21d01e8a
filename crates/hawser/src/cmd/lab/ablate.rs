//! `hawser lab ablate`: what each law of the policy is worth, in virtual time.
//!
//! 1. Laws and families are found by name, networks are drawn or read.
//! 2. Each law is switched off in turn, on all networks. 3. The table is printed, and all runs are written.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use hawser_config::reading::did_you_mean;
use hawser_sim::ablation::effect::Effect;
use hawser_sim::ablation::{self, Ablation, Family, Ground, Law, Measured, NAMES, Variant, table};
use hawser_sim::family::folder::{self, FolderError};
use hawser_sim::family::recorded::Draw;
use serde_json::{Value, json};

use super::super::output::print;
use crate::failure::Failure;

/// Recordings: seconds of each, as drawn networks have, and the share of the recorded rates of drives.
const SECONDS: usize = hawser_sim::family::SECONDS as usize;
const SCALE: f64 = 0.2;

/// What is asked for. Plain value.
#[derive(Debug, Args)]
pub(super) struct Ablate {
    /// Laws, by name [default: all]
    #[arg(long, value_name = "LAW,…", value_delimiter = ',')]
    laws: Vec<String>,
    /// Of stationary, changing, impaired, drives [default: all]
    #[arg(long, value_name = "FAMILY,…", value_delimiter = ',')]
    families: Vec<String>,
    /// Networks of each family
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..))]
    networks: u16,
    /// The first network's seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u32,
    /// Runs on each network, each with another seed of what is random
    #[arg(long, value_name = "R", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// The folder of recorded drives: drives.csv, NAME.down and NAME.up [default: drives are generated]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// Write all runs to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The commit that is measured, for that file
    #[arg(long, value_name = "TEXT", requires = "json")]
    commit: Option<String>,
    /// The date, for that file
    #[arg(long, value_name = "TEXT", requires = "json")]
    date: Option<String>,
}

impl Ablate {
    /// Steps 1 to 3.
    pub(super) fn run(self) -> Result<(), Failure> {
        let laws = laws(&self.laws)?;
        let grounds = self.grounds()?;
        if let Some(path) = &self.json {
            // A file that cannot be written is found out before minutes of measuring, not after.
            fs::write(path, "").map_err(|error| unwritten(path, &error))?;
        }
        print(&self.head(&grounds))?;
        let (mut begun, all) = (0, laws.len() + 1);
        let measured = ablation::ablate(grounds, self.runs, laws.into_iter().map(Variant::from).collect(), |name| {
            begun += 1;
            eprintln!("measuring {begun} of {all}: {}{name}", if begun == 1 { "" } else { "without " });
        });
        print(&table::table(&measured))?;
        let Some(path) = &self.json else { return Ok(()) };
        fs::write(path, format!("{:#}\n", self.report(&measured))).map_err(|error| unwritten(path, &error))
    }

    /// Step 1.
    fn grounds(&self) -> Result<Vec<Ground>, Failure> {
        let families = match self.families.as_slice() {
            [] => Family::ALL.to_vec(),
            names => found("family", names, &Family::ALL.map(Family::name), Family::named)?,
        };
        if self.traces.is_some() && !families.contains(&Family::Drives) {
            return Err(
                Failure::wrong("read recordings: --traces is only for the family drives").hint("add it to --families")
            );
        }
        let seeds = u64::from(self.seed)..u64::from(self.seed) + u64::from(self.networks);
        let mut grounds = Vec::new();
        for family in families {
            match (family, &self.traces) {
                (Family::Drives, Some(folder)) => grounds.extend(self.recorded(folder)?),
                (drawn, _) => grounds.extend(ablation::draw(drawn, seeds.clone())),
            }
        }
        Ok(grounds)
    }

    fn recorded(&self, folder: &Path) -> Result<Vec<Ground>, Failure> {
        let draw = Draw { seed: self.seed.into(), cases: usize::from(self.networks), seconds: SECONDS, scale: SCALE };
        let networks = folder::some(folder, draw)?;
        Ok(networks.into_iter().map(|network| Ground { family: Family::Drives, network }).collect())
    }

    /// What every figure depends on, and how the table is read.
    fn head(&self, grounds: &[Ground]) -> String {
        let last = u64::from(self.seed) + u64::from(self.networks) - 1;
        let drives = grounds.iter().filter(|ground| ground.family == Family::Drives).count();
        let recorded = match &self.traces {
            Some(_) => format!(", {drives} recordings drawn by seed {}", self.seed),
            None => String::new(),
        };
        format!(
            "seeds {} to {last}, runs 0 to {}{recorded}\n\
             What changes without a law: 100 · ln(without / with), mean over networks ± 95 % confidence.\n\
             *: the interval does not hold 0. Goodput: more is better; the others: less.\n\n",
            self.seed,
            self.runs - 1
        )
    }

    /// Step 3: everything, so that others can judge it anew.
    fn report(&self, measured: &Ablation) -> Value {
        let network = |ground: &Ground| {
            let seeds: Vec<u64> = (0..self.runs).map(|run| ablation::run_seed(&ground.network, run)).collect();
            json!({ "family": ground.family.name(), "name": ground.network.name, "seeds": seeds })
        };
        let law = |(variant, runs): &(Variant, Measured)| {
            let effects = measured.effects(runs, None);
            let alone = measured
                .families()
                .into_iter()
                .map(|family| (family.name().to_owned(), effects_of(&measured.effects(runs, Some(family)))));
            json!({ "law": variant.name, "about": variant.about, "verdict": table::verdict(&effects),
                "all": effects_of(&effects), "families": alone.collect::<serde_json::Map<_, _>>(), "runs": runs })
        };
        json!({
            "commit": self.commit, "date": self.date, "machine": machine(),
            "seed": self.seed, "runs": self.runs, "figures": NAMES.map(|(name, _)| name),
            "units": ["Mbit/s", "ms", "s", "s", "s"],
            "networks": measured.grounds.iter().map(network).collect::<Vec<_>>(),
            "default": measured.default,
            "laws": measured.variants.iter().map(law).collect::<Vec<_>>(),
        })
    }
}

fn effects_of(effects: &[Effect]) -> Value {
    let one = |effect: &Effect| json!({ "mean": effect.mean, "interval": effect.interval() });
    effects.iter().map(one).collect()
}

/// Figures do not depend on it, but time does.
fn machine() -> Value {
    let proc = |path: &str| fs::read_to_string(Path::new("/proc").join(path)).unwrap_or_default();
    let cpu = proc("cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    json!({
        "hawser": env!("CARGO_PKG_VERSION"), "kernel": proc("sys/kernel/osrelease").trim(),
        "architecture": std::env::consts::ARCH, "processor": model.map(|(_, name)| name.trim()),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
    })
}

/// All laws where none is named.
fn laws(names: &[String]) -> Result<Vec<Law>, Failure> {
    if names.is_empty() {
        return Ok(Law::all().to_vec());
    }
    let known: Vec<&str> = Law::all().iter().map(|law| law.name).collect();
    found("law", names, &known, Law::named)
}

/// What has these names, each once.
fn found<T>(
    what: &str,
    names: &[String],
    known: &[&str],
    named: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Failure> {
    let once = names.iter().enumerate().filter(|(index, name)| !names[..*index].contains(name));
    let one = |(_, name): (usize, &String)| {
        named(name).ok_or_else(|| {
            let hint = match did_you_mean(name, known) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("there are: {}", known.join(", ")),
            };
            Failure::wrong(format!("find {what} {name}: there is none of this name")).hint(hint)
        })
    };
    once.map(one).collect()
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("write {}: {error}", path.display())).hint("name another file: --json FILE")
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let hint = error.hint();
        Failure::failed(error).hint(hint)
    }
}
