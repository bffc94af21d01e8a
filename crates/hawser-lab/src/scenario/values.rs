//! Values of a scenario file: durations, rates, shares, queues, losses, names.

use std::time::Duration;

use hawser_config::Keyword;
use hawser_config::reading::{Fault, Read, did_you_mean, integer, quoted, string, wrong_kind};
use hawser_wire::{GilbertElliott, Loss, Probability, QueueDepth, Rate};
use toml::de::{DeTable, DeValue};

use super::figures::Figure;

/// The longest link name, in characters: interfaces have 15, and tunnels append to it.
pub(super) const LINK_NAME_MAX: usize = 12;
/// The longest of other names, in characters: a label of tables, not prose.
const NAME_MAX: usize = 64;
/// What a link cannot be called: the lab's own interfaces, and what sysctls mean by it.
const RESERVED: [&str; 5] = ["lo", "lan0", "up0", "all", "default"];
/// Rates, in Mbit/s: below, a packet takes a minute; above, no time that could be told.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1e6;
/// What follows a share that is of the other way's rate.
const OF_OTHER: &str = "of the other way";
/// The longest duration.
const DAY: Duration = Duration::from_secs(86_400);

/// Units of a kind, with how many of the least each is.
pub(crate) const TIMES: [(&str, f64); 4] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)];
const RATES: [(&str, f64); 3] = [("k", 1e-3), ("M", 1.0), ("G", 1e3)];
const SIZES: [(&str, f64); 3] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6)];

pub(crate) fn duration(value: &DeValue<'_>) -> Read<Duration> {
    string(value, |text| {
        let hint = "a number with a unit (us, ms, s, min), such as \"10ms\"";
        let seconds = amount(text, &TIMES).ok_or_else(|| no_amount(text, "duration", hint))?;
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|&time| time <= DAY);
        time.ok_or_else(|| Fault::new(format!("{} is more than a day", quoted(text))))
    })
}

/// A duration above zero.
pub(crate) fn some_time(value: &DeValue<'_>) -> Read<Duration> {
    duration(value).and_then(|time| if time.is_zero() { Err(Fault::new("takes no time at all")) } else { Ok(time) })
}

pub(crate) fn rate(value: &DeValue<'_>) -> Read<Rate> {
    string(value, |text| {
        let hint = "bits a second with a unit (k, M, G), such as \"50M\"";
        let mbit = amount(text, &RATES).ok_or_else(|| no_amount(text, "rate", hint))?;
        if !(RATE_MIN..=RATE_MAX).contains(&mbit) {
            return Err(Fault::new(format!("{} is no rate between 1 kbit/s and 1 Tbit/s", quoted(text))));
        }
        Ok(Rate::mbit(mbit))
    })
}

/// How fast a way is: a rate, or a part of what the other one carries on average, `"20% of the other way"`.
pub(super) fn pace(value: &DeValue<'_>) -> Read<Figure> {
    let of_other = |text: &str| amount(text.strip_suffix(OF_OTHER)?.trim_end(), &[("%", 1.0)]);
    match value.as_str().and_then(of_other) {
        Some(percent) if percent > 0.0 => Ok(Figure::ShareOfOther(percent / 100.0)),
        Some(_) => Err(Fault::new("is no rate at all").hint("a share above zero, such as \"20% of the other way\"")),
        None => rate(value).map(Figure::Rate),
    }
}

/// A number above zero.
pub(super) fn factor(value: &DeValue<'_>) -> Read<f64> {
    let number = number(value)?;
    if number > 0.0 { Ok(number) } else { Err(Fault::new(format!("{number} times is nothing"))) }
}

/// A share as a fraction.
pub(super) fn share(value: &DeValue<'_>) -> Read<f64> {
    let hint = "a percentage, such as \"1.5%\"";
    let DeValue::String(text) = value else { return Err(wrong_kind("a share", value).hint(hint)) };
    let percent = amount(text, &[("%", 1.0)]).ok_or_else(|| no_amount(text, "share", hint))?;
    Ok(percent / 100.0)
}

