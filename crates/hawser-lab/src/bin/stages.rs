//! `stages`: builds the network of every case of the scenarios that come with Hawser, and takes each down again.
//!
//! 1. The scenarios of the groups or names given, or all. 2. Each case's network is built. 3. What could not be built
//!    is told; exit status 1 where there was any.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use hawser_lab::scenario::{self, Case, Scenario};
use hawser_lab::stage::Stage;
use hawser_lab::{LabError, cleanup};

/// Build the network of every case of the scenarios (needs root)
#[derive(Debug, Parser)]
#[command(name = "stages")]
struct Arguments {
    /// Groups or names; without any, all
    names: Vec<String>,
}

fn main() -> ExitCode {
    let fault = match Arguments::parse().build() {
        Ok(0) => return ExitCode::SUCCESS,
        Ok(failed) => format!("{failed} networks could not be built"),
        Err(error) => error.to_string(),
    };
    eprintln!("error: {fault}");
    ExitCode::FAILURE
}

impl Arguments {
    /// Steps 1 to 3: how many could not be built.
    fn build(&self) -> Result<usize, Box<dyn Error>> {
        cleanup::start()?;
        let wanted = |scenario: &Scenario| {
            self.names.is_empty() || self.names.iter().any(|name| [&scenario.name, &scenario.group].contains(&name))
        };
        let mut failed = 0;
        for scenario in scenario::all()?.iter().filter(|scenario| wanted(scenario)) {
            for case in &scenario.cases {
                let name = format!("{} {}", scenario.name, case.name);
                match built(scenario, case) {
                    Ok(took) => println!("{name:<48} {} links, {:.1} s", case.links.len(), took.as_secs_f64()),
                    Err(error) => {
                        failed += 1;
                        println!("{name:<48} {error}");
                    }
                }
            }
        }
        Ok(failed)
    }
}

/// Step 2: how long it took.
fn built(scenario: &Scenario, case: &Case) -> Result<Duration, LabError> {
    let start = Instant::now();
    Stage::build(&scenario.network, case, scenario.repeat.seed)?;
    Ok(start.elapsed())
}
