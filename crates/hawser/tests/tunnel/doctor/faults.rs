//! One fault at a time.

use hawser_wire::{Direction, Loss, Probability, Way};

use super::*;
use crate::names;

#[test]
fn an_interface_that_is_missing_down_unplugged_or_without_address_is_named() {
    assert_found(&[
        (&["no-interface"], |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"three\""), first_active),
        (&["interface-down"], nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "link set two down");
        }),
        (&["no-carrier"], nothing, |lab, local| {
            both_active(local);
            run(&lab.remote, "ip", "link set two down");
        }),
        (&["no-address"], nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "address flush dev two");
        }),
        (
            &["other-address"],
            |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\naddress = \"192.0.2.9\""),
            first_active,
        ),
    ]);
}

#[test]
fn a_link_without_a_route_or_with_a_silent_gateway_is_named() {
    assert_found(&[
        (&["no-route"], nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "route delete 198.51.100.0/24 dev two");
        }),
        (&["rp-filter"], nothing, |lab, local| {
            both_active(local);
            lab.local.set_sysctl("ipv4/conf/two/rp_filter", "1").expect("a sysctl");
        }),
        (&["gateway-silent"], nothing, |lab, local| {
            both_active(local);
            run(&lab.remote, "ip", "address delete 192.0.2.2/24 dev two");
            run(&lab.local, "ip", "neighbour flush dev two");
            wait_for_down(local);
        }),
    ]);
}

#[test]
fn what_does_not_pass_by_a_link_is_named() {
    assert_found(&[
        (&["nothing-passes"], nothing, |lab, local| {
            both_active(local);
            nft(&lab.remote, &format!("{CUT}drop; }}; }}"));
            wait_for_down(local);
        }),
        (&["udp-blocked"], listen_to_tcp, |lab, local| {
            both_active(local);
            block_udp(lab);
            wait_for_down(local);
        }),
        (
            // By a link that lacks the IP version of the first endpoint.
            &["udp-blocked"],
            |lab| {
                listen_to_tcp(lab);
                lab.edit("local.toml", "endpoints = [", "endpoints = [\"[fd98::7]:4920\", ");
                run(&lab.local, "ip", "-6 address flush dev two");
            },
            |lab, local| {
                both_active(local);
                block_udp(lab);
                wait_for_down(local);
            },
        ),
        (&["captive-portal"], nothing, |lab, local| {
            both_active(local);
            lead_to_a_login(lab);
            wait_for_down(local);
        }),
        (
            &["no-handshake"],
            |lab| {
                nft(
                    &lab.remote,
                    "table inet cut { chain input { type filter hook input priority 0; udp dport 4920 drop; }; }",
                )
            },
            |_, _| {
                std::thread::sleep(ms(1_500));
            },
        ),
        (
            &["tcp-closed"],
            |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\ntransport = \"tcp\""),
            first_active,
        ),
    ]);
}

#[test]
fn what_does_not_pass_to_an_endpoint_that_is_a_name_is_named() {
    let lab = names::lab("doctor", &format!("\"{}:4920\"", names::NAME));
    let _server = names::NameServer::start(&lab.remote, parse(ENDPOINT));
    listen_to_tcp(&lab);
    let (_remote, local) = (lab.start("remote"), names::start(&lab));
    both_active(&local);
    block_udp(&lab);
    wait_for_down(&local);
    let by = resolving_by(&lab.path("resolv.conf"));
    let found = found_by(&lab.local, &lab.path("local.toml"), &by.each_ref().map(String::as_str));
    assert_eq!(found, set(&["udp-blocked"]));
}

#[test]
fn a_portal_that_is_not_there_or_does_not_know_the_other_is_named() {
    let lab = Lab::new("doctor", "");
    let file = lab.path("local.toml");
    let is = |names: &[&str]| assert_eq!(found(&lab.local, &file), names.iter().map(|&name| name.to_owned()).collect());
    let remote = lab.start("remote");
    is(&["not-running"]);
    let local = lab.start("local");
    both_active(&local);
    drop(remote);
    wait_for_down(&local);
    local.wait_for("no path", |status| paths(status).iter().all(|path| path.state != PathState::Active));
    is(&["port-closed"]);

    drop(local);
    assert_found(&[
        (&["preshared-key"], share_a_key, |_, local| is_refused(local, "preshared_key")),
        (&["unknown-key"], know_another_key, |_, local| is_refused(local, "unknown_key")),
    ]);
}

#[test]
fn a_configuration_or_a_key_that_is_broken_is_named() {
    let lab = Lab::new("doctor", "");
    let (local, _remote) = lab.start_both();
    std::fs::rename(lab.path("local.key"), lab.path("elsewhere.key")).expect("renamed");
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["key".to_owned()]));
    lab.write("local.toml", "[portal]\n");
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["configuration".to_owned()]));
    drop(local);
}

#[test]
fn packets_that_go_elsewhere_or_are_dropped_are_named() {
    assert_found(&[
        (&["other-route"], nothing, |lab, local| {
            both_active(local);
            take_the_route(lab);
        }),
        (&["address-twice"], nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "address add 10.77.0.2/32 dev lo");
        }),
        (&["drops"], nothing, |lab, local| {
            both_active(local);
            lab.ping("10.77.0.99", ms(5), ms(300)).run().expect("a ping");
            local.wait_for("drops", |status| status.drops.get("no_peer").is_some_and(|count| *count >= 40));
        }),
        (&["data-cap"], cap_links, |lab, local| {
            both_active(local);
            reach_the_cap(lab, local);
        }),
    ]);
}

