//! With a real systemd-resolved: what it has of the device, and whom it asks.

use rustix::process::Signal;

use super::host::{BEFORE, Host, Keeper};
use super::{DNS, end, lab, reload, start};
use crate::home::run;
use crate::lab::{Lab, REMOTE, parse};
use crate::names::NameServer;

/// What each of the servers says.
const INNER_SAYS: &str = "192.0.2.77";
const OUTER_SAYS: &str = "192.0.2.78";
const SPLIT: &str = "dns = [\"10.77.0.1\"]\ndns_domains = [\"~home.test\"]\n";

/// Which server systemd-resolved asks for a name; each is asked for another name, so that no answer is an old one.
fn address(host: &Host, name: &str) -> String {
    let said = host.run("resolvectl", &["query", "--legend=no", "--cache=no", "-4", name]);
    said.split_whitespace().nth(1).unwrap_or_default().to_owned()
}

/// What it has of the device: servers, domains, and whether other names go there.
fn of_device(host: &Host) -> [String; 3] {
    ["dns", "domain", "default-route"].map(|what| {
        let said = host.run("resolvectl", &[what, "hawser0"]);
        said.split_once("): ").unwrap_or_default().1.trim().to_owned()
    })
}

fn servers(lab: &Lab) -> NameServer {
    run(&lab.remote, "ip", &format!("address add {BEFORE}/32 dev lo"));
    run(&lab.local, "ip", &format!("route add {BEFORE}/32 via 192.0.1.2 dev one"));
    NameServer::start(&lab.remote, parse(OUTER_SAYS))
}

#[test]
fn systemd_resolved_asks_there_while_the_portal_runs_and_where_it_did_afterwards() {
    let lab = lab(DNS);
    let host = Host::new(&lab, Keeper::Resolved);
    let before = host.resolv_conf();
    let _outer = servers(&lab);
    assert_eq!(address(&host, "a.test"), OUTER_SAYS);
    let remote = lab.start("remote");
    remote.wait_for("the remote portal", |_| true);
    let _inner = NameServer::start_at(&lab.remote, REMOTE, parse(INNER_SAYS));

    let portal = start(&lab, &host);
    let status = portal.wait_for("name servers", |status| status.dns.is_some());
    assert_eq!(status.dns.expect("it is set").set_by, "systemd-resolved");
    assert_eq!(of_device(&host), [REMOTE, "~.", "yes"]);
    assert_eq!(address(&host, "b.test"), INNER_SAYS);

    assert!(reload(&lab, &portal, DNS, SPLIT).is_some());
    host.wait_for("some names alone", |host| of_device(host) == [REMOTE, "~home.test", "no"]);
    assert_eq!([address(&host, "c.home.test"), address(&host, "c.test")], [INNER_SAYS, OUTER_SAYS]);

    assert_eq!(reload(&lab, &portal, SPLIT, ""), None);
    assert_eq!(of_device(&host)[..2], ["", ""], "a reload takes them away");
    assert_eq!(address(&host, "d.home.test"), OUTER_SAYS);
    assert!(reload(&lab, &portal, "", DNS).is_some());
    assert_eq!(address(&host, "e.test"), INNER_SAYS);
    assert!(end(portal, Signal::TERM).success());
    assert_eq!(address(&host, "f.test"), OUTER_SAYS);

    let portal = start(&lab, &host);
    portal.wait_for("name servers", |status| status.dns.is_some());
    end(portal, Signal::KILL);
    host.wait_for("systemd-resolved to hear of it", |host| address(host, "g.test") == OUTER_SAYS);
    let portal = start(&lab, &host);
    portal.wait_for("name servers again", |status| status.dns.is_some());
    assert_eq!(address(&host, "h.test"), INNER_SAYS);
    assert!(end(portal, Signal::TERM).success());
    assert_eq!(address(&host, "i.test"), OUTER_SAYS);
    assert_eq!(host.resolv_conf(), before);
}
