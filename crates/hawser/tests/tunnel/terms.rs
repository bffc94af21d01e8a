//! Rules, and the terms that links are offered on.

use hawser_portal::api::{LinkStatus, PathState, Status};
use hawser_wire::Rate;
use hawser_wire::traffic::UdpFlow;
use rustix::process::Signal;

use crate::lab::{Lab, Portal, REMOTE, ms, paths, states};

/// The least cap there is, bytes, and twice as much of traffic: 1,200 bytes 556 times a second for three seconds.
const CAP: u64 = 1_000_000;
const LOAD_MBPS: f64 = 5.5;
const LOAD_MS: u64 = 3_000;
/// What probes, their answers and words about paths may take of a link that carries no inner packets, bytes in two
/// seconds.
const WORDS: u64 = 3_000;
/// Bytes that both paths carry at most in half a second in which nobody uses them, and such half seconds until they do.
const REST: u64 = 500;
const REST_MS: u64 = 500;
const REST_LOOKS: usize = 20;

fn load(lab: &Lab) -> UdpFlow {
    UdpFlow {
        from: lab.local.clone(),
        to: lab.remote.clone(),
        destination: format!("{REMOTE}:5000").parse().expect("an address"),
        payload: 1_172,
        rate: Rate::mbit(LOAD_MBPS),
        duration: ms(LOAD_MS),
        linger: ms(500),
    }
}

/// Bytes that the path of this link has carried, both ways.
fn carried(status: &Status, link: &str) -> u64 {
    let path = paths(status).iter().find(|path| path.name == link).expect("a path of the link");
    path.rx_bytes + path.tx_bytes
}

fn is_spent(link: &LinkStatus) -> bool {
    link.data_cap.is_some_and(|cap| cap.reached)
}

/// Until both paths are at rest: each begins with a search for its MTU, whose probes are no inner packets. A busy
/// machine takes a while for it.
fn wait_for_rest(portal: &Portal) {
    let all = || -> u64 {
        let status = portal.wait_for("a status", |_| true);
        paths(&status).iter().map(|path| path.rx_bytes + path.tx_bytes).sum()
    };
    let mut before = all();
    for _ in 0..REST_LOOKS {
        std::thread::sleep(ms(REST_MS));
        let now = all();
        if now - std::mem::replace(&mut before, now) < REST {
            return;
        }
    }
    panic!("the paths do not come to rest:\n{}", portal.log());
}

/// How much both paths carry while a ping goes on for two seconds, of which no request is lost.
fn carried_beside_a_ping(lab: &Lab, portal: &Portal) -> [u64; 2] {
    wait_for_rest(portal);
    let both = |status: &Status| ["one", "two"].map(|link| carried(status, link));
    let before = both(&portal.wait_for("a status", |_| true));
    let report = lab.ping(REMOTE, ms(10), ms(2_000)).run().expect("a ping");
    lab.assert_none_lost(&report);
    // The portal's status is up to 200 ms old.
    std::thread::sleep(ms(300));
    let after = both(&portal.wait_for("a status", |_| true));
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn a_link_that_carried_all_it_may_carries_no_inner_packets_after_a_restart_too() {
    let lab = Lab::new("cap", "");
    let state = lab.path("state");
    lab.edit("local.toml", "[tun]", &format!("state_dir = \"{}\"\n[tun]", state.display()));
    lab.edit("local.toml", "interface = \"one\"\n", "interface = \"one\"\ndata_cap = \"1M\"\n");
    lab.edit("local.toml", "interface = \"two\"\n", "interface = \"two\"\nmetric = 1\n");
    let (mut local, _remote) = lab.start_both();
    let report = load(&lab).run().expect("a flow");
    assert!(report.lost() * 50 <= report.sent, "{} of {} lost", report.lost(), report.sent);
    let status = local.wait_for("the cap", |status| status.links.iter().any(is_spent));
    local.wait_for_log("data cap reached link=one");
    let used = status.links[0].data_cap.expect("a cap").used_bytes;
    assert!((CAP..CAP + CAP / 2).contains(&used), "{used}");
    let [one, two] = carried_beside_a_ping(&lab, &local);
    assert!(one < WORDS && two > 10 * one, "{one} and {two} bytes");

    local.signal(Signal::TERM);
    assert!(local.wait().success());
    let local = lab.start("local");
    let status = local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
    assert!(is_spent(&status.links[0]), "{:?}", status.links);
    let [one, two] = carried_beside_a_ping(&lab, &local);
    assert!(one < WORDS && two > 10 * one, "after a restart: {one} and {two} bytes");

    lab.edit("local.toml", "data_cap = \"1M\"", "data_cap = \"1G\"\nmax_rate = \"50M\"");
    local.signal(Signal::HUP);
    local.wait_for("the other cap", |status| !status.links.iter().any(is_spent));
    local.wait_for_log("configuration read again: changed sections=\"link\"");
    let [one, two] = carried_beside_a_ping(&lab, &local);
    assert!(two < WORDS && one > 10 * two, "with another cap: {one} and {two} bytes");
}

#[test]
fn a_rules_packets_go_by_both_links_and_come_once() {
    let lab = Lab::new("rule", "[[rule]]\nprotocol = \"icmp\"\nscheduler = \"redundant\"\n");
    let (local, _remote) = lab.start_both();
    let [one, two] = carried_beside_a_ping(&lab, &local);
    assert!(one.min(two) * 3 > one.max(two) * 2, "{one} and {two} bytes: both carry all");
    let drops = local.wait_for("a status", |_| true).drops;
    assert!(drops.get("duplicate").is_some_and(|count| *count > 100), "what came second was dropped: {drops:?}");
}
