//! Whole files: each tests/config/NAME.toml must give what NAME.golden says, the parsed configuration or its faults.

use std::path::{Path, PathBuf};

use hawser_shim::config::parse;

#[path = "../../hawser-config/tests/support/damaged.rs"]
mod damaged;
#[path = "../../hawser-config/tests/support/golden.rs"]
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
    damaged::assert_places(&inputs(), |damaged| parse(damaged, "damaged.toml").err().unwrap_or_default());
}

fn inputs() -> Vec<PathBuf> {
    golden::inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config"), PAIRS_MIN)
}
