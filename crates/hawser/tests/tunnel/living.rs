//! Networks that live: interfaces, addresses, routes and NATs that change under a portal, and a configuration that
//! does.

use std::process::Stdio;
use std::time::Duration;

use hawser_portal::api::{PathState, Status};
use hawser_wire::{End, Namespace, RpFilter, veth};
use rustix::process::Signal;

use crate::lab::{ENDPOINT, Lab, Portal, REMOTE, ms, parse, paths, states};

/// How long a portal is stopped as if its machine slept.
const SLEEP: Duration = Duration::from_secs(30);
/// How soon after that packets pass again: a handshake comes every half second.
const AWAKE_MAX: Duration = Duration::from_secs(3);
/// Most that a path may be silent after a NAT forgot it: a probe or two.
const REBOUND_MAX: Duration = Duration::from_secs(2);
/// Both links of the lab as they stand in its configuration.
const BOTH_LINKS: &str =
    "[[link]]\nname = \"one\"\ninterface = \"one\"\n[[link]]\nname = \"two\"\ninterface = \"two\"\n";
const LINK_ONE: &str = "[[link]]\nname = \"one\"\ninterface = \"one\"\n";

fn names(status: &Status) -> Vec<&str> {
    paths(status).iter().map(|path| path.name.as_str()).collect()
}

fn all_active(status: &Status) -> bool {
    states(status).iter().all(|state| *state == PathState::Active)
}

fn is_down(status: &Status, link: usize) -> bool {
    matches!(states(status)[link], PathState::Down | PathState::NoRoute)
}

/// Every change left the session as it was.
fn assert_one_session(portal: &Portal) {
    let log = portal.log();
    assert_eq!(log.matches(" session peer=").count(), 1, "{log}");
}

