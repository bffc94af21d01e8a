//! What a reload changes while packets flow.

use std::fs;
use std::time::Duration;

use hawser_config::{PrivateKey, PublicKey};
use hawser_portal::api::{PathState, Status};
use rustix::process::Signal;

use crate::lab::{Lab, REMOTE, ms, paths, states};

/// How long a peer that was added may take to be heard: it calls every half second.
const CALL_MAX: Duration = Duration::from_secs(3);

fn stranger() -> PublicKey {
    PrivateKey::generate().expect("randomness").public()
}

fn names(status: &Status) -> Vec<&str> {
    status.peers.iter().map(|peer| peer.name.as_str()).collect()
}

/// Whether the remote portal's host has a route to this network.
fn is_routed(lab: &Lab, network: &'static str) -> bool {
    let read = || fs::read_to_string("/proc/thread-self/net/fib_trie").expect("it can be read");
    lab.remote.run(read).expect("the namespace can be entered").contains(network)
}

#[test]
fn peers_come_and_go_and_the_others_notice_nothing() {
    let lab = Lab::new("peers", "");
    let (_local, remote) = lab.start_both();
    let other =
        format!("[[peer]]\nname = \"other\"\npublic_key = \"{}\"\nallowed_ips = [\"10.98.0.0/16\"]\n", stranger());
    let report = std::thread::scope(|scope| {
        let ping = scope.spawn(|| lab.ping(REMOTE, ms(10), ms(3_000)).run().expect("a ping"));
        lab.edit("remote.toml", "[[peer]]\nname = \"home\"", &format!("{other}[[peer]]\nname = \"home\""));
        remote.signal(Signal::HUP);
        remote.wait_for("both peers", |status| names(status) == ["other", "home"]);
        remote.wait_for_log("configuration read again: changed sections=\"peer\"");
        remote.wait_for_routes(&lab, &[("10.98.0.0", true)], is_routed);
        lab.edit("remote.toml", "10.98.0.0/16", "10.97.0.0/16");
        remote.signal(Signal::HUP);
        remote.wait_for_routes(&lab, &[("10.98.0.0", false), ("10.97.0.0", true)], is_routed);
        let text = other.replace("10.98", "10.97");
        lab.edit("remote.toml", &text, "");
        remote.signal(Signal::HUP);
        remote.wait_for("the first peer alone", |status| names(status) == ["home"]);
        remote.wait_for_routes(&lab, &[("10.97.0.0", false)], is_routed);
        ping.join().expect("no panic")
    });
    lab.assert_none_lost(&report);
}

#[test]
fn a_peer_that_was_removed_has_no_traffic_and_one_that_was_added_has() {
    let lab = Lab::new("added", "");
    let (local, remote) = lab.start_both();
    let text = fs::read_to_string(lab.path("remote.toml")).expect("a configuration");
    let key = text.lines().find_map(|line| line.strip_prefix("public_key = ")).expect("a key").to_owned();
    let foreign = format!("\"{}\"", stranger());
    lab.edit("remote.toml", &key, &foreign);
    remote.signal(Signal::HUP);
    local.wait_for_log("session closed by peer");
    let report = lab.ping(REMOTE, ms(50), ms(1_500)).run().expect("a ping");
    assert!(report.echoes.is_empty(), "{} answers of a peer that is gone", report.echoes.len());
    lab.edit("remote.toml", &foreign, &key);
    remote.signal(Signal::HUP);
    lab.answered_within(CALL_MAX);
    local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
}

#[test]
fn a_member_of_a_hub_does_not_announce_who_comes_by_the_key_of_one_that_went() {
    let lab = Lab::new("psk", "");
    lab.edit("remote.toml", "[tun]\n", "[hub]\n[tun]\n");
    lab.edit("remote.toml", "\"fd77::2/128\"", "\"fd77::2/128\", \"10.98.0.0/16\"");
    let (_local, remote) = lab.start_both();
    remote.wait_for_routes(&lab, &[("10.98.0.0", true)], is_routed);
    // With another preshared key it is another peer, and this one does not come.
    lab.write("psk", &PrivateKey::generate().expect("randomness").to_base64());
    let (without, with) = ("name = \"home\"\n", "name = \"home\"\npreshared_key_file = \"psk\"\n");
    lab.edit("remote.toml", without, with);
    remote.signal(Signal::HUP);
    remote.wait_for_routes(&lab, &[("10.98.0.0", false)], is_routed);
    lab.edit("remote.toml", with, without);
    remote.signal(Signal::HUP);
    remote.wait_for_routes(&lab, &[("10.98.0.0", true)], is_routed);
}

#[test]
fn a_metric_changes_the_tier_at_both_ends() {
    let lab = Lab::new("metric", "");
    let (local, remote) = lab.start_both();
    let metrics = |status: &Status| paths(status).iter().map(|path| path.metric).collect::<Vec<_>>();
    lab.edit("local.toml", "interface = \"one\"\n", "interface = \"one\"\nmetric = 3\n");
    local.signal(Signal::HUP);
    local.wait_for("the metric", |status| metrics(status) == [3, 0]);
    remote.wait_for("the metric", |status| {
        let mut metrics = metrics(status);
        metrics.sort_unstable();
        metrics == [0, 3]
    });
    lab.answered_within(ms(1_000));
}
