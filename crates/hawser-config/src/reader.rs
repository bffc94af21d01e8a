//! Reads one table of the file: key by key, each fault with its place, and at the end what nobody asked for.
//!
//! 1. [`Table::optional`], [`Table::required`] and [`Table::list`] ask for a key and parse its value.
//!    [`Table::renamed`] and [`Spelled`] read old keys and old values too, with a warning.
//! 2. [`Table::finish`] finds the keys that no one asked for: they are unknown.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Fault, Faults, Span, did_you_mean};

/// A value and where it stands. Plain data.
#[derive(Clone, Debug)]
pub struct Sited<T> {
    /// The value.
    pub value: T,
    /// Its bytes.
    pub span: Span,
}

/// A value that may be written in an old way. Plain data.
#[derive(Clone, Debug)]
pub struct Spelled<T> {
    /// The value.
    pub value: T,
    /// How it is written today, where it was not.
    pub outdated: Option<Fault>,
}

impl<T> Spelled<T> {
    /// As it is written today.
    pub fn new(value: T) -> Self {
        Self { value, outdated: None }
    }

    /// As it was written once.
    pub fn old(value: T, today: Fault) -> Self {
        Self { value, outdated: Some(today) }
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

    /// The text of `key`, where it is one; it is not asked for by this.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.table.get(key)?.get_ref().as_str()
    }

    /// Notes a fault of this section.
    pub fn fault(&mut self, span: Span, fault: Fault) {
        self.faults.add(span, fault);
    }

    /// The line in which byte `at` stands.
    pub fn line_of(&self, at: usize) -> usize {
        self.faults.line_of(at)
    }

    /// The value of `key`. None where it is absent, or wrong (then a fault is noted).
    pub fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Sited<T>> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        parse_sited(self.faults, key, value, &parse)
    }

    /// As [`Table::optional`], of a value that may be written in an old way.
    pub fn spelled<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'t>) -> Result<Spelled<T>, Fault>,
    ) -> Option<Sited<T>> {
        let Sited { value: Spelled { value, outdated }, span } = self.optional(key, parse)?;
        if let Some(today) = outdated {
            self.faults.warn(span.clone(), today);
        }
        Some(Sited { value, span })
    }

    /// As [`Table::optional`], of a key that was called `old` once.
    pub fn renamed<T>(
        &mut self,
        key: &'static str,
        old: &'static str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Sited<T>> {
        self.old.push(old);
        let today = self.optional(key, &parse);
        let Some((name, value)) = self.table.get_key_value(old) else { return today };
        if self.has(key) {
            let fault = Fault::new(format!("`{old}` is the old name of `{key}`, which is there, too"));
            self.faults.add(name.span(), fault.hint("leave it out"));
            return today;
        }
        self.faults.warn(name.span(), Fault::new(format!("`{old}` is called `{key}` today")).fix(key));
        parse_sited(self.faults, old, value, &parse)
    }

    /// As [`Table::optional`], but an absent key is a fault; `example` shows how to write it.
    pub fn required<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Sited<T>> {
        self.demand(key, example);
        self.optional(key, parse)
    }

    /// The items of the list `key`, each with its place. None where it is absent or any item is wrong.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Vec<Sited<T>>> {
        self.asked.push(key);
        let value = self.table.get(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.faults.add(value.span(), not_a_list(key, value.get_ref()));
            return None;
        };
        let parsed: Vec<_> = items.iter().map(|item| parse_sited(self.faults, key, item, &parse)).collect();
        parsed.into_iter().collect()
    }

    /// As [`Table::list`], but an absent or empty list is a fault.
    pub fn required_list<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Vec<Sited<T>>> {
        self.demand(key, example);
        let items = self.list(key, parse)?;
        if items.is_empty() {
            let span = self.table.get(key)?.span();
            self.faults.add(span, Fault::new(format!("`{key}` is empty")).hint(format!("write: {example}")));
        }
        Some(items)
    }

    /// As [`Table::required_list`], and one item may stand without brackets.
    pub fn one_or_more<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
    ) -> Option<Vec<Sited<T>>> {
        match self.table.get(key).map(Spanned::get_ref) {
            Some(DeValue::Array(_)) => self.required_list(key, example, parse),
            _ => self.required(key, example, parse).map(|one| vec![one]),
        }
    }

    fn demand(&mut self, key: &'static str, example: &str) {
        if !self.has(key) {
            let fault = Fault::new(format!("missing key `{key}` in {}", self.title));
            self.faults.add(self.header.clone(), fault.hint(format!("add: {example}")));
        }
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

/// Parses one value; a fault is noted under the key's name.
fn parse_sited<'t, T>(
    faults: &mut Faults<'_>,
    key: &str,
    value: &Spanned<DeValue<'t>>,
    parse: impl Fn(&DeValue<'t>) -> Result<T, Fault>,
) -> Option<Sited<T>> {
    match parse(value.get_ref()) {
        Ok(parsed) => Some(Sited { value: parsed, span: value.span() }),
        Err(fault) => {
            faults.add(value.span(), Fault { message: format!("`{key}`: {}", fault.message), ..fault });
            None
        }
    }
}

fn not_a_list(key: &str, value: &DeValue<'_>) -> Fault {
    let fault = Fault::new(format!("`{key}`: expected a list, found {}", kind(value)));
    match value {
        DeValue::String(text) => fault.hint("a list stands in brackets").fix(format!("[{}]", quoted(text))),
        _ => fault.hint("a list stands in brackets: [\"…\", \"…\"]"),
    }
}

/// Reads a string.
pub fn string<T>(value: &DeValue<'_>, parse: impl Fn(&str) -> Result<T, Fault>) -> Result<T, Fault> {
    match value {
        DeValue::String(text) => parse(text),
        DeValue::Integer(number) => {
            Err(wrong_kind("a string", value).hint("strings stand in quotes").fix(quoted(number.as_str())))
        }
        _ => Err(wrong_kind("a string", value).hint("strings stand in quotes")),
    }
}

/// Reads a whole number.
pub fn integer(value: &DeValue<'_>) -> Result<i64, Fault> {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| Fault::new(format!("{number} is out of range"))),
        DeValue::String(text) if text.parse::<i64>().is_ok() => {
            Err(wrong_kind("a number", value).hint("numbers stand without quotes").fix(text.as_ref()))
        }
        _ => Err(wrong_kind("a number", value)),
    }
}

/// Reads true or false.
pub fn boolean(value: &DeValue<'_>) -> Result<bool, Fault> {
    match value {
        DeValue::Boolean(flag) => Ok(*flag),
        DeValue::String(text) if text.parse::<bool>().is_ok() => {
            Err(wrong_kind("true or false", value).hint("these stand without quotes").fix(text.as_ref()))
        }
        _ => Err(wrong_kind("true or false", value)),
    }
}

fn wrong_kind(expected: &str, found: &DeValue<'_>) -> Fault {
    Fault::new(format!("expected {expected}, found {}", kind(found)))
}

/// What a value is, in words.
pub fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// `text` as a TOML string.
pub fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