/// Runs a program of the test's in a namespace until it ends.
fn run(namespace: &Namespace, words: &[&str]) {
    let out = namespace.command(words[0]).args(&words[1..]).output();
    let out = out.unwrap_or_else(|error| panic!("{words:?}: {error} (`make tools` installs it)"));
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn a_carrier_that_is_lost_takes_no_packet_with_it_and_comes_back() {
    let lab = Lab::new("carr", "");
    let (local, _remote) = lab.start_both();
    let ping = lab.ping(REMOTE, ms(10), ms(800)).start().expect("a ping");
    std::thread::sleep(ms(200));
    // The far end of the cable: the near one keeps its interface, its address and its route.
    lab.remote.set_down("one").expect("it goes down");
    let report = ping.finish().expect("a report");
    assert!(report.lost() <= 3, "{} of {} lost; log:\n{}", report.lost(), report.sent.len(), local.log());
    local.wait_for("the path to be down", |status| is_down(status, 0));
    lab.remote.set_up("one").expect("it comes up");
    local.wait_for("the path to be back", |status| states(status).len() == 2 && all_active(status));
    assert_one_session(&local);
}

#[test]
fn a_link_leaves_an_address_that_is_deprecated_and_its_session_goes_on() {
    let lab = Lab::new("depr", "");
    lab.edit("local.toml", BOTH_LINKS, LINK_ONE);
    let _remote = lab.start("remote");
    let local = lab.start("local");
    local.wait_for("one link", |status| names(status) == ["one"] && all_active(status));
    lab.local.add_address("one", parse("192.0.1.11/24")).expect("an address");
    std::thread::sleep(ms(200));
    assert!(!local.log().contains("local=192.0.1.11:"), "the one in use is as good; log:\n{}", local.log());
    run(&lab.local, &["ip", "addr", "change", "192.0.1.1/24", "dev", "one", "preferred_lft", "0"]);
    local.wait_for_log("local=192.0.1.11:");
    lab.answered_within(REBOUND_MAX);
    local.wait_for("the path", |status| names(status) == ["one"] && all_active(status));
    assert_one_session(&local);
}

#[test]
fn every_interface_with_a_way_to_the_endpoint_is_a_link_while_it_is_there() {
    let lab = Lab::new("any", "");
    lab.edit("local.toml", BOTH_LINKS, "[[link]]\nname = \"all\"\ninterface = \"*\"\nexclude = [\"tw*\"]\n");
    let _remote = lab.start("remote");
    let local = lab.start("local");
    local.wait_for("one link", |status| names(status) == ["all:one"] && all_active(status));
    let ping = lab.ping(REMOTE, ms(10), ms(4_000)).start().expect("a ping");
    // Neither the tunnel itself, nor the loopback, nor what is excluded; until it is not any more.
    lab.edit("local.toml", "exclude = [\"tw*\"]\n", "");
    local.signal(Signal::HUP);
    local.wait_for("both links", |status| names(status) == ["all:one", "all:two"] && all_active(status));
    assert_eq!(lab.rp_filter("two"), "2", "strict would swallow what comes back by the second link");
    lab.local.delete_interface("one").expect("it can be deleted");
    local.wait_for("the other link", |status| names(status) == ["all:two"] && all_active(status));
    lab.join("one");
    let back = |status: &Status| names(status).len() == 2 && all_active(status);
    local.wait_for("both links again", back);
    let report = ping.finish().expect("a report");
    assert!(report.lost() <= 3, "{} of {} lost; log:\n{}", report.lost(), report.sent.len(), local.log());
    // An interface that is down for a moment stays a link.
    lab.local.set_down("two").expect("it goes down");
    let down = |status: &Status| names(status).len() == 2 && (is_down(status, 0) || is_down(status, 1));
    local.wait_for("a link that is down", down);
    lab.local.set_up("two").expect("it comes up");
    lab.route("two");
    local.wait_for("both links again", back);
    assert_one_session(&local);
}

#[test]
fn links_come_change_and_go_by_a_reload_and_the_session_stays() {
    let lab = Lab::new("hupl", "");
    lab.edit("local.toml", BOTH_LINKS, LINK_ONE);
    let _remote = lab.start("remote");
    let local = lab.start("local");
    local.wait_for("one link", |status| names(status) == ["one"] && all_active(status));
    let ping = lab.ping(REMOTE, ms(10), ms(5_000)).start().expect("a ping");
    let reload = |from: &str, to: &str, links: &[&str]| {
        lab.edit("local.toml", from, to);
        local.signal(Signal::HUP);
        local.wait_for("the new links", |status| names(status) == links && all_active(status));
    };
    let two = "[[link]]\nname = \"two\"\ninterface = \"two\"\n";
    reload(LINK_ONE, &format!("{LINK_ONE}{two}"), &["one", "two"]);
    reload("name = \"two\"", "name = \"other\"", &["one", "other"]);
    // A link that goes by another interface than before.
    reload(LINK_ONE, "", &["other"]);
    reload("name = \"other\"\ninterface = \"two\"", "name = \"other\"\ninterface = \"one\"", &["other"]);
    reload(
        "name = \"other\"\ninterface = \"one\"\n",
        &format!("name = \"other\"\ninterface = \"one\"\n{two}"),
        &["other", "two"],
    );
    let report = ping.finish().expect("a report");
    assert!(report.lost() <= 10, "{} of {} lost; log:\n{}", report.lost(), report.sent.len(), local.log());
    assert!(!local.log().contains("need a restart"), "{}", local.log());
    assert_one_session(&local);
}

#[test]
fn an_endpoint_of_another_ip_version_comes_by_a_reload() {
    let lab = Lab::new("hup6", "");
    lab.edit("remote.toml", "\"0.0.0.0:4920\"", "\"0.0.0.0:4920\", \"[::]:4920\"");
    let (local, _remote) = lab.start_both();
    lab.edit("local.toml", &format!("\"{ENDPOINT}:4920\""), "\"[fd98::7]:4920\"");
    local.signal(Signal::HUP);
    local.wait_for_log("configuration read again: changed");
    // Over IPv6 the headers are 20 bytes longer.
    local.wait_for("paths over ipv6", |status| {
        states(status).len() == 2 && all_active(status) && paths(status).iter().all(|path| path.mtu == 1452)
    });
    lab.answered_within(ms(1_000));
}

#[test]
fn a_route_that_cannot_be_set_at_a_reload_is_set_as_soon_as_it_can() {
    let lab = Lab::new("retry", "");
    let (local, _remote) = lab.start_both();
    lab.local.set_sysctl("ipv6/conf/hawser0/disable_ipv6", "1").expect("a sysctl");
    lab.edit("local.toml", "\"10.99.0.0/16\"", "\"10.99.0.0/16\", \"fd99::/64\"");
    local.signal(Signal::HUP);
    local.wait_for_log("not set, it is tried again");
    lab.local.set_sysctl("ipv6/conf/hawser0/disable_ipv6", "0").expect("a sysctl");
    local.wait_for_log("applied after retry");
    lab.answered_within(ms(1_000));
}

/// Puts a masquerading router in the place of the link `one`'s cable.
fn put_a_nat_before(lab: &Lab) -> Namespace {
    let nat = Namespace::new("nat").expect("makes a namespace (these tests need root)");
    lab.local.delete_interface("one").expect("it can be deleted");
    let inside = End::new(&nat, "in", &["192.0.1.2/24"]);
    veth(&lab.end(&lab.local, "one", 1), &inside, 1500).expect("a veth pair");
    let outside = End::new(&nat, "out", &["203.0.113.1/24"]);
    veth(&outside, &End::new(&lab.remote, "wan", &["203.0.113.2/24"]), 1500).expect("a veth pair");
    nat.set_forwarding(true).expect("a sysctl");
    nat.add_route(parse(&format!("{ENDPOINT}/32")), Some(parse("203.0.113.2")), Some("out")).expect("a route");
    lab.local.add_route(parse(&format!("{ENDPOINT}/32")), Some(parse("192.0.1.2")), Some("one")).expect("a route");
    run(&nat, &["nft", "add table ip nat; add chain ip nat post { type nat hook postrouting priority 100; }"]);
    masquerade(&nat, 40_001);
    nat
}

/// All UDP flows leave from this port, and what the NAT knew before is forgotten, as masquerading does when its
/// interface goes down.
fn masquerade(nat: &Namespace, port: u16) {
    run(nat, &["nft", &format!("flush chain ip nat post; add rule ip nat post udp dport 4920 masquerade to :{port}")]);
    nat.set_down("out").expect("it goes down");
    nat.set_up("out").expect("it comes up");
    nat.add_route(parse(&format!("{ENDPOINT}/32")), Some(parse("203.0.113.2")), Some("out")).expect("a route");
}

#[test]
fn a_nat_that_forgets_a_path_costs_a_moment_and_no_session() {
    let lab = Lab::new("rebind", "");
    lab.edit("local.toml", BOTH_LINKS, LINK_ONE);
    let nat = put_a_nat_before(&lab);
    let remote = lab.start("remote");
    let local = lab.start("local");
    local.wait_for("one link", |status| names(status) == ["one"] && all_active(status));
    for port in [40_002, 40_003] {
        masquerade(&nat, port);
        lab.answered_within(REBOUND_MAX);
        remote.wait_for("the same path", |status| states(status) == [PathState::Active]);
        lab.assert_none_lost(&lab.ping(REMOTE, ms(20), ms(400)).run().expect("a ping"));
    }
    // Roaming: the NAT has another address too.
    nat.remove_address("out", parse("203.0.113.1/24")).expect("it had it");
    nat.add_address("out", parse("203.0.113.77/24")).expect("an address");
    masquerade(&nat, 40_004);
    lab.answered_within(REBOUND_MAX);
    assert_one_session(&local);
    assert_one_session(&remote);
}

#[test]
fn a_portal_that_slept_goes_on_whichever_it_is() {
    std::thread::scope(|scope| {
        for sleeper in ["local", "remote"] {
            scope.spawn(move || {
                let lab = Lab::new("sleep", "");
                let (local, remote) = lab.start_both();
                let portal = if sleeper == "local" { &local } else { &remote };
                portal.signal(Signal::STOP);
                std::thread::sleep(SLEEP);
                portal.signal(Signal::CONT);
                lab.answered_within(AWAKE_MAX);
                local.wait_for("all paths", |status| states(status).len() == 2 && all_active(status));
                lab.assert_none_lost(&lab.ping(REMOTE, ms(20), ms(400)).run().expect("a ping"));
            });
        }
    });
}

/// A DHCP server beyond a link, and a client on it: each ends with this.
struct Dhcp(Vec<std::process::Child>);

impl Dhcp {
    /// Addresses from 192.0.1.`host` on; the route to the endpoint comes by the script.
    fn serve(&mut self, lab: &Lab, host: u8) {
        let leases = lab.path(&format!("leases{host}"));
        std::fs::write(&leases, "").expect("a file");
        let text = format!(
            "start 192.0.1.{host}\nend 192.0.1.{host}\ninterface one\noption subnet 255.255.255.0\noption router 192.0.1.2\n\
             option lease 60\nmin_lease 10\nlease_file {}\npidfile {}\n",
            leases.display(),
            lab.path("udhcpd.pid").display()
        );
        let path = format!("udhcpd{host}.conf");
        lab.write(&path, &text);
        self.spawn(&lab.remote, "udhcpd", &["-f", lab.path(&path).to_str().expect("a plain path")]);
    }

    fn ask(&mut self, lab: &Lab) {
        use std::os::unix::fs::PermissionsExt as _;
        // What a distribution's script does to the interface, and not to the host's resolver.
        let script = format!(
            "#!/bin/sh\ncase $1 in\ndeconfig) ip -4 addr flush dev $interface;;\n\
             bound|renew) ip -4 addr replace $ip/$mask dev $interface\n\
             ip route replace {ENDPOINT}/32 via $router dev $interface;;\nesac\n"
        );
        lab.write("dhcp.sh", &script);
        let path = lab.path("dhcp.sh");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("its mode");
        let words = ["-f", "-i", "one", "-t", "20", "-T", "1", "-s", path.to_str().expect("a plain path")];
        self.spawn(&lab.local, "udhcpc", &words);
    }

    fn spawn(&mut self, namespace: &Namespace, program: &str, words: &[&str]) {
        let mut command = namespace.command(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        self.0.push(child.unwrap_or_else(|error| panic!("{program}: {error} (`make tools` installs it)")));
    }

    fn signal(&self, which: usize, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.0[which]);
        rustix::process::kill_process(pid, signal).expect("it can be signalled");
    }

    fn end(&mut self, which: usize) {
        let mut child = self.0.remove(which);
        child.kill().and_then(|()| child.wait()).expect("it can be ended");
    }
}

impl Drop for Dhcp {
    fn drop(&mut self) {
        while !self.0.is_empty() {
            self.end(0);
        }
    }
}

#[test]
fn a_dhcp_client_may_renew_lose_and_change_the_address_of_a_link() {
    let lab = Lab::new("dhcp", "");
    lab.edit("local.toml", BOTH_LINKS, LINK_ONE);
    lab.local.set_rp_filter("all", RpFilter::Strict).expect("a sysctl");
    lab.local.remove_address("one", parse("192.0.1.1/24")).expect("it had it");
    let _remote = lab.start("remote");
    let local = lab.start("local");
    let mut dhcp = Dhcp(Vec::new());
    dhcp.serve(&lab, 50);
    dhcp.ask(&lab);
    local.wait_for_log("local=192.0.1.50:");
    local.wait_for("the path", |status| states(status) == [PathState::Active]);
    // Renewed: the same address again, and nobody notices.
    let ping = lab.ping(REMOTE, ms(10), ms(800)).start().expect("a ping");
    dhcp.signal(1, Signal::USR1);
    lab.assert_none_lost(&ping.finish().expect("a report"));
    // Released: there is no address for a while; then another server gives another one.
    dhcp.signal(1, Signal::USR2);
    local.wait_for("no path", |status| is_down(status, 0));
    dhcp.end(0);
    dhcp.serve(&lab, 60);
    dhcp.signal(0, Signal::USR1);
    local.wait_for_log("local=192.0.1.60:");
    lab.answered_within(AWAKE_MAX);
}
