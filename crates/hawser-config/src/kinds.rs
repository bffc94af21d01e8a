//! Reads a value of one of TOML's kinds; each function gives a fault that says how to write it.

use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::error::Fault;
use super::words::Keyword;

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

/// Reads a string that `parse` takes; of others the fault is that they are `wrong`, such as "is no host name".
pub fn parsed<T>(value: &DeValue<'_>, parse: impl Fn(&str) -> Option<T>, wrong: &str, hint: &str) -> Result<T, Fault> {
    string(value, |text| parse(text).ok_or_else(|| Fault::new(format!("{} {wrong}", quoted(text))).hint(hint)))
}

/// Reads one of the words of `K`.
pub fn keyword<K: Keyword>(value: &DeValue<'_>) -> Result<K, Fault> {
    keyword_but(value, &[])
}

/// Reads one of the words of `K`, but for those that this version does not carry out.
pub fn keyword_but<K: Keyword>(value: &DeValue<'_>, later: &[K]) -> Result<K, Fault> {
    string(value, |word| {
        let carried = K::WORDS.iter().filter(|(value, _)| !later.contains(value));
        let carried: Vec<&str> = carried.map(|(_, word)| *word).collect();
        match K::from_word(word) {
            Some(keyword) if !later.contains(&keyword) => Ok(keyword),
            Some(_) => Err(not_supported(word).hint(format!("supported: {}", carried.join(", ")))),
            None => {
                let fault = Fault::new(format!("unknown value {}", quoted(word)));
                Err(fault.meant(word, &carried, || format!("one of: {}", carried.join(", "))))
            }
        }
    })
}

/// The fault of something the contract knows and this version does not carry out.
pub(crate) fn not_supported(what: &str) -> Fault {
    Fault::new(format!("{what} is not supported in this version"))
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

/// Reads a whole number of `range`; `more` adds to the fault of one outside.
pub fn within<T: TryFrom<i64>>(
    value: &DeValue<'_>,
    range: RangeInclusive<i64>,
    more: impl Fn(Fault) -> Fault,
) -> Result<T, Fault> {
    let number = integer(value)?;
    let fits = T::try_from(number).ok().filter(|_| range.contains(&number));
    let (least, most) = (range.start(), range.end());
    fits.ok_or_else(|| more(Fault::new(format!("{number} is not between {least} and {most}"))))
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

/// The fault of a value of another kind.
pub fn wrong_kind(expected: &str, found: &DeValue<'_>) -> Fault {
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
