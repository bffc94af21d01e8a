//! `hawser doctor` against faults that were made on purpose, one at a time, and against set-ups without any.
//!
//! It has to name the fault, no other one, and be done in its time.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use hawser_portal::api::{LinkStatus, PathState};
use hawser_portal::config::PrivateKey;
use hawser_wire::traffic::UdpFlow;
use hawser_wire::{Direction, Loss, Namespace, Probability, Rate, Way};

use crate::home::{Home, nft, run};
use crate::lab::{Lab, Portal, REMOTE, ms, paths, states};

/// Where each finding is explained.
const PAGE: &str = include_str!("../../../../docs/troubleshooting.md");
/// How long it may take.
const WITHIN: Duration = Duration::from_secs(15);

/// What it finds by a configuration: names of findings.
fn found(namespace: &Namespace, file: &Path) -> BTreeSet<String> {
    found_by(namespace, file, &[])
}

/// The same, by a program that becomes it.
pub fn found_by(namespace: &Namespace, file: &Path, by: &[&str]) -> BTreeSet<String> {
    let file = file.display().to_string();
    let words = [by, &[env!("CARGO_BIN_EXE_hawser"), "doctor", "--json", "-c", &file]].concat();
    let start = Instant::now();
    let output = namespace.command(words[0]).args(&words[1..]).output().expect("it runs");
    let (took, text) = (start.elapsed(), String::from_utf8_lossy(&output.stdout));
    assert!(took < WITHIN, "it took {took:?}: {text}");
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
    names
}

/// A fault that is made where both portals run over two links: its name, what is changed before they start, and what then.
type Case = (&'static str, fn(&Lab), fn(&Lab, &Portal));

fn nothing(_: &Lab) {}

fn assert_found(cases: &[Case]) {
    for (name, before, then) in cases {
        let lab = Lab::new("doctor", "");
        before(&lab);
        let (remote, local) = (lab.start("remote"), lab.start("local"));
        then(&lab, &local);
        assert_eq!(
            found(&lab.local, &lab.path("local.toml")),
            BTreeSet::from([(*name).to_owned()]),
            "{}",
            remote.log()
        );
    }
}

fn wait_for_down(local: &Portal) {
    let is_up = |state| matches!(state, PathState::Active | PathState::Suspect);
    local.wait_for("a path to be down", |status| paths(status).iter().any(|path| !is_up(path.state)));
}

fn first_active(_: &Lab, local: &Portal) {
    local.wait_for("the first path", |status| states(status).first() == Some(&PathState::Active));
}

fn both_active(local: &Portal) {
    local.wait_for("both paths", |status| states(status) == [PathState::Active; 2]);
}

#[test]
fn an_interface_that_is_missing_down_unplugged_or_without_address_is_named() {
    assert_found(&[
        ("no-interface", |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"three\""), first_active),
        ("interface-down", nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "link set two down");
        }),
        ("no-carrier", nothing, |lab, local| {
            both_active(local);
            run(&lab.remote, "ip", "link set two down");
        }),
        ("no-address", nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "address flush dev two");
        }),
        (
            "other-address",
            |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\naddress = \"192.0.2.9\""),
            first_active,
        ),
    ]);
}

#[test]
fn a_link_without_a_route_or_with_a_silent_gateway_is_named() {
    assert_found(&[
        ("no-route", nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "route delete 198.51.100.0/24 dev two");
        }),
        ("rp-filter", nothing, |lab, local| {
            both_active(local);
            lab.local.set_sysctl("ipv4/conf/two/rp_filter", "1").expect("a sysctl");
        }),
        ("gateway-silent", nothing, |lab, local| {
            both_active(local);
            run(&lab.remote, "ip", "address delete 192.0.2.2/24 dev two");
            run(&lab.local, "ip", "neighbour flush dev two");
            wait_for_down(local);
        }),
    ]);
}

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

