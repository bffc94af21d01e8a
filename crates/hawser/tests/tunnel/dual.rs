//! Links with both IP versions: each keeps one path, and has another to go to.

use hawser_portal::api::{PathState, PathStatus, Status};

use crate::lab::{ENDPOINT, ENDPOINT_V6, LINKS, Lab, Portal, REMOTE, ms, paths, states};

/// An address that nobody has: frames to it vanish without a word.
const NOBODY: &str = "02:00:00:00:00:99";
/// The gateway of each link for an IP version, as the lab numbers them.
const GATEWAYS_V4: [&str; 2] = ["192.0.1.2", "192.0.2.2"];
const GATEWAYS_V6: [&str; 2] = ["fd00:1::2", "fd00:2::2"];

/// Both portals know both IP versions.
fn lab(tag: &str, transport: &str) -> Lab {
    let lab = Lab::new(&format!("{tag}-{transport}"), "");
    for link in LINKS {
        let name = format!("interface = \"{link}\"\n");
        lab.edit("local.toml", &name, &format!("{name}transport = \"{transport}\"\n"));
    }
    lab.edit("remote.toml", "listen =", &format!("transports = [\"{transport}\"]\nlisten ="));
    let (v4, v6) = (format!("\"{ENDPOINT}:4920\""), format!("\"[{ENDPOINT_V6}]:4920\""));
    lab.edit("local.toml", &v4, &format!("{v4}, {v6}"));
    lab.edit("remote.toml", "\"0.0.0.0:4920\"", "\"0.0.0.0:4920\", \"[::]:4920\"");
    lab
}

/// From now on all that the local portal sends to these gateways vanishes.
fn black_hole(lab: &Lab, gateways: [&str; 2]) {
    for (link, gateway) in LINKS.iter().zip(gateways) {
        ip(lab, &["neigh", "replace", gateway, "lladdr", NOBODY, "dev", link, "nud", "permanent"]);
    }
}

/// They are asked for again.
fn restore(lab: &Lab, gateways: [&str; 2]) {
    for (link, gateway) in LINKS.iter().zip(gateways) {
        ip(lab, &["neigh", "del", gateway, "dev", link]);
    }
}

fn ip(lab: &Lab, arguments: &[&str]) {
    let output = lab.local.command("ip").args(arguments).output().expect("run ip (iproute2)");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn whole(status: &Status) -> bool {
    let names: Vec<&str> = paths(status).iter().map(|path| path.name.as_str()).collect();
    states(status) == [PathState::Active; 2] && names == LINKS
}

fn assert_whole(lab: &Lab, local: &Portal) {
    local.wait_for("one active path a link", whole);
    lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
}

#[test]
fn a_link_with_both_ip_versions_keeps_one_path() {
    let lab = lab("dual", "udp");
    let (local, remote) = lab.start_both();
    assert_whole(&lab, &local);
    // The remote portal, whose sockets are not the links', knows no more paths than the local one.
    remote.wait_for("as many paths as links", |status| states(status) == [PathState::Active; 2]);
}

#[test]
fn a_link_takes_the_ip_version_that_works_and_the_other_when_that_fails() {
    takes_what_works("udp");
}

#[test]
fn a_link_of_streams_does_so_too() {
    takes_what_works("tcp");
}

#[test]
fn a_link_of_bare_ip_does_so_too() {
    takes_what_works("ip");
}

/// The path is of IPv6 while IPv4, which stands first among the endpoints, does not pass, and of IPv4 as soon as it
/// does.
fn takes_what_works(transport: &str) {
    let lab = lab("hole", transport);
    black_hole(&lab, GATEWAYS_V4);
    let (local, _remote) = lab.start_both();
    let by = |v6: bool| {
        local.wait_for("one active path a link", |status| {
            let is_v6 = |path: &PathStatus| path.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with('['));
            whole(status) && paths(status).iter().all(|path| is_v6(path) == v6)
        });
        assert_whole(&lab, &local);
    };
    by(true);
    for _ in 0..2 {
        restore(&lab, GATEWAYS_V4);
        by(false);
        black_hole(&lab, GATEWAYS_V4);
        by(true);
    }
    restore(&lab, GATEWAYS_V4);
    by(false);
    black_hole(&lab, GATEWAYS_V6);
    by(false);
}