pub(super) fn probability(value: &DeValue<'_>) -> Read<Probability> {
    let fraction = share(value)?;
    Probability::new(fraction).ok_or_else(|| Fault::new(format!("{} % is more than all", fraction * 100.0)))
}

pub(super) fn queue(value: &DeValue<'_>) -> Read<QueueDepth> {
    string(value, |text| {
        let packets = text.strip_suffix("packets").map(str::trim_end);
        if let Some(count) = packets.and_then(|count| count.parse().ok()).filter(|&count: &u32| count > 0) {
            return Ok(QueueDepth::Packets(count));
        }
        if let Some(bytes) = amount(text, &SIZES) {
            // An amount is not negative, and saturates.
            return Ok(QueueDepth::Bytes(bytes as u64));
        }
        let hint = "\"100ms\" of the rate, \"64kB\" or \"100 packets\"";
        duration(value).map(QueueDepth::Time).map_err(|_| no_amount(text, "queue", hint))
    })
}

pub(super) fn loss(value: &DeValue<'_>) -> Read<Loss> {
    let hint = "a share, such as \"1%\", or { to-bad = \"1%\", to-good = \"25%\" } for bursts";
    match value {
        DeValue::Table(table) => bursts(table),
        DeValue::String(_) => probability(value).map(Loss::Random),
        _ => Err(wrong_kind("a share", value).hint(hint)),
    }
}

/// Gilbert and Elliott's, as Gilbert had it where only changes are told: none while good, all while bad.
fn bursts(table: &DeTable<'_>) -> Read<Loss> {
    const KEYS: [&str; 4] = ["to-bad", "to-good", "in-good", "in-bad"];
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.get_ref().as_ref())) {
        let fault = Fault::new(format!("unknown key `{}` of loss in bursts", key.get_ref()));
        return Err(fault.hint(format!("keys: {}", KEYS.join(", "))));
    }
    let part = |key: &str, otherwise: Option<Probability>| match (table.get(key), otherwise) {
        (Some(value), _) => probability(value.get_ref())
            .map_err(|fault| Fault { message: format!("`{key}`: {}", fault.message), ..fault }),
        (None, Some(otherwise)) => Ok(otherwise),
        (None, None) => {
            Err(Fault::new(format!("loss in bursts lacks `{key}`")).hint("for each packet, such as \"1%\""))
        }
    };
    Ok(Loss::Bursts(GilbertElliott {
        to_bad: part("to-bad", None)?,
        to_good: part("to-good", None)?,
        lost_in_good: part("in-good", Some(Probability::NEVER))?,
        lost_in_bad: part("in-bad", Some(Probability::ALWAYS))?,
    }))
}

/// A number, whole or not.
pub(super) fn number(value: &DeValue<'_>) -> Read<f64> {
    let parsed = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    };
    let finite = parsed.filter(|number: &f64| number.is_finite());
    finite.ok_or_else(|| wrong_kind("a number", value).hint("numbers stand without quotes"))
}

/// A whole number of a range.
pub(crate) fn whole<T: TryFrom<i64>>(value: &DeValue<'_>, least: i64) -> Read<T> {
    let number = integer(value)?;
    let fits = T::try_from(number).ok().filter(|_| number >= least);
    fits.ok_or_else(|| Fault::new(format!("{number} is out of range")).hint(format!("at least {least}")))
}

/// Any text.
pub(crate) fn text(value: &DeValue<'_>) -> Read<String> {
    string(value, |text| Ok(text.to_owned()))
}

/// A label: not empty, one line, not prose.
pub(super) fn name(value: &DeValue<'_>) -> Read<String> {
    string(value, |text| match text.chars().count() {
        0 => Err(Fault::new("is empty")),
        1..=NAME_MAX if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(Fault::new(format!("is no name of at most {NAME_MAX} characters"))),
    })
}

/// What a command line names: lower case, digits, dashes.
pub(crate) fn slug(value: &DeValue<'_>) -> Read<String> {
    let name = name(value)?;
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if plain && !name.starts_with('-') {
        return Ok(name);
    }
    Err(Fault::new(format!("{} is no plain name", quoted(&name))).hint("lower case letters, digits and dashes"))
}

