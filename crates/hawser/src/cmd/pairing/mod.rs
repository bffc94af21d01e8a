//! What `serve`, `join`, `leave` and `peer` have in common.

pub mod home;
pub mod invite;
pub mod members;
pub mod service;
pub mod written;
