//! Whole files: each tests/scenario/NAME.toml must give what NAME.golden says, what was understood or its faults.
//!
//! `HAWSER_WRITE_GOLDEN=1` writes the golden files anew; read the difference before it is committed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hawser_lab::scenario::{Profile, Scenario, ScenarioError, profiles};

/// Fewer pairs than this mean that the folder was not found or not read.
const PAIRS_MIN: usize = 8;

#[test]
fn every_scenario_gives_its_golden_answer() {
    let wrong: Vec<String> = inputs().iter().filter_map(|input| difference(input)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_damaged_scenario_is_answered_with_places_inside_it() {
    let (folder, text) = (folder(), std::fs::read_to_string(folder().join("whole.toml")).expect("it can be read"));
    for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        let (before, after) = text.split_at(at);
        let rest = after.get(1..).unwrap_or_default();
        for damaged in [before.to_owned(), format!("{before}{rest}"), format!("{before}\"{rest}")] {
            let Err(ScenarioError::Faulty { errors, .. }) = Scenario::parse(&damaged, "damaged.toml", Some(&folder))
            else {
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
        Err(ScenarioError::Faulty { errors, .. }) => panic!("{}", errors.iter().map(render).collect::<String>()),
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

/// All files of the folder, sorted.
fn inputs() -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("tests/scenario is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= PAIRS_MIN, "only {} files", inputs.len());
    inputs
}

/// What differs between a file's answer and its golden one.
fn difference(input: &Path) -> Option<String> {
    let text = std::fs::read_to_string(input).expect("it can be read");
    let name = input.file_name().and_then(|name| name.to_str()).expect("a plain name");
    let answer = match Scenario::parse(&text, name, input.parent()) {
        Ok(scenario) => format!("{:#?}\n", Scenario { text: String::new(), traces: BTreeMap::new(), ..scenario }),
        Err(ScenarioError::Faulty { errors, .. }) => errors.iter().map(render).collect(),
        Err(error) => panic!("{error}"),
    };
    let golden = input.with_extension("golden");
    if std::env::var_os("HAWSER_WRITE_GOLDEN").is_some() {
        std::fs::write(&golden, &answer).expect("it can be written");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    (answer != expected).then(|| format!("{name}: expected\n{expected}\nfound\n{answer}"))
}

fn render(error: &hawser_portal::config::ConfigError) -> String {
    let mut text = format!("{error}\n");
    if let Some(hint) = &error.hint {
        let _ = writeln!(text, "  hint: {hint}");
    }
    if let Some(line) = &error.corrected {
        let _ = writeln!(text, "  write: {line}");
    }
    text
}
