//! `hawser scion net`: a SCION network on this machine, from a topology file.
//!
//! 1. `up` reads the topology, has the reference services built, and leaves a process in the background that keeps the
//!    network. 2. `status`, `cut`, `restore` and `down` ask that process.

use std::path::PathBuf;
use std::process::Command;

use clap::{Args, Subcommand};
use hawser_lab::localnet::supervise::{self, Order};
use hawser_lab::localnet::{self, Status, Topology};
use hawser_lab::{LabError, cleanup};

use super::super::lab::told;
use super::super::output::print;
use crate::failure::Failure;

mod table;

/// Run a SCION network on this machine, in network namespaces of its own (needs root)
#[derive(Debug, Args)]
pub struct Net {
    #[command(subcommand)]
    task: Task,
}

/// What it can be told to do.
#[derive(Debug, Subcommand)]
enum Task {
    /// Bring a network up; it goes on in the background until `down`
    Up(Up),
    /// End a network, and remove all of it
    Down(Which),
    /// Show a network's hosts, processes, paths and links
    Status {
        #[command(flatten)]
        which: Which,
        /// Print one JSON object and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Take a link down at both ends
    Cut(OneLink),
    /// Bring a link back
    Restore(OneLink),
    /// Build the reference services (with go, once), and change nothing else
    Build,
    /// Keep a network: what `up` leaves in the background
    #[command(hide = true)]
    Keep(Up),
}

/// A network that is to be.
#[derive(Debug, Args)]
struct Up {
    /// The topology: a file, or one that comes with Hawser: two-cores, six-as
    #[arg(value_name = "FILE")]
    topology: String,
    /// Wait until there are paths between all its ASes
    #[arg(long)]
    wait: bool,
    /// This many parallel links, where the topology has a `count` [default: as the topology says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    links: Option<u8>,
    /// What to call it, where several run [default: as the topology is called]
    #[arg(long)]
    name: Option<String>,
}

/// A network that runs.
#[derive(Debug, Args)]
struct Which {
    /// Its name [default: the only one that runs]
    name: Option<String>,
}

/// A link of a network that runs.
#[derive(Debug, Args)]
struct OneLink {
    /// The link
    link: String,
    /// The network's name [default: the only one that runs]
    name: Option<String>,
}

impl Net {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        match self.task {
            Task::Up(up) => up.run(),
            Task::Keep(up) => up.keep(),
            Task::Down(which) => which.ask(&Order::Down).map(|_| ()),
            Task::Status { which, json } => status(&which, json),
            Task::Cut(OneLink { link, name }) => Which { name }.ask(&Order::Cut(link)).map(|_| ()),
            Task::Restore(OneLink { link, name }) => Which { name }.ask(&Order::Restore(link)).map(|_| ()),
            Task::Build => build().map(|_| ()),
        }
    }
}

impl Up {
    /// Step 1.
    fn run(self) -> Result<(), Failure> {
        let name = self.topology()?.name;
        if !rustix::process::geteuid().is_root() {
            let hint = format!("run it with sudo: sudo hawser scion net up {}", self.topology);
            return Err(Failure::failed(LabError::NotRoot).hint(hint));
        }
        build()?;
        let program = std::env::current_exe().map_err(|e| Failure::failed(format!("find this executable: {e}")))?;
        let mut command = Command::new(program);
        command.args(["scion", "net", "keep", &self.topology, "--name", &name]);
        command.args(self.links.map(|links| format!("--links={links}")));
        let ready = supervise::bring_up(command, self.wait).map_err(told)?;
        let how = ready.map_or_else(|| "is starting".to_owned(), |seconds| format!("is up, after {seconds:.1} s"));
        print(&format!("{name} {how}: hawser scion net status {name}\n"))
    }

    /// In the background: its standard output goes to `up`.
    fn keep(&self) -> Result<(), Failure> {
        let topology = self.topology()?;
        let services = build()?;
        cleanup::start()
            .and_then(|()| supervise::keep(&topology, &services))
            .inspect_err(supervise::tell_failure)
            .map_err(told)
    }

    fn topology(&self) -> Result<Topology, Failure> {
        let topology = Topology::named(&self.topology, self.links)?;
        Ok(Topology { name: self.name.clone().unwrap_or(topology.name), ..topology })
    }
}

impl Which {
    /// Step 2.
    fn ask(&self, order: &Order) -> Result<Option<Status>, Failure> {
        supervise::ask(&self.name()?, order).map_err(told)
    }

    fn name(&self) -> Result<String, Failure> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        match supervise::running().map_err(told)?.as_slice() {
            [name] => Ok(name.clone()),
            [] => Err(Failure::failed("find the network: none is up").hint("hawser scion net up two-cores")),
            names => {
                Err(Failure::wrong("find the network: several are up").hint(format!("name one: {}", names.join(", "))))
            }
        }
    }
}

fn status(which: &Which, json: bool) -> Result<(), Failure> {
    let Some(status) = which.ask(&Order::Status)? else {
        return Err(Failure::failed("read the network's status: it answered something else"));
    };
    if !json {
        return print(&table::of(&status));
    }
    let text = serde_json::to_string(&status).map_err(|e| Failure::failed(format!("write the status: {e}")))?;
    print(&(text + "\n"))
}

fn build() -> Result<PathBuf, Failure> {
    localnet::services().map_err(told)
}
