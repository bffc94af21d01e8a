//! A running portal, and what is said to it: its keys and its control socket.

pub mod api;
pub mod keys;
pub mod limits;
#[cfg(feature = "metrics")]
pub mod metrics;
mod monitor;
pub mod pairing;
pub mod probe;
pub mod run;
#[cfg_attr(not(feature = "web"), path = "web_absent.rs")]
pub mod web;
