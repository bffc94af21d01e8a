//! Keys and faults; whole files are in tests/config.

use super::*;
use crate::route::InterfaceIndex;

/// A key nobody writes, far from every real one.
const NONSENSE: &str = "qqqqqqqqqqqqqqqq";

fn errors(text: &str) -> Vec<ConfigError> {
    parse(text, "t.toml").expect_err("the text is faulty")
}

fn with(keys: &str) -> Result<Config, Vec<ConfigError>> {
    parse(&format!("[shim]\nlocal = \"1-ff00:0:110,10.110.0.10:31000\"\n{keys}"), "t.toml")
}

#[test]
fn the_readers_ask_for_exactly_the_keys_of_the_schema() {
    for section in SCHEMA {
        let title = section.title();
        let found = errors(&format!("{title}\n{NONSENSE} = 0\n"));
        let unknown = found.iter().find(|e| e.message.starts_with("unknown key")).expect("it is unknown");
        let mut keys = section.keys.to_vec();
        let (_, listed) = unknown.hint.as_deref().and_then(|h| h.split_once(": ")).expect("the keys are listed");
        let mut listed: Vec<&str> = listed.split(", ").collect();
        keys.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, keys, "{title}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = with("").expect("it is right");
    assert_eq!(config.interface(InterfaceIndex::INGRESS), "shim-in");
    assert_eq!(config.interface(InterfaceIndex::new(8).expect("there are this many")), "shim8");
    assert_eq!(config.control.to_str(), Some(DEFAULT_CONTROL));
    assert_eq!(config.egress.get(), 4);
    assert_eq!(with("name = \"b\"").expect("it is right").control.to_str(), Some("/run/hawser/b.sock"));
}

#[test]
fn routes_take_addresses_networks_and_names_with_ports_and_without() {
    let table = [
        ("192.0.2.10", "192.0.2.10/32", None),
        ("192.0.2.10:443", "192.0.2.10/32", Some(443)),
        ("192.0.2.0/24", "192.0.2.0/24", None),
        ("192.0.2.0/24:80", "192.0.2.0/24", Some(80)),
        ("2001:db8::10", "2001:db8::10/128", None),
        ("[2001:db8::10]", "2001:db8::10/128", None),
        ("[2001:db8::10]:443", "2001:db8::10/128", Some(443)),
        ("2001:db8::/32", "2001:db8::/32", None),
        ("[2001:db8::/32]:443", "2001:db8::/32", Some(443)),
        ("www.Example.com.", "www.example.com", None),
        ("www.example.com:443", "www.example.com", Some(443)),
    ];
    for (text, to, port) in table {
        let file = format!("[[route]]\nto = \"{text}\"\nscion = \"1-ff00:0:120,10.120.0.10:31000\"\n");
        let routes = parse_map(&file, "t.toml", false).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let found = match routes[0].to.clone().expect("it is there") {
            To::Network(network, port) => (network.to_string(), port),
            To::Name(name, port) => (name.to_string(), port),
        };
        assert_eq!((found.0.as_str(), found.1.map(|port| port.0.get())), (to, port), "{text}");
    }
}

#[test]
fn what_is_no_address_of_a_route_is_refused() {
    for text in [
        "",
        ":",
        ":80",
        "192.0.2.10:0",
        "192.0.2.10:65536",
        "192.0.2.10:+1",
        "192.0.2.1/24",
        "0.0.0.0/0",
        "::/0",
        "0.0.0.0",
        "127.0.0.1",
        "224.0.0.1",
        "[::1]:80",
        "[2001:db8::10",
        "[2001:db8::10]x",
        "fc00:1ff::1",
        "a b",
        "-a.example",
        "256.0.0.1",
        "a..b",
    ] {
        let file = format!("[[route]]\nto = \"{text}\"\nscion = \"1-ff00:0:120,10.120.0.10:31000\"\n");
        assert!(parse_map(&file, "t.toml", false).is_err(), "{text}");
    }
}

#[test]
fn a_name_needs_an_end_unless_the_name_servers_are_asked() {
    let route = "[[route]]\nto = \"www.example.com:443\"\n";
    assert!(with(&format!("dns = true\n{route}")).is_ok());
    let hint = with(route).expect_err("nobody knows its end")[0].hint.clone().expect("there is one");
    assert!(hint.contains("dns = true"), "{hint}");
    assert!(with("dns = true\n[[route]]\nto = \"192.0.2.10\"\n").is_err(), "an address has no records");
}

#[test]
fn every_correction_is_taken_without_the_same_fault_again() {
    let route = "[shim]\nlocal = \"10.110.0.10:31000\"\n[[route]]\nto = \"192.0.2.10\"\n";
    let table = [
        "[shim]\nlocal = \"10.110.0.10\"\n".to_owned(),
        "[shim]\nlocal = \"1-ff00:0:110,10.110.0.10\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\negress = 9\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\negres = 2\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\nselect = \"lenght\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\nmode = \"namespace\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\npath_manager = \"user-space\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\nipv4 = true\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\nipv4 = \"100.65.0.0/10\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\ndns = \"true\"\n".to_owned(),
        "[[shim]]\nlocal = \"10.110.0.10:31000\"\n".to_owned(),
        "[shim]\nlocal = \"10.110.0.10:31000\"\n[polic]\n".to_owned(),
        format!("{route}scion = \"1-ff00:0:120,10.120.0.10\"\n"),
        format!("{route}scion = \"1-ff00:0:120,10.120.0.10:31000\"\nside_by_side = \"subflow\"\n"),
    ];
    for text in table {
        let before = errors(&text);
        let fault = before.iter().find(|e| e.corrected.is_some()).unwrap_or_else(|| panic!("no correction: {text}"));
        let mut lines: Vec<&str> = text.lines().collect();
        lines[fault.line - 1] = fault.corrected.as_deref().expect("it was found by it");
        if let Err(after) = parse(&lines.join("\n"), "t.toml") {
            assert!(after.iter().all(|e| e.message != fault.message || e.line != fault.line), "{text} gave {fault:?}");
        }
    }
}

#[test]
fn a_txt_record_names_an_end_with_the_usual_port_or_another() {
    let end = |record| end_in_txt(record).map(|end| end.map(|end| end.to_string()));
    assert_eq!(end("v=spf1 -all"), None);
    let usual = Some(Ok("1-ff00:0:120,10.120.0.10:31000".to_owned()));
    assert_eq!(end("scion=1-ff00:0:120,10.120.0.10:31000"), usual);
    assert_eq!(end("scion=1-ff00:0:120,10.120.0.10"), usual);
    assert_eq!(end("scion=1-ff00:0:120,10.120.0.10:1"), Some(Ok("1-ff00:0:120,10.120.0.10:1".to_owned())));
    for wrong in ["scion=", "scion=1-ff00:0:120", "scion=1-0,10.120.0.10", "scion=1-2,0.0.0.0", "scion=1-2,10.0.0.1:0"]
    {
        assert!(end(wrong).is_some_and(|end| end.is_err()), "{wrong}");
    }
}
