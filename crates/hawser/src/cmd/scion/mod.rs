//! `hawser scion`: the commands around SCION, one file each.

mod ask;
#[cfg(feature = "lab")]
mod bench;
#[cfg(feature = "lab")]
mod blast;
mod bulk;
#[cfg(feature = "lab")]
mod net;
mod paths;
mod xdp;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// SCION: paths, file transfer, the dispatcher bypass, test networks, measurements
#[derive(Debug, Args)]
pub struct Scion {
    #[command(subcommand)]
    task: Task,
}

/// What `hawser scion` can be told to do.
#[derive(Debug, Subcommand)]
enum Task {
    /// Run a SCION network on this machine, in network namespaces of its own (needs root)
    #[cfg(feature = "lab")]
    Net(net::Net),
    /// List the paths to an AS, and which of them are best
    Paths(paths::Paths),
    /// Send files over several paths at once
    Send(bulk::send::Send),
    /// Take files that are sent so
    Receive(bulk::receive::Receive),
    /// Take packets for the dispatcher's port straight to their applications (needs root)
    Xdp(xdp::Xdp),
    /// Measure how fast end hosts are over SCION (needs root)
    #[cfg(feature = "lab")]
    Bench(bench::Bench),
    /// One end of a measurement
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    Blast(blast::Blast),
}

impl Scion {
    /// Does what it was told.
    pub fn run(self) -> Result<(), Failure> {
        match self.task {
            #[cfg(feature = "lab")]
            Task::Net(net) => net.run(),
            Task::Paths(paths) => paths.run(),
            Task::Send(send) => send.run(),
            Task::Receive(receive) => receive.run(),
            Task::Xdp(xdp) => xdp.run(),
            #[cfg(feature = "lab")]
            Task::Bench(bench) => bench.run(),
            #[cfg(feature = "lab")]
            Task::Blast(blast) => blast.run(),
        }
    }
}
