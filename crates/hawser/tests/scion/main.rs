//! `hawser scion`, against a daemon that stands in, and in networks of the reference services. Needs root, and go to
//! build them once (`make scion`).

#![cfg(feature = "scion")]

#[cfg(feature = "lab")]
mod apps;
#[cfg(feature = "lab")]
mod bench;
#[cfg(feature = "lab")]
mod bulk;
#[cfg(feature = "lab")]
mod command;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../hawser-scion/tests/support/daemon.rs"]
mod daemon;
#[cfg(feature = "lab")]
mod links;
#[cfg(feature = "lab")]
mod net;
#[cfg(feature = "lab")]
#[path = "../support/nobody.rs"]
mod nobody;
mod paths;
mod probe;
#[cfg(feature = "lab")]
mod same_paths;
#[cfg(feature = "lab")]
mod shim;
#[cfg(feature = "lab")]
#[path = "../support/shims.rs"]
mod shims;
#[cfg(feature = "lab")]
#[path = "../support/traces.rs"]
mod traces;
mod xdp;
