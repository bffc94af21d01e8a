//! `hawser demo`: two links, one line, on this machine alone; or a hub, one of whose members is killed.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use clap::{Args, ValueEnum};
use hawser_lab::LabError;
use hawser_lab::demo;
use serde::Serialize;

use crate::failure::Failure;

/// Show what bonding does, in network namespaces of its own (needs root)
#[derive(Debug, Args)]
pub struct Demo {
    /// What is shown
    #[arg(value_enum, default_value_t = Show::Bond)]
    show: Show,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Go on until interrupted, and print a link to the page that shows it
    #[arg(long, conflicts_with = "json")]
    page: bool,
}

/// What can be shown. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Two links as one line, one of them cut and brought back
    Bond,
    /// A hub of two members, one of them killed under a flow
    Hub,
}

impl Demo {
    /// Runs the demo with this very executable, and prints its figures.
    pub fn run(self) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::failed(format!("find this executable: {e}")))?;
        if self.show == Show::Hub {
            return hub(&program, self.json, self.page);
        }
        if self.page {
            return demo::run_page(&program, &mut tell).map_err(failed);
        }
        print(&demo::run(&program, !self.json).map_err(failed)?, self.json)
    }
}

fn hub(program: &Path, json: bool, page: bool) -> Result<(), Failure> {
    if page {
        return Err(Failure::wrong("show a hub: it has no page").hint("sudo hawser demo hub"));
    }
    let mut tell = |line: &str| {
        if !json {
            // Where nobody reads there is nobody to tell.
            let _ = writeln!(io::stdout(), "{line}");
        }
    };
    print(&demo::run_hub(program, &mut tell).map_err(failed)?, json)
}

fn print(figures: &(impl Serialize + Display), json: bool) -> Result<(), Failure> {
    let failed = |error: String| Failure::failed(format!("write figures: {error}"));
    let text = if json {
        serde_json::to_string(figures).map_err(|error| failed(error.to_string()))?
    } else {
        format!("\n{figures}")
    };
    writeln!(io::stdout(), "{text}").map_err(|error| failed(error.to_string()))
}

fn failed(error: LabError) -> Failure {
    match error {
        LabError::NotRoot => Failure::failed(error).hint("run it with sudo: sudo hawser demo"),
        error => Failure::failed(error),
    }
}

fn tell(link: &str) {
    // Where nobody reads there is nobody to tell.
    let _ = writeln!(
        io::stdout(),
        "{link}\nTwo links, 50 and 30 Mbit/s; the first goes silent for 8 s each minute. End it with Ctrl-C."
    );
}
