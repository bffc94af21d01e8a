//! Whole files: each tests/config/NAME.toml must give what NAME.golden says, the parsed configuration or its faults.

use std::path::{Path, PathBuf};

use hawser_shim::config::parse;

#[path = "../../hawser-portal/tests/support/golden.rs"]
mod golden;

/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 15;

#[test]
fn every_configuration_gives_its_golden_answer() {
    golden::assert_golden(&inputs(), |text, name| match parse(text, name) {
        Ok(config) => format!("{config:#?}\n"),
        Err(errors) => golden::render(&errors),
    });
}

#[test]
fn a_damaged_configuration_is_answered_with_places_inside_it() {
    for input in inputs() {
        let text = std::fs::read_to_string(&input).expect("it can be read");
        for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
            let (before, after) = text.split_at(at);
            let rest = after.get(1..).unwrap_or_default();
            for damaged in [
                before.to_owned(),
                format!("{before}{rest}"),
                format!("{before}\"{rest}"),
                format!("{before}ö\n{after}"),
            ] {
                for error in parse(&damaged, "damaged.toml").err().into_iter().flatten() {
                    assert!(damaged.get(error.span.clone()).is_some(), "{error} at {:?} in\n{damaged}", error.span);
                    assert!(error.line <= damaged.lines().count() + 1, "{error}");
                }
            }
        }
    }
}

fn inputs() -> Vec<PathBuf> {
    golden::inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config"), PAIRS_MIN)
}
