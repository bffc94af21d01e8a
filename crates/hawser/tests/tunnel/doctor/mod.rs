//! `hawser doctor` against faults that were made on purpose, one at a time (`faults`) and two (`pairs`), and against
//! set-ups without any (`healthy`).
//!
//! It has to name the fault, no other one, and be done in its time.

mod faults;
mod healthy;
mod pairs;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_portal::api::{LinkStatus, PathState, PathStatus, Status};
use hawser_wire::traffic::UdpFlow;
use hawser_wire::{End, Namespace, Rate, veth};

use crate::halts;
use crate::home::{Home, nft, run};
use crate::lab::{ENDPOINT, Lab, Portal, REMOTE, ms, parse, paths, states};
use crate::measured::say_again;
use crate::names::resolving_by;

/// Where each finding is explained.
const PAGE: &str = include_str!("../../../../../docs/troubleshooting.md");
/// How long it may take is promised as 15 s: here two less, so that a slower machine has a margin. A NAT takes ten, all
/// else seven at most.
const WITHIN: Duration = Duration::from_secs(13);
/// How long the machine may stand still while it is asked, and how often it is asked again otherwise, which is counted.
const HALTED: Duration = Duration::from_millis(500);
const ASKED_AGAIN: usize = 2;
/// Cases that are made at a time.
const BESIDE: usize = 6;

/// What it finds by a configuration: names of findings.
fn found(namespace: &Namespace, file: &Path) -> BTreeSet<String> {
    found_by(namespace, file, &[])
}

/// The same, by a program that becomes it. What it finds while the machine stands still may be of that: it is asked
/// again.
pub fn found_by(namespace: &Namespace, file: &Path, by: &[&str]) -> BTreeSet<String> {
    for _ in 0..ASKED_AGAIN {
        let (names, halted) = asked(namespace, file, by);
        if halted < HALTED {
            return names;
        }
        say_again(&format!("the machine stood still for {halted:?}"));
    }
    asked(namespace, file, by).0
}

/// What it finds now, and for how long the machine stood still meanwhile.
fn asked(namespace: &Namespace, file: &Path, by: &[&str]) -> (BTreeSet<String>, Duration) {
    let file = file.display().to_string();
    let words = [by, &[env!("CARGO_BIN_EXE_hawser"), "doctor", "--json", "-c", &file]].concat();
    let start = Instant::now();
    let (output, halted) = halts::watched(|| namespace.command(words[0]).args(&words[1..]).output().expect("it runs"));
    let (took, text) = (start.elapsed(), String::from_utf8_lossy(&output.stdout));
    assert!(took < WITHIN + halted, "it took {took:?}, the machine stood still for {halted:?}: {text}");
    let findings: Vec<serde_json::Value> = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let faults = findings.iter().filter(|found| found["severity"] == "fault").count();
    assert_eq!(output.status.success(), faults == 0, "{text}");
    // What limits the bond is no fault, and has no cure.
    let findings: Vec<_> = findings.iter().filter(|found| found["severity"] != "info").collect();
    assert!(findings.iter().all(|found| found["cure"].as_str().is_some_and(|cure| !cure.is_empty())), "{text}");
    let names: BTreeSet<String> =
        findings.iter().map(|found| found["id"].as_str().expect("a name").to_owned()).collect();
    for name in &names {
        assert!(PAGE.contains(&format!("`{name}`")), "docs/troubleshooting.md does not explain {name}");
    }
    println!("{names:?} in {took:?}: {text}{}", String::from_utf8_lossy(&output.stderr).trim_end());
    (names, halted)
}

/// Faults that are made where both portals run over two links: the findings, what is changed before they start, and
/// what then.
type Case = (&'static [&'static str], fn(&Lab), fn(&Lab, &Portal));

fn nothing(_: &Lab) {}

/// All cases, some at a time.
fn assert_found(cases: &[Case]) {
    for some in cases.chunks(BESIDE) {
        std::thread::scope(|scope| some.iter().for_each(|case| drop(scope.spawn(|| assert_one(case)))));
    }
}

fn assert_one((names, before, then): &Case) {
    let lab = Lab::new("doctor", "");
    before(&lab);
    let (remote, local) = (lab.start("remote"), lab.start("local"));
    then(&lab, &local);
    assert_eq!(found(&lab.local, &lab.path("local.toml")), set(names), "{}", remote.log());
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn is_down(path: &PathStatus) -> bool {
    !path.state.works()
}

fn wait_for_down(local: &Portal) {
    local.wait_for("a path to be down", |status| paths(status).iter().any(is_down));
}

fn none_up(status: &Status) -> bool {
    paths(status).iter().all(is_down)
}

fn first_active(_: &Lab, local: &Portal) {
    local.wait_for("the first path", |status| states(status).first() == Some(&PathState::Active));
}

fn both_active(local: &Portal) {
    local.wait_for("both paths", |status| states(status) == [PathState::Active; 2]);
}

/// The links' sections.
const LINK_ONE: &str = "[[link]]\nname = \"one\"\ninterface = \"one\"\n";
const LINK_TWO: &str = "[[link]]\nname = \"two\"\ninterface = \"two\"\n";
/// What the remote portal's host drops of the second link, up to what it is.
const CUT: &str = "table inet cut { chain input { type filter hook input priority 0; iifname two ip saddr 192.0.2.1 ";

/// Answers every request at port 80 of a namespace as a captive portal does, for as long as it lives.
fn captive(namespace: &Namespace) {
    let listener = namespace.run(|| TcpListener::bind("0.0.0.0:80")).expect("entered").expect("a listener");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: http://login.hotel.example/\r\n\r\n");
        }
    });
}

