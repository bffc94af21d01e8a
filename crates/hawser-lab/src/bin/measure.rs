//! `measure`: figures that are no scenario of the lab yet, each by a command.
//!
//! 1. The case is looked up. 2. It is run, each run told on standard error. 3. The report goes to standard output, and to
//!    docs/results/ where asked. Exit status: 0 all targets reached, 1 not, 2 wrong use.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hawser_lab::measure::{Bench, CASES, Case, Probe, Report};
use hawser_lab::{LabError, cleanup};

/// What the shim's cases are called together.
const GROUP: &str = "shim";
/// Where saved results go.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");

/// Measure Hawser on emulated links (needs root)
#[derive(Debug, Parser)]
#[command(name = "measure")]
struct Arguments {
    /// The case, `all` (but `outages`, which takes minutes a run), `shim` (all of the shim), or `list`
    case: String,
    /// How often each case is run
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print JSON, one object a case
    #[arg(long)]
    json: bool,
    /// Write JSON to docs/results/CASE.json
    #[arg(long, conflicts_with = "traffic")]
    save: bool,
    /// A line for `[traffic]` of both portals, such as 'congestion = "cubic"'
    #[arg(long, value_name = "LINE")]
    traffic: Vec<String>,
    /// Of a case that lasts as long as told, such as coupling: seconds of a run
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Where the seeds of case outages begin; each run goes on where the one before ended
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// The hawser executable, where it does not lie beside this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let cases: Vec<&'static Case> = match arguments.case.as_str() {
        "list" => {
            CASES.iter().for_each(|case| println!("{:<14} {}", case.name, case.about));
            return ExitCode::SUCCESS;
        }
        "all" => CASES.iter().filter(|case| case.probe != Probe::Outages).collect(),
        GROUP => CASES.iter().filter(|case| matches!(case.probe, Probe::Shim(_))).collect(),
        name => Case::named(name).into_iter().collect(),
    };
    if cases.is_empty() {
        eprintln!("error: there is no case {}\nhint: measure list", arguments.case);
        return ExitCode::from(2);
    }
    match measure(&arguments, &cases) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let (mut words, mut cause) = (error.to_string(), error.source());
            while let Some(error) = cause {
                words += &format!(": {error}");
                cause = error.source();
            }
            eprintln!("error: {words}");
            if let Some(hint) = error.downcast_ref::<LabError>().and_then(LabError::hint) {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Steps 2 and 3: whether all targets were reached.
fn measure(arguments: &Arguments, cases: &[&'static Case]) -> Result<bool, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let bench = Bench {
        program: arguments.program.clone().unwrap_or_else(|| beside.join("hawser")),
        runs: arguments.runs,
        duration: Duration::from_secs(arguments.seconds),
        seed: arguments.seed.into(),
        traffic: arguments.traffic.join("\n"),
    };
    cleanup::start()?;
    let mut ok = true;
    for case in cases {
        let report = bench.run(case, |words| eprintln!("{words}"))?;
        ok &= report.is_ok();
        tell(arguments, case, &report)?;
    }
    Ok(ok)
}

/// Step 3.
fn tell(arguments: &Arguments, case: &Case, report: &Report) -> Result<(), Box<dyn Error>> {
    if arguments.json {
        println!("{}", report.json()?);
    } else {
        println!("{report}");
    }
    if arguments.save {
        fs::create_dir_all(RESULTS)?;
        fs::write(format!("{RESULTS}/{}.json", case.name), report.json()? + "\n")?;
    }
    Ok(())
}
