//! How true emulated links are: to what was told of them, and beside the kernel's. Needs root.

mod capture;
#[path = "../common/mod.rs"]
mod common;
mod fidelity;
mod flows;
#[path = "../../../hawser-net/tests/support/forged.rs"]
mod forged;
mod gigabit;
mod judged;
mod kernel;
mod links;
mod media;
mod tcp;
mod traffic;
mod watch;
