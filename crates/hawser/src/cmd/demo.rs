//! `hawser demo`: two links, one line, on this machine alone.

use std::io::{self, Write};

use clap::Args;
use hawser_lab::LabError;
use hawser_lab::demo;

use crate::failure::Failure;

/// Show what bonding does, in network namespaces of its own (needs root)
#[derive(Debug, Args)]
pub struct Demo {
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
    /// Go on until interrupted, and print a link to the page that shows it
    #[arg(long, conflicts_with = "json")]
    page: bool,
}

impl Demo {
    /// Runs the demo with this very executable, and prints its figures.
    pub fn run(self) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::failed(format!("find this executable: {e}")))?;
        if self.page {
            return demo::run_page(&program, &mut tell).map_err(failed);
        }
        let mut view = if self.json { Box::new(demo::Silent) } else { demo::for_stdout() };
        let figures = demo::run(&program, &mut *view).map_err(failed)?;
        let text = if self.json {
            serde_json::to_string(&figures).map_err(|e| Failure::failed(format!("write figures: {e}")))?
        } else {
            format!("\n{figures}")
        };
        writeln!(io::stdout(), "{text}").map_err(|e| Failure::failed(format!("write figures: {e}")))
    }
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
