//! Whole files: each tests/scenario/NAME.toml must give what NAME.golden says, what was understood or its faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_lab::scenario::{FileError, Profile, Scenario, profiles};

#[path = "../../../hawser-config/tests/support/golden.rs"]
mod golden;

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
    let (folder, text) = (folder(), std::fs::read_to_string(folder().join("whole.toml")).expect("it can be read"));
    for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        let (before, after) = text.split_at(at);
        let rest = after.get(1..).unwrap_or_default();
        for damaged in [before.to_owned(), format!("{before}{rest}"), format!("{before}\"{rest}")] {
            let Err(FileError::Faulty { errors, .. }) = Scenario::parse(&damaged, "damaged.toml", Some(&folder)) else {
                continue;
            };
            assert!(!errors.is_empty());
            for error in errors {
                assert!(damaged.get(error.span.clone()).is_some(), "{error} at {:?} in\n{damaged}", error.span);
                assert!(error.line <= damaged.lines().count() + 1, "{error}");
            }
        }
    }
}

#[test]
fn the_documentations_scenario_is_right() {
    let page = documentation();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has an example");
    // The name of a file in it stands for any.
    let example = example.replace("file.trace", "short.trace");
    let read = Scenario::parse(&example, "docs/scenarios.md", Some(&folder()));
    match read {
        Ok(scenario) => assert_eq!(scenario.name, "proxy-two-equal"),
        Err(FileError::Faulty { errors, .. }) => panic!("{}", golden::render(&errors)),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_documentation_names_every_profile() {
    let page = documentation();
    let told: Vec<&str> =
        page.lines().filter(|line| profiles().iter().any(|known| line.starts_with(&row(known)))).collect();
    assert_eq!(told.len(), profiles().len(), "docs/scenarios.md has a row for each: {told:#?}");
}

/// A profile's row in the documentation.
fn row(profile: &Profile) -> String {
    format!("| `{}` | {} |", profile.name, profile.about)
}

fn documentation() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    std::fs::read_to_string(page).expect("it can be read")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario")
}
