//! Reads a file of sections, strict TOML, with every fault in its place: for all of Hawser's files.
//!
//! 1. [`parse`] makes a tree of the text that knows its bytes, and has its sections read: [`Document::one`],
//!    [`Document::each`].
//! 2. The reader of a section asks its [`Table`] for keys: [`Table::get`], [`Table::required`], [`Table::list`]. A
//!    value is read by a function such as [`string`], [`within`] or [`keyword`].
//! 3. What nobody asked for is unknown: [`Table::finish`], and sections outside of the [schema].

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use super::error::{Fault, Faults, Read, Span, around, did_you_mean};
use super::parsers::not_a_list;
pub use super::parsers::{
    boolean, integer, keyword, kind, parsed, path, quoted, string, within, wrong_kind, zero_host_bits,
};
use super::schema::SectionSchema;
#[cfg(feature = "scion")]
pub use super::scion::{daemon, policy};
use super::{ConfigError, schema};

/// A value and where it stands. Plain data.
#[derive(Clone, Debug)]
pub struct Sited<T> {
    /// The value.
    pub value: T,
    /// Its bytes.
    pub span: Span,
}

/// The values alone.
pub fn values<T>(sited: impl IntoIterator<Item = Sited<T>>) -> Vec<T> {
    sited.into_iter().map(|sited| sited.value).collect()
}

