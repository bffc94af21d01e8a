//! See the crate description.

pub mod netcfg;
