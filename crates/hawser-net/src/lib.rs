//! See the crate description.

pub mod link;
pub mod tun;
pub mod netcfg;
