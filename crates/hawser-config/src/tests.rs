//! Faults, section by section and key by key; whole files are in tests/config.

use super::schema::SectionSchema;
use super::*;

/// A key nobody writes, far from every real one.
const NONSENSE: &str = "qqqqqqqqqqqqqqqq";

/// A portal that peers call.
pub(super) const MAIN: &str =
    "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n";
/// One that calls a peer by two links.
const CALLS: &str = "[portal]\nprivate_key_file = \"key\"\n[tun]\naddresses = [\"10.77.0.2/24\"]\n\
    [[link]]\nname = \"dsl\"\ninterface = \"eth0\"\n[[link]]\nname = \"lte\"\ninterface = \"wwan0\"\n\
    [[peer]]\nname = \"hub\"\npublic_key = \"RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=\"\n\
    allowed_ips = [\"10.77.0.1/32\"]\nendpoints = [\"198.51.100.7:4920\"]\n";
const NAT: &str = "[nat]\nmasquerade = \"eth0\"\n";
const NETS: &str = "allowed_ips = [\"192.168.8.0/24\", \"fd08::/64\"]\n";

/// A `[[peer]]`, and further keys of it.
pub(super) fn peer(name: &str, key: usize, keys: &str) -> String {
    let public = [
        "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=",
        "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
        "q7FhFz2qNi2zhvYb1Kuj4ZUIDTlEzb8CyZk7BkvPMFk=",
    ];
    format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n{keys}", public[key])
}

/// Peers a, b and c with further keys, as far as they are given.
fn peers(keys: &[&str]) -> String {
    ["a", "b", "c"].iter().zip(keys).enumerate().map(|(key, (name, keys))| peer(name, key, keys)).collect()
}

fn parse(main: &str, sections: &str) -> Config {
    let text = format!("{main}{sections}");
    Config::parse(&text, "t.toml").unwrap_or_else(|faults| panic!("{faults:?} in\n{text}"))
}

fn errors(text: &str) -> Vec<ConfigError> {
    Config::parse(text, "t.toml").expect_err("the text is faulty")
}

