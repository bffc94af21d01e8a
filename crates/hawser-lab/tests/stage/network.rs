//! The network as it was told: routes, addresses, rates, delays, and nothing left; and the same of a bond's topology.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use hawser_lab::scenario::{Family, Scenario};
use hawser_lab::stage::Ends;
use hawser_lab::topology::{Bond, ENDPOINT, Over};
use hawser_wire::traffic::Towards;
use hawser_wire::{Direction, Way};

use crate::common::{QUESTIONS, Talk, bind, both_of, build, carried, goodput, measured, ms, stage, transfer};

/// A busy link delivers at the wake that is nearest: each way a quarter of a millisecond early (hawser-wire, EARLY).
const EARLY: Duration = Duration::from_micros(500);

#[test]
fn what_has_a_links_address_goes_over_that_link_in_either_family() {
    for family in [Family::V4, Family::V6] {
        let stage = build(&both_of(family), "");
        for index in 0..2 {
            let ends = stage.ends_of(index);
            assert_eq!(ends, Ends { client: stage.links[index].address, server: stage.endpoint });
            let seen = Talk::new(&stage.client, &stage.server, ends).ask_over(&stage, index);
            assert_eq!(seen.ip(), ends.client);
        }
    }
}

#[test]
fn a_socket_bound_to_an_interface_alone_uses_its_link_and_is_answered() {
    let stage = build("", "");
    for link in &stage.links {
        assert_eq!(Talk::ask_by(&stage.local, &link.name, (&stage.remote, stage.endpoint)), link.address);
    }
}

#[test]
fn an_unbound_server_answers_from_the_address_that_was_asked() {
    let stage = build("", "");
    let far = bind(&stage.remote, Ipv4Addr::UNSPECIFIED.into(), 0, ms(2000));
    let port = far.local_addr().expect("it has one").port();
    let near = bind(&stage.local, stage.links[1].address, 0, ms(2000));
    near.connect((stage.endpoint, port)).expect("has a route");
    near.send(b"?").expect("goes");
    let (_, from) = far.recv_from(&mut [0]).expect("arrives");
    far.send_to(b"!", from).expect("goes");
    near.recv(&mut [0]).expect("the answer is from the endpoint");
}

#[test]
fn what_has_the_address_of_a_link_that_is_down_goes_nowhere() {
    let stage = build("", "");
    let near = bind(&stage.local, stage.links[1].address, 0, ms(2000));
    near.send_to(b"?", (stage.endpoint, 9)).expect("has a route");
    stage.cut(1).expect("it is cut");
    let refused = near.send_to(b"?", (stage.endpoint, 9)).expect_err("it has none, though the other link has");
    assert_eq!(refused.kind(), std::io::ErrorKind::HostUnreachable, "{refused}");
}

#[test]
fn every_link_reaches_every_interface_of_a_server_that_has_several() {
    for nat in [false, true] {
        let stage = build(&format!("server-links = true\nnat = {nat}"), "");
        for (near, far) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let ends = Ends { client: stage.links[near].address, server: stage.links[far].far_address };
            Talk::new(&stage.client, &stage.server, ends).ask_over(&stage, near);
        }
        for near in 0..2 {
            let ends = Ends { client: stage.links[near].address, server: stage.endpoint };
            Talk::new(&stage.client, &stage.server, ends).ask().expect("the endpoint answers");
        }
    }
}

#[test]
fn a_router_that_translates_shows_its_own_address() {
    let stage = build("nat = true", "");
    for index in 0..2 {
        let seen = Talk::new(&stage.client, &stage.server, stage.ends_of(index)).ask().expect("answers");
        assert_ne!(seen.ip(), stage.links[index].address);
        assert!((20_000..24_000).contains(&seen.port()), "{seen}");
    }
}

#[test]
fn links_have_the_rates_and_delays_they_were_told() {
    measured(|| {
        let stage = build("", "");
        for (index, mbps, delay) in [(0, 20.0, 5), (1, 10.0, 20)] {
            let got = goodput(&stage, stage.ends_of(index));
            assert!((0.9 * mbps..=mbps).contains(&got), "link {index}: {got} Mbit/s of {mbps}");
            let trip = Talk::new(&stage.client, &stage.server, stage.ends_of(index)).trip();
            assert!((ms(2 * delay) - EARLY..ms(2 * delay + 5)).contains(&trip), "link {index}: {trip:?}");
        }
    });
}

