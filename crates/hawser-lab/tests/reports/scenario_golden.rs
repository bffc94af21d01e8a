//! Whole files: each tests/scenario/NAME.toml must give what NAME.golden says, what was understood or its faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_lab::scenario::{FileError, Profile, Scenario, profiles};

#[path = "../../../hawser-config/tests/support/damaged.rs"]
mod damaged;
#[path = "../../../hawser-config/tests/support/golden.rs"]
mod golden;

const PAGE: &str = include_str!("../../../../docs/scenarios.md");
/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 8;

#[test]
fn every_scenario_gives_its_golden_answer() {
    let folder = folder();
    golden::assert_golden(&golden::inputs(&folder, PAIRS_MIN), |text, name| {
        match Scenario::parse(text, name, Some(&folder)) {
            Ok(scenario) => format!("{:#?}\n", Scenario { text: String::new(), traces: BTreeMap::new(), ..scenario }),
            Err(FileError::Faulty { errors, .. }) => golden::render(&errors),
            Err(error) => panic!("{error}"),
        }
    });
}

#[test]
fn a_damaged_scenario_is_answered_with_places_inside_it() {
    let folder = folder();
    // As often as there are kinds of damage: each at each place.
    damaged::assert_places(&vec![folder.join("whole.toml"); 4], |text| {
        let read = Scenario::parse(text, "damaged.toml", Some(&folder));
        let Err(FileError::Faulty { errors, .. }) = read else { return Vec::new() };
        assert!(!errors.is_empty());
        errors
    });
}

#[test]
fn the_documentations_scenario_is_right() {
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has an example");
    // The name of a file in it stands for any.
    let example = example.replace("file.trace", "short.trace");
    let read = Scenario::parse(&example, "docs/scenarios.md", Some(&folder()));
    assert_eq!(read.unwrap_or_else(|error| panic!("{error:#?}")).name, "proxy-two-equal");
}

#[test]
fn the_documentation_names_every_profile() {
    for Profile { name, about, .. } in profiles() {
        let row = format!("\n| `{name}` | {about} |");
        assert_eq!(PAGE.matches(&row).count(), 1, "docs/scenarios.md has{row}");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario")
}
