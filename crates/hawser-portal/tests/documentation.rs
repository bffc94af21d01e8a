//! docs/monitoring.md says what a portal tells, and docs/security.md what tests show.

use std::path::Path;

use hawser_portal::api::{EventKind, Live, METRICS};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

#[test]
fn every_event_figure_and_metric_is_documented_and_no_other_is() {
    let text = read("monitoring.md");
    let chapter = |title: &str| {
        let (_, after) = text.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no chapter {title}"));
        after.split("\n## ").next().expect("there is a first part").to_owned()
    };
    let rows = |chapter: &str| -> Vec<String> {
        let names = chapter.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").next());
        names.flat_map(|names| names.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
    };
    let word = |kind: EventKind| serde_json::to_value(kind).expect("plain data").as_str().expect("a word").to_owned();
    assert_eq!(rows(&chapter("Events")), EventKind::ALL.map(word));
    assert_eq!(rows(&chapter("History")), METRICS);
    let live = serde_json::to_value(Live::default()).expect("plain data");
    let mut fields: Vec<&String> = live.as_object().expect("an object").keys().collect();
    let status = chapter("Status");
    let (_, live) = status.split_once("`live` is what").expect("it is described");
    let mut documented = rows(live);
    documented.sort();
    fields.sort();
    assert_eq!(documented.iter().collect::<Vec<_>>(), fields);
}

/// Fewer than these mean that the page was not read as it is written.
const CLAIMS_MIN: usize = 40;

#[test]
fn every_claim_of_the_threat_model_names_one_test_by_how_its_name_begins() {
    let text = read("security.md");
    let claims: Vec<&str> = text.split('`').filter_map(|word| word.strip_suffix("()")).collect();
    assert!(claims.len() >= CLAIMS_MIN, "only {} tests are named", claims.len());
    let mut code = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut code);
    let tests: Vec<&str> = code.iter().flat_map(|text| tests(text)).collect();
    for claim in claims {
        let named: Vec<_> = tests.iter().filter(|test| test.starts_with(claim)).collect();
        assert_eq!(named.len(), 1, "{claim} names {named:?}");
    }
}

/// The names of the tests in a source file.
fn tests(text: &str) -> Vec<&str> {
    let parts: Vec<&str> = text.split("fn ").collect();
    let named = parts.windows(2).filter_map(|pair| {
        let (name, _) = pair[1].split_once("()")?;
        let attributes = pair[0].rsplit("\n\n").next().expect("there is a last part");
        attributes.contains("#[test]").then_some(name)
    });
    named.filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).collect()
}

/// The text of every source file below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(std::fs::read_to_string(&entry).expect("a source file"));
        }
    }
}