#[test]
fn hosts_behind_portals_reach_each_other_over_the_links_that_are_told_and_not_before() {
    for family in [Family::V4, Family::V6] {
        let stage = build(&format!("inner = \"{family}\"\nlan = true"), "");
        let talk = Talk::new(&stage.client, &stage.server, stage.hosts);
        assert!(talk.ask_within(ms(200)).is_err(), "there is no way without a tunnel");
        for index in [1, 0] {
            assert_eq!(stage.forward_over(&[index]).expect("routes"), stage.hosts);
            assert_eq!(talk.ask_over(&stage, index).ip(), stage.hosts.client);
        }
        stage.stop_forwarding().expect("undone");
        assert!(talk.ask_within(ms(200)).is_err(), "it is as before");
    }
}

#[test]
fn flows_are_spread_over_all_links_with_a_lan_and_without() {
    for (lan, family) in [(false, Family::V4), (true, Family::V4), (false, Family::V6), (true, Family::V6)] {
        let stage = build(&format!("lan = {lan}\ninner = \"{family}\""), "");
        let ends = stage.forward_over(&[0, 1]).expect("routes");
        let before = [carried(&stage, 0), carried(&stage, 1)];
        for _ in 0..24 {
            Talk::new(&stage.client, &stage.server, ends).ask().expect("answers");
        }
        for (index, before) in before.into_iter().enumerate() {
            for (now, before) in carried(&stage, index).into_iter().zip(before) {
                let flows = now - before;
                assert!((4..=20).contains(&flows), "link {index}, lan {lan}, {family:?}: {flows} of 24");
            }
        }
        stage.stop_forwarding().expect("undone");
    }
}

#[test]
fn a_cases_sysctls_are_the_hosts_own() {
    for lan in [false, true] {
        let of_one = r#""client:ipv4/tcp_recovery" = "3", "server:ipv4/tcp_recovery" = "5""#;
        let case = format!(r#"sysctls = {{ "ipv4/tcp_reordering" = "7", {of_one} }}"#);
        let stage = build(&format!("lan = {lan}"), &case);
        let read = |key: &str| [&stage.client, &stage.server].map(|host| host.sysctl(key).expect("it is there"));
        assert_eq!(read("ipv4/tcp_reordering"), ["7", "7"]);
        assert_eq!(read("ipv4/tcp_recovery"), ["3", "5"]);
    }
}

#[test]
fn bystanders_have_a_link_of_their_own() {
    for (lan, server_links) in [(false, false), (true, false), (false, true)] {
        let bystander = r#"bystander = [{ name = "tcp1", rate = "5M" }, { name = "tcp2", rate = "5M" }]"#;
        let stage = build(&format!("{bystander}\nlan = {lan}\nserver-links = {server_links}"), "");
        assert_eq!(stage.bystanders.len(), 2);
        let before = [carried(&stage, 0)[0], carried(&stage, 1)[0]];
        for beside in &stage.bystanders {
            let talk = Talk::new(&beside.host, &stage.server, beside.ends);
            for _ in 0..QUESTIONS {
                assert_eq!(talk.ask().expect("answers").ip(), beside.ends.client);
            }
            assert!(beside.link.counters(Way::AToB).packets_out >= QUESTIONS, "{}", beside.name);
        }
        for (index, before) in before.into_iter().enumerate() {
            assert!(carried(&stage, index)[0] - before < QUESTIONS, "the client's links carry none of it");
        }
    }
}

#[test]
fn those_on_one_medium_share_it() {
    measured(|| {
        let shared = r#"{ rate = "10M", delay = "2ms", medium = "air" }"#;
        let stage = build("", &format!("change = {{ wifi = {shared}, eth = {shared} }}"));
        let transfers = [0, 1].map(|index| {
            let mut transfer = transfer(&stage, stage.ends_of(index), ms(3000));
            transfer.destination.set_port(5001 + u16::try_from(index).expect("few"));
            transfer.start().expect("starts")
        });
        let goodputs = transfers.map(|transfer| {
            let got = transfer.finish().expect("it ran");
            got.mbps_between(got.start() + ms(1000), got.start() + ms(3000))
        });
        let sum: f64 = goodputs.iter().sum();
        assert!((7.0..=10.0).contains(&sum), "{sum} Mbit/s of one medium's 10");
    });
}

#[test]
fn nothing_is_left_of_a_stage() {
    let ours = || -> Vec<String> {
        let mine = format!("-{}-", std::process::id());
        let names = std::fs::read_dir("/run/netns").expect("it is there").flatten();
        names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.contains(&mine)).collect()
    };
    let stage = build("lan = true\nserver-links = true\nnat = true", "");
    let hosts = [&stage.client, &stage.local, &stage.remote, &stage.server].into_iter();
    let hosts = hosts.chain(stage.links.iter().map(|link| &link.router));
    let made: Vec<String> = hosts.map(|host| host.name().to_owned()).collect();
    assert!(made.iter().all(|name| ours().contains(name)), "{made:?}");
    drop(stage);
    assert!(!made.iter().any(|name| ours().contains(name)), "{made:?}");
}

