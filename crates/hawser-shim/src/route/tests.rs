//! Addresses and the table.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;

use hawser_scion::{EndpointAddr, IsdAs};
use ipnet::IpNet;
use proptest::prelude::*;

use super::*;
use crate::flow::Protocol;

fn end(text: &str) -> EndpointAddr {
    text.parse().expect("it is a SCION end")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("it is an address")
}

fn entry(network: &str, port: u16, at: &str, side: Side) -> (IpNet, Option<Port>, Protocol, Target) {
    let network = network.parse().expect("it is a network");
    (network, NonZeroU16::new(port).map(Port), Protocol::Tcp, Target { end: end(at), side })
}

/// The same for UDP.
fn udp(network: &str, port: u16, at: &str) -> (IpNet, Option<Port>, Protocol, Target) {
    let (network, port, _, target) = entry(network, port, at, Side::Scion);
    (network, port, Protocol::Udp, target)
}

fn to(table: &RouteTable, address: &str) -> Option<String> {
    to_by(table, Protocol::Tcp, address)
}

fn to_by(table: &RouteTable, protocol: Protocol, address: &str) -> Option<String> {
    table.to(protocol, address.parse().expect("it is an address and port")).map(|target| target.end.to_string())
}

const HOST_A: &str = "1-ff00:0:110,10.110.0.10:31000";
const HOST_B: &str = "2-ff00:0:220,10.220.0.10:31000";
const HOST_6: &str = "[2-ff00:0:220,fd00::1]:31000";

#[test]
fn a_surrogate_address_is_what_it_is_drawn_as() {
    let surrogate = Surrogate { end: ShimEnd::new(end(HOST_A)).expect("it fits"), interface: InterfaceIndex::INGRESS };
    // fc, ISD 1, AS ff00:0:110, interface 0, port 31000 (0x7918), 10.110.0.10.
    assert_eq!(surrogate.address(), "fc00:01ff:0000:0001:1000:7918:0a6e:000a".parse::<Ipv6Addr>().expect("it is one"));
    assert!(SURROGATES.contains(&surrogate.address()));
}

