//! docs/shim.md says what the schema says, and its examples are right.

use std::path::{Path, PathBuf};

use hawser_shim::config::{SCHEMA, load, parse, read_map};

#[path = "../../hawser-config/tests/support/keys.rs"]
mod keys;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documentation() -> String {
    std::fs::read_to_string(root().join("docs/shim.md")).expect("docs/shim.md is there")
}

#[test]
fn every_key_is_documented_with_its_type_and_default_and_no_other_is() {
    for row in keys::documented(&documentation(), "###", SCHEMA) {
        let title = row.section.title();
        let missed = format!("missing key `{}` in {title}", row.key);
        let faults = parse(&format!("{title}\nqqqqqqqqqqqqqqqq = 0\n"), "t.toml").expect_err("an unknown key");
        let is_required = faults.iter().any(|fault| fault.message == missed);
        // A route needs an end unless it is a name's.
        assert_eq!(is_required, row.default == "required" || row.key == "scion", "{missed}");
    }
}

#[test]
fn the_examples_on_the_page_are_right() {
    let text = documentation();
    let examples = keys::examples(&text);
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
