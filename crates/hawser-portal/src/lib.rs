//! A running portal, and what is said to it: its configuration and its control socket.

pub mod api;
pub mod config;
pub mod limits;
pub mod offload;
pub mod pairing;
pub mod run;