/// Holds all that is said of a portal with these sections against these messages; each fault says what to do.
fn assert_told(rows: &[(String, &[&str])]) {
    for (sections, messages) in rows {
        let faults = errors(&format!("{MAIN}{sections}"));
        assert_eq!(faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>(), *messages, "{sections}");
        assert!(faults.iter().all(|fault| fault.hint.is_some() || fault.corrected.is_some()), "{faults:?}");
    }
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

#[test]
fn name_servers_are_there_once_and_domains_with_them() {
    let home = |keys: &str| format!("{keys}\n{}", peer("home", 0, NETS));
    assert_told(&[
        (home("dns = [\"10.77.0.1\", \"10.77.0.1\"]"), &["the name server is there twice"]),
        (home("dns_domains = [\"a.test\"]"), &["`dns_domains` without `dns`"]),
        (home("dns = [\"10.77.0.1\"]\ndns_domains = [\"a.test\", \"a.test\"]"), &["the domain is there twice"]),
    ]);
}

#[test]
fn a_port_or_several_lead_to_a_host_of_either_version() {
    let text = "[[forward]]\nport = 8080\nto = \"192.168.8.5:80\"\n\
                [[forward]]\nport = \"6000-6010\"\nprotocols = [\"udp\", \"tcp\", \"udp\"]\nto = \"fd08::5\"\n";
    let read = parse(MAIN, &format!("{NAT}{text}{}", peer("home", 0, NETS))).forwards;
    let expected = |(first, last), protocols: &[_], host: &str, host_port| {
        let (ports, host) = (PortRange { first, last }, host.parse().expect("an address"));
        Forward { ports, protocols: protocols.to_vec(), host, host_port }
    };
    let first = expected((8080, 8080), &[Transported::Tcp], "192.168.8.5", Some(80));
    let second = expected((6000, 6010), &[Transported::Tcp, Transported::Udp], "fd08::5", None);
    assert_eq!(read, [first, second]);
}

#[test]
fn a_forward_that_leads_nowhere_or_takes_the_portals_own_port_is_told() {
    let home = |forwards: &str| format!("{forwards}{}", peer("home", 0, NETS));
    let one = |port: &str, more: &str, to: &str| format!("[[forward]]\nport = {port}\n{more}\nto = \"{to}\"\n");
    let nat = |port: &str, more: &str, to: &str| home(&format!("{NAT}{}", one(port, more, to)));
    let both = |a: String, b: String| home(&format!("{NAT}{a}{b}"));
    assert_told(&[
        (home(&one("80", "", "192.168.8.5")), &["a [[forward]], and no interface towards the world"]),
        (nat("80", "", "192.168.9.5"), &["no peer has 192.168.9.5 among its `allowed_ips`"]),
        (nat("\"4900-4999\"", "protocols = [\"udp\"]", "192.168.8.5"), &["the portal itself listens on port 4920"]),
        (nat("\"80-90\"", "", "192.168.8.5:80"), &["several ports, and one to lead to"]),
        (nat("0", "", "192.168.8.5"), &["there is no port 0"]),
        (nat("80", "", "web.example"), &["`to`: \"web.example\" is not an address"]),
        (nat("80", "protocols = []", "192.168.8.5"), &["`protocols` is empty"]),
        (
            both(one("80", "", "192.168.8.5"), one("\"70-90\"", "", "192.168.8.6")),
            &["a port of it leads elsewhere already"],
        ),
    ]);
    // TCP is not the portal's, and IPv6 has ports of its own.
    parse(MAIN, &both(one("4920", "", "192.168.8.5"), one("4920", "", "fd08::5")));
}

#[test]
fn a_standby_has_the_networks_of_its_active_member_and_none_of_its_own() {
    let config = parse(MAIN, &peers(&[&format!("standby = \"b\"\n{NETS}"), "", "allowed_ips = [\"10.0.0.0/9\"]\n"]));
    let shown = |at: usize| (config.peers[at].allowed_ips.len(), config.peers[at].networks().len());
    assert_eq!([shown(0), shown(1), shown(2)], [(2, 2), (0, 2), (1, 1)]);
    assert_eq!(config.peers[1].networks(), config.peers[0].networks());
    let names = |config: &Config| -> Vec<Vec<String>> {
        config.hubs().map(|hub| hub.into_iter().map(|peer| peer.name.to_string()).collect()).collect()
    };
    assert_eq!(names(&config), [["a", "b"]]);
    let three = parse(MAIN, &peers(&[&format!("standby = [\"c\", \"b\"]\n{NETS}"), "", ""]));
    assert_eq!(names(&three), [["a", "c", "b"]]);
    assert!(three.peers.iter().all(|peer| peer.networks() == three.peers[0].networks()));
}

#[test]
fn what_is_no_pair_is_told() {
    let standby = |name: &str| format!("standby = \"{name}\"\n{NETS}");
    let (to_b, more) = (standby("b"), "allowed_ips = [\"10.0.0.0/9\"]\n");
    let twice = format!("standby = [\"b\", \"b\"]\n{NETS}");
    assert_told(&[
        (peers(&[&standby("x")]), &["standby \"x\" of peer \"a\" is no [[peer]] of this file"]),
        (peers(&[&to_b, more]), &["a standby has its active member's networks"]),
        (peers(&[&standby("a")]), &["a standby has its active member's networks"]),
        (peers(&[&to_b, "standby = \"c\"\n", ""]), &["peer \"a\": its standby has a standby, too"]),
        (
            peers(&[&to_b, "", &format!("standby = \"b\"\n{more}")]),
            &["peer \"c\": its standby is another peer's already, or named twice"],
        ),
        (peers(&[&twice, ""]), &["peer \"a\": its standby is another peer's already, or named twice"]),
        (peers(&[NETS, ""]), &["missing key `allowed_ips` in [[peer]]"]),
    ]);
}

#[test]
fn a_member_announces_in_the_main_table_unless_another_is_named() {
    let hub = |hub: &str| parse(MAIN, &format!("{hub}{}", peers(&[NETS]))).hub;
    let table = |text: &str| hub(text).map(|hub| hub.table);
    assert_eq!([table(""), table("[hub]\n"), table("[hub]\ntable = 4920\n")], [None, Some(254), Some(4920)]);
    let named = hub("[hub]\nname = \"zurich\"\n").and_then(|hub| hub.name);
    assert_eq!(named.map(|name| name.to_string()).as_deref(), Some("zurich"));
    for wrong in ["0", "255", "4294967296", "-1"] {
        let faults = errors(&format!("{MAIN}[hub]\ntable = {wrong}\n{}", peers(&[NETS])));
        assert!(faults[0].message.starts_with("`table`: a kernel table"), "{faults:?}");
    }
}

#[cfg(feature = "etcd")]
mod etcd {
    use super::*;

    const TLS: &str = "etcd_ca = \"ca.pem\"\netcd_certificate = \"a.pem\"\netcd_key = \"a.key\"\n";

    fn read(keys: &str) -> Etcd {
        parse(MAIN, &format!("[hub]\nname = \"a\"\n{keys}")).hub.and_then(|hub| hub.etcd).expect("it is there")
    }

    fn urls(etcd: &Etcd) -> Vec<&str> {
        etcd.urls.iter().map(EtcdUrl::as_str).collect()
    }

    #[test]
    fn a_member_needs_no_peer_in_its_file_and_has_defaults() {
        let etcd = read(&format!("etcd = [\"https://192.0.2.5\", \"https://[2001:db8::5]:23790\"]\n{TLS}"));
        assert_eq!(urls(&etcd), ["https://192.0.2.5:2379", "https://[2001:db8::5]:23790"]);
        assert_eq!((etcd.prefix.as_str(), etcd.lease.as_secs(), etcd.strict), ("/hawser/hub/", 10, false));
        assert_eq!((etcd.weight, etcd.rack, etcd.endpoints.len()), (1, 0, 0));
        assert_eq!(etcd.tls.expect("three files").key.to_str(), Some("a.key"));
    }

    #[test]
    fn what_a_member_says_of_itself_is_read() {
        let etcd = read(
            "etcd = [\"http://127.0.0.1:2379/\", \"http://localhost\"]\netcd_prefix = \"/x/y\"\netcd_lease = 5\n\
             etcd_strict = true\nweight = 0\nrack = 7\n\
             endpoints = [\"198.51.100.10:4920\", \"a.example.com:4920\"]\n",
        );
        assert_eq!((etcd.prefix.as_str(), etcd.lease.as_secs(), etcd.strict, &etcd.tls), ("/x/y/", 5, true, &None));
        assert_eq!((etcd.weight, etcd.rack), (0, 7));
        assert_eq!(etcd.endpoints, ["198.51.100.10:4920", "a.example.com:4920"]);
        assert_eq!(urls(&etcd)[1], "http://localhost:2379");
    }

    #[test]
    fn what_cannot_be_is_told() {
        let hub = |keys: &str| format!("[hub]\n{keys}");
        let tls = |keys: &str| hub(&format!("name = \"a\"\n{TLS}{keys}"));
        let wrong = [
            "http://192.0.2.5:2379",
            "192.0.2.5:2379",
            "https://user@192.0.2.5",
            "https://a/b",
            "https://a:0",
            "https://192.0.2.5:0",
            "https://[2001:db8::5]:0",
        ];
        let no_address = [
            "`etcd`: \"http://192.0.2.5:2379\" is not encrypted, and not on this host",
            "`etcd`: \"192.0.2.5:2379\" is no address of etcd",
            "`etcd`: \"https://user@192.0.2.5\" is no address of etcd",
            "`etcd`: \"https://a/b\" is no address of etcd",
            "`etcd`: \"https://a:0\" is no address of etcd",
            "`etcd`: \"https://192.0.2.5:0\" is no address of etcd",
            "`etcd`: \"https://[2001:db8::5]:0\" is no address of etcd",
        ];
        let no_tls = [
            "`etcd_ca`, and no address of etcd is called by TLS",
            "`etcd_certificate`, and no address of etcd is called by TLS",
            "`etcd_key`, and no address of etcd is called by TLS",
            "`etcd` is empty",
        ];
        let missing = [
            "missing key `etcd_ca` in [hub]",
            "missing key `etcd_certificate` in [hub]",
            "missing key `etcd_key` in [hub]",
        ];
        let without = [
            "missing section [[peer]]",
            "`weight` in [hub] without `etcd`",
            "`etcd_ca` in [hub] without `etcd`",
            "`etcd_certificate` in [hub] without `etcd`",
            "`etcd_key` in [hub] without `etcd`",
        ];
        assert_told(&[
            (tls(&format!("etcd = {wrong:?}")), &no_address),
            (tls("etcd = []"), &no_tls),
            (tls("etcd = [\"http://[::1]\"]"), &no_tls[..3]),
            (tls("etcd = [\"https://a\", \"https://a:2379\"]"), &["the address is there twice"]),
            (hub("etcd = [\"https://a\"]\nname = \"a\""), &missing),
            (hub(&format!("etcd = [\"https://a\"]\n{TLS}")), &["missing key `name` in [hub]"]),
            (
                tls("etcd = [\"https://a\"]\netcd_prefix = \"/\"\netcd_lease = 2"),
                &[
                    "`etcd_prefix`: a prefix of nothing: other users of etcd would be in it",
                    "`etcd_lease`: 2 is not between 3 and 3600",
                ],
            ),
            (tls("etcd = [\"https://a\"]\netcd_prefix = \"/a b/\""), &["`etcd_prefix`: \"/a b/\" is no prefix"]),
            (hub(&format!("weight = 3\n{TLS}")), &without),
            (hub(""), &["missing section [[peer]]"]),
        ]);
    }
}

#[cfg(not(feature = "etcd"))]
#[test]
fn a_program_without_etcd_says_so() {
    let faults = errors(&format!("{MAIN}[hub]\nname = \"a\"\netcd = [\"http://127.0.0.1\"]\n"));
    assert_eq!(faults[0].message, "`etcd`: etcd is not supported in this version");
    assert_eq!(faults[0].hint.as_deref(), Some("this program was built without it: leave `etcd` out"));
}

fn link_name(text: &str) -> LinkName {
    LinkName::parse(text).expect("a name")
}

#[test]
fn a_rule_names_links_in_order_or_by_shares() {
    let text = "[[rule]]\nprotocol = \"udp\"\nvia = [\"dsl\", \"lte\"]\nstrict = true\npriority = 2\n\
                [[rule]]\nweights = { dsl = 3, lte = 1 }\n";
    let read = parse(CALLS, text).rules;
    let (dsl, lte) = (link_name("dsl"), link_name("lte"));
    assert_eq!((&read[0].via[..], read[0].strict, read[0].priority), (&[dsl.clone(), lte.clone()][..], true, 2));
    assert_eq!(read[1].weights, [(dsl, 3), (lte, 1)]);
    assert_eq!((read[1].scheduler, read[1].strict), (Some(Scheduler::Weighted), false), "shares need it");
}

#[test]
fn what_no_packet_can_follow_is_told_with_a_hint() {
    let table = [
        ("via = [\"dls\"]", "no [[link]] is called \"dls\"", "did you mean \"dsl\"?"),
        ("via = [\"starlink\"]", "no [[link]] is called \"starlink\"", "links of this file: dsl, lte"),
        ("weights = { dsl = 1, ltd = 1 }", "no [[link]] is called \"ltd\"", "did you mean \"lte\"?"),
        ("via = []", "`via` is empty", "write: via = [\"dsl\", \"lte\"], or leave it out"),
        ("via = \"dsl\"", "`via`: expected a list, found a string", "a list stands in brackets"),
        ("weights = {}", "`weights`: no link has a part", "write: weights = { dsl = 3, lte = 1 }"),
        ("strict = true\npriority = 1", "`strict`, and no link that it is about", "add: via = [\"dsl\"]"),
        ("priority = 4", "`priority`: 4 is not between -3 and 3", "higher goes first; all other traffic has 0"),
    ];
    for (rule, message, hint) in table {
        let faults = errors(&format!("{CALLS}[[rule]]\n{rule}\n"));
        let said: Vec<_> = faults.iter().map(|fault| (fault.message.as_str(), fault.hint.as_deref())).collect();
        assert_eq!(said, [(message, Some(hint))], "{rule}");
    }
    let both = errors(&format!("{CALLS}[[rule]]\nvia = [\"dsl\"]\nweights = {{ lte = 1 }}\n"));
    assert_eq!(both[0].message, "`via` and `weights` in one [[rule]]");
    let other = errors(&format!("{CALLS}[[rule]]\nweights = {{ lte = 1 }}\nscheduler = \"flow\"\n"));
    assert_eq!(other[0].corrected.as_deref(), Some("scheduler = \"weighted\""));
}

#[test]
fn a_portal_that_is_called_may_name_links_of_its_peers() {
    let read = parse(MAIN, &format!("[[rule]]\nvia = [\"starlink\"]\n{}", peer("home", 0, NETS)));
    assert_eq!(read.rules[0].via, [link_name("starlink")]);
}
