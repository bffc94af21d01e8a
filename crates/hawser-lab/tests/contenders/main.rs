//! Contenders on real networks: up, traffic both ways, down, and nothing left. Needs root.

mod ground;
mod mptcp;

use std::process::Command;
use std::time::Duration;

use ground::{Ground, HOUSEKEEPING, IPV6, ip};
use hawser_lab::LabError;
use hawser_lab::contender::Transport;

#[test]
fn tcp_takes_the_link_that_carries_most_and_leaves_the_stage_as_it_was() {
    for network in ["", "lan = true", IPV6] {
        let ground = Ground::new(network, &[("slow", 5.0), ("fast", 20.0)]);
        let contest = ground.up("tcp", "");
        assert_eq!(contest.offer.socket, Transport::Tcp);
        contest.assert_both_ways();
        assert!(contest.carried("fast") > 20 * contest.carried("slow"), "{network}");
        let mbps = contest.rate(Duration::from_secs(2));
        assert!((14.0..=21.0).contains(&mbps), "{mbps} Mbit/s over a link of 20: {network}");
        contest.down();
    }
}

#[test]
fn tcp_takes_the_link_that_it_is_told() {
    let ground = Ground::new("", &[("slow", 5.0), ("fast", 20.0)]);
    let contest = ground.up("tcp", "link = \"slow\"");
    contest.assert_both_ways();
    let unbound = ip(&ground.stage.client, &format!("route get {}", contest.offer.ends.server));
    assert!(unbound.contains("dev slow"), "an application that binds no address goes elsewhere: {unbound}");
    assert!(contest.carried("slow") > 20 * contest.carried("fast"));
    contest.down();
    let error = ground.refused("tcp", "link = \"lte\"").to_string();
    assert_eq!(error, "set up tcp: there is no link \"lte\" in this case, but: slow, fast");
}

#[test]
fn ecmp_spreads_flows_over_all_links_and_leaves_the_stage_as_it_was() {
    for network in ["", "lan = true", IPV6] {
        let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
        let contest = ground.up("ecmp", "");
        assert_eq!(contest.offer.socket, Transport::Tcp);
        contest.assert_both_ways();
        // Each flow takes one of both with even chance, and weighs some 400 bytes: that fewer than six of 64 take one
        // of them happens once in 10^12 times.
        contest.assert_flows(64);
        let [wifi, eth] = ["wifi", "eth"].map(|link| contest.carried(link));
        assert!(wifi.min(eth) > 2_000, "{network}: {wifi} and {eth} bytes");
        contest.down();
    }
}

#[test]
fn wireguard_go_runs_on_the_link_that_it_is_told_and_is_missing_by_name_without_go() {
    let has_go = Command::new("go").arg("version").output().is_ok();
    for network in ["", "lan = true", IPV6] {
        if has_go {
            runs_on_eth(network, "wireguard-go", "link = \"eth\"");
        } else {
            let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
            assert_eq!(ground.refused("wireguard-go", "link = \"eth\"").to_string(), "go is missing");
        }
    }
}

/// A program at both ends, and traffic on the one link.
#[track_caller]
fn runs_on_eth(network: &str, kind: &str, options: &str) {
    let ground = Ground::new(network, &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up(kind, options);
    assert_eq!(contest.offer.programs.len(), 2);
    contest.assert_both_ways();
    assert!(contest.carried("eth") > 20 * contest.carried("wifi"), "{network}");
    contest.down();
}

#[test]
fn a_steered_tunnel_waits_for_its_link_to_come_back() {
    let ground = Ground::new("", &[("wifi", 20.0), ("eth", 20.0)]);
    let contest = ground.up("openvpn", "link = \"eth\"");
    let eth = ground.stage.index("eth").expect("it is a link");
    let [before, carried] = ["wifi", "eth"].map(|link| contest.carried(link));
    ground.stage.cut(eth).expect("it goes");
    contest.assert_unanswered();
    assert!(contest.carried("wifi") < before + HOUSEKEEPING, "it went by the other link");
    ground.stage.restore(eth).expect("it comes back");
    contest.assert_both_ways();
    contest.await_carried("eth", carried + 200_000);
    contest.down();
}

#[test]
fn openvpn_runs_on_the_link_that_it_is_told() {
    let table = [
        ("", "link = \"eth\""),
        ("lan = true", "link = \"eth\"\nprotocol = \"tcp\""),
        ("nat = true", "link = \"eth\""),
        (IPV6, "link = \"eth\"\ncipher = \"CHACHA20-POLY1305\""),
    ];
    for (network, options) in table {
        runs_on_eth(network, "openvpn", options);
    }
}

#[test]
fn a_tunnel_whose_program_is_not_installed_is_missing_by_name_and_nothing_stays() {
    let ground = Ground::new("", &[("wifi", 20.0), ("eth", 20.0)]);
    let before = ground.state();
    for kind in ["mlvpn", "mlvpn-rs", "glorytun", "openvpn", "mqvpn"] {
        let error = ground.refused(kind, &format!("program = \"/nowhere/{kind}\""));
        assert_eq!(error.to_string(), format!("/nowhere/{kind} is missing"));
        assert!(matches!(error, LabError::Missing { .. }) && error.hint().is_some_and(|hint| hint.contains("option")));
    }
    let error = ground.refused("engarde", "client = \"/nowhere/engarde-client\"");
    assert_eq!(error.to_string(), "/nowhere/engarde-client is missing");
    assert_eq!(ground.state(), before);
}

#[test]
fn a_tunnel_that_ends_at_once_tells_what_it_said_and_nothing_stays() {
    let ground = Ground::new("", &[("wifi", 20.0)]);
    let before = ground.state();
    let error = ground.refused("openvpn", "program = \"/bin/false\"");
    assert!(matches!(error, LabError::Process { .. }), "{error}");
    assert!(error.to_string().starts_with("run remote false: it ended: exit status: 1"), "{error}");
    assert_eq!(ground.state(), before);
}
