//! What the doctor finds of name servers.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::host::{Host, Keeper};
use super::{DNS, end, start};
use crate::doctor::found_by;
use crate::lab::{ENDPOINT, Lab, states};
use crate::names;

/// By the first link, past the tunnel.
const NEIGHBOUR: &str = "192.0.1.2";

fn found(lab: &Lab, host: &Host) -> Vec<String> {
    let found: BTreeSet<String> = found_by(&lab.local, &lab.path("local.toml"), &host.by());
    found.into_iter().collect()
}

#[test]
fn name_servers_that_are_not_set_not_asked_or_past_the_tunnel_are_named() {
    let lab = names::lab("dnsfind", &format!("\"{ENDPOINT}:4920\""));
    lab.edit("local.toml", "[tun]\n", &format!("[tun]\n{DNS}"));
    let host = Host::new(&lab, Keeper::Openresolv);
    let (_remote, local) = (lab.start("remote"), start(&lab, &host));
    local.wait_for("all paths to be active", |status| {
        states(status) == [hawser_portal::api::PathState::Active; 2] && status.dns.is_some()
    });
    assert_eq!(found(&lab, &host), [""; 0], "nothing is wrong");

    let kept = host.resolv_conf();
    host.write_resolv_conf(&format!("nameserver {NEIGHBOUR}\n"));
    assert_eq!(found(&lab, &host), ["dns-not-asked", "dns-outside"]);
    host.write_resolv_conf(&format!("{kept}nameserver {NEIGHBOUR}\n"));
    assert_eq!(found(&lab, &host), ["dns-outside"], "it is asked where ours do not answer");
    host.write_resolv_conf(&kept);

    lab.edit("local.toml", DNS, &format!("dns = [\"{NEIGHBOUR}\"]\n"));
    assert_eq!(found(&lab, &host), ["dns-not-set", "dns-outside"], "it was not read again yet");
    local.signal(Signal::HUP);
    local.wait_for("the other one", |status| {
        status.dns.as_ref().is_some_and(|dns| dns.servers.iter().any(|server| server.to_string() == NEIGHBOUR))
    });
    assert_eq!(found(&lab, &host), ["dns-outside"]);
    assert!(end(local, Signal::TERM).success());
}
