//! docs/configuration.md says what the schema says, and examples elsewhere are right.

use std::path::Path;

use hawser_config::Config;
use hawser_config::schema::SCHEMA;

#[path = "support/keys.rs"]
mod keys;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

#[test]
fn every_key_is_documented_with_its_type_and_default_and_no_other_is() {
    let text = read("configuration.md");
    assert_eq!(text.matches("\n## ").count(), SCHEMA.len(), "chapters of sections alone");
    keys::assert_documented(&text, "##", SCHEMA);
}

#[test]
fn the_examples_of_the_gateway_are_right_but_for_their_keys() {
    let text = read("gateway.md").replace('…', "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=");
    let examples = keys::examples(&text);
    assert_eq!(examples.len(), 2, "a local and a remote portal");
    for example in examples {
        let faults = Config::parse(example, "docs/gateway.md").err();
        assert!(faults.is_none(), "{faults:#?} in\n{example}");
    }
}
