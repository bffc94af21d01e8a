//! iperf3, curl with nginx, ssh and PostgreSQL as Debian has them, over the shim: between hosts in two ISDs, each
//! connection by four paths. Needs root, go once, and the packages that `make tools` installs.
//!
//! 1. Servers start as a user without rights, each with files in a folder of its own; meanwhile the network comes up,
//!    and the shims.
//! 2. Each client runs, and is watched: `ss -M` says 3 subflows beside the first, the shim's status 4 flows on 4 paths,
//!    and a capture in the client's AS finds each of the 4 links used.

mod programs;
mod scene;
mod udp;

use scene::{Scene, User};

/// Bytes that programs exchange: a second or two at what they are held to.
const BYTES: usize = 6_000_000;

#[test]
fn unmodified_programs_talk_by_four_paths_between_two_isds() {
    let scene = Scene::start();
    let user = User::without_rights();
    let content = scene.random(BYTES);

    let cluster = programs::Cluster::begin(&scene, &user);
    let _iperf3 = programs::iperf3_server(&scene, &user);
    let _nginx = programs::nginx(&scene, &user, &content);
    let (_sshd, key) = programs::sshd(&scene, &user);

    let said = scene.watched("iperf3", programs::iperf3(&scene), &[]);
    assert!(String::from_utf8_lossy(&said).contains("receiver"), "{}", String::from_utf8_lossy(&said));

    let fetched = scene.watched("curl", programs::curl(&scene), &[]);
    assert!(fetched == content, "curl got {} bytes, not what nginx has", fetched.len());

    let echoed = scene.watched("ssh", programs::ssh(&scene, &user, &key), &content);
    assert!(echoed == content, "ssh brought back {} bytes, not what it was given", echoed.len());

    let _postgres = cluster.serve(&scene, &user);
    let rows = scene.watched("psql", programs::psql(&scene, &user), &[]);
    let rows = String::from_utf8(rows).expect("text");
    let numbers: Vec<u64> = rows.lines().filter_map(|row| row.split('|').next()?.parse().ok()).collect();
    assert!(numbers.iter().copied().eq(1..=programs::ROWS), "{} rows came", numbers.len());
}
