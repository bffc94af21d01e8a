//! `[log]`: how the portal says what happens. It is read by itself, before everything else: what is wrong with the rest is said in
//! that format.

use std::path::Path;

use super::error::Faults;
use super::reader::Table;
use super::values::LogFormat;
use super::{open, parsers::keyword, read_text, reading, shape};

/// The section.
pub(super) fn read(mut table: Table<'_, '_, '_>) -> LogFormat {
    let format = table.optional("format", |v| keyword::<LogFormat>("log.format", v));
    table.finish();
    format.map_or(LogFormat::Text, |format| format.value)
}

/// The format that the configuration at `path` asks for; lines where it cannot be read, or has faults there.
pub fn log_format(path: &Path) -> LogFormat {
    let Ok(text) = read_text(path) else { return LogFormat::Text };
    let mut faults = Faults::new("", &text);
    let Some(tree) = reading::tree(&text, &mut faults) else { return LogFormat::Text };
    let section = shape::single(tree.get_ref(), "log", &mut faults);
    section.map_or(LogFormat::Text, |(table, span)| read(open("log", table, span, &mut faults)))
}
