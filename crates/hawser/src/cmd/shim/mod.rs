//! `hawser shim`: unmodified applications over many paths.

#[cfg(feature = "scion")]
mod address;
mod program;
mod run;
#[cfg(feature = "scion")]
mod status;
#[cfg(feature = "scion")]
mod up;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Unmodified TCP and UDP applications over many paths
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Shim {
    #[cfg(feature = "scion")]
    #[command(flatten)]
    up: Option<up::Up>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program that gets MPTCP where it asks for TCP
    Run(run::Run),
    /// Show the connections of the running shim, and the paths of their flows
    #[cfg(feature = "scion")]
    Status(status::Status),
    /// Print the addresses by which servers behind a shim are reached
    #[cfg(feature = "scion")]
    Address(address::Address),
}

impl Shim {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Some(Command::Run(run)) => run.run(),
            #[cfg(feature = "scion")]
            Some(Command::Status(status)) => status.run(),
            #[cfg(feature = "scion")]
            Some(Command::Address(address)) => address.run(),
            #[cfg(feature = "scion")]
            None => self.up.map_or_else(|| Err(nothing()), up::Up::run),
            #[cfg(not(feature = "scion"))]
            None => Err(nothing()),
        }
    }
}

fn nothing() -> Failure {
    Failure::wrong("run a shim: nothing says how").hint("hawser shim --help")
}
