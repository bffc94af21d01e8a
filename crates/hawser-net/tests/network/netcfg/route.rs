//! Routes asked for per interface, and every reason for there being none.

use std::net::IpAddr;

use hawser_net::netcfg::{IfIndex, Mark, Mtu, NoRoute, RouteError, RouteQuery, Rtnl};

use super::lab::{in_namespace, index, ip, veth};

fn to(destination: &str) -> RouteQuery {
    RouteQuery { destination: address(destination), source: None, interface: None, mark: None }
}

fn out_of(interface: &str, destination: &str) -> RouteQuery {
    RouteQuery { interface: Some(index(interface)), ..to(destination) }
}

fn from(source: &str, query: RouteQuery) -> RouteQuery {
    RouteQuery { source: Some(address(source)), ..query }
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Two interfaces, dsl0 and lte0, each with its gateway; both lead to every destination.
fn two_links() {
    for (near, far, net) in [("dsl0", "dsl1", 1), ("lte0", "lte1", 2)] {
        veth(near, far);
        ip(&format!("addr add 10.0.{net}.1/24 dev {near}"));
        ip(&format!("addr add fd00:{net}::1/64 dev {near} nodad"));
        ip(&format!("link set {far} up"));
        ip(&format!("link set {near} up"));
        ip(&format!("route add default via 10.0.{net}.254 dev {near} metric {net}"));
        ip(&format!("-6 route add default via fd00:{net}::fe dev {near} metric {net}"));
    }
}

#[test]
fn each_interface_has_its_own_way_to_one_destination() {
    in_namespace(|| async {
        two_links();
        ip("rule add fwmark 7 lookup 100");
        ip("-6 rule add fwmark 7 lookup 100");
        ip("route add default dev lte0 table 100 mtu 1300");
        ip("-6 route add default dev lte0 table 100 mtu 1300");
        let rtnl = Rtnl::open().unwrap();
        let marked = |query| RouteQuery { mark: Some(Mark(7)), ..query };
        // query, interface, source, gateway, mtu
        for (query, name, source, gateway, mtu) in [
            (to("192.0.2.1"), "dsl0", "10.0.1.1", Some("10.0.1.254"), 1500),
            (out_of("dsl0", "192.0.2.1"), "dsl0", "10.0.1.1", Some("10.0.1.254"), 1500),
            (out_of("lte0", "192.0.2.1"), "lte0", "10.0.2.1", Some("10.0.2.254"), 1500),
            (from("10.0.2.1", out_of("lte0", "192.0.2.1")), "lte0", "10.0.2.1", Some("10.0.2.254"), 1500),
            (to("10.0.2.9"), "lte0", "10.0.2.1", None, 1500),
            (marked(to("192.0.2.1")), "lte0", "10.0.2.1", None, 1300),
            (to("2001:db8::1"), "dsl0", "fd00:1::1", Some("fd00:1::fe"), 1500),
            (out_of("dsl0", "2001:db8::1"), "dsl0", "fd00:1::1", Some("fd00:1::fe"), 1500),
            (out_of("lte0", "2001:db8::1"), "lte0", "fd00:2::1", Some("fd00:2::fe"), 1500),
            (from("fd00:2::1", out_of("lte0", "2001:db8::1")), "lte0", "fd00:2::1", Some("fd00:2::fe"), 1500),
            (to("fd00:2::9"), "lte0", "fd00:2::1", None, 1500),
            (marked(to("2001:db8::1")), "lte0", "fd00:2::1", None, 1300),
        ] {
            let answer = rtnl.route_get(query).await.unwrap();
            assert_eq!(answer.interface, index(name), "{query:?}");
            assert_eq!(answer.source, Some(address(source)), "{query:?}");
            assert_eq!(answer.gateway, gateway.map(address), "{query:?}");
            assert_eq!(answer.mtu, Mtu(mtu), "{query:?}");
        }
    });
}

async fn reason(rtnl: &Rtnl, query: RouteQuery) -> NoRoute {
    let error: RouteError = rtnl.route_get(query).await.unwrap_err();
    let reason = error.no_route().unwrap_or_else(|| panic!("{query:?}: {error}"));
    let text = error.to_string();
    assert!(text.starts_with("find route to ") && text.ends_with(&reason.to_string()), "{text}");
    reason
}

#[test]
fn every_reason_for_no_route_is_told() {
    in_namespace(|| async {
        two_links();
        let rtnl = Rtnl::open().unwrap();
        let nobody = |destination| RouteQuery { interface: IfIndex::new(4242), ..to(destination) };
        for (family, refusing, default) in [
            ("-4", ["203.0.113.1", "203.0.113.2", "203.0.113.3"], "192.0.2.1"),
            ("-6", ["2001:db8:9::1", "2001:db8:9::2", "2001:db8:9::3"], "2001:db8::1"),
        ] {
            let kinds = [
                ("blackhole", NoRoute::Blackhole),
                ("prohibit", NoRoute::Prohibited),
                ("unreachable", NoRoute::Unreachable),
            ];
            for (destination, (kind, want)) in refusing.into_iter().zip(kinds) {
                ip(&format!("{family} route add {kind} {destination}"));
                assert_eq!(reason(&rtnl, to(destination)).await, want, "{destination}");
            }
            assert_eq!(reason(&rtnl, nobody(default)).await, NoRoute::InterfaceGone, "{family}");
        }
        assert_eq!(reason(&rtnl, from("10.9.9.9", to("192.0.2.1"))).await, NoRoute::SourceNotLocal);
        assert_eq!(reason(&rtnl, from("fd09::9", to("2001:db8::1"))).await, NoRoute::SourceNotLocal);
        assert_eq!(reason(&rtnl, from("fd00:1::1", to("192.0.2.1"))).await, NoRoute::OtherFamily);
        // Without its default route, lte0 leads nowhere: not to a neighbour that happens not to be there.
        ip("route del default dev lte0");
        ip("-6 route del default dev lte0");
        assert_eq!(reason(&rtnl, out_of("lte0", "192.0.2.1")).await, NoRoute::Unreachable);
        assert_eq!(reason(&rtnl, out_of("lte0", "2001:db8::1")).await, NoRoute::Unreachable);
        assert_eq!(reason(&rtnl, from("fd00:2::1", out_of("lte0", "2001:db8::1"))).await, NoRoute::Unreachable);
        ip("link set dsl0 down");
        assert_eq!(reason(&rtnl, out_of("dsl0", "192.0.2.1")).await, NoRoute::InterfaceDown);
        assert_eq!(reason(&rtnl, out_of("dsl0", "2001:db8::1")).await, NoRoute::InterfaceDown);
        assert_eq!(reason(&rtnl, to("192.0.2.1")).await, NoRoute::Unreachable);
        assert_eq!(reason(&rtnl, to("2001:db8::1")).await, NoRoute::Unreachable);
    });
}

#[test]
fn addresses_of_an_interface_are_listed_by_its_name() {
    in_namespace(|| async {
        two_links();
        let rtnl = Rtnl::open().unwrap();
        let found = rtnl.interface_addresses("lte0").await.unwrap().unwrap();
        let mut texts: Vec<_> = found.iter().map(|one| one.address.to_string()).collect();
        texts.sort();
        assert_eq!(texts, ["10.0.2.1/24", "fd00:2::1/64"]);
        assert!(found.iter().all(|one| one.global && one.usable && one.interface == index("lte0")));
        assert_eq!(rtnl.interface_addresses("nobody").await.unwrap(), None);
        ip("addr add fd00:2::77/64 dev lte0");
        let tentative = rtnl.interface_addresses("lte0").await.unwrap().unwrap();
        let new = tentative.iter().find(|one| one.address.to_string() == "fd00:2::77/64").unwrap();
        assert!(!new.usable, "duplicate address detection has just begun");
    });
}