/// A link's name, which its interface has too.
pub(crate) fn link_name(value: &DeValue<'_>) -> Read<String> {
    string(value, |text| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if RESERVED.contains(&text) {
            return Err(Fault::new(format!("{} is taken", quoted(text))).hint("call the link otherwise"));
        }
        if (1..=LINK_NAME_MAX).contains(&text.len()) && text.chars().all(plain) && text != "." && text != ".." {
            return Ok(text.to_owned());
        }
        let fault = Fault::new(format!("{} is no name for a link", quoted(text)));
        Err(fault.hint(format!("at most {LINK_NAME_MAX} letters, digits, - _ .")))
    })
}

/// One of some words.
pub(crate) fn word<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Read<T> {
    string(value, |text| {
        words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let fault = Fault::new(format!("there is no {}", quoted(text)));
            Fault { fix: did_you_mean(text, &known).map(quoted), ..fault.hint(format!("one of: {}", known.join(", "))) }
        })
    })
}

/// One of the words of `K`.
pub(crate) fn keyword<K: Keyword>(value: &DeValue<'_>) -> Read<K> {
    let words: Vec<_> = K::WORDS.iter().map(|&(meant, word)| (word, meant)).collect();
    word(value, &words)
}

/// One of some names, as it is.
pub(super) fn one_of(value: &DeValue<'_>, names: &[&str]) -> Read<String> {
    let words: Vec<(&str, &str)> = names.iter().map(|name| (*name, *name)).collect();
    word(value, &words).map(str::to_owned)
}

/// A number with one of these units; not negative.
pub(crate) fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    Some(number.parse::<f64>().ok()? * factor)
}

fn no_amount(text: &str, what: &str, hint: &str) -> Fault {
    Fault::new(format!("{} is no {what}", quoted(text))).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> DeValue<'_> {
        DeValue::String(text.into())
    }

    #[test]
    fn durations_have_units() {
        let micros = |text: &str| duration(&value(text)).map(|time| time.as_micros()).ok();
        let table = [
            ("250us", Some(250)),
            ("10ms", Some(10_000)),
            ("1.5 ms", Some(1_500)),
            ("4s", Some(4_000_000)),
            ("2min", Some(120_000_000)),
            ("0s", Some(0)),
            ("24 h", None),
            ("10", None),
            ("-1s", None),
            ("1e3s", None),
            ("ms", None),
            ("2000min", None),
        ];
        for (text, expected) in table {
            assert_eq!(micros(text), expected, "{text}");
        }
        assert!(some_time(&value("0ms")).is_err());
    }

    #[test]
    fn rates_shares_and_queues_have_units() {
        assert_eq!(rate(&value("50M")).ok(), Some(Rate::mbit(50.0)));
        assert_eq!(rate(&value("1.5G")).ok(), Some(Rate::mbit(1500.0)));
        for wrong in ["50", "50 Mbit", "0k", "2000000G", ""] {
            assert!(rate(&value(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(share(&value("1.5%")).ok(), Some(0.015));
        for wrong in ["1.5", "101%", "-1%"] {
            assert!(probability(&value(wrong)).is_err(), "{wrong}");
        }
        let table = [
            ("100ms", Some(QueueDepth::Time(Duration::from_millis(100)))),
            ("64kB", Some(QueueDepth::Bytes(64_000))),
            ("1000 packets", Some(QueueDepth::Packets(1000))),
            ("0 packets", None),
            ("100", None),
        ];
        for (text, expected) in table {
            assert_eq!(queue(&value(text)).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_links_name_is_an_interfaces() {
        for right in ["wifi", "eth-1", "a", "Link_2.4GHz"] {
            assert!(link_name(&value(right)).is_ok(), "{right}");
        }
        for wrong in ["", "lo", "lan0", "a link", "thirteenchars", "a/b", ".", "ö"] {
            assert!(link_name(&value(wrong)).is_err(), "{wrong}");
        }
    }
}
