//! `dns` in `[tun]`: name servers set with real programs, each on a host of its own, and undone.

mod endpoint;
mod found;
pub mod host;
mod resolved;

use std::process::ExitStatus;

use hawser_portal::api::DnsStatus;
use rustix::process::Signal;

use crate::lab::{Lab, Portal, REMOTE, REMOTE_V6};
use host::{BEFORE, Host, Keeper};

/// What is put into the configuration for `dns`, and what for `dns_domains`.
const DNS: &str = "dns = [\"10.77.0.1\"]\n";
const OTHER: &str = "dns = [\"fd77::1\", \"10.77.0.1\"]\ndns_domains = [\"~.\", \"home.test\"]\n";

/// A lab whose local portal has these keys.
fn lab(keys: &str) -> Lab {
    let lab = Lab::new("dns", "");
    lab.edit("local.toml", "[tun]\n", &format!("[tun]\n{keys}"));
    lab
}

/// With the umask that the unit gives it.
fn start(lab: &Lab, host: &Host) -> Portal {
    lab.start_by("local", &[&host.by()[..], &["sh", "-c", "umask 0077 && exec \"$@\"", "sh"]].concat())
}

/// The keys are replaced while the portal runs, and what is set then.
fn reload(lab: &Lab, portal: &Portal, from: &str, to: &str) -> Option<DnsStatus> {
    lab.edit("local.toml", &format!("[tun]\n{from}"), &format!("[tun]\n{to}"));
    portal.signal(Signal::HUP);
    let count = to.matches("::1").count() + to.matches("10.77.0.1").count();
    let set = |status: &hawser_portal::api::Status| status.dns.as_ref().map_or(0, |dns| dns.servers.len()) == count;
    portal.wait_for("other name servers", set).dns
}

fn end(mut portal: Portal, signal: Signal) -> ExitStatus {
    portal.signal(signal);
    portal.wait()
}

/// A whole life by resolvconf: start, reloads, a clean end, a kill.
fn life(keeper: Keeper, with: &[&str]) {
    let lab = lab(DNS);
    let host = Host::new(&lab, keeper);
    let before = host.resolv_conf();
    assert_eq!(host.asked(), [BEFORE]);

    let portal = start(&lab, &host);
    let status = portal.wait_for("name servers", |status| status.dns.is_some());
    assert_eq!(status.dns.expect("it is set").set_by, "resolvconf");
    assert_eq!(host.asked(), [&[REMOTE], with].concat());
    let modes = host.run("sh", &["-c", "stat -L -c %a /etc/resolv.conf /run/resolvconf/interface*/tun.hawser0"]);
    assert_eq!(modes, "644\n644\n", "for all to read");

    let set = reload(&lab, &portal, DNS, OTHER).expect("others are set");
    assert_eq!(set.domains, ["~.", "home.test"]);
    assert_eq!(host.asked(), [&[REMOTE_V6, REMOTE], with].concat());
    assert!(host.resolv_conf().contains("search home.test\n"), "{}", host.resolv_conf());

    assert_eq!(reload(&lab, &portal, OTHER, ""), None);
    assert_eq!(host.resolv_conf(), before, "a reload takes them away");
    reload(&lab, &portal, "", DNS).expect("they are set again");
    assert_eq!(host.asked(), [&[REMOTE], with].concat());
    assert!(end(portal, Signal::TERM).success());
    assert_eq!(host.resolv_conf(), before, "after a clean end");

    killed(&lab, &host, &before, with);
}

/// What a kill leaves is there until the next command that undoes: a start without the key, and `leave`.
fn killed(lab: &Lab, host: &Host, before: &str, with: &[&str]) {
    let kill = || {
        let portal = start(lab, host);
        portal.wait_for("name servers", |status| status.dns.is_some());
        end(portal, Signal::KILL);
        assert_eq!(host.asked(), [&[REMOTE], with].concat(), "a kill undoes nothing");
    };
    kill();
    lab.edit("local.toml", &format!("[tun]\n{DNS}"), "[tun]\n");
    let portal = start(lab, host);
    portal.wait_for("the start", |_| true);
    assert_eq!(host.resolv_conf(), before, "after the next start");
    assert!(portal.log().contains("cleaned up after a killed portal"), "{}", portal.log());
    assert!(end(portal, Signal::TERM).success());

    lab.edit("local.toml", "[tun]\n", &format!("[tun]\n{DNS}"));
    kill();
    let file = lab.path("local.toml");
    let text = std::fs::read_to_string(&file).expect("a configuration");
    lab.write("local.toml", &format!("{JOINED}\n{text}"));
    host.run(env!("CARGO_BIN_EXE_hawser"), &["leave", "-c", file.to_str().expect("a plain path")]);
    assert_eq!(host.resolv_conf(), before, "after leave");
}

/// How a configuration begins that `hawser join` wrote.
const JOINED: &str = "# Written by `hawser join`; may be edited (docs/configuration.md). `hawser leave` removes it.";

#[test]
fn debians_resolvconf_asks_them_first_and_everything_is_undone() {
    life(Keeper::Resolvconf, &[BEFORE]);
}

#[test]
fn openresolv_asks_nobody_else_and_everything_is_undone() {
    life(Keeper::Openresolv, &[]);
}

#[test]
fn where_nobody_keeps_name_servers_the_start_fails_and_says_what_to_install() {
    for keeper in [Keeper::Nobody, Keeper::ResolvedStopped] {
        start_fails(keeper);
    }
}

fn start_fails(keeper: Keeper) {
    let lab = lab(DNS);
    let host = Host::new(&lab, keeper);
    let (before, traces) = (host.resolv_conf(), lab.traces());
    let mut portal = start(&lab, &host);
    assert_eq!(portal.wait().code(), Some(1));
    let log = portal.log();
    assert!(log.contains("systemd-resolved does not run, and there is no program resolvconf"), "{log}");
    assert!(log.contains("apt-get install systemd-resolved, or resolvconf; or leave `dns` out of [tun]"), "{log}");
    assert_eq!(host.resolv_conf(), before);
    assert_eq!(lab.traces(), traces, "nothing is left");
}

#[test]
fn resolvconf_refuses_some_names_alone_at_the_start_and_a_reload_says_so() {
    let some = "dns = [\"10.77.0.1\"]\ndns_domains = [\"home.test\"]\n";
    let lab = lab(some);
    let host = Host::new(&lab, Keeper::Resolvconf);
    let before = host.resolv_conf();
    let mut portal = start(&lab, &host);
    assert_eq!(portal.wait().code(), Some(1));
    assert!(portal.log().contains("hint: add \"~.\" to `dns_domains`"), "{}", portal.log());
    lab.edit("local.toml", some, DNS);
    let portal = start(&lab, &host);
    portal.wait_for("name servers", |status| status.dns.is_some());
    lab.edit("local.toml", DNS, some);
    portal.signal(Signal::HUP);
    portal.wait_for_log("name servers not set, a reload tries again");
    host.wait_for("the old ones to go", |host| host.resolv_conf() == before);
    assert!(end(portal, Signal::TERM).success());
}

#[test]
fn openresolv_that_may_not_write_its_file_is_refused_before_it_spoils_it() {
    let lab = lab(DNS);
    let host = Host::new(&lab, Keeper::Openresolv);
    let before = host.resolv_conf();
    host.run("mount", &["-o", "remount,bind,ro", "/etc"]);
    let mut portal = start(&lab, &host);
    assert_eq!(portal.wait().code(), Some(1));
    assert!(portal.log().contains("ReadWritePaths=/etc"), "{}", portal.log());
    assert_eq!(host.resolv_conf(), before);
}
