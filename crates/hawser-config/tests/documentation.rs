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
    for row in keys::documented(&text, "##", SCHEMA).into_iter().filter(|row| row.section.name != "rule") {
        let title = row.section.title();
        let missed = format!("missing key `{}` in {title}", row.key);
        let faults = Config::parse(&format!("{title}\n"), "t.toml").expect_err("there is more to a portal");
        assert_eq!(faults.iter().any(|fault| fault.message == missed), row.default == "required", "{missed}");
    }
}

/// All sections, each with what it needs and no key that says what is so anyway; `log` is no part of it.
const LEAST: &str = "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\n[gateway]\n[hub]\n[web]\n\
    [nat]\nmasquerade = \"eth0\"\n[traffic]\n[metrics]\nlisten = \"[::1]:9492\"\n[takeover]\naddress = \"192.0.2.7\"\n\
    [[link]]\nname = \"a\"\ninterface = \"eth0\"\ndata_cap = \"50G\"\n[[rule]]\nvia = [\"a\"]\n\
    [[forward]]\nport = 80\nto = \"192.0.2.7\"\n[[peer]]\nname = \"p\"\nendpoints = [\"192.0.2.1:1\"]\n\
    allowed_ips = [\"192.0.2.7/32\"]\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n";

#[test]
fn a_default_that_is_written_changes_nothing() {
    let parse = |text: &str| Config::parse(text, "t.toml").unwrap_or_else(|faults| panic!("{faults:#?} in\n{text}"));
    let least = parse(LEAST);
    // Others go with `interface = "*"`, `transport = "scion"` or `etcd` alone; and domains that are none are kept so.
    let told = |row: &keys::Row<'_>| match row.section.name {
        "link" => !["exclude", "daemon", "paths", "select", "sequence", "allow", "deny", "port"].contains(&row.key),
        "hub" => row.key == "table",
        section => section != "log" && row.key != "dns_domains",
    };
    for row in keys::documented(&read("configuration.md"), "##", SCHEMA).into_iter().filter(told) {
        let (title, written) = (row.section.title(), format!("{} = {}", row.key, row.default));
        let (before, after) = LEAST.split_once(&title).expect("it has all sections");
        let own = after.split("\n[").next().unwrap_or_default();
        if ["required", "none"].contains(&row.default) || own.contains(&format!("\n{} =", row.key)) {
            continue;
        }
        assert_eq!(parse(&format!("{before}{title}\n{written}{after}")), least, "{title}: {written}");
    }
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
