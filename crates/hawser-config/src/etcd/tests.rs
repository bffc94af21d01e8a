use std::time::Duration;

use super::super::Config;
use super::*;

const TLS: &str = "etcd_ca = \"ca.pem\"\netcd_certificate = \"a.pem\"\netcd_key = \"a.key\"\n";

fn read(hub: &str) -> Result<Option<Etcd>, Vec<String>> {
    let text = format!(
        "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n\
         [hub]\n{hub}"
    );
    let read = Config::parse(&text, "t.toml").map(|config| config.hub.and_then(|hub| hub.etcd));
    read.map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
}

#[test]
fn a_member_needs_no_peer_in_its_file_and_has_defaults() {
    let read = read(&format!("etcd = [\"https://192.0.2.5\", \"https://[2001:db8::5]:23790\"]\nname = \"a\"\n{TLS}"));
    let etcd = read.expect("it is right").expect("it is there");
    let urls: Vec<&str> = etcd.urls.iter().map(EtcdUrl::as_str).collect();
    assert_eq!(urls, ["https://192.0.2.5:2379", "https://[2001:db8::5]:23790"]);
    assert_eq!((etcd.prefix.as_str(), etcd.lease, etcd.strict), ("/hawser/hub/", Duration::from_secs(10), false));
    assert_eq!((etcd.weight, etcd.rack, etcd.endpoints.len()), (1, 0, 0));
    assert_eq!(etcd.tls.expect("three files").key, PathBuf::from("a.key"));
}

#[test]
fn what_a_member_says_of_itself_is_read() {
    let keys = "etcd = [\"http://127.0.0.1:2379/\", \"http://localhost\"]\nname = \"a\"\netcd_prefix = \"/x/y\"\n\
                etcd_lease = 5\netcd_strict = true\nweight = 0\nrack = 7\n\
                endpoints = [\"198.51.100.10:4920\", \"a.example.com:4920\"]\n";
    let etcd = read(keys).expect("it is right").expect("it is there");
    assert_eq!((etcd.prefix.as_str(), etcd.lease.as_secs(), etcd.strict, etcd.tls), ("/x/y/", 5, true, None));
    assert_eq!((etcd.weight, etcd.rack), (0, 7));
    assert_eq!(etcd.endpoints, ["198.51.100.10:4920", "a.example.com:4920"]);
    assert_eq!(etcd.urls.iter().map(EtcdUrl::as_str).collect::<Vec<_>>()[1], "http://localhost:2379");
}

#[test]
fn what_cannot_be_is_told() {
    let tls = |keys: &str| format!("name = \"a\"\n{TLS}{keys}");
    for (keys, fault) in [
        (tls("etcd = [\"http://192.0.2.5:2379\"]"), "\"http://192.0.2.5:2379\" is not encrypted, and not on this host"),
        (tls("etcd = [\"192.0.2.5:2379\"]"), "\"192.0.2.5:2379\" is no address of etcd"),
        (tls("etcd = [\"https://user@192.0.2.5\"]"), "\"https://user@192.0.2.5\" is no address of etcd"),
        (tls("etcd = [\"https://a/b\"]"), "\"https://a/b\" is no address of etcd"),
        (tls("etcd = [\"https://a:0\"]"), "\"https://a:0\" is no address of etcd"),
        (tls("etcd = []"), "`etcd` is empty"),
        (tls("etcd = [\"https://a\", \"https://a:2379\"]"), "the address is there twice"),
        (tls("etcd = [\"http://[::1]\"]"), "`etcd_key`, and no address of etcd is called by TLS"),
        ("etcd = [\"https://a\"]\nname = \"a\"".to_owned(), "missing key `etcd_certificate` in [hub]"),
        (format!("etcd = [\"https://a\"]\n{TLS}"), "missing key `name` in [hub]"),
        (tls("etcd = [\"https://a\"]\netcd_prefix = \"/\""), "a prefix of nothing"),
        (tls("etcd = [\"https://a\"]\netcd_prefix = \"/a b/\""), "\"/a b/\" is no prefix"),
        (tls("etcd = [\"https://a\"]\netcd_lease = 2"), "2 is not between 3 and 3600"),
        (TLS.to_owned(), "`etcd_ca` in [hub] without `etcd`"),
        ("weight = 3".to_owned(), "`weight` in [hub] without `etcd`"),
    ] {
        let faults = read(&keys).expect_err(&keys);
        assert!(faults.iter().any(|found| found.contains(fault)), "{keys}: {faults:?}");
    }
}

#[test]
fn without_etcd_a_member_needs_peers_in_its_file() {
    assert_eq!(read(""), Err(vec!["missing section [[peer]]".to_owned()]));
}
