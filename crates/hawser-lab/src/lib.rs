//! Repeatable experiments on emulated networks, with real portals as processes.
//!
//! `hawser lab`, from a file to a page:
//!
//! 1. [`scenario`] reads the file: network, contenders, workloads, events, cases, tables, plots.
//! 2. [`experiment`] chooses the next run, and keeps what it found. For each run
//! 3. [`stage`] builds the network, a [`contender`] is set up on it, a [`workload`] sends.
//! 4. [`report`] makes tables and plots of what is kept, and compares two of them.
//!
//! [`drives`]: generated drives against recorded ones, which `hawser lab drives` prints.
//!
//! `hawser demo`:
//!
//! 1. [`cleanup`] sees to it that nothing is left behind, whatever ends the program.
//! 2. [`topology`] builds the bond: client, local portal, links, routers, remote portal, server.
//! 3. [`portals`] runs two portals in it.
//! 4. [`demo`] is what `hawser demo` shows; [`hub`] is where hubs are tried, by it and by tests.
//!
//! `probe`: scenarios that bring a network or programs of their own.
//! [`scion_bench`]: `hawser scion bench`, the lab's scenarios of SCION end hosts.
//! `shila`: the lab's scenarios of the shim. [`shim`]: shims on hosts of such a network, and what is done with them.
//! [`localnet`]: a SCION network of the reference services, for tests, measurements and `hawser scion net`.
//! [`go`] builds what is written in Go.
//!
//! Everything here needs root.

mod attack;
mod background;
pub mod cleanup;
pub mod contender;
pub mod demo;
pub mod drives;
mod error;
pub mod experiment;
pub mod go;
pub mod hub;
pub mod localnet;
mod options;
pub mod portals;
mod probe;
mod process;
mod quic;
pub mod report;
pub mod scenario;
pub mod scion_bench;
pub mod scion_bond;
mod shila;
pub mod shim;
pub mod stage;
mod text;
pub mod topology;
mod wait;
pub mod workload;

pub use error::LabError;
