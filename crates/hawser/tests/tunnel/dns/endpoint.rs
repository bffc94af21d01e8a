//! An endpoint that is a name, and name servers that only the tunnel leads to: the portal never asks these for it.

use hawser_portal::api::{PathState, Status};
use rustix::process::Signal;

use super::host::{Host, Keeper};
use super::{DNS, end, start};
use crate::lab::{ENDPOINT, REMOTE, parse, states};
use crate::names::{self, NAME, NameServer, endpoints};

/// The name of the endpoint after a reload.
const OTHER_NAME: &str = "hub2.hawser.test";
/// What the host itself asks for.
const SITE: &str = "www.hawser.test";

/// The server behind the tunnel has the tunnel's own address for every name: a portal that asked it would go by itself.
fn a_name_is_resolved_past_the_tunnel(keeper: Keeper) {
    let lab = names::lab("dnsname", &format!("\"{NAME}:4920\""));
    lab.edit("local.toml", "[tun]\n", &format!("[tun]\n{DNS}"));
    let host = Host::new(&lab, keeper);
    let outer = NameServer::start(&lab.remote, parse(ENDPOINT));
    let remote = lab.start("remote");
    remote.wait_for("the remote portal", |_| true);
    let inner = NameServer::start_at(&lab.remote, REMOTE, parse(REMOTE));
    let active = |status: &Status| states(status) == [PathState::Active; 2];
    let here = format!("{ENDPOINT}:4920");

    let local = start(&lab, &host);
    let status = local.wait_for("all paths to be active", active);
    assert_eq!(endpoints(&status), [&here; 2]);
    end(local, Signal::KILL);
    // Name servers of the first one are still set, or gone with the device; the tunnel is away.
    let local = start(&lab, &host);
    let status = local.wait_for("all paths to be active again", active);
    assert_eq!(endpoints(&status), [&here; 2]);

    // Now the tunnel leads there, and the host asks there.
    host.wait_for("an answer by the tunnel", |host| host.run("getent", &["ahostsv4", SITE]).starts_with(REMOTE));
    assert!(inner.count(SITE) > 0);
    lab.edit("local.toml", NAME, OTHER_NAME);
    local.signal(Signal::HUP);
    let status = local.wait_for("the other name", |status| {
        let name = status.peers[0].names.first();
        name.is_some_and(|name| name.endpoint.starts_with(OTHER_NAME) && !name.addresses.is_empty())
    });
    assert_eq!(status.peers[0].names[0].addresses, [parse::<std::net::IpAddr>(ENDPOINT)]);
    assert!(outer.count(NAME) > 0 && outer.count(OTHER_NAME) > 0, "they were asked for past the tunnel");
    assert_eq!([NAME, OTHER_NAME].map(|name| inner.count(name)), [0, 0], "and never behind it");
    assert!(end(local, Signal::TERM).success());
}

#[test]
fn with_resolvconf_a_portal_that_was_killed_finds_its_endpoint_by_name() {
    a_name_is_resolved_past_the_tunnel(Keeper::Resolvconf);
}

#[test]
fn with_openresolv_and_a_file_written_by_hand_a_portal_that_was_killed_finds_its_endpoint_by_name() {
    a_name_is_resolved_past_the_tunnel(Keeper::Openresolv);
}

#[test]
fn with_systemd_resolved_a_portal_that_was_killed_finds_its_endpoint_by_name() {
    a_name_is_resolved_past_the_tunnel(Keeper::Resolved);
}