#[test]
fn a_link_that_loses_packets_is_named() {
    let lab = Lab::new("doctor", "");
    let links = ["one", "two"].map(|link| lab.emulate(link, &Direction::shaped(20.0, ms(5), ms(50))));
    let (local, _remote) = lab.start_both();
    for (link, way) in links.iter().flat_map(|link| Way::BOTH.map(|way| (link, way))) {
        link.set(way, |way| way.loss = Loss::Random(Probability::new(0.15).expect("a share"))).expect("it can be set");
    }
    let flow = bulk(&lab, ms(8_000)).start().expect("a flow");
    local.wait_for("loss", |status| paths(status).iter().any(|path| path.loss_pct >= 5.0));
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["loss".to_owned()]));
    flow.finish().expect("a flow");
}

#[test]
fn a_link_with_a_long_round_trip_is_named() {
    let lab = Lab::new("doctor", "");
    let _link = lab.emulate("two", &Direction::shaped(20.0, ms(420), ms(50)));
    let (local, _remote) = lab.start_both();
    local.wait_for("a measured round trip", |status| {
        paths(status).iter().any(|path| path.rtt_ms.is_some_and(|rtt| rtt >= 820.0))
    });
    assert_eq!(found(&lab.local, &lab.path("local.toml")), set(&["slow"]));
}

#[test]
fn a_gateway_whose_packets_go_past_it_is_named() {
    let home = Home::new("doctor");
    let (local, remote) = home.start_both();
    let here = |by: &[&str]| found_by(&home.local, &home.path("local.toml"), by);
    let there = || found(&home.remote, &home.path("remote.toml"));
    let only = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!((here(&[]), there()), (BTreeSet::new(), BTreeSet::new()), "nothing is wrong");

    run(&home.local, "ip", "rule add lookup main priority 50");
    assert_eq!(here(&[]), only("internet-outside"));
    run(&home.local, "ip", "rule delete lookup main priority 50");

    assert_eq!(here(&past_the_tunnel(&home).each_ref().map(String::as_str)), only("dns-outside"));

    run(&home.local, "ip", "link set lan0 down");
    assert_eq!(here(&[]), only("gateway-interface-down"));
    run(&home.local, "ip", "link delete lan0");
    assert_eq!(here(&[]), only("no-gateway-interface"));

    nft(&home.remote, "table inet fence { chain forward { type filter hook forward priority 0; policy drop; }; }");
    assert_eq!(there(), only("forward-firewall"));
    run(&home.remote, "nft", "delete table inet fence");
    home.remote.set_sysctl("ipv4/conf/eth0/forwarding", "0").expect("a sysctl");
    assert_eq!(there(), only("no-forwarding"));
    home.remote.set_sysctl("ipv4/conf/eth0/forwarding", "1").expect("a sysctl");
    run(&home.remote, "ip", "tuntap add dev other0 mode tun");
    run(&home.remote, "ip", "address add 10.66.0.2/24 dev other0");
    run(&home.remote, "ip", "link set other0 up");
    run(&home.remote, "ip", "route add default dev other0 metric 1");
    assert_eq!(there(), only("other-masquerade"));
    drop((local, remote));
}

#[test]
fn an_ip_version_that_goes_past_the_tunnel_is_named() {
    let home = Home::new("doctor");
    home.edit("local.toml", ", \"fd77::2/64\"", "");
    home.edit("local.toml", ", \"::/0\"", "");
    let (_local, _remote) = home.start();
    assert_eq!(found(&home.local, &home.path("local.toml")), BTreeSet::from(["leak".to_owned()]));
}

#[test]
fn a_link_that_fell_back_and_a_name_that_nobody_knows_are_named() {
    assert_found(&[
        (
            &["fallen-back"],
            |lab| {
                lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\ntransport = \"auto\"");
                listen_to_tcp(lab);
                block_udp(lab);
            },
            |_, local| {
                local.wait_for("the second link by TCP", |status| {
                    paths(status).iter().any(|path| path.transport == "tcp" && path.state == PathState::Active)
                });
            },
        ),
        (&["name-unknown"], name_nobody, |_, local| {
            both_active(local);
            name_fails(local);
        }),
    ]);
}

#[test]
fn what_large_packets_do_not_pass_and_who_forgets_a_quiet_flow_are_named() {
    assert_found(&[
        (&["mtu-black-hole"], drop_large_packets, |_, local| both_active(local)),
        // Large ones may be lost as others are: before the portal's search is over nobody knows.
        (&[], drop_large_packets_and_echo_requests, |_, local| both_active(local)),
        (
            &["small-mtu"],
            |lab| {
                lab.edit("local.toml", LINK_ONE, "");
                for host in [&lab.local, &lab.remote] {
                    run(host, "ip", "link set two mtu 1200");
                }
            },
            |lab, local| {
                first_active(lab, local);
                bulk(lab, ms(500)).run().expect("a flow");
                local.wait_for("the size that passes", |status| paths(status).iter().all(|path| path.mtu < 1200));
            },
        ),
        // Of this host's own firewall, which looks at states.
        (
            &["nat-memory"],
            |lab| {
                nft(
                    &lab.local,
                    "table inet states { chain input { type filter hook input priority 0; ct state established accept; }; }",
                );
                forget_after(&lab.local, 5);
            },
            |_, local| both_active(local),
        ),
    ]);
    let (lab, _nat) = behind_a_nat(4);
    let (_remote, local) = (lab.start("remote"), lab.start("local"));
    first_active(&lab, &local);
    assert_eq!(found(&lab.local, &lab.path("local.toml")), set(&["nat-memory"]));
}
