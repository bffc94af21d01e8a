//! From a file to a configuration, and to a map.

use std::path::Path;

use hawser_config::reading::{self, Fault, Faults, Table, repeated, single, title, unknown_sections};
use hawser_config::schema::SectionSchema;
use hawser_config::{ConfigError, LoadError, read_text};
use toml::de::DeTable;

use super::SCHEMA;
use super::schema::ROUTE;
use super::sections::{self, Claims, Dns};
use super::types::{Config, Route};

/// Reads the configuration at `path`, whose paths are relative to its folder. The map that it names is not read.
///
/// # Errors
/// [`LoadError::Read`], and [`LoadError::Faulty`] with every fault.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let mut config = from_file(path, parse)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    config.map = config.map.map(|map| folder.join(map));
    Ok(config)
}

/// Reads a file of routes alone; `dns` as in the configuration that names it.
///
/// # Errors
/// As [`load`].
pub fn read_map(path: &Path, dns: bool) -> Result<Vec<Route>, LoadError> {
    from_file(path, |text, file| parse_map(text, file, dns))
}

/// Whether a file is a shim's configuration, right or wrong, and not a portal's.
pub fn is_shim(path: &Path) -> bool {
    let text = read_text(path).unwrap_or_default();
    let (tree, _) = DeTable::parse_recoverable(&text);
    tree.get_ref().contains_key("shim")
}

fn from_file<T>(path: &Path, parse: impl Fn(&str, &str) -> Result<T, Vec<ConfigError>>) -> Result<T, LoadError> {
    let text = read_text(path)?;
    let parsed = parse(&text, &path.display().to_string());
    parsed.map_err(|errors| LoadError::Faulty { path: path.to_owned(), text, errors })
}

/// Reads a configuration; `file` is what its faults are reported under.
///
/// # Errors
/// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
pub fn parse(text: &str, file: &str) -> Result<Config, Vec<ConfigError>> {
    parse_as(text, file, SCHEMA, |tree, faults| {
        let shim = single(tree, "shim", faults).map(|(t, s)| sections::shim(open("shim", t, s, faults)));
        let policy = single(tree, "policy", faults).map(|(t, s)| sections::policy(open("policy", t, s, faults)));
        let dns = Dns(shim.iter().flatten().any(|config| config.dns));
        let routes = routes(tree, dns, faults);
        if !tree.contains_key("shim") {
            let fault = Fault::new("missing section [shim]");
            faults.add(0..0, fault.hint("add [shim] with local = \"1-ff00:0:110,10.110.0.10:31000\""));
        }
        Some(Config { policy: policy.unwrap_or_default(), routes: routes?, ..shim?? })
    })
}

/// The same for a file of routes alone.
pub(super) fn parse_map(text: &str, file: &str, dns: bool) -> Result<Vec<Route>, Vec<ConfigError>> {
    parse_as(text, file, &[ROUTE], |tree, faults| routes(tree, Dns(dns), faults))
}

fn parse_as<T>(
    text: &str,
    file: &str,
    schema: &[SectionSchema],
    read: impl Fn(&DeTable<'_>, &mut Faults<'_>) -> Option<T>,
) -> Result<T, Vec<ConfigError>> {
    let mut faults = Faults::new(file, text);
    let Some(tree) = reading::tree(text, &mut faults) else { return Err(faults.into_sorted()) };
    let value = read(tree.get_ref(), &mut faults);
    unknown_sections(schema, tree.get_ref(), &mut faults);
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(faults.into_sorted()),
    }
}

fn routes(tree: &DeTable<'_>, dns: Dns, faults: &mut Faults<'_>) -> Option<Vec<Route>> {
    let mut claims = Claims::default();
    let sections = repeated(tree, "route", faults).into_iter();
    let routes: Vec<_> =
        sections.map(|(t, s)| sections::route(open("route", t, s, faults), dns, &mut claims)).collect();
    routes.into_iter().collect()
}

fn open<'a, 't, 'f>(
    name: &str,
    table: &'a DeTable<'t>,
    header: reading::Span,
    faults: &'a mut Faults<'f>,
) -> Table<'a, 't, 'f> {
    Table::new(title(SCHEMA, name), table, header, faults)
}
