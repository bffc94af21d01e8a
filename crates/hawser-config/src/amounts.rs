//! Amounts with a unit: rates and volumes, written as `"20M"`. Steps of 1000, as providers sell them.

use toml::de::DeValue;

use super::error::Fault;
use super::reader::{kind, quoted};

/// Units and what they stand for.
const UNITS: [(char, u64); 4] = [('k', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];
/// Digits behind the point that are read: thousandths of the unit.
const DECIMALS: usize = 3;
/// The least rate, bit/s: a path's own words take a tenth of it.
const RATE_MIN: u64 = 64_000;
/// The least volume, bytes.
const VOLUME_MIN: u64 = 1_000_000;
/// Days that every month has.
const DAYS: std::ops::RangeInclusive<i64> = 1..=28;

/// A rate in bit/s, at least 64,000. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRate(pub u64);

/// A volume in bytes, at least a million. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume(pub u64);

/// A day that every month has. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthDay(pub u8);

/// An amount on a command line is none. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read amount: expected a number with a unit (k, M, G, T), 1M at least, such as 500M")]
pub struct VolumeError;

impl std::str::FromStr for Volume {
    type Err = VolumeError;

    fn from_str(text: &str) -> Result<Self, VolumeError> {
        parse(text).filter(|amount| *amount >= VOLUME_MIN).map(Volume).ok_or(VolumeError)
    }
}

pub(super) fn bit_rate(value: &DeValue<'_>) -> Result<BitRate, Fault> {
    amount(value, "bits a second", "\"20M\"", RATE_MIN).map(BitRate)
}

pub(super) fn volume(value: &DeValue<'_>) -> Result<Volume, Fault> {
    amount(value, "bytes", "\"50G\"", VOLUME_MIN).map(Volume)
}

pub(super) fn month_day(value: &DeValue<'_>) -> Result<MonthDay, Fault> {
    let day = super::reader::integer(value)?;
    let fits = u8::try_from(day).ok().filter(|_| DAYS.contains(&day));
    fits.map(MonthDay).ok_or_else(|| {
        Fault::new(format!("{day} is not between {} and {}", DAYS.start(), DAYS.end()))
            .hint("a day that every month has")
    })
}

fn amount(value: &DeValue<'_>, what: &str, example: &str, least: u64) -> Result<u64, Fault> {
    let hint = format!("a number with a unit (k, M, G, T), such as {example}");
    let text = match value {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) => {
            return Err(Fault::new(format!("{number} has no unit")).hint(hint));
        }
        _ => return Err(Fault::new(format!("expected a string, found {}", kind(value))).hint(hint)),
    };
    let amount = parse(text).ok_or_else(|| Fault::new(format!("{} is no amount", quoted(text))).hint(hint))?;
    if amount < least {
        return Err(Fault::new(format!("{} is less than {least} {what}", quoted(text))));
    }
    Ok(amount)
}

fn parse(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let (_, factor) = UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&unit))?;
    let number = text[..text.len() - unit.len_utf8()].trim_end();
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || whole.is_empty() || part.len() > DECIMALS {
        return None;
    }
    let thousandths: u64 = format!("{part:0<DECIMALS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(*factor)?.checked_add(thousandths * (factor / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_a_unit_and_at_most_three_decimals() {
        let table = [
            ("20M", Some(20_000_000)),
            ("1.5 G", Some(1_500_000_000)),
            ("64k", Some(64_000)),
            ("0.125m", Some(125_000)),
            ("2T", Some(2_000_000_000_000)),
            ("20", None),
            ("M", None),
            ("-1M", None),
            ("1.2345M", None),
            ("1.M5", None),
            ("99999999999T", None),
            ("", None),
        ];
        for (text, expect) in table {
            assert_eq!(parse(text), expect, "{text:?}");
        }
        assert_eq!(("500M".parse(), "999k".parse::<Volume>()), (Ok(Volume(500_000_000)), Err(VolumeError)));
    }
}
