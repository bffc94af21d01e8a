//! docs/shim.md says what the schema says, and its examples are right.

use std::path::{Path, PathBuf};

use hawser_portal::config::schema::{KeySchema, SectionSchema};
use hawser_shim::config::{SCHEMA, load, parse, read_map};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documentation() -> String {
    std::fs::read_to_string(root().join("docs/shim.md")).expect("docs/shim.md is there")
}

fn heading(section: &SectionSchema) -> String {
    if section.repeated { format!("### `[[{}]]`", section.name) } else { format!("### `[{}]`", section.name) }
}

/// How the row of a key begins, up to its meaning.
fn row(key: &KeySchema) -> String {
    let default = match key.default {
        word @ ("required" | "none") => word.to_owned(),
        value => format!("`{value}`"),
    };
    format!("| `{}` | {} | {default} | ", key.name, key.kind)
}

#[test]
fn every_key_is_documented_with_its_type_and_default_and_no_other_is() {
    let text = documentation();
    let titles: Vec<&str> = text.lines().filter(|l| l.starts_with("### `[")).collect();
    assert_eq!(titles, SCHEMA.iter().map(heading).collect::<Vec<_>>(), "sections, in the schema's order");
    for section in SCHEMA {
        let (_, after) = text.split_once(&heading(section)).expect("it is a title");
        let chapter = after.split("\n##").next().expect("there is a first part");
        let rows: Vec<&str> = chapter.lines().filter(|l| l.starts_with("| `")).collect();
        assert_eq!(rows.len(), section.keys.len(), "{}", section.name);
        for (found, key) in rows.iter().zip(section.keys) {
            let meaning = found.strip_prefix(&row(key)).unwrap_or_else(|| panic!("{found}\nexpected {}…", row(key)));
            assert!(meaning.len() > " |".len(), "{} has no meaning", key.name);
        }
    }
}

#[test]
fn the_examples_on_the_page_are_right() {
    let text = documentation();
    let examples: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty(), "there is an example");
    for example in examples {
        let faults = parse(example, "docs/shim.md").err();
        assert!(faults.is_none(), "{faults:#?} in\n{example}");
    }
}

#[test]
fn the_examples_for_two_hosts_are_right_and_share_their_map() {
    for (file, host) in [("shim-a.toml", "10.110.0.10:31000"), ("shim-b.toml", "10.120.0.10:31000")] {
        let config = load(&root().join("contrib").join(file)).unwrap_or_else(|error| panic!("{file}: {error:?}"));
        assert_eq!(config.local.host.to_string(), host);
        let map = config.map.expect("it names a map");
        let routes = read_map(&map, config.dns).unwrap_or_else(|error| panic!("{}: {error:?}", map.display()));
        assert!(routes.iter().any(|route| route.scion.is_some_and(|end| end.host == config.local.host)));
    }
}
