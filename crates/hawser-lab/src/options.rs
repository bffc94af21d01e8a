//! Options of a contender or workload, strictly: what no one took is an error that names what exists.
//!
//! 1. Each option is taken once, with its default; a wrong value is an error that says what would be right.
//! 2. At the end nothing may be left.

use std::path::PathBuf;
use std::time::Duration;

use hawser_wire::Rate;
use toml::{Table, Value};

use crate::error::LabError;
use crate::scenario::values::{TIMES, amount};
use crate::scenario::{ContenderPlan, WorkloadPlan};

/// Units of bytes, and of bits a second.
const BYTES: [(&str, f64); 4] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];
const BITS: [(&str, f64); 4] = [("k", 1e3), ("M", MEGABIT), ("G", 1e9), ("", 1.0)];
/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;
/// What would be right.
const RIGHT_BYTES: &str = "bytes above zero: 1000 or \"64kB\"";
const RIGHT_TIME: &str = "a time above zero: \"250us\", \"10ms\", \"4s\" or \"2min\"";

/// What is left of a plan's options, and the names of those taken. One owner.
#[derive(Debug)]
pub(crate) struct Options {
    /// What is being done with them, and whose they are.
    action: String,
    left: Table,
    known: Vec<&'static str>,
}

impl Options {
    pub(crate) fn of_contender(plan: &ContenderPlan) -> Self {
        Self { action: format!("set up {}", plan.label), left: plan.options.clone(), known: Vec::new() }
    }

    pub(crate) fn of_workload(plan: &WorkloadPlan) -> Self {
        Self { action: format!("plan workload {}", plan.name), left: plan.options.clone(), known: Vec::new() }
    }

    /// Step 2.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        Err(self.fault(match self.known.join(", ") {
            known if known.is_empty() => format!("no option `{name}`, nor any other"),
            known => format!("no option `{name}`; there are: {known}"),
        }))
    }

    pub(crate) fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::refused(&self.action, fault)
    }

    fn wrong(&self, name: &str, value: &Value, right: &str) -> LabError {
        self.fault(format!("option `{name}` is {value}, but takes {right}"))
    }

    pub(crate) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// A name among others.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
        default: T,
    ) -> Result<T, LabError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let found = choices.iter().find(|(choice, _)| value.as_str() == Some(choice));
        let names = || choices.iter().map(|(choice, _)| format!("\"{choice}\"")).collect::<Vec<_>>().join(" | ");
        found.map(|&(_, choice)| choice).ok_or_else(|| self.wrong(name, &value, &names()))
    }

    /// One of a few words; the first is the default.
    pub(crate) fn word(&mut self, name: &'static str, words: &[&'static str]) -> Result<&'static str, LabError> {
        let choices: Vec<_> = words.iter().map(|&word| (word, word)).collect();
        self.choice(name, &choices, words.first().copied().unwrap_or_default())
    }

    pub(crate) fn string(&mut self, name: &'static str) -> Result<Option<String>, LabError> {
        self.taken(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(crate) fn path(&mut self, name: &'static str) -> Result<Option<PathBuf>, LabError> {
        Ok(self.string(name)?.map(PathBuf::from))
    }

    /// None: it says nothing of it.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, LabError> {
        self.taken(name, "true | false", Value::as_bool)
    }

    pub(crate) fn yes(&mut self, name: &'static str, default: bool) -> Result<bool, LabError> {
        Ok(self.flag(name)?.unwrap_or(default))
    }

    pub(crate) fn table(&mut self, name: &'static str) -> Result<Table, LabError> {
        Ok(self.taken(name, "a table", |value| value.as_table().cloned())?.unwrap_or_default())
    }

    /// A whole number of at most `most`.
    pub(crate) fn up_to(&mut self, name: &'static str, most: u32) -> Result<Option<u32>, LabError> {
        let number = |value: &Value| u32::try_from(value.as_integer()?).ok().filter(|&number| number <= most);
        self.taken(name, &format!("a whole number up to {most}"), number)
    }

    /// A value that is read so, where there is one.
    fn taken<T>(
        &mut self,
        name: &'static str,
        right: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, LabError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| self.wrong(name, &value, right))
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&mut self, name: &'static str, least: usize, default: usize) -> Result<usize, LabError> {
        let number = |value: &Value| usize::try_from(value.as_integer()?).ok().filter(|&number| number >= least);
        Ok(self.taken(name, &format!("a whole number, at least {least}"), number)?.unwrap_or(default))
    }

    /// A number above zero.
    pub(crate) fn number(&mut self, name: &'static str, default: f64) -> Result<f64, LabError> {
        let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        let right = |value: &Value| number(value).filter(|&number| number > 0.0 && number.is_finite());
        Ok(self.taken(name, "a number above zero", right)?.unwrap_or(default))
    }

    /// Bytes: a whole number, or with a unit: `"64kB"`.
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Option<u64>, LabError> {
        let bytes = |value: &Value| match value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok().filter(|&bytes| bytes > 0),
            Value::String(text) => bytes(text),
            _ => None,
        };
        self.taken(name, RIGHT_BYTES, bytes)
    }

    /// Bytes of a list's text.
    pub(crate) fn bytes_of(&self, name: &str, text: &str) -> Result<u64, LabError> {
        bytes(text).ok_or_else(|| self.wrong(name, &Value::from(text), RIGHT_BYTES))
    }

    /// A time above zero: `"20ms"`.
    pub(crate) fn time(&mut self, name: &'static str) -> Result<Option<Duration>, LabError> {
        self.taken(name, RIGHT_TIME, time)
    }

    pub(crate) fn time_of(&self, name: &str, value: &Value) -> Result<Duration, LabError> {
        time(value).ok_or_else(|| self.wrong(name, value, RIGHT_TIME))
    }

    /// Bits a second: `"2M"`.
    pub(crate) fn rate(&mut self, name: &'static str) -> Result<Option<Rate>, LabError> {
        let bits = |value: &Value| amount(value.as_str()?, &BITS).filter(|&bits| bits >= 1.0);
        let bits = self.taken(name, "bits a second: \"64k\", \"2M\" or \"1G\"", bits)?;
        Ok(bits.map(|bits| Rate::mbit(bits / MEGABIT)))
    }

    pub(crate) fn names(&mut self, name: &'static str) -> Result<Vec<String>, LabError> {
        let names = |value: &Value| value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect();
        Ok(self.taken(name, "a list of names", names)?.unwrap_or_default())
    }
}

