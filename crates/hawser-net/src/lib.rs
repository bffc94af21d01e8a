//! See the crate description.

pub mod link;
pub mod netcfg;
pub mod tun;