fn listen_to_tcp(lab: &Lab) {
    lab.edit("remote.toml", "listen =", "transports = [\"udp\", \"tcp\"]\nlisten =");
}

fn block_udp(lab: &Lab) {
    nft(&lab.remote, &format!("{CUT}udp dport 4920 drop; }}; }}"));
}

fn lead_to_a_login(lab: &Lab) {
    captive(&lab.remote);
    nft(&lab.remote, &format!("{CUT}tcp dport != 80 drop; iifname two meta l4proto {{ udp, icmp }} drop; }}; }}"));
}

fn drop_large_packets(lab: &Lab) {
    nft(&lab.remote, &format!("{CUT}ip length > 1400 drop; }}; }}"));
}

/// And each second echo request of those that are not.
fn drop_large_packets_and_echo_requests(lab: &Lab) {
    nft(&lab.remote, &format!("{CUT}ip length > 1400 drop; icmp type echo-request numgen inc mod 2 == 1 drop; }}; }}"));
}

fn take_the_route(lab: &Lab) {
    run(&lab.local, "ip", "route add 10.99.0.0/17 via 192.0.1.2 dev one");
}

fn cap_links(lab: &Lab) {
    lab.edit("local.toml", "[[link]]\n", "[[link]]\ndata_cap = \"1M\"\n");
}

fn reach_the_cap(lab: &Lab, local: &Portal) {
    bulk(lab, ms(1_000)).run().expect("a flow");
    let reached = |link: &LinkStatus| link.data_cap.is_some_and(|cap| cap.reached);
    local.wait_for("the cap", |status| status.links.iter().any(reached));
}

fn name_nobody(lab: &Lab) {
    lab.edit("local.toml", "endpoints = [", "endpoints = [\"nobody.invalid:4920\", ");
}

fn name_fails(local: &Portal) {
    local.wait_for("the name to fail", |status| {
        status.peers.iter().flat_map(|peer| &peer.names).any(|name| name.error.is_some())
    });
}

/// The remote portal knows its peer by another key.
fn know_another_key(lab: &Lab) {
    let other = PrivateKey::generate().expect("randomness").public();
    let text = fs::read_to_string(lab.path("remote.toml")).expect("a configuration");
    let key = text.lines().find(|line| line.starts_with("public_key")).expect("a key");
    lab.edit("remote.toml", key, &format!("public_key = \"{other}\""));
}

/// The remote portal has a preshared key with its peer.
fn share_a_key(lab: &Lab) {
    lab.write("shared.key", &PrivateKey::generate().expect("randomness").to_base64());
    lab.edit("remote.toml", "public_key =", "preshared_key_file = \"shared.key\"\npublic_key =");
}

fn is_refused(local: &Portal, reason: &str) {
    local
        .wait_for("the reason", |status| status.peers.first().and_then(|peer| peer.refused.as_deref()) == Some(reason));
}

/// A program that becomes another, which asks for names at a router before the tunnel.
fn past_the_tunnel(home: &Home) -> [String; 6] {
    let file = home.path("resolv.conf");
    fs::write(&file, "nameserver 192.0.1.2\n").expect("a file");
    resolving_by(&file)
}

/// A lab of one link, whose private addresses a router translates. It forgets a mapping that is idle for this many
/// seconds; the next one has another port.
fn behind_a_nat(seconds: u32) -> (Lab, Namespace) {
    let lab = Lab::new("nat", "");
    lab.edit("local.toml", LINK_TWO, "");
    lab.local.delete_interface("one").expect("it can be deleted");
    let nat = Namespace::new("nat").expect("makes a namespace (these tests need root)");
    let near = End::new(&lab.local, "one", &["192.168.77.2/24"]);
    veth(&near, &End::new(&nat, "in", &["192.168.77.1/24"]), 1500).expect("a veth pair");
    let outside = End::new(&nat, "out", &["203.0.113.1/24"]);
    veth(&outside, &End::new(&lab.remote, "wan", &["203.0.113.2/24"]), 1500).expect("a veth pair");
    nat.set_forwarding(true).expect("a sysctl");
    run(&nat, "ip", &format!("route add {ENDPOINT}/32 via 203.0.113.2 dev out"));
    run(&lab.local, "ip", &format!("route add {ENDPOINT}/32 via 192.168.77.1 dev one"));
    nft(
        &nat,
        "table ip nat { chain post { type nat hook postrouting priority 100; oifname out masquerade fully-random; }; }",
    );
    forget_after(&nat, seconds);
    (lab, nat)
}

/// A host's conntrack forgets a flow of UDP that is quiet for so long.
fn forget_after(host: &Namespace, seconds: u32) {
    for timeout in ["", "_stream"] {
        let key = format!("netfilter/nf_conntrack_udp_timeout{timeout}");
        host.set_sysctl(&key, &seconds.to_string()).expect("a sysctl");
    }
}

/// Datagrams to the remote portal, at more than one link carries.
fn bulk(lab: &Lab, duration: Duration) -> UdpFlow {
    let destination = format!("{REMOTE}:5001").parse().expect("an address");
    let (from, to) = (lab.local.clone(), lab.remote.clone());
    UdpFlow { from, to, destination, payload: 1_200, rate: Rate::mbit(25.0), duration, linger: ms(100) }
}
