//! What is not the client's.

use super::*;

#[test]
fn ssh_and_what_the_remote_portal_does_itself_stay_with_it() {
    let home = home("keep");
    let Home { client, remote, router, world, .. } = &home;
    // Begun before the portal: the world speaks first, later, when conntrack sees the connection for the first time.
    let older = WORLD.map(|address| connection(remote, world, address));
    let (local, portal) = home.start_both();
    for mut connection in older {
        exchange(&mut connection);
    }
    for (hub, world_address) in HUB.into_iter().zip(WORLD) {
        service(remote, hub, SSH, "the remote portal");
        service(client, hub, SSH, "the client");
        service(client, hub, SERVICE, "the client");
        let told = |port| call(world, hub, port, PATIENCE).unwrap_or_else(|error| panic!("{hub} {port}: {error}"));
        assert_eq!(told(SSH), "the remote portal");
        assert_eq!(told(SERVICE), "the client");
        // Ping, TCP, UDP.
        assert_eq!(talk(remote, world, world_address), hub, "the remote portal's host opens connections as before");
        // Neighbours find each other anew.
        for (namespace, interface) in [(router, "hub"), (remote, "eth0"), (client, "lan0"), (&home.local, "lan0")] {
            run(namespace, "ip", &format!("neigh flush dev {interface}"));
        }
        assert_eq!(told(SSH), "the remote portal");
        assert_eq!(told(SERVICE), "the client");
        assert_eq!(talk(client, world, world_address), hub);
    }
    local.wait_for("both paths", |status| states(status) == [PathState::Active; 2]);
    assert!(!portal.log().contains("not set"), "{}", portal.log());
}

/// Whether an answer comes to a datagram that the client sends from this port.
fn is_answered(home: &Home, port: u16, family: usize) -> bool {
    let bind = |namespace: &Namespace, address: &str, port| {
        let address = SocketAddr::new(parse::<IpAddr>(address), port);
        let socket = bound(namespace, || UdpSocket::bind(address));
        socket.set_read_timeout(Some(SILENCE)).expect("a timeout");
        socket
    };
    let (world, client) = (bind(&home.world, WORLD[family], 0), bind(&home.client, HUB[family], port));
    client.send_to(b"?", world.local_addr().expect("an address")).expect("it is sent");
    let Ok((_, from)) = world.recv_from(&mut [0; 8]) else { return false };
    world.send_to(b"!", from).expect("it is sent");
    client.recv(&mut [0; 8]).is_ok()
}

#[test]
fn the_client_cannot_speak_for_what_stays_at_the_remote_portal() {
    let home = home("speak");
    let _portals = home.start_both();
    for family in [0, 1] {
        let end = Instant::now() + PATIENCE;
        while !is_answered(&home, 5555, family) {
            assert!(Instant::now() < end, "other ports are the client's");
        }
        // Where the portal listens, and DHCP.
        for port in [4920, 68] {
            assert!(!is_answered(&home, port, family), "port {port}");
        }
    }
}

#[test]
fn a_neighbour_of_the_remote_portal_does_not_get_in_beside_the_client() {
    let home = home("guard");
    let [v4, v6] = HUB;
    // It sends what it likes by way of the remote portal's host, which forwarded nothing before.
    run(&home.router, "ip", &format!("route add 192.168.8.0/24 via {v4}"));
    run(&home.router, "ip", &format!("-6 route add fd08::/64 via {v6}"));
    let (_local, _remote) = home.start_both();
    assert_client_and_world_talk(&home);
    for address in LOCAL_LAN {
        service(&home.local, address, SERVICE, "the local portal's host");
        assert!(call(&home.router, address, SERVICE, SILENCE).is_err(), "{address} is nobody's business");
    }
    // Whoever wants that says so.
    drop((_local, _remote));
    home.edit("remote.toml", "[takeover]", "[gateway]\nserve = [\"eth0\"]\n[takeover]");
    home.edit("local.toml", "[takeover]", "[gateway]\nserve = [\"lan0\"]\n[takeover]");
    let (_local, _remote) = home.start_both();
    assert_client_and_world_talk(&home);
    let told = call(&home.router, LOCAL_LAN[0], SERVICE, PATIENCE);
    assert_eq!(told.expect("an answer"), "the local portal's host");
}
