//! Whole files: each tests/config/NAME.toml must give what NAME.golden says, the parsed configuration or its faults.

use std::path::{Path, PathBuf};

use hawser_config::Config;

#[path = "support/damaged.rs"]
mod damaged;
#[path = "support/golden.rs"]
mod golden;

/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 30;

#[test]
fn every_configuration_gives_its_golden_answer() {
    golden::assert_golden(&inputs(), |text, name| match Config::parse(text, name) {
        Ok(config) => {
            let outdated = golden::render(&Config::outdated(text, name));
            let warned = if outdated.is_empty() { String::new() } else { format!("\nwarnings:\n{outdated}") };
            format!("{config:#?}\n{warned}")
        }
        Err(errors) => golden::render(&errors),
    });
}

#[test]
fn every_correction_is_taken_without_the_same_fault_again() {
    let faults = |text: &str| Config::parse(text, "t.toml").err().unwrap_or_default();
    for input in inputs() {
        let text = std::fs::read_to_string(input).expect("it can be read");
        for fault in faults(&text) {
            let Some(corrected) = &fault.corrected else { continue };
            let mut lines: Vec<&str> = text.lines().collect();
            lines[fault.line - 1] = corrected;
            let after = faults(&lines.join("\n"));
            assert!(after.iter().all(|e| e.message != fault.message || e.line != fault.line), "{fault:?}");
        }
    }
}

#[test]
fn a_damaged_configuration_is_answered_with_places_inside_it() {
    damaged::assert_places(&inputs(), |damaged| Config::parse(damaged, "damaged.toml").err().unwrap_or_default());
}

fn inputs() -> Vec<PathBuf> {
    golden::inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config"), PAIRS_MIN)
}
