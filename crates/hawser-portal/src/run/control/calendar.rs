//! The local calendar's day.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Years in `tm_year` are counted from here (localtime_r(3)).
const TM_YEAR: i32 = 1900;

/// A day of the calendar; written as 2026-01-31. Ordered by time; plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i32,
    month: u8,
    day: u8,
}

impl Date {
    /// Today, where this machine is. The wall clock is good enough for months; nothing else looks at it.
    pub fn today() -> Date {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Date::at(seconds)
    }

    fn at(seconds: u64) -> Date {
        const NEVER: Date = Date { year: i32::MAX, month: 1, day: 1 };
        let Ok(seconds) = seconds.try_into() else { return NEVER };
        // SAFETY: `tm` is plain numbers and a pointer, for which zeroes are valid.
        let mut parts: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values of the right types; the call keeps neither.
        let done = unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
        if done.is_null() {
            return NEVER;
        }
        let small = |part: libc::c_int| u8::try_from(part).unwrap_or(1);
        Date { year: parts.tm_year + TM_YEAR, month: small(parts.tm_mon) + 1, day: small(parts.tm_mday) }
    }

    /// The last `day` of a month that was not after this one.
    pub fn month_since(self, day: u8) -> Date {
        match (self.day >= day, self.month) {
            (true, _) => Date { day, ..self },
            (false, 1) => Date { year: self.year - 1, month: 12, day },
            (false, month) => Date { month: month - 1, day, ..self },
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Text that is no date.
#[derive(Debug, thiserror::Error)]
#[error("read date: not like 2026-01-31")]
pub struct NoDate;

impl FromStr for Date {
    type Err = NoDate;

    fn from_str(text: &str) -> Result<Self, NoDate> {
        let mut parts = text.splitn(3, '-');
        let mut next = || parts.next().ok_or(NoDate);
        let (year, month, day) = (next()?, next()?, next()?);
        let year = year.parse().map_err(|_| NoDate)?;
        let small = |text: &str, most: u8| text.parse().ok().filter(|part| (1..=most).contains(part)).ok_or(NoDate);
        Ok(Date { year, month: small(month, 12)?, day: small(day, 31)? })
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().expect("a date")
    }

    #[test]
    fn a_month_begins_on_its_day() {
        let table = [
            ("2026-03-10", 10, "2026-03-10"),
            ("2026-03-09", 10, "2026-02-10"),
            ("2026-03-31", 1, "2026-03-01"),
            ("2026-01-05", 28, "2025-12-28"),
        ];
        for (today, day, since) in table {
            assert_eq!(date(today).month_since(day), date(since), "{today}");
        }
    }

    #[test]
    fn a_date_reads_back_and_what_is_none_does_not() {
        assert_eq!(date("2026-02-03").to_string(), "2026-02-03");
        for text in ["", "2026", "2026-02", "2026-13-01", "2026-02-32", "2026-02-00", "x-1-1"] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_system_knows_the_day() {
        // Noon of 2 January 1970 in Greenwich: no zone is more than 14 hours off.
        let day = Date::at(36 * 3_600);
        assert!([date("1970-01-01"), date("1970-01-02"), date("1970-01-03")].contains(&day), "{day}");
        assert!(Date::today() > date("2024-01-01"));
    }
}
