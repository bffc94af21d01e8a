//! Nothing is left of it; and what is refused leaves nothing either.

use super::*;

#[test]
fn all_of_it_is_undone_at_the_end_and_after_a_kill_and_a_new_start() {
    let home = home("off");
    let before = home.footprints();
    let (mut local, mut remote) = home.start_both();
    let during = home.footprints();
    assert!(during[0] != before[0] && during[1] != before[1]);
    end([&mut local, &mut remote]);
    home.assert_same(&before, "after the end");
    let (mut local, mut remote) = home.start_both();
    let mut idle = connection(&home.world, &home.client, HUB[0]);
    for portal in [&mut local, &mut remote] {
        portal.signal(Signal::KILL);
        portal.wait();
    }
    let rules = run(&home.remote, "ip", "rule");
    assert!(rules.starts_with("0:\tfrom all fwmark") && rules.contains("1:\tfrom all lookup local"), "{rules}");
    for (hub, world) in HUB.into_iter().zip(WORLD) {
        service(&home.remote, hub, SSH, "the remote portal");
        service(&home.remote, hub, SERVICE, "the remote portal");
        assert_eq!(
            call(&home.world, hub, SSH, PATIENCE).expect("an answer"),
            "the remote portal",
            "nobody is locked out"
        );
        assert!(call(&home.world, hub, SERVICE, SILENCE).is_err(), "what is the client's is nobody else's meanwhile");
        assert_eq!(talk(&home.remote, &home.world, world), hub, "the remote portal's host works on");
    }
    let (mut local, mut remote) = home.start_both();
    assert!(remote.log().contains("cleaned up after a killed portal"), "{}", remote.log());
    assert_client_and_world_talk(&home);
    exchange(&mut idle);
    end([&mut local, &mut remote]);
    home.assert_same(&before, "after a kill, a new start and its end");
}

#[test]
fn a_portal_says_why_it_cannot_take_an_address_over() {
    let table = [
        (
            "remote.toml",
            "address = [",
            "address = [\"198.51.100.8\", ",
            "take over 198.51.100.8: no interface",
            "`ip addr`",
        ),
        (
            "remote.toml",
            "\"]\n[[peer]]",
            "\"]\ninterface = \"lo\"\n[[peer]]",
            "eth0 has it, and not lo",
            "interface = \"eth0\"",
        ),
        (
            "local.toml",
            "address = [",
            "address = [\"192.0.1.1\", ",
            "one of this machine has it, and no client",
            "\"192.0.1.1/32\"",
        ),
    ];
    for (file, from, to, said, hint) in table {
        let home = home("why");
        home.edit(file, from, to);
        if file == "remote.toml" {
            home.edit(file, "\"10.77.0.2/32\"", "\"10.77.0.2/32\", \"198.51.100.8/32\"");
        }
        let before = home.footprints();
        let (namespace, name) = if file == "remote.toml" { (&home.remote, "remote") } else { (&home.local, "local") };
        let mut portal = Portal::start(namespace, home.folder(), name);
        assert_eq!(portal.wait().code(), Some(1));
        let log = portal.log();
        assert!(log.contains(said) && log.contains(hint), "{log}");
        home.assert_same(&before, "after a refusal");
    }
}
