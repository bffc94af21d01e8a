//! Two faults at once, where one could hide the other: both are named, and nothing else.

use super::*;
use crate::faketime;

/// A time that no clock of a portal has (faketime(1)).
const LONG_AGO: &str = "@2001-01-01 00:00:00";

#[test]
fn of_two_links_each_has_its_fault_named() {
    assert_found(&[
        (&["no-carrier", "udp-blocked"], listen_to_tcp, |lab, local| {
            both_active(local);
            run(&lab.remote, "ip", "link set one down");
            block_udp(lab);
            local.wait_for("no path", none_up);
        }),
        (&["captive-portal", "rp-filter"], nothing, |lab, local| {
            both_active(local);
            lead_to_a_login(lab);
            lab.local.set_sysctl("ipv4/conf/one/rp_filter", "1").expect("a sysctl");
            wait_for_down(local);
        }),
    ]);
}

#[test]
fn a_link_hides_no_fault_of_a_peer_or_a_route_nor_one_of_them_another() {
    assert_found(&[
        (
            &["name-unknown", "unknown-key"],
            |lab| {
                know_another_key(lab);
                name_nobody(lab);
            },
            |_, local| {
                name_fails(local);
                is_refused(local, "unknown_key");
            },
        ),
        (&["no-route", "preshared-key"], share_a_key, |lab, local| {
            run(&lab.local, "ip", "route delete 198.51.100.0/24 dev two");
            is_refused(local, "preshared_key");
        }),
        (&["data-cap", "other-route"], cap_links, |lab, local| {
            both_active(local);
            take_the_route(lab);
            reach_the_cap(lab, local);
        }),
    ]);
}

#[test]
fn a_wrong_clock_and_a_black_hole_are_both_named() {
    let lab = Lab::new("doctor", "");
    drop_large_packets(&lab);
    let (_remote, local) = (lab.start("remote"), lab.start("local"));
    both_active(&local);
    let preload = format!("LD_PRELOAD={}", faketime::library());
    let by = ["env", &preload, &format!("FAKETIME={LONG_AGO}"), "FAKETIME_DONT_FAKE_MONOTONIC=1"];
    let found = found_by(&lab.local, &lab.path("local.toml"), &by);
    assert_eq!(found, set(&["clock", "mtu-black-hole"]), "{:#?}", local.status());
}

#[test]
fn a_firewall_that_forwards_nothing_and_names_asked_for_past_the_tunnel_are_both_named() {
    let home = Home::new("doctor");
    let _portals = home.start_both();
    nft(&home.local, "table inet fence { chain forward { type filter hook forward priority 0; policy drop; }; }");
    let by = past_the_tunnel(&home);
    let found = found_by(&home.local, &home.path("local.toml"), &by.each_ref().map(String::as_str));
    assert_eq!(found, set(&["dns-outside", "forward-firewall"]));
}
