//! Tables and figures for people.

use std::fmt::Write as _;

/// Where a column's cells stand. Plain value.
#[derive(Clone, Copy, PartialEq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows with every column as wide as its widest cell, indented by two.
pub fn aligned<const COLUMNS: usize>(text: &mut String, aligns: [Align; COLUMNS], rows: &[[String; COLUMNS]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    for row in rows {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(widths).zip(aligns) {
            let _ = match align {
                Align::Left => write!(line, "  {cell:<width$}"),
                Align::Right => write!(line, "  {cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Bytes in binary units (IEC 80000-13), three or four digits.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    const STEP: f64 = 1024.0;
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / STEP;
    let mut unit = 0;
    while value >= STEP && unit + 1 < UNITS.len() {
        value /= STEP;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Seconds as the two largest units.
pub fn duration(seconds: f64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let s = seconds.max(0.0) as u64;
    match s {
        s if s < MINUTE => format!("{s} s"),
        s if s < HOUR => format!("{} min {} s", s / MINUTE, s % MINUTE),
        s if s < DAY => format!("{} h {} min", s / HOUR, s % HOUR / MINUTE),
        s => format!("{} d {} h", s / DAY, s % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_fits() {
        let table = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (48 << 20, "48.0 MiB"),
            (u64::MAX, "16.0 EiB"),
        ];
        for (count, expect) in table {
            assert_eq!(bytes(count), expect);
        }
    }

    #[test]
    fn durations_have_two_units() {
        let table = [
            (0.0, "0 s"),
            (59.9, "59 s"),
            (61.0, "1 min 1 s"),
            (3_600.0, "1 h 0 min"),
            (200_000.0, "2 d 7 h"),
            (-1.0, "0 s"),
        ];
        for (seconds, expect) in table {
            assert_eq!(duration(seconds), expect);
        }
    }
}
