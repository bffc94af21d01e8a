//! A tunnel inside another one, each with the default route: as by another VPN's interface.

use hawser_config::PrivateKey;
use hawser_portal::api::PathState;

use crate::home::{Home, WORLD, run};
use crate::lab::{Portal, states, write_private};
use crate::talk::talk;

/// The inner addresses of the inner tunnel's portals.
const INSIDE: [[&str; 2]; 2] = [["10.78.0.2", "fd78::2"], ["10.78.0.1", "fd78::1"]];

/// A portal in the world, and one at home whose only link is the other tunnel.
fn write_configurations(home: &Home) {
    let keys = ["inside", "outside"].map(|name| {
        let key = PrivateKey::generate().expect("randomness");
        write_private(&home.path(&format!("{name}.key")), &key.to_base64());
        key.public()
    });
    let [[local, local_v6], [far, far_v6]] = INSIDE;
    let common = |name: &str, [v4, v6]: [&str; 2]| {
        let socket = home.path(&format!("{name}.sock"));
        format!(
            "[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{}\"\nLISTEN\n[tun]\nname = \"hawser1\"\n\
             addresses = [\"{v4}/24\", \"{v6}/64\"]\n",
            socket.display()
        )
    };
    write_private(
        &home.path("inside.toml"),
        &format!(
            "{}default_route = true\n[[link]]\nname = \"vpn\"\ninterface = \"hawser0\"\n[[peer]]\nname = \"far\"\n\
             public_key = \"{}\"\nendpoints = [\"{}:4921\"]\nallowed_ips = [\"0.0.0.0/0\", \"::/0\"]\n",
            common("inside", [local, local_v6]).replace("LISTEN", ""),
            keys[1],
            WORLD[0],
        ),
    );
    write_private(
        &home.path("outside.toml"),
        &format!(
            "{}[[peer]]\nname = \"home\"\npublic_key = \"{}\"\nallowed_ips = [\"{local}/32\", \"{local_v6}/128\"]\n",
            common("outside", [far, far_v6]).replace("LISTEN", "listen = [\"0.0.0.0:4921\"]"),
            keys[0],
        ),
    );
}

#[test]
fn a_tunnel_runs_inside_another_and_both_have_the_default_route() {
    let home = Home::new("nested");
    write_configurations(&home);
    let before = home.footprints();
    let (local, remote) = home.start_both();
    let outside = Portal::start(&home.world, home.folder(), "outside");
    let inside = Portal::start(&home.local, home.folder(), "inside");
    inside.wait_for("the path by the other tunnel", |status| states(status) == [PathState::Active]);
    // The other tunnel's MTU less the headers of IPv4 and UDP less what Hawser adds (docs/wire.md).
    inside.wait_for_log("tun mtu mtu=1382");
    for [near, far] in [0, 1].map(|family| [INSIDE[0][family], INSIDE[1][family]]) {
        assert_eq!(talk(&home.local, &home.world, far), near);
        assert_eq!(talk(&home.world, &home.local, near), far);
    }
    for (family, elsewhere) in [("-4", "198.18.0.1"), ("-6", "2001:db8::1")] {
        let route = run(&home.local, "ip", &format!("{family} route get {elsewhere}"));
        assert!(route.contains("dev hawser1"), "the inner one has the host's packets: {route}");
    }
    local.wait_for("the outer tunnel to be as before", |status| states(status) == [PathState::Active; 2]);
    for mut portal in [inside, outside, local, remote] {
        portal.signal(rustix::process::Signal::TERM);
        assert!(portal.wait().success(), "{}", portal.log());
    }
    home.assert_same(&before, "after the end of both tunnels");
}
