//! Faults, section by section and key by key; whole files are in tests/config.

use super::schema::SectionSchema;
use super::*;

/// A key nobody writes, far from every real one.
const NONSENSE: &str = "qqqqqqqqqqqqqqqq";

fn errors(text: &str) -> Vec<ConfigError> {
    Config::parse(text, "t.toml").expect_err("the text is faulty")
}

/// `key = value` under the section's title.
fn one_key(section: &SectionSchema, key: &str) -> String {
    format!("{}\n{key} = 0\n", section.title())
}

#[test]
fn the_readers_ask_for_exactly_the_keys_of_the_schema() {
    for section in SCHEMA {
        let found = errors(&one_key(section, NONSENSE));
        let unknown = found.iter().find(|e| e.message.starts_with("unknown key")).expect("it is unknown");
        let mut keys = section.keys.to_vec();
        let (_, listed) = unknown.hint.as_deref().and_then(|h| h.split_once(": ")).expect("the keys are listed");
        let mut listed: Vec<&str> = listed.split(", ").collect();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, keys, "{}", section.name);
        for key in section.keys {
            let found = errors(&one_key(section, key));
            assert!(found.iter().all(|e| !e.message.starts_with("unknown")), "{}.{key}", section.name);
        }
    }
}

#[test]
fn every_correction_is_taken_without_the_same_fault_again() {
    let table = [
        "[tun]\nmtu = \"1400\"\n",
        "[tun]\nmtu = 100\n",
        "[tun]\naddresses = \"10.77.0.1/24\"\n",
        "[tun]\naddresses = [\"10.77.0.1\"]\n",
        "[tun]\ndefault_rout = false\n",
        "[portal]\nlisten = [\"192.0.2.1\"]\n",
        "[portal]\nlisten = [\"192.0.2.1:0\"]\n",
        "[portal]\nlisten = [\"192.0.2.1:99999\"]\n",
        "[portal]\nlisten = [\"2001:db8::7:4920\"]\n",
        "[portal]\nlisten = [\"[2001:db8::7]\"]\n",
        "[portal]\ntransports = [\"udpp\"]\n",
        "[[peer]]\nname = \"the hub\"\n",
        "[[peer]]\nallowed_ips = [\"10.77.0.1/24\"]\n",
        "[[link]]\naddress = \"192.0.2.1/24\"\n",
        "[[link]]\nname = 7\n",
        "[link]\nmetric = 1\n",
        "[[tun]]\nmtu = 0\n",
        "[trafic]\ncipher = \"auto\"\n",
    ];
    for text in table {
        let before = errors(text);
        let fault = before.iter().find(|e| e.corrected.is_some()).unwrap_or_else(|| panic!("no correction: {text}"));
        let mut lines: Vec<&str> = text.lines().collect();
        lines[fault.line - 1] = fault.corrected.as_deref().expect("it was found by it");
        let after = errors(&lines.join("\n"));
        assert!(after.iter().all(|e| e.message != fault.message || e.line != fault.line), "{text} gave {fault:?}");
    }
}

#[test]
fn private_keys_never_show_in_debug_output() {
    let key = PrivateKey::generate().expect("the system has randomness");
    assert!(!format!("{key:?}").contains(key.to_base64().as_str()));
}

#[test]
fn key_pairs_match_rfc_7748() {
    let table = [
        ("dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
        ("XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=", "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="),
    ];
    for (private, public) in table {
        let key = PrivateKey::parse(private).expect("it is a key");
        assert_eq!(key.public().to_string(), public);
        assert_eq!(key.to_base64().as_str(), private);
    }
}

#[test]
fn new_keys_differ_and_are_clamped() {
    let (a, b) = (PrivateKey::generate().expect("random"), PrivateKey::generate().expect("random"));
    assert_ne!(a.as_bytes(), b.as_bytes());
    for key in [a, b] {
        let bytes = key.as_bytes();
        assert_eq!((bytes[0] & 7, bytes[31] >> 6), (0, 1), "RFC 7748 section 5");
    }
}
