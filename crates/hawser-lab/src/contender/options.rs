//! A contender's options, read one by one: what nobody read is an error that names what there is.

use std::path::PathBuf;

use toml::{Table, Value};

use crate::error::LabError;
use crate::scenario::ContenderPlan;

/// The options of a plan, while a contender reads them. Starts whole; one owner.
pub(crate) struct Options<'a> {
    plan: &'a ContenderPlan,
    /// Those that the contender knows.
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(crate) const fn new(plan: &'a ContenderPlan) -> Self {
        Self { plan, known: Vec::new() }
    }

    /// An error about an option.
    pub(crate) fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Option { contender: self.plan.label.clone(), fault: fault.into() }
    }

    /// Any value.
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        self.plan.options.get(key)
    }

    /// A string, where there is one.
    pub(crate) fn string(&mut self, key: &'static str) -> Result<Option<String>, LabError> {
        self.read(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A file, where there is one.
    pub(crate) fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, LabError> {
        Ok(self.string(key)?.map(PathBuf::from))
    }

    /// One of a few words; the first is the default.
    pub(crate) fn word(&mut self, key: &'static str, words: &[&'static str]) -> Result<&'static str, LabError> {
        let expected = format!("one of {}", words.join(", "));
        let find = |value: &Value| words.iter().copied().find(|word| value.as_str() == Some(word));
        Ok(self.read(key, &expected, find)?.unwrap_or_else(|| words.first().copied().unwrap_or_default()))
    }

    /// Yes or no, where it is said.
    pub(crate) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, LabError> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A whole number up to this one, where there is one.
    pub(crate) fn number(&mut self, key: &'static str, most: u32) -> Result<Option<u32>, LabError> {
        let number = |value: &Value| u32::try_from(value.as_integer()?).ok().filter(|number| *number <= most);
        self.read(key, &format!("a whole number up to {most}"), number)
    }

    /// A table, where there is one.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<&'a Table>, LabError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(other) => Err(self.fault(format!("{key} is {other}, not a table"))),
        }
    }

    /// The end: nothing may be left.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        let stranger = self.plan.options.keys().find(|key| !self.known.contains(&key.as_str()));
        match stranger {
            None => Ok(()),
            Some(key) if self.known.is_empty() => {
                Err(self.fault(format!("{} has no option {key:?}, nor any other", self.plan.kind)))
            }
            Some(key) => {
                let known = self.known.join(", ");
                Err(self.fault(format!("{} has no option {key:?}, but: {known}", self.plan.kind)))
            }
        }
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, LabError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let understood = read(value);
        understood.map(Some).ok_or_else(|| self.fault(format!("{key} is {value}, not {expected}")))
    }
}
