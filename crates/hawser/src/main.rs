//! The `hawser` command: many links, one line.
//!
//! 1. The command line is read. 2. The command runs. 3. A failure is told on standard error, and decides the exit
//!    status.

mod cmd;
mod failure;

use std::process::ExitCode;

use clap::Parser;

/// Bonds every path between two places into one secure IP link.
#[derive(Debug, Parser)]
#[command(name = "hawser", version, about, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() -> ExitCode {
    match Arguments::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