fn time(value: &Value) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(amount(value.as_str()?, &TIMES)?).ok()?;
    (!time.is_zero()).then_some(time)
}

/// Bytes above zero with a unit.
fn bytes(text: &str) -> Option<u64> {
    amount(text, &BYTES).map(|bytes| bytes as u64).filter(|&bytes| bytes > 0)
}

/// How many of these a case's `x` says that it has, at most `most`; 1 where it says nothing.
pub(crate) fn case_count(x: Option<f64>, of: &str, most: u8) -> Result<u8, LabError> {
    match x {
        None => Ok(1),
        Some(x) if (1.0..=f64::from(most)).contains(&x) && x.fract() == 0.0 => Ok(x as u8),
        Some(x) => {
            let fault = format!("a case's `x` is its number of {of}, 1 to {most}, not {x}");
            Err(LabError::refused("plan workload case", fault))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::plan;

    #[test]
    fn values_are_read_with_their_units() {
        let options = "a = '1.5kB'\nb = 7\nc = '250us'\nd = '2min'\ne = '64k'\nf = ['x', 'y']\ng = 2";
        let mut given = Options::of_workload(&plan("bulk", options));
        assert_eq!(given.bytes("a").expect("right"), Some(1500));
        assert_eq!(given.bytes("b").expect("right"), Some(7));
        assert_eq!(given.time("c").expect("right"), Some(Duration::from_micros(250)));
        assert_eq!(given.time("d").expect("right"), Some(Duration::from_secs(120)));
        assert_eq!(given.rate("e").expect("right"), Some(Rate::mbit(0.064)));
        assert_eq!(given.names("f").expect("right"), ["x", "y"]);
        assert_eq!(given.number("g", 1.0).expect("right"), 2.0);
        assert_eq!(given.count("absent", 1, 9).expect("its default"), 9);
        given.finish().expect("nothing is left");
    }

    #[test]
    fn a_case_says_how_many_there_are() {
        for (x, expected) in [(None, Some(1)), (Some(8.0), Some(8)), (Some(0.0), None), (Some(9.0), None)] {
            assert_eq!(case_count(x, "paths", 8).ok(), expected, "{x:?}");
        }
        let error = case_count(Some(1.5), "paths", 8).expect_err("half a path").to_string();
        assert!(error.contains("number of paths, 1 to 8"), "{error}");
    }
}
