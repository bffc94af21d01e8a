//! What protects a tunnel, and what its portals may do on their hosts.

use std::fs;
use std::time::Duration;

use hawser_config::PrivateKey;

use crate::lab::{self, LOCAL, Lab, Portal, REMOTE, REMOTE_V6, ms, parse};

/// No capability, as /proc/PID/status shows a set of them.
const NONE: &str = "0000000000000000";
/// Only CAP_NET_ADMIN (linux/capability.h: number 12).
const NET_ADMIN: &str = "0000000000001000";
/// And CAP_NET_BIND_SERVICE (number 10).
const NET_ADMIN_AND_LOW_PORTS: &str = "0000000000001400";
/// Least received in a transfer, in bytes: far below what any machine does in its time, far above a few first windows.
const TRANSFER_MIN: u64 = 3_000_000;
/// How long a portal is watched that must not get a session: it calls every half second.
const WATCHED: Duration = Duration::from_millis(1_500);

/// Ping over both IP versions, and TCP both ways.
fn assert_carries(lab: &Lab, what: &str) {
    for destination in [REMOTE, REMOTE_V6] {
        lab.assert_none_lost(&lab.ping(destination, ms(10), ms(200)).run().expect("a ping"));
    }
    for (from, to, destination) in [(&lab.local, &lab.remote, REMOTE), (&lab.remote, &lab.local, LOCAL)] {
        let transfer = lab::transfer(from, to, parse(&format!("{destination}:5001")), ms(500));
        let bytes = transfer.run().expect("a transfer").total_bytes();
        assert!(bytes > TRANSFER_MIN, "{what}: {bytes} bytes to {destination}");
    }
}

/// What the session of a portal's first peer has.
fn agreed(portal: &Portal) -> (String, String) {
    let status = portal.wait_for("a session", |status| status.peers[0].cipher.is_some());
    let peer = status.peers.into_iter().next().expect("a peer");
    (peer.protection.expect("it has a session"), peer.cipher.expect("it has a session"))
}

/// No session comes about, and nothing passes.
fn assert_strangers(lab: &Lab, local: &Portal, remote: &Portal) {
    let report = lab.ping(REMOTE, ms(50), WATCHED).run().expect("a ping");
    assert!(report.echoes.is_empty(), "{} answers", report.echoes.len());
    for portal in [local, remote] {
        let status = portal.status().expect("it answers");
        assert!(status.peers[0].handshake_age_s.is_none(), "{status:#?}");
    }
}

#[test]
fn each_cipher_only_authenticates_where_both_wish_it() {
    for cipher in ["auto", "aes-128-gcm", "chacha20-poly1305", "blake2s"] {
        let traffic = format!("[traffic]\nprotection = \"authenticate\"\ncipher = \"{cipher}\"\n");
        let lab = Lab::new("auth", &traffic);
        let (local, _remote) = lab.start_both();
        assert_carries(&lab, cipher);
        // Where none is named, that depends on the machine's instructions; BLAKE2s comes last.
        let (protection, chosen) = agreed(&local);
        assert_eq!(protection, "authenticate");
        assert!(if cipher == "auto" { chosen != "blake2s" } else { chosen == cipher }, "{cipher}: {chosen}");
    }
}

#[test]
fn the_stricter_protection_wins_and_without_a_cipher_for_it_there_is_no_session() {
    let authenticate = |cipher: &str| format!("protection = \"authenticate\"\ncipher = \"{cipher}\"\n");
    for remote_wish in ["cipher = \"chacha20-poly1305\"\n", "protection = \"encrypt\"\n"] {
        let lab = Lab::new("wish", "[traffic]\n# wishes\n");
        lab.edit("local.toml", "# wishes\n", &authenticate("auto"));
        lab.edit("remote.toml", "# wishes\n", remote_wish);
        let (local, remote) = lab.start_both();
        lab.assert_none_lost(&lab.ping(REMOTE, ms(10), ms(200)).run().expect("a ping"));
        for portal in [&local, &remote] {
            let (protection, cipher) = agreed(portal);
            assert_eq!(protection, "encrypt");
            assert!(remote_wish.contains(&cipher) || remote_wish.starts_with("protection"), "{cipher}");
        }
    }
    let lab = Lab::new("wish", "[traffic]\n# wishes\n");
    lab.edit("local.toml", "# wishes\n", &authenticate("blake2s"));
    let (local, remote) = (lab.start("local"), lab.start("remote"));
    assert_strangers(&lab, &local, &remote);
}

