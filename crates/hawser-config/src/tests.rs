//! Keys of sections and key files; whole files, right and wrong, are in tests/config.

use super::*;

/// A portal that peers call.
pub(super) const MAIN: &str =
    "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n";

/// A `[[peer]]`, and further keys of it.
pub(super) fn peer(name: &str, key: usize, keys: &str) -> String {
    let public = ["RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=", "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="];
    format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n{keys}", public[key])
}

fn errors(text: &str) -> Vec<ConfigError> {
    Config::parse(text, "t.toml").expect_err("the text is faulty")
}

#[test]
fn the_readers_ask_for_exactly_the_keys_of_the_schema() {
    for section in SCHEMA {
        let errors = |key: &str| errors(&format!("{}\n{key} = 0\n", section.title()));
        // Far from every real one.
        let found = errors("qqqqqqqqqqqqqqqq");
        let unknown = found.iter().find(|e| e.message.starts_with("unknown key")).expect("it is unknown");
        let mut keys = section.keys.to_vec();
        let (_, listed) = unknown.hint.as_deref().and_then(|h| h.split_once(": ")).expect("the keys are listed");
        let mut listed: Vec<&str> = listed.split(", ").collect();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, keys, "{}", section.name);
        for key in section.keys {
            let found = errors(key);
            assert!(found.iter().all(|e| !e.message.starts_with("unknown")), "{}.{key}", section.name);
        }
    }
}

#[test]
fn an_mtu_carries_ipv6_and_fits_a_packet_and_a_table_of_routes_is_not_the_kernels_own() {
    let mtu = [(1279, false), (1280, true), (32_768, true), (32_769, false), (-1, false)];
    let table = [(0, false), (1, true), (255, false), (4_294_967_295, true), (4_294_967_296_i64, false), (-1, false)];
    for (section, key, rows) in [("tun", "mtu", &mtu[..]), ("hub", "table", &table[..])] {
        for (number, fits) in rows {
            let found = errors(&format!("[{section}]\n{key} = {number}\n"));
            assert_eq!(found.iter().all(|e| !e.message.starts_with(&format!("`{key}`"))), *fits, "{key} = {number}");
        }
    }
}

#[test]
fn the_members_of_a_hub_stand_in_their_order_and_share_the_networks_of_the_active_one() {
    let text = include_str!("../tests/config/good-standby.toml");
    let config = Config::parse(text, "t.toml").expect("it is right");
    let names = |hub: Vec<&Peer>| hub.iter().map(|peer| peer.name.to_string()).collect::<Vec<_>>();
    assert_eq!(config.hubs().map(names).collect::<Vec<_>>(), [vec!["a", "b"], vec!["c", "e", "d"]]);
    for hub in config.hubs() {
        assert!(hub.iter().all(|peer| peer.networks() == hub[0].networks()), "{hub:?}");
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

#[cfg(not(feature = "etcd"))]
#[test]
fn a_program_without_etcd_says_so() {
    let faults = errors(&format!("{MAIN}[hub]\nname = \"a\"\netcd = [\"http://127.0.0.1\"]\n"));
    assert_eq!(faults[0].message, "`etcd`: etcd is not supported in this version");
    assert_eq!(faults[0].hint.as_deref(), Some("this program was built without it: leave `etcd` out"));
}