/// Reads a text of the sections in `schema`; `file` is what its faults are reported under.
///
/// # Errors
/// Every fault found, in the order of the file. Where the text is no TOML, only what is wrong with that.
pub fn parse<T>(
    text: &str,
    file: &str,
    schema: &[SectionSchema],
    read: impl FnOnce(&mut Document<'_, '_, '_>) -> Option<T>,
) -> Result<T, Vec<ConfigError>> {
    let mut faults = Faults::new(file, text);
    match parse_into(text, schema, &mut faults, read) {
        Some(value) if faults.is_empty() => Ok(value),
        _ => Err(faults.into_sorted()),
    }
}

/// The same with the faults noted. None only where there is one.
pub fn parse_into<T>(
    text: &str,
    schema: &[SectionSchema],
    faults: &mut Faults<'_>,
    read: impl FnOnce(&mut Document<'_, '_, '_>) -> Option<T>,
) -> Option<T> {
    let tree = tree(text, faults)?;
    let mut document = Document { schema, tree: tree.get_ref(), faults };
    document.find_unknown();
    read(&mut document)
}

/// The text as a tree that knows its bytes. None where it is no TOML (then that is noted).
pub fn tree<'t>(text: &'t str, faults: &mut Faults<'_>) -> Option<Spanned<DeTable<'t>>> {
    let (tree, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        let span = error.span().unwrap_or(0..0);
        let fault = match (error.message(), text.get(span.clone()).unwrap_or_default()) {
            ("duplicate key", key) => Fault::new(format!("duplicate `{key}`")).hint("leave one of them out"),
            (message, _) => Fault::new(message),
        };
        faults.add(span, fault);
    }
    faults.is_empty().then_some(tree)
}

/// The values of `key` in the sections `[[name]]`, as they stand there, right or wrong.
pub(super) fn raw<'a, 't>(tree: &'a DeTable<'t>, name: &str, key: &str) -> impl Iterator<Item = &'a DeValue<'t>> {
    let sections = tree.get(name).and_then(|sections| sections.get_ref().as_array());
    let sections = sections.into_iter().flat_map(|sections| sections.iter());
    sections.filter_map(move |section| section.get_ref().get(key).map(Spanned::get_ref))
}

/// The sections of a file while they are read. Starts with what is unknown noted; used by one thread.
pub struct Document<'a, 't, 'f> {
    schema: &'a [SectionSchema],
    /// The file.
    pub tree: &'a DeTable<'t>,
    /// What was found wrong so far.
    pub faults: &'a mut Faults<'f>,
}

impl<'a, 't, 'f> Document<'a, 't, 'f> {
    /// The value of `key` in the section `[name]`, right or wrong.
    pub(super) fn value(&self, name: &str, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.tree.get(name)?.get_ref().get(key)
    }

    /// The section `[name]`, by its reader; another shape, and a key that it does not ask for, is a fault.
    pub fn one<T>(&mut self, name: &str, read: impl FnOnce(&mut Table<'_, 't, 'f>) -> T) -> Option<T> {
        let value = self.tree.get(name)?;
        let (span, fault) = match value.get_ref() {
            DeValue::Table(table) => {
                let table = Table::new(schema::title(self.schema, name), table, value.span(), self.faults);
                return Some(table.whole(read));
            }
            DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) && !items.is_empty() => {
                let fault = Fault::new(format!("[{name}] stands once, in single brackets"));
                (items.iter().last().map_or(value.span(), Spanned::span), fault.fix(format!("[{name}]")))
            }
            other => {
                let fault = Fault::new(format!("`{name}`: expected a section, found {}", kind(other)));
                (value.span(), fault.hint(format!("write it under a line [{name}]")))
            }
        };
        self.faults.add(span, fault);
        None
    }

    /// The sections `[[name]]`, each by their reader, as with one. None where a reader gives none.
    pub fn each<T>(
        &mut self,
        name: &str,
        mut read: impl FnMut(&mut Table<'_, 't, 'f>) -> Option<T>,
    ) -> Option<Vec<Sited<T>>> {
        let Some(value) = self.tree.get(name) else { return Some(Vec::new()) };
        let fault = match value.get_ref() {
            DeValue::Array(items) if items.iter().all(|i| i.get_ref().is_table()) => {
                let title = schema::title(self.schema, name);
                let mut found = Vec::new();
                for (table, span) in items.iter().filter_map(|item| Some((item.get_ref().as_table()?, item.span()))) {
                    let table = Table::new(title.clone(), table, span.clone(), self.faults);
                    found.push(table.whole(&mut read).map(|value| Sited { value, span }));
                }
                return found.into_iter().collect();
            }
            DeValue::Table(_) => {
                let fault = Fault::new(format!("[[{name}]] stands in double brackets, because there may be several"));
                fault.fix(format!("[[{name}]]"))
            }
            other => Fault::new(format!("`{name}`: expected sections, found {}", kind(other)))
                .hint(format!("write each under a line [[{name}]]")),
        };
        self.faults.add(value.span(), fault);
        Some(Vec::new())
    }

    /// Notes that a section must be there: `with` is what it has at least.
    pub fn demand(&mut self, name: &str, with: &str) {
        if !self.tree.contains_key(name) {
            let title = schema::title(self.schema, name);
            let fault = Fault::new(format!("missing section {title}"));
            self.faults.add(0..0, fault.hint(format!("add {title} with {with}")));
        }
    }

    fn find_unknown(&mut self) {
        let (schema, names) = (self.schema, self.schema.iter().map(|s| s.name).collect::<Vec<_>>());
        for (key, value) in self.tree.iter().filter(|(key, _)| !names.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().as_ref();
            let homes = schema.iter().filter(|section| section.keys.contains(&name));
            let homes: Vec<String> = homes.map(SectionSchema::title).collect();
            let is_section = matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_));
            let unknown = |what: &str| Fault::new(format!("unknown {what} `{name}`"));
            let fault = match did_you_mean(name, &names) {
                _ if !homes.is_empty() => Fault::new(format!("key `{name}` outside of its section"))
                    .hint(format!("it belongs under {}", homes.join(" or "))),
                Some(meant) => {
                    unknown("section").hint(format!("did you mean {}?", schema::title(schema, meant))).fix(meant)
                }
                None => {
                    unknown(if is_section { "section" } else { "key" }).hint(format!("sections: {}", names.join(", ")))
                }
            };
            self.faults.add(key.span(), fault);
        }
    }
}

/// One section while it is read. Starts with no key asked for; used by one thread.
pub struct Table<'a, 't, 'f> {
    /// As a user writes it: `[tun]`, `[[link]]`.
    title: String,
    table: &'a DeTable<'t>,
    header: Span,
    asked: Vec<&'static str>,
    /// Old names of keys, which nobody is to learn.
    old: Vec<&'static str>,
    faults: &'a mut Faults<'f>,
}

impl<'a, 't, 'f> Table<'a, 't, 'f> {
    /// A table that stands at `header`, before any key of it is asked for.
    pub fn new(title: String, table: &'a DeTable<'t>, header: Span, faults: &'a mut Faults<'f>) -> Self {
        Self { title, table, header, asked: Vec::new(), old: Vec::new(), faults }
    }

