//! What a configuration has the system set, and what of it is tried again.

use hawser_net::netcfg::{NftChain, NftName, NftTable};

use super::*;

fn config(tun: &str, allowed: &str) -> Config {
    let key = "RKGLXmgBvUkxjjtKGIHB7WvoCUDO2OBjgahMNrLTIls=";
    let text = format!(
        "[portal]\nprivate_key_file = \"key\"\nlisten = [\"0.0.0.0:4920\"]\n[tun]\n{tun}\n[[peer]]\nname = \"home\"\n\
         public_key = \"{key}\"\nallowed_ips = [{allowed}]\n"
    );
    Config::parse(&text, "test.toml").expect("a right configuration")
}

/// Of a portal that has set nothing.
fn system(folder: &Path) -> System {
    let instance = InstanceName::new("none").expect("a name");
    System::new(NetConfig::new(folder, &instance).expect("a journal"), false)
}

fn said(config: &Config, mtus: &Mtus) -> Vec<String> {
    let index = IfIndex::new(5).expect("not zero");
    let fit = mtus.beside(mtus.of_device(config), config);
    changes(config, index, &Places::default(), &fit)
        .expect("it can be written")
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn the_device_gets_mtu_addresses_and_the_routes_that_nobody_else_sets() {
    let config = config(
        "addresses = [\"10.77.0.1/24\"]",
        "\"10.77.0.0/24\", \"192.168.8.0/24\", \"0.0.0.0/0\", \"fd77::2/128\"",
    );
    assert_eq!(
        said(&config, &Mtus::default()),
        [
            "mtu 1280 on interface 5",
            "address 10.77.0.1/24 on interface 5",
            "interface 5 up",
            "route 192.168.8.0/24 out of interface 5",
            "route fd77::2/128 out of interface 5",
        ]
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_table_that_nftables_refuses_is_tried_again_once_however_often_it_was_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut system = system(folder.path());
    // Whoever asks, and whether `nft` is there or not: this is no rule.
    let chain = NftChain { name: "none".to_owned(), hook: None, rules: vec!["no rule".to_owned()] };
    let table = Change::Nft(NftTable { name: NftName::of_tun("none"), sets: Vec::new(), chains: vec![chain] });
    for _ in 0..3 {
        system.turn_to(vec![table.clone()], Announced::new()).await;
        assert_eq!(system.missing, std::slice::from_ref(&table));
    }
    system.turn_to(Vec::new(), Announced::new()).await;
    assert!(system.missing.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn a_peer_that_went_is_announced_no_more_though_another_has_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut system = system(folder.path());
    let tun = IfIndex::new(5).expect("not zero");
    let config = config("addresses = [\"10.77.0.1/24\"]\n[hub]", "\"192.168.8.0/24\"");
    let key = config.peers[0].public_key;
    system.announcements.insert(key, 7);
    let routes = |system: &mut System| {
        let (wanted, announced) = system.wanted_by(&config, tun).expect("it can be written");
        let all = wanted.iter().chain(announced.values().flatten());
        all.filter(|change| matches!(change, Change::Route(_))).count()
    };
    assert_eq!(routes(&mut system), 1);
    system.forget(&[key]);
    assert_eq!(routes(&mut system), 0);
}

#[test]
fn an_mtu_of_the_configuration_is_set_as_it_is() {
    let config = config("addresses = [\"10.77.0.1/24\"]\nmtu = 1400", "\"192.168.8.0/24\"");
    let mut mtus = Mtus::default();
    mtus.note("home", 1300);
    let said = said(&config, &mtus);
    assert_eq!(
        (said[0].as_str(), said[3].as_str()),
        ("mtu 1400 on interface 5", "route 192.168.8.0/24 out of interface 5")
    );
}

#[test]
fn a_peer_that_takes_less_has_routes_that_say_so_unless_it_is_the_way_to_everywhere() {
    let two = |more: &str| {
        let tun = "addresses = [\"10.77.0.1/24\"]";
        let key = "q7FhFz2qNi2zhvYb1Kuj4ZUIDTlEzb8CyZk7BkvPMFk=";
        let other = format!(
            "\"192.168.8.0/24\"]\n[[peer]]\nname = \"away\"\npublic_key = \"{key}\"\nallowed_ips = [\"10.5.0.0/16\"{more}"
        );
        config(tun, &other)
    };
    let routes = |config: &Config, home: u16, away: u16| {
        let mut mtus = Mtus::default();
        mtus.note("home", home);
        mtus.note("away", away);
        let said = said(config, &mtus);
        [0, 3, 4].map(|place| said[place].clone())
    };
    let route = |net: &str, mtu: &str| format!("route {net} out of interface 5{mtu}");
    let mtu = |mtu: u16| format!("mtu {mtu} on interface 5");
    let apart = two("");
    let (home, away) = ("192.168.8.0/24", "10.5.0.0/16");
    assert_eq!(routes(&apart, 1449, 1449), [mtu(1449), route(home, ""), route(away, "")]);
    assert_eq!(routes(&apart, 1449, 1300), [mtu(1449), route(home, ""), route(away, " mtu 1300")]);
    assert_eq!(routes(&apart, 1280, 1300), [mtu(1300), route(home, " mtu 1280"), route(away, "")]);
    let everywhere = two(", \"0.0.0.0/0\"");
    assert_eq!(routes(&everywhere, 1449, 1300), [mtu(1300), route(home, ""), route(away, "")]);
    assert_eq!(routes(&everywhere, 1280, 1449), [mtu(1449), route(home, " mtu 1280"), route(away, "")]);
}
