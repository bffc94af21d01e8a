//! The configuration of a shim: strict TOML in, [`Config`] or every fault out.
//!
//! 1. The text is read as that of a portal is: [`hawser_config::reading`].
//! 2. `sections` reads `[shim]` and each `[[route]]`, and looks at what must fit together.
//! 3. [`load()`] does that for a file, [`read_map`] for a map of routes alone.

mod sections;
#[cfg(test)]
mod tests;
mod types;

use std::path::Path;

use hawser_config::reading::{Document, parse as parse_sections, policy};
use hawser_config::schema::{SectionSchema, repeated, single};
use hawser_config::{from_file, read_text};
use toml::de::DeTable;

pub use hawser_config::{ConfigError, LoadError};

pub(crate) use sections::end_in_txt;
pub use types::{Config, EgressCount, HostName, Local, Mode, PathManager, Prefix, Protocols, Route, To};

use sections::{Claims, Dns};

/// The port of a shim where the examples say nothing else.
pub const DEFAULT_PORT: u16 = 31_000;
/// Where `hawser shim` looks for its configuration.
pub const DEFAULT_FILE: &str = "/etc/hawser/shim.toml";
/// Where the control socket is.
pub const DEFAULT_CONTROL: &str = "/run/hawser/shim.sock";

/// A file of routes has this section alone.
const ROUTE: SectionSchema = repeated("route", &["to", "scion", "protocol", "side_by_side"]);

/// Every section and key: the readers ask for exactly these; tests hold both, and docs/shim.md, together.
#[rustfmt::skip]
pub const SCHEMA: &[SectionSchema] = &[
    single("shim", &[
        "local", "daemon", "egress", "select", "mode", "path_manager", "ipv4", "name", "map", "dns", "control",
        "layer4", "server_ports",
    ]),
    single("policy", &["sequence", "allow", "deny"]),
    ROUTE,
];

/// Reads the configuration at `path`, whose paths are relative to its folder. The map that it names is not read.
///
/// # Errors
/// [`LoadError::Read`], and [`LoadError::Faulty`] with every fault.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let (mut config, _) = from_file(path, parse)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    config.map = config.map.map(|map| folder.join(map));
    Ok(config)
}

/// Reads a file of routes alone; `dns` as in the configuration that names it.
///
/// # Errors
/// As [`load`].
pub fn read_map(path: &Path, dns: bool) -> Result<Vec<Route>, LoadError> {
    from_file(path, |text, file| parse_map(text, file, dns)).map(|(routes, _)| routes)
}

/// Whether a file is a shim's configuration, right or wrong, and not a portal's.
pub fn is_shim(path: &Path) -> bool {
    let text = read_text(path).unwrap_or_default();
    let (tree, _) = DeTable::parse_recoverable(&text);
    tree.get_ref().contains_key("shim")
}

/// Reads a configuration; `file` is what its faults are reported under.
///
/// # Errors
/// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
pub fn parse(text: &str, file: &str) -> Result<Config, Vec<ConfigError>> {
    parse_sections(text, file, SCHEMA, |file| {
        file.demand("shim", "local = \"1-ff00:0:110,10.110.0.10:31000\"");
        let shim = file.one("shim", sections::shim).flatten();
        let policy = file.one("policy", policy);
        let routes = routes(file, Dns(shim.as_ref().is_some_and(|config| config.dns)));
        Some(Config { policy: policy.unwrap_or_default(), routes: routes?, ..shim? })
    })
}

/// The same for a file of routes alone.
fn parse_map(text: &str, file: &str, dns: bool) -> Result<Vec<Route>, Vec<ConfigError>> {
    parse_sections(text, file, &[ROUTE], |file| routes(file, Dns(dns)))
}

fn routes(file: &mut Document<'_, '_, '_>, dns: Dns) -> Option<Vec<Route>> {
    let mut claims = Claims::default();
    let routes = file.each("route", |table| sections::route(table, dns, &mut claims))?;
    Some(routes.into_iter().map(|route| route.value).collect())
}
