//! The configuration of a shim: strict TOML in, [`Config`] or every fault out.
//!
//! 1. The text is read as that of a portal is: [`hawser_config::reading`].
//! 2. `sections` reads `[shim]`, `[policy]` and each `[[route]]`, by the parsers in `values` and `ends`.
//! 3. What must fit together is looked at: a shim needs an address, a route must lead somewhere.
//! 4. [`load()`] does that for a file, [`read_map`] for a map of routes alone.

mod ends;
mod load;
mod schema;
mod sections;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub use hawser_config::{ConfigError, LoadError};

pub(crate) use ends::end_in_txt;
pub use load::{is_shim, load, parse, read_map};
pub use schema::SCHEMA;
pub use types::{Config, EgressCount, HostName, Local, Mode, PathManager, Prefix, Protocols, Route, To};

/// The port of a shim where the examples say nothing else.
pub const DEFAULT_PORT: u16 = 31_000;
/// Where `hawser shim` looks for its configuration.
pub const DEFAULT_FILE: &str = "/etc/hawser/shim.toml";
/// Where the control socket is.
pub const DEFAULT_CONTROL: &str = "/run/hawser/shim.sock";
