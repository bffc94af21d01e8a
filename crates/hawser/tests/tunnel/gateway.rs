//! The local portal as the gateway of a network, the remote one as its way into the world.

use std::net::IpAddr;
use std::time::Duration;

use hawser_portal::api::PathState;
use hawser_wire::Namespace;
use rustix::process::Signal;

use crate::home::{CLIENT, HUB, Home, WORLD, nft, run};
use crate::lab::{Portal, ms, parse, states};
use crate::talk::{talk, tcp};

/// The inner addresses of the remote portal.
const INNER_HUB: [&str; 2] = ["10.77.0.1", "fd77::1"];

/// Everybody reaches everybody whom they should, and is known by the right address.
fn assert_all_talk(home: &Home) {
    let Home { client, local, remote, world, .. } = home;
    for family in [0, 1] {
        let known = talk(client, world, WORLD[family]);
        assert_eq!(known, HUB[family], "the world knows the client by the remote portal's address");
        assert_eq!(talk(local, world, WORLD[family]), HUB[family], "and the local portal's host too");
        assert_eq!(talk(remote, client, CLIENT[family]), INNER_HUB[family], "the client is reached from there");
        assert_eq!(talk(client, remote, INNER_HUB[family]), CLIENT[family], "by its own address");
    }
}

/// What a link carried by both directions.
fn assert_both_links_carry(local: &Portal) {
    local.wait_for("both links to carry", |status| {
        states(status) == [PathState::Active; 2] && status.peers[0].paths.iter().all(|path| path.tx_bytes > 0)
    });
    assert!(!local.log().contains("link has no route"), "{}", local.log());
}

#[test]
fn a_client_behind_the_local_portal_reaches_the_world_by_the_remote_one() {
    let home = Home::new("gate");
    let (local, _remote) = home.start_both();
    assert_all_talk(&home);
    assert_both_links_carry(&local);
    assert!(!local.log().contains("forwarded packets are dropped"), "{}", local.log());
}

#[test]
fn all_that_works_among_strict_filters_rules_of_others_and_a_firewall_too() {
    let home = Home::new("dirty");
    home.make_dirty();
    let listens = |link: &str| home.local.sysctl(&format!("ipv6/conf/{link}/accept_ra")).expect("a sysctl");
    home.local.set_sysctl("ipv6/conf/one/accept_ra", "1").expect("a sysctl");
    let before = home.footprints();
    let (mut local, mut remote) = home.start_both();
    assert_all_talk(&home);
    assert_both_links_carry(&local);
    assert_eq!([listens("one"), listens("two")], ["2", "0"], "who heard of routers still does");
    // A rule for one address is meant, and stays before the tunnel's.
    let route = run(&home.local, "ip", &format!("route get {} from 192.0.2.1", WORLD[0]));
    assert!(route.contains("dev two table 100"), "{route}");
    // So does one whose table leaves all but its own network to others.
    let route = run(&home.local, "ip", "route get 100.64.0.7");
    assert!(route.contains("dev lan0 table 52"), "{route}");
    assert!(!local.log().contains("forwarded packets are dropped"), "{}", local.log());
    end(&mut local, &mut remote);
    home.assert_same(&before, "after both were told to end");
}

#[test]
fn links_over_ipv6_and_links_without_an_interface_stay_off_the_tunnel_too() {
    let v6 = [("local.toml", "198.51.100.7:4920", "[fd98::7]:4920"), ("remote.toml", "0.0.0.0:4920", "[::]:4920")];
    let by_address = [
        ("local.toml", "interface = \"one\"", "address = \"192.0.1.1\""),
        ("local.toml", "interface = \"two\"", "address = \"192.0.2.1\""),
    ];
    for (edits, mtu) in [(v6, 1421), (by_address, 1441)] {
        let home = Home::new("off");
        for (name, from, to) in edits {
            home.edit(name, from, to);
        }
        let (local, _remote) = home.start();
        local.wait_for_log(&format!("tun mtu mtu={mtu}"));
        for (destination, known) in WORLD.into_iter().zip(HUB) {
            assert_eq!(talk(&home.client, &home.world, destination), known);
        }
        assert_both_links_carry(&local);
    }
}

fn end(local: &mut Portal, remote: &mut Portal) {
    for portal in [local, remote] {
        portal.signal(Signal::TERM);
        assert!(portal.wait().success(), "{}", portal.log());
    }
}

#[test]
fn nothing_is_left_of_it_when_portals_end_or_when_they_were_killed_and_started_again() {
    let home = Home::new("undo");
    nft(&home.remote, "table ip others { chain postrouting { type nat hook postrouting priority 100; }; }");
    let before = home.footprints();
    let (mut local, mut remote) = home.start_both();
    let during = home.footprints();
    assert!(during[0] != before[0] && during[1] != before[1]);
    end(&mut local, &mut remote);
    home.assert_same(&before, "after the end");
    let (mut local, mut remote) = home.start_both();
    for portal in [&mut local, &mut remote] {
        portal.signal(Signal::KILL);
        portal.wait();
    }
    assert!(run(&home.local, "ip", "rule").contains("fwmark"), "a killed one leaves something");
    assert!(run(&home.remote, "nft", "list ruleset").contains("masquerade"), "a killed one leaves something");
    let (mut local, mut remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0]);
    end(&mut local, &mut remote);
    home.assert_same(&before, "after a kill, a new start and its end");
}

