//! What two commands bring, and what the hub's user can do with the peer.

use std::fs;

use hawser_config::PrivateKey;

use super::*;
use crate::footprint::Footprint;
use crate::talk::talk;

#[test]
fn two_commands_bring_the_home_and_its_network_to_the_world_over_both_links_and_leave_takes_it_back() {
    let scene = Scene::new("bond");
    let home = &scene.home;
    let before = Footprint::of(&home.local);
    let mut shells = ["192.0.1.1", "192.0.2.1", "fd00:1::1"].map(|address| Shell::new(home, address, 9001));
    let said = scene.join(&scene.serve(), "--serve lan0");
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("uplinks: one, two\n"), "{}", said.err);
    assert!(said.err.contains("joined: the internet answers through the tunnel"), "{}", said.err);
    scene.wait_for_both_links();
    for (hub, world) in HUB.into_iter().zip(WORLD) {
        assert_eq!(talk(&home.local, &home.world, world), hub, "the world knows the home by the hub's address");
        assert_eq!(talk(&home.client, &home.world, world), hub, "and what is behind it");
    }
    shells.iter_mut().for_each(|shell| shell.assert_lives("in the bond"));
    Shell::new(home, "192.0.2.1", 9002).assert_lives("that came after");
    // It is in order, and a second join is none of its business.
    scene.done(&home.local, "home", "check");
    let again = scene.join("hwr1:AAAA", "");
    assert_eq!(again.status, Some(2), "{}", again.err);
    let left = scene.done(&home.local, "home", "leave");
    assert!(left.err.contains("peer remove"), "{}", left.err);
    before.assert_same(&home.local, "after leave");
    assert!(!scene.file("home").exists() && !scene.file("home").with_file_name("private.key").exists());
    shells.iter_mut().for_each(|shell| shell.assert_lives("after leave"));
    assert_eq!(scene.hawser(&home.local, "home", "leave").status, Some(2), "there is nothing to leave");
}

#[test]
fn the_hubs_user_lists_renames_and_removes_who_enrolled() {
    let scene = Scene::new("book");
    let Home { local, remote, .. } = &scene.home;
    let first = scene.serve();
    // A portal tells its status five times a second.
    let listed = |what: &str| {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = scene.done(remote, "hub", "peer list");
            if said.out.contains(what) {
                return said.out;
            }
            assert!(Instant::now() < end, "{what} is not in\n{}", said.out);
        }
    };
    listed("token, ");
    assert_eq!(scene.join(&first, "").status, Some(0));
    assert!(!listed("  session, keys").contains("token"));
    assert!(!scene.file("hub").with_file_name("tokens.d").join("home.toml").exists(), "a token works once");
    for (words, why) in [
        ("peer add home", "there is a peer \"home\" already"),
        ("serve", "there is a peer \"home\" already"),
        ("peer rename nobody cabin", "no command wrote a file of the first name"),
        ("peer remove nobody", "there is no such peer or token"),
        ("peer add ../home", "name the peer"),
    ] {
        let said = scene.hawser(remote, "hub", words);
        assert!(said.status == Some(2) && said.err.contains(why), "{words}: {}", said.err);
    }
    scene.done(remote, "hub", "peer rename home cabin");
    assert!(listed("  session, keys").contains("cabin"), "its session goes on");
    let second = token(&scene.done(remote, "hub", "peer add home"));
    let addresses = |text: &str| text.parse::<Token>().expect("a token").addresses;
    assert_ne!(addresses(&first), addresses(&second));
    scene.done(remote, "hub", "peer remove home");
    scene.done(remote, "hub", "peer remove cabin");
    assert_eq!(listed("NAME").lines().count(), 1, "nobody is left");
    let end = Instant::now() + PATIENCE;
    while scene.links_of("home").iter().any(|(_, state)| *state == PathState::Active) {
        assert!(Instant::now() < end, "its session is over");
        sleep(ms(20));
    }
    scene.done(local, "home", "leave");
}

#[test]
fn what_would_break_a_configuration_or_another_peer_is_said_and_changes_nothing() {
    let scene = Scene::new("whole");
    let remote = &scene.home.remote;
    scene.serve();
    let (file, key) = (scene.file("hub"), || PrivateKey::generate().expect("randomness").public());
    let peer = |name: &str| file.with_file_name("peers.d").join(format!("{name}.toml"));
    let add = |network: &str| format!("peer add shed --key {} --allowed-ip {network}/32", key());
    let refused = |words: &str, why: &str| {
        let said = scene.hawser(remote, "hub", words);
        assert!(said.status == Some(2) && said.err.contains(why), "{words}: {}", said.err);
    };
    refused(&add("10.77.0.2"), "a network is promised to \"home\"");
    scene.done(remote, "hub", &add("10.77.0.9"));
    // What is forwarded to a peer has to have one.
    let text = fs::read_to_string(&file).expect("a configuration");
    fs::write(&file, format!("{text}\n[[forward]]\nport = 8080\nto = \"10.77.0.9:80\"\n")).expect("it is written");
    let shed = fs::read_to_string(peer("shed")).expect("a file");
    refused("peer remove shed", "no peer has 10.77.0.9");
    assert_eq!(fs::read_to_string(peer("shed")).expect("it is there still"), shed);
    fs::write(&file, text).expect("it is written");
    // A file that was edited may be another peer's by now.
    fs::write(peer("shed"), shed.replace("\"shed\"", "\"barn\"")).expect("it is written");
    refused("peer add shed", "another peer is in");
    refused("peer remove shed", "was edited");
    let said = scene.hawser(remote, "hub", &add("10.77.0.10"));
    assert!(said.status == Some(1) && said.err.contains("shed.toml"), "{}", said.err);
    assert!(scene.done(remote, "hub", "peer list").out.contains("barn"), "it is a peer still");
    fs::write(peer("shed"), shed).expect("it is written");
    scene.done(remote, "hub", "peer remove shed");
}

#[test]
fn who_serves_by_a_second_file_in_the_same_folder_ends_no_portal() {
    let scene = Scene::new("second");
    scene.serve();
    let second = scene.file("hub").with_file_name("second.toml");
    let mut command = scene.home.remote.command(env!("CARGO_BIN_EXE_hawser"));
    let output = command.args(["serve", "--port", "5000", "-c"]).arg(&second).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("another portal answers at"), "{said}");
    assert!(!second.exists() && Client::status(&scene.socket("hub")).is_ok(), "the first one runs");
}
