//! A workload's options, strictly: what no one took is an error that names what exists.
//!
//! 1. Each option is taken once, with its default; a wrong value is an error that says what would be right.
//! 2. At the end nothing may be left.

use std::time::Duration;

use hawser_wire::Rate;
use hawser_wire::traffic::{Congestion, Towards};
use toml::{Table, Value};

use crate::error::LabError;
use crate::scenario::WorkloadPlan;
use crate::scenario::values::{TIMES, amount};

/// Factors of a rate's or a size's letter.
const THOUSAND: f64 = 1e3;
/// Bits a second in a Mbit/s.
const MEGABIT: f64 = 1e6;
/// Units of bytes.
const BYTES: [(&str, f64); 4] =
    [("GB", THOUSAND * THOUSAND * THOUSAND), ("MB", THOUSAND * THOUSAND), ("kB", THOUSAND), ("B", 1.0)];
const RIGHT_BYTES: &str = "bytes above zero: 1000 or \"64kB\"";

/// What is left of a plan's options, and the names of those taken. One owner.
#[derive(Debug)]
pub(crate) struct Options {
    workload: String,
    left: Table,
    known: Vec<&'static str>,
}

/// In which directions bytes go. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    Up,
    Down,
    Both,
}

impl Ways {
    pub(super) const fn all(self) -> &'static [Towards] {
        match self {
            Self::Up => &[Towards::Server],
            Self::Down => &[Towards::Client],
            Self::Both => &[Towards::Server, Towards::Client],
        }
    }
}

impl Options {
    pub(crate) fn of(plan: &WorkloadPlan) -> Self {
        Self { workload: plan.name.clone(), left: plan.options.clone(), known: Vec::new() }
    }

    /// Step 2.
    pub(crate) fn finish(self) -> Result<(), LabError> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        let known = self.known.join(", ");
        Err(self.fault(format!("no option `{name}`; there are: {known}")))
    }

    pub(crate) fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Workload { workload: self.workload.clone(), fault: fault.into() }
    }

    fn wrong(&self, name: &str, value: &Value, right: &str) -> LabError {
        self.fault(format!("option `{name}` is {value}, but takes {right}"))
    }

    pub(super) fn take(&mut self, name: &'static str) -> Option<Value> {
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

    pub(super) fn congestion(&mut self) -> Result<Congestion, LabError> {
        let all = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr].map(|each| (each.name(), each));
        self.choice("congestion", &all, Congestion::Cubic)
    }

    pub(super) fn ways(&mut self, default: Ways) -> Result<Ways, LabError> {
        self.choice("direction", &[("up", Ways::Up), ("down", Ways::Down), ("both", Ways::Both)], default)
    }

    pub(super) fn yes(&mut self, name: &'static str, default: bool) -> Result<bool, LabError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.wrong(name, &value, "true | false"))
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&mut self, name: &'static str, least: usize, default: usize) -> Result<usize, LabError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        number
            .filter(|&number| number >= least)
            .ok_or_else(|| self.wrong(name, &value, &format!("a whole number, at least {least}")))
    }

    /// A number above zero.
    pub(crate) fn number(&mut self, name: &'static str, default: f64) -> Result<f64, LabError> {
        let Some(value) = self.take(name) else { return Ok(default) };
        #[expect(clippy::cast_precision_loss, reason = "an option a person wrote")]
        let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
        number
            .filter(|&number| number > 0.0 && number.is_finite())
            .ok_or_else(|| self.wrong(name, &value, "a number above zero"))
    }

    /// Bytes: a whole number, or with a unit: `"64kB"`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of bytes")]
    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Option<u64>, LabError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let bytes = match &value {
            Value::Integer(bytes) => u64::try_from(*bytes).ok(),
            Value::String(text) => amount(text, &BYTES).map(|bytes| bytes as u64),
            _ => None,
        };
        bytes.filter(|&bytes| bytes > 0).ok_or_else(|| self.wrong(name, &value, RIGHT_BYTES)).map(Some)
    }

    /// Bytes of a list's text.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of bytes")]
    pub(super) fn bytes_of(&self, name: &str, text: &str) -> Result<u64, LabError> {
        let bytes = amount(text, &BYTES).map(|bytes| bytes as u64).filter(|&bytes| bytes > 0);
        bytes.ok_or_else(|| self.wrong(name, &Value::from(text), RIGHT_BYTES))
    }

    /// A time above zero: `"20ms"`.
    pub(super) fn time(&mut self, name: &'static str) -> Result<Option<Duration>, LabError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        self.time_of(name, &value).map(Some)
    }

    pub(super) fn time_of(&self, name: &str, value: &Value) -> Result<Duration, LabError> {
        let seconds = value.as_str().and_then(|text| amount(text, &TIMES));
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| !time.is_zero())
            .ok_or_else(|| self.wrong(name, value, "a time above zero: \"250us\", \"10ms\", \"4s\" or \"2min\""))
    }

    /// Bits a second: `"2M"`.
    pub(crate) fn rate(&mut self, name: &'static str) -> Result<Option<Rate>, LabError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let units = [("k", THOUSAND), ("M", MEGABIT), ("G", THOUSAND.powi(3)), ("", 1.0)];
        let rate = value.as_str().and_then(|text| amount(text, &units)).filter(|&bits| bits >= 1.0);
        let rate = rate.ok_or_else(|| self.wrong(name, &value, "bits a second: \"64k\", \"2M\" or \"1G\""))?;
        Ok(Some(Rate::mbit(rate / MEGABIT)))
    }

    pub(super) fn names(&mut self, name: &'static str) -> Result<Vec<String>, LabError> {
        let Some(value) = self.take(name) else { return Ok(Vec::new()) };
        let names = value.as_array().map(|names| names.iter().map(|name| name.as_str().map(str::to_owned)));
        let names = names.and_then(Iterator::collect);
        names.ok_or_else(|| self.wrong(name, &value, "a list of names"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        let options = toml::from_str(text).expect("TOML");
        let (kind, name) = ("bulk".to_owned(), "down".to_owned());
        Options::of(&WorkloadPlan { kind, name, duration: Duration::from_secs(1), options })
    }

    #[test]
    fn values_are_read_with_their_units() {
        let mut given = options("a = '1.5kB'\nb = 7\nc = '250us'\nd = '2min'\ne = '64k'\nf = ['x', 'y']\ng = 2");
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

    type Take = fn(&mut Options) -> Result<(), LabError>;

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        let table: [(&str, Take, &str); 6] = [
            ("congestion = 'vegas'", |o| o.congestion().map(drop), "\"cubic\" | \"reno\" | \"bbr\""),
            ("clients = 0", |o| o.count("clients", 1, 1).map(drop), "at least 1"),
            ("size = -1", |o| o.bytes("size").map(drop), "64kB"),
            ("wait = '5'", |o| o.time("wait").map(drop), "10ms"),
            ("rate = 5", |o| o.rate("rate").map(drop), "2M"),
            ("ping = 3", |o| o.yes("ping", true).map(drop), "true | false"),
        ];
        for (text, take, right) in table {
            let error = take(&mut options(text)).expect_err(text).to_string();
            assert!(error.contains(right) && error.contains("down"), "{error}");
        }
    }

    #[test]
    fn what_nobody_took_is_refused_by_name() {
        let mut given = options("clients = 2\nclient = 3");
        given.count("clients", 1, 1).expect("right");
        let error = given.finish().expect_err("one is left").to_string();
        assert!(error.contains("`client`") && error.contains("clients"), "{error}");
    }
}
