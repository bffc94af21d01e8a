//! The running network of a scenario, and the topology of a bond without its tunnel. Needs root.

mod common;
mod events;
mod network;
