//! Both ways, over each link, and with all that reports trouble.

use super::*;

#[test]
fn the_world_and_the_client_reach_each_other_by_the_remote_portals_own_address() {
    let home = home("own");
    let (local, remote) = home.start_both();
    for address in HUB {
        assert!(run(&home.client, "ip", "addr show dev lan0").contains(&format!("{address}/")));
    }
    assert_client_and_world_talk(&home);
    for portal in [&local, &remote] {
        portal.wait_for("both links to carry", |status| {
            let paths = &status.peers[0].paths;
            paths.len() == 2 && paths.iter().all(|path| path.tx_bytes > 0 && path.rx_bytes > 0)
        });
    }
    // Each alone carries the client too, and finds the other end by the address that is the client's.
    for (link, gateways) in LINKS.into_iter().zip([["192.0.1.2", "fd00:1::2"], ["192.0.2.2", "fd00:2::2"]]) {
        home.local.set_down(link).expect("it goes down");
        local.wait_for("one path", |status| {
            states(status).iter().filter(|state| **state == PathState::Active).count() == 1
        });
        assert_eq!(talk(&home.world, &home.client, HUB[0]), WORLD[0], "without {link}");
        home.local.set_up(link).expect("it comes up");
        let [v4, v6] = gateways;
        run(&home.local, "ip", &format!("route replace default via {v4} dev {link} metric {}", metric(link)));
        run(&home.local, "ip", &format!("-6 route replace default via {v6} dev {link} metric {}", metric(link)));
        local.wait_for("both paths", |status| states(status) == [PathState::Active; 2]);
    }
    assert!(!local.log().contains("link has no route") || local.log().contains("link has a route"));
}

fn metric(link: &str) -> u32 {
    if link == "two" { 200 } else { 100 }
}

#[test]
fn errors_come_back_to_the_client_and_the_world() {
    let home = home("icmp");
    let _portals = home.start_both();
    assert_client_and_world_talk(&home);
    let Home { client, world, .. } = &home;
    for (hub, world_address) in HUB.into_iter().zip(WORLD) {
        for (from, own, to) in [(client, hub, world_address), (world, world_address, hub)] {
            // Nobody listens there.
            let socket = from.run(|| UdpSocket::bind(SocketAddr::new(parse(own), 0))).expect("the namespace");
            let socket = socket.expect("a socket");
            socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            socket.connect(SocketAddr::new(parse(to), 9)).expect("a route");
            socket.send(b"?").expect("it is sent");
            let refused = socket.recv(&mut [0; 8]).expect_err("nobody answers");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused, "{own} to {to}");
            // As long as the interface takes, and longer than the tunnel does.
            let bytes = 1500 - if own.contains(':') { 40 + 8 } else { 20 + 8 };
            let ping = format!("-n -c 3 -i 0.2 -W 2 -M do -s {bytes} {to}");
            let output = from.command("ping").args(ping.split(' ')).output().expect("run ping (iputils-ping)");
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(said.to_lowercase().contains("mtu") && said.contains("1441"), "{own} to {to}: {said}");
        }
    }
}

#[test]
fn it_works_beside_a_default_route_translation_strict_filters_and_a_firewall() {
    let home = Home::new("all");
    take_over(&home);
    home.make_dirty();
    let before = home.footprints();
    let (mut local, mut remote) = home.start_both();
    assert_client_and_world_talk(&home);
    // The local portal's host is still translated.
    for (hub, world) in HUB.into_iter().zip(WORLD) {
        assert_eq!(talk(&home.local, &home.world, world), hub);
    }
    end([&mut local, &mut remote]);
    home.assert_same(&before, "after both were told to end");
}

#[test]
fn the_client_is_followed_when_its_interface_goes_and_comes() {
    let home = home("lan");
    let (local, _remote) = home.start_both();
    assert_client_and_world_talk(&home);
    home.local.set_down("lan0").expect("it goes down");
    local.wait_for_log("the client's interface is not up yet");
    home.local.set_up("lan0").expect("it comes up");
    run(&home.local, "ip", "-6 addr replace fd08::1/64 dev lan0 nodad");
    run(&home.local, "ip", "-6 addr replace fe80::2/64 dev lan0 nodad");
    let end = Instant::now() + PATIENCE;
    for (address, world) in HUB.into_iter().zip(WORLD) {
        let reached = || run(&home.local, "ip", &format!("route get {address} mark 0")).contains("dev lan0");
        while !reached() {
            assert!(Instant::now() < end, "{address} is not routed to the client again; {}", local.log());
            thread::sleep(ms(50));
        }
        assert_eq!(talk(&home.client, &home.world, world), address);
    }
}
