//! What the system is to have, as text.

use std::net::IpAddr;

use hawser_net::netcfg::{Change, IfIndex};

use super::numbers::Numbers;
use super::plan::{Interface, Layout};
use crate::flow::Protocol;
use crate::route::{Addresses, Destination, InterfaceIndex, Port, Side};

/// An ingress and two egresses, `shim-in`, `shim1` and `shim2`, with addresses that tests can tell apart.
fn layout(ipv6: bool, ipv4: bool) -> Layout {
    let interface = |number: u8| {
        let index = InterfaceIndex::new(number).expect("up to eight");
        let name = if number == 0 { "shim-in".to_owned() } else { format!("shim{number}") };
        let ipv6 = ipv6.then(|| format!("fc00::{number}").parse().expect("an address"));
        let ipv4 = ipv4.then(|| [100, 64, 0, number].into());
        Interface { index, name, interface: index_of(10 + u32::from(number)), addresses: Addresses { ipv6, ipv4 } }
    };
    let range = "100.64.0.0/10".parse().expect("a range");
    Layout {
        numbers: Numbers::of("shim"),
        loopback: index_of(1),
        interfaces: (0..=2).map(interface).collect(),
        ipv4: ipv4.then_some(range),
    }
}

fn index_of(number: u32) -> IfIndex {
    IfIndex::new(number).expect("not zero")
}

/// As text, with names for the tables.
fn said(changes: &[Change]) -> Vec<String> {
    let numbers = Numbers::of("shim");
    let mut named: Vec<(String, String)> = (0..=2)
        .map(|number| {
            let index = InterfaceIndex::new(number).expect("up to eight");
            (format!("table {}", numbers.table(index)), format!("table {index}"))
        })
        .collect();
    named.push((format!("table {}", numbers.closed()), "table closed".to_owned()));
    named.push((format!("mark {:#x}", numbers.mark().0), "mark own".to_owned()));
    let name = |change: &Change| named.iter().fold(change.to_string(), |text, (from, to)| text.replace(from, to));
    changes.iter().map(name).collect()
}

#[test]
fn an_interface_gets_addresses_and_a_table_that_ends_nowhere() {
    let layout = layout(true, true);
    let all = said(&layout.changes().expect("names are plain"));
    let of_one =
        |text: &&String| text.contains("interface 11") || text.contains("shim1/") || text.contains("table egress 1 ");
    let one: Vec<&String> = all.iter().filter(of_one).collect();
    assert_eq!(
        one,
        [
            "sysctl net/ipv6/conf/shim1/disable_ipv6 = 0",
            "sysctl net/ipv6/conf/shim1/addr_gen_mode = 1",
            "sysctl net/ipv6/conf/shim1/accept_ra = 0",
            "sysctl net/ipv6/conf/shim1/autoconf = 0",
            "interface 11 up",
            "address fc00::1/128 on interface 11",
            "address 100.64.0.1/32 on interface 11",
            "route ::/0 out of interface 11 table egress 1 source fc00::1",
            "unreachable route ::/0 out of interface 1 table egress 1 metric 4294967295",
            "route 0.0.0.0/0 out of interface 11 table egress 1 source 100.64.0.1",
            "unreachable route 0.0.0.0/0 out of interface 1 table egress 1 metric 4294967295",
        ]
    );
}

#[test]
fn rules_stand_in_the_order_of_the_story() {
    let rules = |ipv6, ipv4| {
        let mut rules: Vec<String> = said(&layout(ipv6, ipv4).changes().expect("names are plain"));
        rules.retain(|text| text.contains(" rule "));
        rules.sort();
        rules
    };
    assert_eq!(
        rules(false, true),
        [
            "ipv4 rule 4931: from interface shim-in to table closed",
            "ipv4 rule 4931: from interface shim1 to table closed",
            "ipv4 rule 4931: from interface shim2 to table closed",
            "ipv4 rule 4932: from 100.64.0.0/32 to table ingress",
            "ipv4 rule 4932: from 100.64.0.1/32 to table egress 1",
            "ipv4 rule 4932: from 100.64.0.2/32 to table egress 2",
            "ipv4 rule 4933: to 100.64.0.0/10 to table 254",
            "ipv4 rule 4934: from 0.0.0.0/32 to 100.64.0.0/10 to table egress 1",
            "ipv4 rule 4935: to 100.64.0.0/10 to table ingress",
        ]
    );
    let last = rules(true, false).split_off(6);
    assert_eq!(
        last,
        [
            "ipv6 rule 4933: to fc00::/8 to table 254",
            "ipv6 rule 4934: from 8000::/1 to fc00::/8 to table ingress",
            "ipv6 rule 4934: from ::/1 to fc00::/8 to table ingress",
            "ipv6 rule 4935: to fc00::/8 to table egress 1",
        ]
    );
}

fn destination(network: &str, port: u16, side: Side) -> Destination {
    let protocol = Protocol::Tcp;
    Destination { network: network.parse().expect("a network"), port: port.try_into().ok().map(Port), protocol, side }
}

#[test]
fn the_map_takes_clients_that_have_no_address_yet_and_what_it_names_alone() {
    let map = [
        destination("192.0.2.10/32", 443, Side::Scion),
        destination("192.0.2.10/32", 80, Side::Scion),
        destination("198.51.100.0/24", 0, Side::Subflows),
        destination("203.0.113.1/32", 0, Side::Main),
        destination("203.0.113.2/32", 0, Side::Main),
        destination("2001:db8::/32", 0, Side::Scion),
        Destination { protocol: Protocol::Udp, ..destination("192.0.2.10/32", 53, Side::Scion) },
    ];
    assert_eq!(
        said(&layout(true, true).for_map(map.into_iter())),
        [
            "ipv4 rule 4937: from 0.0.0.0/32 to 192.0.2.10/32 protocol 6 to port 443 to table egress 1",
            "ipv4 rule 4937: from 0.0.0.0/32 to 192.0.2.10/32 protocol 6 to port 80 to table egress 1",
            "ipv4 rule 4930: mark own/0xffffffff to table 254",
            "ipv4 rule 4937: from 0.0.0.0/32 to 203.0.113.1/32 protocol 6 to table egress 1",
            "ipv4 rule 4937: from 0.0.0.0/32 to 203.0.113.2/32 protocol 6 to table egress 1",
            "ipv6 rule 4936: from ::/1 to 2001:db8::/32 protocol 6 to table 254",
            "ipv6 rule 4936: from 8000::/1 to 2001:db8::/32 protocol 6 to table 254",
            "ipv6 rule 4937: to 2001:db8::/32 protocol 6 to table egress 1",
            "ipv4 rule 4937: from 0.0.0.0/32 to 192.0.2.10/32 protocol 17 to port 53 to table egress 1",
        ]
    );
    assert_eq!(layout(false, true).for_map([map[5]].into_iter()), [], "without addresses there is no way");
}

#[test]
fn a_namespace_sends_everything_by_its_first_interface() {
    let mut layout = layout(true, true);
    layout.interfaces.remove(0);
    assert_eq!(
        said(&layout.default_routes()),
        ["route ::/0 out of interface 11 source fc00::1", "route 0.0.0.0/0 out of interface 11 source 100.64.0.1"]
    );
    let rules = said(&layout.changes().expect("names are plain"));
    assert!(!rules.iter().any(|text| text.contains("fc00::/8") || text.contains("100.64.0.0/10")), "{rules:?}");
    assert_eq!(layout.interfaces[0].addresses.iter().filter(IpAddr::is_ipv6).count(), 1);
}