#[test]
fn a_preshared_key_is_asked_for_where_one_side_has_it_and_both_must_have_the_same() {
    let lab = Lab::new("psk", "");
    for (name, peer) in [("local", "hub"), ("remote", "home")] {
        let header = format!("[[peer]]\nname = \"{peer}\"\n");
        lab.edit(&format!("{name}.toml"), &header, &format!("{header}preshared_key_file = \"{name}.psk\"\n"));
    }
    let keys = [1, 2].map(|_| PrivateKey::generate().expect("randomness").to_base64());
    lab.write("local.psk", &keys[0]);
    lab.write("remote.psk", &keys[1]);
    let (local, remote) = (lab.start("local"), lab.start("remote"));
    assert_strangers(&lab, &local, &remote);
    drop((local, remote));

    lab.write("remote.psk", &keys[0]);
    let (local, remote) = lab.start_both();
    assert_carries(&lab, "a common preshared key");
    drop((local, remote));

    lab.edit("local.toml", "preshared_key_file = \"local.psk\"\n", "");
    let (local, remote) = (lab.start("local"), lab.start("remote"));
    assert_strangers(&lab, &local, &remote);
}

/// The capability sets of each thread, and whether it may gain more by executing something.
fn powers(portal: &Portal) -> Vec<(String, Vec<(String, String)>)> {
    let tasks = fs::read_dir(format!("/proc/{}/task", portal.pid())).expect("its threads");
    let mut threads: Vec<_> = tasks
        .map(|task| {
            let folder = task.expect("a thread").path();
            let status = fs::read_to_string(folder.join("status")).expect("its status");
            let name = fs::read_to_string(folder.join("comm")).expect("its name").trim().to_owned();
            let pairs = status.lines().filter_map(|line| line.split_once(":\t"));
            let sets = pairs.filter(|(key, _)| key.starts_with("Cap") || *key == "NoNewPrivs");
            (name, sets.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
        })
        .collect();
    threads.sort();
    threads
}

#[test]
fn a_running_portal_keeps_what_its_configuration_needs_and_its_packet_thread_has_it_not_in_force() {
    let lab = Lab::new("caps", "");
    lab.edit("remote.toml", "listen = [\"0.0.0.0:4920\"]", "listen = [\"0.0.0.0:4920\", \"0.0.0.0:492\"]");
    let (local, remote) = lab.start_both();
    for (portal, at_hand) in [(&local, NET_ADMIN), (&remote, NET_ADMIN_AND_LOW_PORTS)] {
        let threads = powers(portal);
        assert_eq!(threads.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["hawser", "hawser-packet"]);
        for (name, sets) in threads {
            let (inheritable, permitted, effective) =
                if name == "hawser" { (NET_ADMIN, NET_ADMIN, NET_ADMIN) } else { (NONE, at_hand, NONE) };
            let wanted = [
                ("NoNewPrivs", "1"),
                ("CapInh", inheritable),
                ("CapPrm", permitted),
                ("CapEff", effective),
                ("CapBnd", NONE),
                ("CapAmb", NONE),
            ];
            for (key, value) in wanted {
                let found = sets.iter().find(|(set, _)| set == key).map(|(_, value)| value.as_str());
                assert_eq!(found, Some(value), "{key} of {name}");
            }
        }
    }
    // Sockets are opened anew with what is at hand: an interface that is made anew has buffers as large as before.
    lab.local.delete_interface("one").expect("it can be deleted");
    lab.join("one");
    local.wait_for("all paths to be active", |status| {
        crate::lab::states(status) == [hawser_portal::api::PathState::Active; 2]
    });
    assert!(!local.log().contains("rmem_max"), "{}", local.log());
}
