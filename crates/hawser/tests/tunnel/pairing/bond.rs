//! What two commands bring, and what the hub's user can do with the peer.

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
