//! docs/monitoring.md says what a portal tells.

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