#[test]
fn connections_stand_where_no_router_may_say_what_does_not_fit() {
    let home = Home::new("mss");
    let (_local, _remote) = home.start_both();
    for namespace in [&home.client, &home.world] {
        let silence = "table inet silence { chain input { type filter hook input priority 0; \
            icmp type destination-unreachable drop; icmpv6 type packet-too-big drop; }; }";
        nft(namespace, silence);
    }
    for destination in WORLD {
        tcp(&home.client, &home.world, parse::<IpAddr>(destination));
    }
}

/// What `ping` says of one request of this many bytes that may not be cut.
fn ping_whole(from: &Namespace, destination: &str, bytes: usize) -> String {
    let arguments = format!("-n -c 3 -i 0.2 -W 2 -M do -s {bytes} {destination}");
    let output = from.command("ping").args(arguments.split(' ')).output().expect("run ping (iputils-ping)");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_does_not_fit_the_tunnel_is_told_to_who_sent_it() {
    let home = Home::new("ptb");
    // Without translation, so that the world too can send something too long.
    home.edit("remote.toml", "[nat]\nmasquerade = \"eth0\"", "[gateway]\nserve = [\"eth0\"]");
    let [hub, hub_v6] = HUB;
    run(&home.router, "ip", &format!("route add 192.168.8.0/24 via {hub}"));
    run(&home.router, "ip", &format!("-6 route add fd08::/64 via {hub_v6}"));
    let (_local, _remote) = home.start_both();
    for (from, destinations) in [(&home.client, WORLD), (&home.world, CLIENT)] {
        // The headers of IP and ICMP, before what `ping` is told to send.
        for (destination, headers) in destinations.into_iter().zip([20 + 8, 40 + 8]) {
            let said = ping_whole(from, destination, 1500 - headers);
            assert!(said.to_lowercase().contains("mtu") && said.contains("1441"), "{destination}: {said}");
            let said = ping_whole(from, destination, 1441 - headers);
            assert!(said.contains(" 0% packet loss"), "{destination}: {said}");
        }
    }
}

#[test]
fn a_neighbour_of_the_remote_portal_does_not_get_in() {
    let home = Home::new("guard");
    let [hub, hub_v6] = HUB;
    run(&home.router, "ip", &format!("route add 192.168.8.0/24 via {hub}"));
    run(&home.router, "ip", &format!("-6 route add fd08::/64 via {hub_v6}"));
    let (_local, _remote) = home.start_both();
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), hub, "answers come in");
    for destination in CLIENT {
        let said = ping_whole(&home.world, destination, 56);
        assert!(said.contains("100% packet loss"), "{destination}: {said}");
    }
}

#[test]
fn a_network_added_while_the_portal_runs_is_translated_too() {
    let home = Home::new("later");
    let (_local, remote) = home.start_both();
    let rules = || run(&home.remote, "nft", "list ruleset");
    assert!(rules().contains("192.168.8.0/24") && !rules().contains("192.168.9.0/24"), "{}", rules());
    home.edit("remote.toml", "\"192.168.8.0/24\"", "\"192.168.8.0/24\", \"192.168.9.0/24\"");
    // Others read their rules anew, and flush ours with theirs.
    run(&home.remote, "nft", "flush ruleset");
    remote.signal(Signal::HUP);
    remote.wait_for_log("configuration read again: changed sections=\"peer\"");
    assert!(rules().contains("192.168.8.0/23"), "the portal may still change it: {}; log:\n{}", rules(), remote.log());
    assert_eq!(talk(&home.client, &home.world, WORLD[0]), HUB[0]);
    // The same where nothing else changed.
    run(&home.remote, "nft", "flush ruleset");
    remote.signal(Signal::HUP);
    remote.wait_for_log("configuration read again: nothing has changed");
    assert!(rules().contains("192.168.8.0/23"), "{}; log:\n{}", rules(), remote.log());
}

#[test]
fn a_firewall_of_others_that_forwards_nothing_is_told_of() {
    let home = Home::new("drop");
    nft(&home.local, "table inet firewall { chain forward { type filter hook forward priority 0; policy drop; }; }");
    let (local, _remote) = home.start_both();
    local.wait_for_log("forwarded packets are dropped unless it accepts those of the tun");
    assert!(local.log().contains("table inet firewall chain forward"), "{}", local.log());
}

/// How long a client's default route may take to work again after an interface came back.
const BACK_MAX: Duration = Duration::from_secs(5);

#[test]
fn an_interface_of_the_network_may_come_later() {
    let home = Home::new("hotplug");
    home.edit("local.toml", "[\"lan0\"]", "[\"lan0\", \"lan1\"]");
    let (_local, _remote) = home.start_both();
    run(&home.local, "ip", "link add lan1 type veth peer name lan2");
    let end = std::time::Instant::now() + BACK_MAX;
    let forwarding = || home.local.sysctl("ipv4/conf/lan1/forwarding").expect("a sysctl");
    while forwarding() != "1" {
        assert!(std::time::Instant::now() < end, "it does not forward");
        std::thread::sleep(ms(20));
    }
}
