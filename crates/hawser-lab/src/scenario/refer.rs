//! Names that must exist, and those that must not exist twice.

use hawser_config::reading::{Fault, Faults, Sited, Table, quoted};
use toml::de::{DeTable, DeValue};

use super::values;

/// Names in the order of the file. Plain data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// As a user calls them: `link`.
    what: &'static str,
    /// In order.
    pub all: Vec<String>,
}

impl Names {
    /// None yet, of this kind.
    pub fn new(what: &'static str) -> Self {
        Self { what, all: Vec::new() }
    }

    /// Adds a name, where it is not there.
    pub fn add(&mut self, name: &str) {
        if !self.has(name) {
            self.all.push(name.to_owned());
        }
    }

    /// Adds a name that was read, and gives it; a second one is a fault.
    pub fn claim(&mut self, table: &mut Table<'_, '_, '_>, name: Option<Sited<String>>) -> Option<String> {
        let Sited { value, span } = name?;
        if self.has(&value) {
            let fault = Fault::new(format!("there is a {} {} already", self.what, quoted(&value)));
            table.fault(span, fault.hint("each has a name of its own"));
            return None;
        }
        self.add(&value);
        Some(value)
    }

    /// Whether there is one.
    pub fn has(&self, name: &str) -> bool {
        self.all.iter().any(|known| known == name)
    }

    /// Reads a name that exists.
    pub fn read(&self, value: &DeValue<'_>) -> Result<String, Fault> {
        let name = values::text(value)?;
        if self.has(&name) {
            return Ok(name);
        }
        let known: Vec<&str> = self.all.iter().map(String::as_str).collect();
        let fault = Fault::new(format!("there is no {} {}", self.what, quoted(&name)));
        Err(fault.meant(&name, &known, || match known.is_empty() {
            true => "there is none at all".to_owned(),
            false => format!("there are: {}", known.join(", ")),
        }))
    }

    /// Reads names that exist, each once; all of them where the key is absent.
    pub fn some(&self, table: &mut Table<'_, '_, '_>, key: &'static str) -> Vec<String> {
        self.chosen(table, key).unwrap_or_else(|| self.all.clone())
    }

    /// The same, none where the key is absent or wrong.
    pub fn chosen(&self, table: &mut Table<'_, '_, '_>, key: &'static str) -> Option<Vec<String>> {
        let list = table.list(key, |value| self.read(value))?;
        let mut names: Vec<String> = Vec::new();
        for Sited { value, span } in list {
            if names.contains(&value) {
                table.fault(span, Fault::new(format!("`{key}` names {} twice", quoted(&value))));
            } else {
                names.push(value);
            }
        }
        Some(names)
    }
}

/// A section, its place, and its keys. Plain data.
pub(crate) type Section<'a, 't> = (&'a DeTable<'t>, std::ops::Range<usize>);

/// The sections under a key: `[[key]]`, or a list of tables. `title` is how users write it.
pub(crate) fn sections<'a, 't>(
    tree: &'a DeTable<'t>,
    key: &str,
    title: &str,
    faults: &mut Faults<'_>,
) -> Vec<Section<'a, 't>> {
    let Some(value) = tree.get(key) else { return Vec::new() };
    match value.get_ref() {
        DeValue::Array(items) if items.iter().all(|item| item.get_ref().is_table()) => {
            items.iter().filter_map(|item| item.get_ref().as_table().map(|table| (table, item.span()))).collect()
        }
        _ => {
            let fault = Fault::new(format!("`{key}`: expected sections, because there may be several"));
            faults.add(value.span(), fault.hint(format!("write each under a line [[{title}]]")));
            Vec::new()
        }
    }
}

/// What `read` makes of each section under a key.
pub(crate) fn each<'t, 'f, T>(
    tree: &DeTable<'t>,
    key: &str,
    title: &str,
    faults: &mut Faults<'f>,
    mut read: impl FnMut(&mut Table<'_, 't, 'f>) -> Option<T>,
) -> Vec<T> {
    let mut found = Vec::new();
    for (raw, span) in sections(tree, key, title, faults) {
        let mut table = Table::new(format!("[[{title}]]"), raw, span, faults);
        found.extend(read(&mut table));
        table.finish();
    }
    found
}

/// The section under a key: `[key]`.
pub(crate) fn section<'a, 't>(tree: &'a DeTable<'t>, key: &str, faults: &mut Faults<'_>) -> Option<Section<'a, 't>> {
    let value = tree.get(key)?;
    match value.get_ref() {
        DeValue::Table(table) => Some((table, value.span())),
        _ => {
            let fault = Fault::new(format!("`{key}`: expected one section"));
            faults.add(value.span(), fault.hint(format!("write it under a line [{key}]")));
            None
        }
    }
}
