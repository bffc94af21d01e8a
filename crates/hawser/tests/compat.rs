//! Today's portal against another release's, both ways: run by `make compat TAG=…`, which builds that from its tag.
//! Needs root.

#[allow(dead_code, reason = "each test program takes what it needs of it")]
#[path = "tunnel/lab.rs"]
mod lab;

use hawser_wire::Namespace;
use lab::{LOCAL, Lab, REMOTE, REMOTE_V6, ms, parse, states};

/// Names the other program.
const OTHER: &str = "HAWSER_OTHER";
/// Least received in a transfer of 700 ms, in bytes: far above a few first windows.
const TRANSFER_MIN: u64 = 5_000_000;

/// Runs the other program in the place of ours.
fn other() -> [String; 3] {
    let program = std::env::var(OTHER).unwrap_or_else(|_| panic!("{OTHER} names no program: run make compat TAG=…"));
    assert!(std::path::Path::new(&program).is_file(), "{OTHER}: no program at {program}");
    ["sh".into(), "-c".into(), format!("exec {program} \"$@\"")]
}

fn tcp(from: &Namespace, to: &Namespace, destination: &str) -> u64 {
    let transfer = lab::transfer(from, to, parse(&format!("{destination}:5001")), ms(700));
    transfer.run().expect("a transfer").total_bytes()
}

/// A session between our portal and the other's, with all that portals say to each other: terms, repairs, a lost link.
fn works(tag: &str, old: &str) {
    let lab = Lab::new(tag, "[[rule]]\nprotocol = \"icmp\"\nfec = \"auto\"\n");
    lab.edit("local.toml", "interface = \"two\"", "interface = \"two\"\nweight = 3");
    let by = other();
    let by: Vec<&str> = by.iter().map(String::as_str).collect();
    let start = |name: &str| if name == old { lab.start_by(name, &by) } else { lab.start(name) };
    let (remote, local) = (start("remote"), start("local"));
    local.wait_for("all paths to be active", |status| states(status) == [hawser_portal::api::PathState::Active; 2]);
    for destination in [REMOTE, REMOTE_V6] {
        lab.assert_none_lost(&lab.ping(destination, ms(10), ms(500)).run().expect("a ping"));
    }
    let (up, down) = (tcp(&lab.local, &lab.remote, REMOTE), tcp(&lab.remote, &lab.local, LOCAL));
    assert!(up > TRANSFER_MIN && down > TRANSFER_MIN, "{up} bytes up, {down} down");
    for portal in [&local, &remote] {
        let status = portal.status().expect("a status");
        let is_bad = |name: &str| name.contains("frame") || name == "forged";
        let bad: Vec<_> = status.drops.iter().filter(|(name, count)| is_bad(name) && **count > 0).collect();
        assert!(bad.is_empty(), "{bad:?}; log:\n{}", portal.log());
    }
    // Whoever knows of versions names the other's, where it is another one.
    let ours = if old == "local" { &remote } else { &local };
    let status = ours.status().expect("a status");
    let theirs = status.peers[0].protocol.as_ref().expect("a protocol");
    let named = ours.log().contains("peer of another protocol version");
    assert_eq!(named, *theirs != status.protocol, "theirs {theirs}, ours {}; log:\n{}", status.protocol, ours.log());
}

#[test]
fn another_releases_local_portal_works_with_todays_remote_one() {
    works("oldl", "local");
}

#[test]
fn todays_local_portal_works_with_another_releases_remote_one() {
    works("oldr", "remote");
}
