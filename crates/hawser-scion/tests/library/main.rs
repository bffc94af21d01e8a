//! Packets, path policies, files in bulk, and what a daemon says, against references and daemons that stand in.

mod bulk;
mod client;
#[path = "../common/mod.rs"]
mod common;
#[path = "../support/daemon.rs"]
mod daemon;
mod golden;
mod packet;
mod packet_properties;
mod policy;
mod service;
