//! `stages`: builds the network of every case of the scenarios that come with Hawser, and takes each down again.
//!
//! 1. The scenarios of the groups or names given, or all. 2. Each case's network is built. 3. What could not be built
//!    is told; exit status 1 where there was any.

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use hawser_lab::cleanup;
use hawser_lab::scenario::{self, Scenario};
use hawser_lab::stage::Stage;

/// Build the network of every case of the scenarios (needs root)
#[derive(Debug, Parser)]
#[command(name = "stages")]
struct Arguments {
    /// Groups or names; without any, all
    names: Vec<String>,
}

fn main() -> ExitCode {
    let Err(error) = Arguments::parse().build() else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

impl Arguments {
    /// Steps 1 to 3.
    fn build(&self) -> Result<(), Box<dyn Error>> {
        cleanup::start()?;
        let wanted = |scenario: &Scenario| {
            self.names.is_empty() || self.names.iter().any(|name| [&scenario.name, &scenario.group].contains(&name))
        };
        let mut failed = 0;
        for scenario in scenario::all()?.iter().filter(|scenario| wanted(scenario)) {
            for case in &scenario.cases {
                let name = format!("{} {}", scenario.name, case.name);
                let start = Instant::now();
                let said = match Stage::build(&scenario.network, case, scenario.repeat.seed).map(drop) {
                    Ok(()) => format!("{} links, {:.1} s", case.links.len(), start.elapsed().as_secs_f64()),
                    Err(error) => {
                        failed += 1;
                        error.to_string()
                    }
                };
                println!("{name:<48} {said}");
            }
        }
        if failed == 0 { Ok(()) } else { Err(format!("{failed} networks could not be built").into()) }
    }
}