#[test]
fn a_scenarios_profiles_carry_what_their_media_do() {
    measured(|| {
        let text = r#"
            name = "media"
            network.link = [{ name = "eth", profile = "ethernet-100" }, { name = "wifi", profile = "802.11n" }]
            contender = [{ kind = "tcp" }]
            workload = [{ kind = "bulk" }]
        "#;
        let scenario = Scenario::parse(text, "media.toml", None).expect("it is right");
        let stage = stage(&scenario);
        // Full packets of 1448 bytes of 1538 on Ethernet's wire; Barreira's table 6.1 has 43.8 over Wi-Fi.
        for (index, mbps) in [(0, 91.0..=94.2), (1, 38.0..=48.0)] {
            let got = goodput(&stage, stage.ends_of(index));
            assert!(mbps.contains(&got), "{}: {got} Mbit/s", stage.links[index].name);
        }
    });
}

/// The topology of a bond, whose links carry these rates, in Mbit/s.
fn bond(rates: &[f64]) -> Bond {
    let plans: Vec<_> = rates.iter().map(|mbps| Direction::shaped(*mbps, ms(5), ms(100)).both_ways()).collect();
    Bond::new(&plans).expect("the topology stands (these tests need root)")
}

/// Asks the endpoint by each link, and sees that it was asked from the link's address.
fn ask_over_each(bond: &Bond, links: u8) {
    for number in 1..=links {
        let from = Talk::ask_by(&bond.local, &bond.interface(usize::from(number) - 1), (&bond.remote, ENDPOINT.into()));
        assert_eq!(from, IpAddr::from([10, 10, number, 2]));
    }
}

/// Mbit/s of a transfer without a tunnel.
fn plain_goodput(bond: &Bond, towards: Towards) -> f64 {
    let got = bond.transfer(towards, Over::LinkOne, ms(1500)).run().expect("it runs");
    got.mbps_between(got.start() + ms(500), got.start() + ms(1500))
}

#[test]
fn every_link_of_a_bond_has_its_own_way_to_the_one_endpoint() {
    ask_over_each(&bond(&[50.0, 30.0, 20.0]), 3);
}

#[test]
fn links_that_share_a_bottleneck_have_addresses_of_their_own_and_one_rate() {
    let way = Direction::shaped(20.0, ms(5), ms(50));
    let bond = Bond::sharing(2, &way, &way).expect("the topology stands (these tests need root)");
    ask_over_each(&bond, 2);
    let rate = plain_goodput(&bond, Towards::Server);
    assert!((15.0..=20.0).contains(&rate), "{rate} Mbit/s");
    let [bottleneck] = bond.links.as_slice() else { panic!("{} emulated links", bond.links.len()) };
    assert!(bottleneck.counters(Way::AToB).packets_sent > 1000, "all went through it");
}

#[test]
fn a_plain_transfer_fills_link_one_both_ways() {
    let bond = bond(&[40.0, 20.0]);
    for towards in [Towards::Server, Towards::Client] {
        let rate = plain_goodput(&bond, towards);
        assert!((36.0..=40.0).contains(&rate), "{rate} Mbit/s {towards:?}");
    }
}