#[test]
fn what_does_not_pass_by_a_link_is_named() {
    assert_found(&[
        ("nothing-passes", nothing, |lab, local| {
            both_active(local);
            nft(&lab.remote, &format!("{CUT}drop; }}; }}"));
            wait_for_down(local);
        }),
        (
            "udp-blocked",
            |lab| lab.edit("remote.toml", "listen =", "transports = [\"udp\", \"tcp\"]\nlisten ="),
            |lab, local| {
                both_active(local);
                nft(&lab.remote, &format!("{CUT}udp dport 4920 drop; }}; }}"));
                wait_for_down(local);
            },
        ),
        ("captive-portal", nothing, |lab, local| {
            both_active(local);
            captive(&lab.remote);
            nft(
                &lab.remote,
                &format!("{CUT}tcp dport != 80 drop; iifname two meta l4proto {{ udp, icmp }} drop; }}; }}"),
            );
            wait_for_down(local);
        }),
        (
            "no-handshake",
            |lab| {
                nft(
                    &lab.remote,
                    "table inet cut { chain input { type filter hook input priority 0; udp dport 4920 drop; }; }",
                )
            },
            |_, _| {
                std::thread::sleep(ms(1_500));
            },
        ),
        (
            "tcp-closed",
            |lab| lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\ntransport = \"tcp\""),
            first_active,
        ),
    ]);
}

#[test]
fn a_portal_that_is_not_there_or_does_not_know_the_other_is_named() {
    let lab = Lab::new("doctor", "");
    let file = lab.path("local.toml");
    let is = |names: &[&str]| assert_eq!(found(&lab.local, &file), names.iter().map(|&name| name.to_owned()).collect());
    let remote = lab.start("remote");
    is(&["not-running"]);
    let local = lab.start("local");
    both_active(&local);
    drop(remote);
    wait_for_down(&local);
    local.wait_for("no path", |status| paths(status).iter().all(|path| path.state != PathState::Active));
    is(&["port-closed"]);

    let other = PrivateKey::generate().expect("randomness");
    lab.write("shared.key", &other.to_base64());
    let text = std::fs::read_to_string(lab.path("remote.toml")).expect("a configuration");
    lab.write("remote.toml", &text.replace("public_key =", "preshared_key_file = \"shared.key\"\npublic_key ="));
    let remote = lab.start("remote");
    local.wait_for("the reason", |status| status.peers.first().is_some_and(|peer| peer.refused.is_some()));
    assert!(found(&lab.local, &file).contains("preshared-key"));
    drop(remote);
    let key = text.lines().find(|line| line.starts_with("public_key")).expect("a key");
    lab.write("remote.toml", &text.replace(key, &format!("public_key = \"{}\"", other.public())));
    let _remote = lab.start("remote");
    local.wait_for("the reason", |status| {
        status.peers.first().and_then(|peer| peer.refused.as_deref()) == Some("unknown_key")
    });
    assert!(found(&lab.local, &file).contains("unknown-key"));
}

#[test]
fn a_configuration_or_a_key_that_is_broken_is_named() {
    let lab = Lab::new("doctor", "");
    let (local, _remote) = lab.start_both();
    std::fs::rename(lab.path("local.key"), lab.path("elsewhere.key")).expect("renamed");
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["key".to_owned()]));
    lab.write("local.toml", "[portal]\n");
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["configuration".to_owned()]));
    drop(local);
}

#[test]
fn packets_that_go_elsewhere_or_are_dropped_are_named() {
    assert_found(&[
        ("other-route", nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "route add 10.99.0.0/17 via 192.0.1.2 dev one");
        }),
        ("address-twice", nothing, |lab, local| {
            both_active(local);
            run(&lab.local, "ip", "address add 10.77.0.2/32 dev lo");
        }),
        ("drops", nothing, |lab, local| {
            both_active(local);
            lab.ping("10.77.0.99", ms(5), ms(300)).run().expect("a ping");
            local.wait_for("drops", |status| status.drops.get("no_peer").is_some_and(|count| *count >= 40));
        }),
        (
            "data-cap",
            |lab| lab.edit("local.toml", "[[link]]\n", "[[link]]\ndata_cap = \"1M\"\n"),
            |lab, local| {
                both_active(local);
                bulk(lab, ms(1_000)).run().expect("a flow");
                let reached = |link: &LinkStatus| link.data_cap.is_some_and(|cap| cap.reached);
                local.wait_for("the cap", |status| status.links.iter().any(reached));
            },
        ),
    ]);
}

/// Datagrams to the remote portal, at more than one link carries.
fn bulk(lab: &Lab, duration: Duration) -> UdpFlow {
    let destination = format!("{REMOTE}:5001").parse().expect("an address");
    let (from, to) = (lab.local.clone(), lab.remote.clone());
    UdpFlow { from, to, destination, payload: 1_200, rate: Rate::mbit(25.0), duration, linger: ms(100) }
}

