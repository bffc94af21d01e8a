//! Files that were damaged on their way.

use std::path::PathBuf;

use hawser_config::ConfigError;

/// Each input cut off, with a byte less, with a quote more or with a line more, one of these at each place, in turn, and
/// of each input another one first: faults point inside it.
pub fn assert_places(inputs: &[PathBuf], faults: impl Fn(&str) -> Vec<ConfigError>) {
    for (number, input) in inputs.iter().enumerate() {
        let text = std::fs::read_to_string(input).expect("it can be read");
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            let (before, after) = text.split_at(at);
            let rest = after.get(1..).unwrap_or_default();
            let damaged = match (at + number) % 4 {
                0 => before.to_owned(),
                1 => format!("{before}{rest}"),
                2 => format!("{before}\"{rest}"),
                _ => format!("{before}ö\n{after}"),
            };
            for error in faults(&damaged) {
                assert!(damaged.get(error.span.clone()).is_some(), "{error} at {:?} in\n{damaged}", error.span);
                assert!(error.line <= damaged.lines().count() + 1, "{error}");
            }
        }
    }
}