    /// The table that is the value of `key`, by its reader; another value is a fault, as `wrong` says.
    pub fn nested<T>(
        &mut self,
        key: &'static str,
        wrong: impl Fn(&DeValue<'t>) -> Fault,
        read: impl FnOnce(&mut Table<'_, 't, 'f>) -> T,
    ) -> Option<T> {
        self.get(key, |value| if value.is_table() { Ok(()) } else { Err(wrong(value)) })?;
        let value = self.table.get(key)?;
        Some(self.inner(key.to_owned(), value.get_ref().as_table()?, value.span()).whole(read))
    }

    /// A table within this one, read before this one goes on.
    pub fn inner<'b, 'x>(&'b mut self, title: String, table: &'b DeTable<'x>, header: Span) -> Table<'b, 'x, 'f> {
        Table::new(title, table, header, self.faults)
    }

    /// Where the section begins.
    pub fn header(&self) -> Span {
        self.header.clone()
    }

    /// Whether `key` stands in the section, right or wrong.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Those of `keys` that stand in the section, right or wrong.
    pub(super) fn present<'k>(&self, keys: &[&'k str]) -> Vec<&'k str> {
        keys.iter().copied().filter(|key| self.has(key)).collect()
    }

    /// The value of `key` as it stands there; it is not asked for by this.
    pub fn raw(&self, key: &str) -> Option<&'a DeValue<'t>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    /// Notes a fault of this section.
    pub fn fault(&mut self, span: Span, fault: Fault) {
        self.faults.add(span, fault);
    }

    /// Notes a fault of the section as a whole.
    pub fn here(&mut self, fault: Fault) {
        self.faults.add(self.header(), fault);
    }

    /// Notes a fault of the value of `key`; without one, of the section.
    pub fn fault_at(&mut self, key: &str, fault: Fault) {
        self.faults.add(self.table.get(key).map_or(self.header(), Spanned::span), fault);
    }

    /// Notes that the value of `key` is written otherwise today.
    pub fn warn_at(&mut self, key: &str, today: Fault) {
        self.faults.warn(self.table.get(key).map_or(self.header(), Spanned::span), today);
    }

    /// What was read of the value of `key` at `span`. None where it is wrong (then that is noted under the key's name).
    fn note<T>(&mut self, key: &str, span: Span, read: Read<T>) -> Option<Sited<T>> {
        match read {
            Ok(value) => Some(Sited { value, span }),
            Err(fault) => {
                self.faults.add(span, Fault { message: format!("`{key}`: {}", fault.message), ..fault });
                None
            }
        }
    }