#[test]
fn a_link_that_loses_packets_is_named() {
    let lab = Lab::new("doctor", "");
    let links = ["one", "two"].map(|link| lab.emulate(link, &Direction::shaped(20.0, ms(5), ms(50))));
    let (local, _remote) = lab.start_both();
    for (link, way) in links.iter().flat_map(|link| Way::BOTH.map(|way| (link, way))) {
        link.set(way, |way| way.loss = Loss::Random(Probability::new(0.15).expect("a share"))).expect("it can be set");
    }
    let flow = bulk(&lab, ms(8_000)).start().expect("a flow");
    local.wait_for("loss", |status| paths(status).iter().any(|path| path.loss_pct >= 5.0));
    assert_eq!(found(&lab.local, &lab.path("local.toml")), BTreeSet::from(["loss".to_owned()]));
    flow.finish().expect("a flow");
}

#[test]
fn a_gateway_whose_packets_go_past_it_is_named() {
    let home = Home::new("doctor");
    let (local, remote) = home.start_both();
    let here = |by: &[&str]| found_by(&home.local, &home.path("local.toml"), by);
    let there = || found(&home.remote, &home.path("remote.toml"));
    let only = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!((here(&[]), there()), (BTreeSet::new(), BTreeSet::new()), "nothing is wrong");

    run(&home.local, "ip", "rule add lookup main priority 50");
    assert_eq!(here(&[]), only("internet-outside"));
    run(&home.local, "ip", "rule delete lookup main priority 50");

    let resolver = home.path("resolv.conf");
    std::fs::write(&resolver, "nameserver 192.0.1.2\n").expect("a file");
    let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", resolver.display());
    assert_eq!(here(&["unshare", "-m", "sh", "-c", &script, "sh"]), only("dns-outside"));

    run(&home.local, "ip", "link set lan0 down");
    assert_eq!(here(&[]), only("gateway-interface-down"));

    nft(&home.remote, "table inet fence { chain forward { type filter hook forward priority 0; policy drop; }; }");
    assert_eq!(there(), only("forward-firewall"));
    run(&home.remote, "nft", "delete table inet fence");
    home.remote.set_sysctl("ipv4/conf/eth0/forwarding", "0").expect("a sysctl");
    assert_eq!(there(), only("no-forwarding"));
    drop((local, remote));
}

#[test]
fn an_ip_version_that_goes_past_the_tunnel_is_named() {
    let home = Home::new("doctor");
    home.edit("local.toml", ", \"fd77::2/64\"", "");
    home.edit("local.toml", ", \"::/0\"", "");
    let (_local, _remote) = home.start();
    assert_eq!(found(&home.local, &home.path("local.toml")), BTreeSet::from(["leak".to_owned()]));
}

#[test]
fn where_nothing_is_wrong_nothing_is_found() {
    for traffic in ["", "[traffic]\nscheduler = \"weighted\"\n", "[[rule]]\nprotocol = \"icmp\"\nfec = \"auto\"\n"] {
        let lab = Lab::new("doctor", traffic);
        let (_local, _remote) = lab.start_both();
        for (namespace, file) in [(&lab.local, "local.toml"), (&lab.remote, "remote.toml")] {
            assert_eq!(found(namespace, &lab.path(file)), BTreeSet::new(), "{file} {traffic}");
        }
    }
    let home = Home::new("doctor");
    home.make_dirty();
    let (_local, _remote) = home.start_both();
    for (namespace, file) in [(&home.local, "local.toml"), (&home.remote, "remote.toml")] {
        assert_eq!(found(namespace, &home.path(file)), BTreeSet::new(), "{file}, where others set much");
    }
}

#[test]
fn a_link_that_fell_back_and_a_name_that_nobody_knows_are_named() {
    assert_found(&[
        (
            "fallen-back",
            |lab| {
                lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\ntransport = \"auto\"");
                lab.edit("remote.toml", "listen =", "transports = [\"udp\", \"tcp\"]\nlisten =");
                nft(&lab.remote, &format!("{CUT}udp dport 4920 drop; }}; }}"));
            },
            |_, local| {
                local.wait_for("the second link by TCP", |status| {
                    paths(status).iter().any(|path| path.transport == "tcp" && path.state == PathState::Active)
                });
            },
        ),
        (
            "name-unknown",
            |lab| lab.edit("local.toml", "endpoints = [", "endpoints = [\"nobody.invalid:4920\", "),
            |_, local| {
                both_active(local);
                local.wait_for("the name to fail", |status| {
                    status.peers.iter().flat_map(|peer| &peer.names).any(|name| name.error.is_some())
                });
            },
        ),
    ]);
}
