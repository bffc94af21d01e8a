//! The running network of a scenario. Needs root.

mod common;
mod events;
mod network;
mod topology;
mod watch;