    /// The value of `key`, with its place. None where it is absent, or wrong (then a fault is noted).
    pub fn optional<T>(&mut self, key: &'static str, parse: impl Fn(&DeValue<'t>) -> Read<T>) -> Option<Sited<T>> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        self.note(key, value.span(), parse(value.get_ref()))
    }

    /// The value of `key` alone.
    pub fn get<T>(&mut self, key: &'static str, parse: impl Fn(&DeValue<'t>) -> Read<T>) -> Option<T> {
        self.optional(key, parse).map(|sited| sited.value)
    }

    /// Whether `key` is true: it is not by default.
    pub fn is(&mut self, key: &'static str) -> bool {
        self.get(key, boolean).unwrap_or(false)
    }

    /// As [`Table::get`], of a key that was called `old` once.
    pub fn renamed<T>(
        &mut self,
        key: &'static str,
        old: &'static str,
        parse: impl Fn(&DeValue<'t>) -> Read<T>,
    ) -> Option<T> {
        self.old.push(old);
        let today = self.get(key, &parse);
        let Some((name, value)) = self.table.get_key_value(old) else { return today };
        if self.has(key) {
            let fault = Fault::new(format!("`{old}` is the old name of `{key}`, which is there, too"));
            self.faults.add(name.span(), fault.hint("leave it out"));
            return today;
        }
        self.faults.warn(name.span(), Fault::new(format!("`{old}` is called `{key}` today")).fix(key));
        self.note(old, value.span(), parse(value.get_ref())).map(|sited| sited.value)
    }

    /// As [`Table::optional`], but an absent key is a fault; `example` shows how to write it.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue<'t>) -> Read<T>,
    ) -> Option<Sited<T>> {
        self.demand(key, example);
        self.optional(key, parse)
    }

    /// The items of the list `key`, each with its place. None where it is absent or any item is wrong.
    pub fn list<T>(&mut self, key: &'static str, parse: impl Fn(&DeValue<'t>) -> Read<T>) -> Option<Vec<Sited<T>>> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            return self.note(key, value.span(), Err(not_a_list(value.get_ref()))).map(|list| list.value);
        };
        let read: Vec<_> = items.iter().map(|item| self.note(key, item.span(), parse(item.get_ref()))).collect();
        read.into_iter().collect()
    }

    /// As [`Table::list`], without places: an item of which there is another of the same text is a fault, `twice`.
    pub fn set<T: ToString>(
        &mut self,
        key: &'static str,
        twice: &str,
        parse: impl Fn(&DeValue<'t>) -> Read<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(key, parse)?;
        Some(self.distinct(items, twice, T::to_string))
    }

    /// The values of `items`; one of which there is another of the same `id` is a fault, `twice`.
    pub fn distinct<T, K: Ord + Clone>(&mut self, items: Vec<Sited<T>>, twice: &str, id: impl Fn(&T) -> K) -> Vec<T> {
        let mut seen = Unique::default();
        for item in &items {
            seen.claim(self, id(&item.value), item.span.clone(), twice);
        }
        values(items)
    }

    /// Notes a fault of the section where the list `key` is there, and empty.
    pub fn not_empty(&mut self, key: &str, hint: &str) {
        if self.raw(key).and_then(DeValue::as_array).is_some_and(|items| items.is_empty()) {
            self.here(Fault::new(format!("`{key}` is empty")).hint(hint));
        }
    }

    /// As [`Table::list`], but an absent or empty list is a fault.
    pub fn required_list<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue<'t>) -> Read<T>,
    ) -> Option<Vec<Sited<T>>> {
        self.demand(key, example);
        let items = self.list(key, parse)?;
        if items.is_empty() {
            self.fault_at(key, Fault::new(format!("`{key}` is empty")).hint(format!("write: {example}")));
        }
        Some(items)
    }

    fn demand(&mut self, key: &'static str, example: &str) {
        if !self.has(key) {
            let fault = Fault::new(format!("missing key `{key}` in {}", self.title));
            self.faults.add(self.header(), fault.hint(format!("add: {example}")));
        }
    }

    /// What its reader makes of it; a key that it does not ask for is a fault.
    fn whole<T>(mut self, read: impl FnOnce(&mut Table<'_, 't, 'f>) -> T) -> T {
        let value = read(&mut self);
        self.finish();
        value
    }

    /// Notes every key that nobody asked for.
    pub fn finish(self) {
        let is_known = |key: &str| self.asked.contains(&key) || self.old.contains(&key);
        for key in self.table.keys().filter(|key| !is_known(key.get_ref())) {
            let fault = Fault::new(format!("unknown key `{}` in {}", key.get_ref(), self.title));
            let fault = match did_you_mean(key.get_ref(), &self.asked) {
                Some(meant) => fault.hint(format!("did you mean `{meant}`?")).fix(meant),
                None => fault.hint(format!("keys of {}: {}", self.title, self.asked.join(", "))),
            };
            self.faults.add(key.span(), fault);
        }
    }
}

/// What may stand in a file once: the values seen so far, each with the byte it stands at. Starts empty; used by one
/// thread.
pub struct Unique<T>(BTreeMap<T, usize>);

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord + Clone> Unique<T> {
    /// Takes `value`, or notes `fault` with the line of the first.
    pub fn claim(&mut self, table: &mut Table<'_, '_, '_>, value: T, span: Span, fault: &str) {
        if let Some(&first) = self.0.get(&value) {
            let line = table.faults.line_of(first);
            table.fault(span, Fault::new(fault).hint(format!("first in line {line}")));
        } else {
            self.0.insert(value, span.start);
        }
    }

    /// The same with each of `items`.
    pub(super) fn claim_each(&mut self, table: &mut Table<'_, '_, '_>, items: &[Sited<T>], fault: &str) {
        for item in items {
            self.claim(table, item.value.clone(), item.span.clone(), fault);
        }
    }
}
