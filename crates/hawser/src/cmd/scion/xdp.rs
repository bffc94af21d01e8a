//! `hawser scion xdp`: the dispatcher bypass of this network namespace.
//!
//! 1. `attach` puts the program on interfaces, where it stays when the command has ended; ports of the command line go
//!    on the whitelist first. 2. `status` shows interfaces, ports and counters. 3. `detach` takes the program off.

mod table;

use std::io::{self, Write};
use std::num::NonZeroU16;

use clap::{Args, Subcommand, ValueEnum};
use hawser_scion::xdp::{self, Attached, Bypass, Wanted, XdpError};

use crate::failure::Failure;

/// Take packets for the dispatcher's port straight to their applications (needs root)
#[derive(Debug, Args)]
pub struct Xdp {
    #[command(subcommand)]
    task: Task,
}

/// What it can be told to do.
#[derive(Debug, Subcommand)]
enum Task {
    /// Put the bypass on interfaces; it stays there until `detach`
    Attach(Attach),
    /// Take the bypass off
    Detach {
        /// The interfaces [default: all]
        #[arg(value_name = "IFACE")]
        interfaces: Vec<String>,
    },
    /// Show where the bypass runs, for which ports, and what it has counted
    Status {
        /// Print one JSON object and nothing else
        #[arg(long)]
        json: bool,
    },
}

/// Where the bypass is to be, and for whom.
#[derive(Debug, Args)]
struct Attach {
    /// The interfaces that SCION packets come in by
    #[arg(value_name = "IFACE", required = true)]
    interfaces: Vec<String>,
    /// Where the program runs
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    mode: Mode,
    /// A port of an application that knows nothing of the bypass; may be given several times
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<NonZeroU16>,
    /// Replace another program on the interface
    #[arg(long)]
    force: bool,
}

/// Where the program runs, as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// In the driver, or in the kernel where the driver runs no programs
    Auto,
    /// In the driver
    Native,
    /// In the kernel
    Generic,
}

impl Xdp {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        match self.task {
            Task::Attach(attach) => attach.run(),
            Task::Detach { interfaces } => detach(&interfaces),
            Task::Status { json } => status(json),
        }
    }
}

impl Attach {
    /// Step 1. What was attached before a failure stays, and was told.
    fn run(self) -> Result<(), Failure> {
        let mut bypass = Bypass::load().map_err(told)?;
        for &port in &self.ports {
            bypass.allow(port).map_err(told)?;
        }
        for interface in &self.interfaces {
            let attached = bypass.attach(interface, self.mode.into(), self.force).map_err(told)?;
            print(&line(interface, &attached))?;
        }
        Ok(())
    }
}

/// Step 2.
fn status(json: bool) -> Result<(), Failure> {
    let status = xdp::status().map_err(told)?;
    print(&if json { table::json(&status) } else { table::render(&status) })
}

/// Step 3.
fn detach(interfaces: &[String]) -> Result<(), Failure> {
    let done = xdp::detach(interfaces).map_err(told)?;
    let lines: String = done.iter().map(|interface| format!("{interface}: detached\n")).collect();
    print(if lines.is_empty() { "nothing was attached\n" } else { &lines })
}

/// How the program came to run on an interface.
fn line(interface: &str, attached: &Attached) -> String {
    let reason = attached.fallback.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("{interface}: {}{reason}\n", attached.mode)
}

fn told(error: XdpError) -> Failure {
    let hint = match &error {
        XdpError::NotPermitted { .. } | XdpError::Mount { .. } => Some("run it as root: sudo hawser scion xdp"),
        XdpError::Hidden { .. } => Some("outside of `ip netns exec`: mount -t bpf bpf /sys/fs/bpf"),
        XdpError::NoInterface { .. } => Some("see what there is: ip link"),
        XdpError::NotNative { .. } => Some("attach it in the kernel: --mode generic"),
        XdpError::Occupied { .. } => Some("replace that program: --force"),
        XdpError::OtherVersion { .. } => Some("take the other version's off first: hawser scion xdp detach"),
        _ => None,
    };
    Failure::hinted(hint, error)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads only the first lines (`| head`) has what they wanted.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(format!("print: {error}"))),
        _ => Ok(()),
    }
}

impl From<Mode> for Wanted {
    fn from(mode: Mode) -> Wanted {
        match mode {
            Mode::Auto => Wanted::Auto,
            Mode::Native => Wanted::Native,
            Mode::Generic => Wanted::Generic,
        }
    }
}