#[test]
fn what_does_not_fit_into_a_surrogate_address_says_why() {
    for (text, why) in [
        (HOST_6, "does not fit"),
        ("1-0,10.0.0.1:31000", "no single AS"),
        ("0-ff00:0:110,10.0.0.1:31000", "no single AS"),
        ("1-ff00:0:110,10.0.0.1:0", "no single host"),
        ("1-ff00:0:110,0.0.0.0:1", "no single host"),
        ("1-ff00:0:110,224.0.0.1:1", "no single host"),
    ] {
        let error = ShimEnd::new(end(text)).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn addresses_of_others_are_no_surrogates() {
    for text in ["::", "2001:db8::1", "fd00::1", "fe80::1", "fc00::", "fc00:1ff:0:1:1009:7918:a6e:a", "fb00:1ff::1"] {
        assert_eq!(Surrogate::of(text.parse().expect("it is one")), None, "{text}");
    }
}

#[test]
fn derived_addresses_are_these() {
    // A change of them would part shims of two versions.
    let table = [(HOST_A, 0, "100.121.204.0"), (HOST_A, 8, "100.121.204.8"), (HOST_6, 0, "100.77.109.160")];
    for (text, index, expect) in table {
        let interface = InterfaceIndex::new(index).expect("there are this many");
        assert_eq!(Derived::new(end(text).into(), DEFAULT_RANGE).address(interface).to_string(), expect, "{text}");
    }
}

#[test]
fn an_interface_has_the_addresses_that_its_host_can_have() {
    let of = |text, range| Addresses::of(end(text), range, InterfaceIndex::INGRESS);
    let both = of(HOST_A, Some(DEFAULT_RANGE)).expect("it has some");
    assert_eq!(both.iter().map(|ip| ip.is_ipv6()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(of(HOST_A, None).expect("it has one").iter().count(), 1);
    let derived = of(HOST_6, Some(DEFAULT_RANGE)).expect("it has one");
    assert!(derived.ipv6.is_none() && derived.ipv4.is_some());
    let error = of(HOST_6, None).expect_err("it has none").to_string();
    assert!(error.contains("ipv4 is switched off"), "{error}");
}

#[test]
fn the_longest_prefix_leads_and_of_equal_ones_that_with_the_port() {
    let (c, d, e) = ("1-1,10.0.0.3:1", "1-1,10.0.0.4:1", "1-1,10.0.0.5:1");
    let table = RouteTable::new(
        Some(DEFAULT_RANGE),
        [
            entry("192.0.2.0/24", 0, HOST_A, Side::Scion),
            entry("192.0.2.10/32", 443, HOST_B, Side::Subflows),
            entry("192.0.2.10/32", 0, c, Side::Main),
            entry("192.0.2.11/32", 80, d, Side::Scion),
            entry("2001:db8::/32", 0, e, Side::Scion),
            // The first one counts.
            entry("192.0.2.0/24", 0, e, Side::Scion),
        ],
    );
    for (address, expect) in [
        ("192.0.2.1:443", Some(HOST_A)),
        ("192.0.2.10:443", Some(HOST_B)),
        ("192.0.2.10:80", Some(c)),
        ("192.0.2.11:80", Some(d)),
        ("192.0.2.11:81", Some(HOST_A)),
        ("192.0.3.1:80", None),
        ("[2001:db8::1]:80", Some(e)),
        ("[2001:db9::1]:80", None),
    ] {
        assert_eq!(to(&table, address).as_deref(), expect, "{address}");
    }
    let side = table.to(Protocol::Tcp, "192.0.2.10:443".parse().expect("it is one")).map(|target| target.side);
    assert_eq!(side, Some(Side::Subflows));
    assert_eq!((table.len(), table.destinations().count()), (5, 5));
}

#[test]
fn surrogates_need_no_entry_and_derived_addresses_a_known_end() {
    let ingress = |at| Addresses::of(end(at), Some(DEFAULT_RANGE), InterfaceIndex::INGRESS).expect("it has some");
    let empty = RouteTable::new(Some(DEFAULT_RANGE), []);
    let [a, b] = [ingress(HOST_A), ingress(HOST_B)];
    let (six, four) = (a.ipv6.expect("it has one"), a.ipv4.expect("it has one"));
    assert_eq!(to(&empty, &format!("[{six}]:80")).as_deref(), Some(HOST_A));
    assert_eq!(to(&empty, &format!("{four}:80")), None);
    let known = empty.with_end(end(HOST_A));
    assert_eq!(to(&known, &format!("{four}:80")).as_deref(), Some(HOST_A));
    assert_eq!(to(&known, &format!("{}:80", b.ipv4.expect("it has one"))), None);
    assert_eq!(to(&RouteTable::default().with_end(end(HOST_A)), &format!("{four}:80")), None, "IPv4 is switched off");
}

#[test]
fn a_host_may_send_from_its_own_and_mapped_addresses_alone() {
    let table = RouteTable::new(
        Some(DEFAULT_RANGE),
        [entry("192.0.2.0/24", 443, HOST_A, Side::Scion), entry("2001:db8::1/128", 0, HOST_B, Side::Scion)],
    );
    let [a, b] = [HOST_A, HOST_B].map(|text| ScionHost::from(end(text)));
    for index in 0..=MAX_EGRESS {
        let interface = InterfaceIndex::new(index).expect("there are this many");
        for own in Addresses::of(end(HOST_A), Some(DEFAULT_RANGE), interface).expect("it has some").iter() {
            assert!(table.may_send(a, Protocol::Tcp, own), "{own}");
            assert!(!table.may_send(b, Protocol::Tcp, own), "{own}");
        }
    }
    for (address, from_a, from_b) in [
        ("192.0.2.77", true, false),
        ("192.0.3.77", false, false),
        ("2001:db8::1", false, true),
        ("127.0.0.1", false, false),
        ("::1", false, false),
    ] {
        assert_eq!(table.may_send(a, Protocol::Tcp, ip(address)), from_a, "{address}");
        assert_eq!(table.may_send(b, Protocol::Tcp, ip(address)), from_b, "{address}");
    }
}

#[test]
fn a_route_is_for_what_it_says_and_derived_addresses_for_both() {
    let both = |network: &str, at: &str| [entry(network, 0, at, Side::Scion), udp(network, 0, at)];
    let of_udp = [udp("192.0.2.10/32", 53, HOST_A), udp("192.0.2.0/24", 0, HOST_B)];
    let entries = of_udp.into_iter().chain(both("198.51.100.0/24", HOST_A)).chain([entry(
        "192.0.2.10/32",
        53,
        HOST_B,
        Side::Scion,
    )]);
    let table = RouteTable::new(Some(DEFAULT_RANGE), entries);
    let derived = Addresses::of(end(HOST_B), Some(DEFAULT_RANGE), InterfaceIndex::INGRESS).expect("it has some");
    let derived = format!("{}:53", derived.ipv4.expect("it has one"));
    for (address, tcp, udp) in [
        ("192.0.2.10:53", Some(HOST_B), Some(HOST_A)),
        ("192.0.2.11:53", None, Some(HOST_B)),
        ("198.51.100.1:1", Some(HOST_A), Some(HOST_A)),
        (&*derived, Some(HOST_B), Some(HOST_B)),
    ] {
        assert_eq!(to_by(&table, Protocol::Tcp, address).as_deref(), tcp, "{address}");
        assert_eq!(to_by(&table, Protocol::Udp, address).as_deref(), udp, "{address}");
    }
    assert_eq!((table.len(), table.destinations().count()), (3, 5), "one for both counts once");
    let b = ScionHost::from(end(HOST_B));
    let may = |protocol, address| table.may_send(b, protocol, ip(address));
    assert_eq!(Protocol::ALL.map(|protocol| may(protocol, "192.0.2.10")), [true, true]);
    assert_eq!(Protocol::ALL.map(|protocol| may(protocol, "192.0.2.11")), [false, true]);
}

#[test]
fn two_hosts_with_the_same_hash_are_told_and_the_first_is_reached() {
    let mut seen = BTreeMap::new();
    let range = "100.64.0.0/20".parse().expect("it is one");
    let (first, second) = (1..)
        .find_map(|number: u32| {
            let end = end(&format!("1-{number},10.0.0.1:31000"));
            seen.insert(Derived::new(end.into(), range), end).map(|first| (first, end))
        })
        .expect("there are 256 places");
    let target = |end| Target { end, side: Side::Scion };
    let network = |last| IpNet::from(IpAddr::from([192, 0, 2, last]));
    let tcp = Protocol::Tcp;
    let entries = [(network(1), None, tcp, target(first)), (network(2), None, tcp, target(second))];
    let table = RouteTable::new(Some(range), entries);
    let address = Derived::new(first.into(), range).address(InterfaceIndex::INGRESS);
    assert_eq!(table.clashes(), [Clash { first, second, address }]);
    assert_eq!(table.to(Protocol::Tcp, SocketAddr::new(address.into(), 80)).map(|target| target.end), Some(first));
}

fn any_end() -> impl Strategy<Value = EndpointAddr> {
    (1u16.., 1u64..1 << 48, any::<Ipv4Addr>(), 1u16..).prop_filter_map("a host's", |(isd, asn, ip, port)| {
        let isd_as = IsdAs::from_bits(u64::from(isd) << 48 | asn);
        let end = EndpointAddr::new(isd_as, SocketAddr::new(ip.into(), port));
        ShimEnd::new(end).is_ok().then_some(end)
    })
}

fn any_interface() -> impl Strategy<Value = InterfaceIndex> {
    (0..=MAX_EGRESS).prop_filter_map("one of them", InterfaceIndex::new)
}

proptest! {
    #[test]
    fn a_surrogate_address_leads_back_to_whom_it_was_made_of(end in any_end(), interface in any_interface()) {
        let surrogate = Surrogate { end: ShimEnd::new(end).expect("it fits"), interface };
        let address = surrogate.address();
        prop_assert_eq!(Surrogate::of(address), Some(surrogate));
        prop_assert_eq!(surrogate.end.endpoint(), end);
        let found = RouteTable::default().to(Protocol::Tcp, SocketAddr::new(address.into(), 80));
        prop_assert_eq!(found, Some(Target { end, side: Side::Scion }));
    }

    #[test]
    fn an_address_that_is_a_surrogate_is_made_of_what_it_says(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(0xfc << 120 | bits >> 8);
        if let Some(surrogate) = Surrogate::of(address) {
            prop_assert_eq!(surrogate.address(), address);
        }
    }

    #[test]
    fn hosts_have_derived_addresses_in_the_range_which_overlap_whole_or_not_at_all(
        a in any_end(), b in any_end(), length in 4u8..=LONGEST_RANGE, base: Ipv4Addr,
    ) {
        let range = ipnet::Ipv4Net::new(base, length).expect("it is a prefix").trunc();
        let [x, y] = [a, b].map(|end| Derived::new(end.into(), range));
        let addresses = |derived: Derived| -> Vec<Ipv4Addr> {
            (0..=MAX_EGRESS).filter_map(InterfaceIndex::new).map(|interface| derived.address(interface)).collect()
        };
        prop_assert!(addresses(x).iter().all(|ip| range.contains(ip)));
        prop_assert_eq!(addresses(x).iter().any(|ip| addresses(y).contains(ip)), x == y);
        for (index, address) in (0..).zip(addresses(x)) {
            let interface = InterfaceIndex::new(index);
            prop_assert_eq!(x.interface(address), interface);
            prop_assert_eq!(Derived::containing(address, range).map(|(of, at)| (of, Some(at))), Some((x, interface)));
        }
    }

    #[test]
    fn nobody_may_send_from_the_addresses_of_another(a in any_end(), b in any_end(), interface in any_interface()) {
        prop_assume!(ScionHost::from(a) != ScionHost::from(b));
        let range = Some(DEFAULT_RANGE);
        prop_assume!(Derived::new(a.into(), DEFAULT_RANGE) != Derived::new(b.into(), DEFAULT_RANGE));
        let table = RouteTable::new(range, []).with_end(a).with_end(b);
        for address in Addresses::of(a, range, interface).expect("it has some").iter() {
            prop_assert!(table.may_send(a.into(), Protocol::Tcp, address));
            prop_assert!(!table.may_send(b.into(), Protocol::Tcp, address));
        }
    }
}
