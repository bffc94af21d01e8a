//! A home with two links, a remote portal elsewhere, and the world.
//!
//! ```text
//!   client lan0 192.168.8.2 ---- 192.168.8.1 lan0 local  one 192.0.1.1 ---- 192.0.1.2   one router
//!                                                        two 192.0.2.1 ---- 192.0.2.2   two
//!   remote eth0 198.51.100.7 ---------------------------------------- 198.51.100.1 hub
//!   world  eth0 203.0.113.9 ----------------------------------------- 203.0.113.1 world
//! ```
//! and the same in IPv6: fd08::, fd00:1::, fd00:2::, fd98::, fd20::. Each link of the local portal has a default route.
//! The router lets nothing through between the links and the world: what gets there went by the remote portal. It knows
//! no inner network.

use std::path::{Path, PathBuf};

use hawser_config::PrivateKey;
use hawser_portal::api::PathState;
use hawser_wire::{End, Namespace, veth};
use tempfile::TempDir;

use crate::footprint::Footprint;
use crate::lab::{LINKS, Portal, states, write_private};

const MTU: u32 = 1500;
/// The remote portal's addresses, by which the world knows its peers too.
pub const HUB: [&str; 2] = ["198.51.100.7", "fd98::7"];
pub const WORLD: [&str; 2] = ["203.0.113.9", "fd20::9"];
pub const CLIENT: [&str; 2] = ["192.168.8.2", "fd08::2"];
/// What a portal finds that is not the only program of its host: strict reverse paths, rules of others that mean
/// something particular or everything, a firewall that names the TUN device.
const FIREWALL: &str = "table inet firewall { chain forward { type filter hook forward priority 0; policy drop; \
    iifname \"hawser0\" accept; oifname \"hawser0\" accept; }; }";
/// What the router drops.
const NO_LEAKS: &str = "table inet leaks { chain forward { type filter hook forward priority 0; \
    iifname { one, two } oifname world drop; iifname world oifname { one, two } drop; }; }";

pub struct Home {
    pub client: Namespace,
    pub local: Namespace,
    pub router: Namespace,
    pub remote: Namespace,
    pub world: Namespace,
    folder: TempDir,
}

impl Home {
    pub fn new(tag: &str) -> Self {
        let make = || Namespace::new(tag).expect("makes a namespace (these tests need root)");
        let folder = tempfile::tempdir().expect("a folder");
        let home = Self { client: make(), local: make(), router: make(), remote: make(), world: make(), folder };
        home.join();
        for namespace in [&home.client, &home.local, &home.remote, &home.world] {
            namespace.set_forwarding(false).expect("a sysctl");
        }
        home.router.set_forwarding(true).expect("a sysctl");
        home.write_configurations();
        home
    }

    fn join(&self) {
        let Self { client, local, router, remote, world, .. } = self;
        let wires = [
            (client, "lan0", CLIENT, local, "lan0", ["192.168.8.1", "fd08::1"]),
            (local, "one", ["192.0.1.1", "fd00:1::1"], router, "one", ["192.0.1.2", "fd00:1::2"]),
            (local, "two", ["192.0.2.1", "fd00:2::1"], router, "two", ["192.0.2.2", "fd00:2::2"]),
            (remote, "eth0", HUB, router, "hub", ["198.51.100.1", "fd98::1"]),
            (world, "eth0", WORLD, router, "world", ["203.0.113.1", "fd20::1"]),
        ];
        for (near, name, [v4, v6], far, far_name, [gateway, gateway_v6]) in wires {
            // A router asks for its neighbours by its link-local address (RFC 4861 section 7.2.2).
            let near_end = End::new(near, name, &[&format!("{v4}/24"), &format!("{v6}/64"), "fe80::1/64"]);
            let far_end =
                End::new(far, far_name, &[&format!("{gateway}/24"), &format!("{gateway_v6}/64"), "fe80::2/64"]);
            veth(&near_end, &far_end, MTU).expect("a veth pair");
            let metric = if name == "two" { 200 } else { 100 };
            run(near, "ip", &format!("route add default via {gateway} dev {name} metric {metric}"));
            run(near, "ip", &format!("-6 route add default via {gateway_v6} dev {name} metric {metric}"));
        }
        nft(router, NO_LEAKS);
    }

    /// Makes the portals' hosts such as others have used them before.
    pub fn make_dirty(&self) {
        for (namespace, interfaces) in [(&self.local, ["lan0", "one", "two"].as_slice()), (&self.remote, &["eth0"])] {
            for interface in interfaces.iter().chain(&["all", "default"]) {
                namespace.set_sysctl(&format!("ipv4/conf/{interface}/rp_filter"), "1").expect("a sysctl");
            }
            for family in ["-4", "-6"] {
                run(namespace, "ip", &format!("{family} rule add fwmark 0x99 lookup 101 priority 9000"));
                run(namespace, "ip", &format!("{family} rule add not fwmark 0x1 lookup main priority 20000"));
            }
            nft(namespace, FIREWALL);
        }
        // As some set it for a host with two uplinks.
        run(&self.local, "ip", "rule add from 192.0.2.1 lookup 100 priority 10000");
        run(&self.local, "ip", "route add default via 192.0.2.2 dev two table 100");
        // As Tailscale does for its network.
        run(&self.local, "ip", "rule add lookup 52 priority 5270");
        run(&self.local, "ip", "route add 100.64.0.7/32 dev lan0 table 52");
    }

    fn write_configurations(&self) {
        let [local, remote] = ["local", "remote"].map(|name| {
            let key = PrivateKey::generate().expect("randomness");
            write_private(&self.path(&format!("{name}.key")), &key.to_base64());
            key.public()
        });
        let common = |name: &str| {
            let socket = self.path(&format!("{name}.sock"));
            format!("[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{}\"\n", socket.display())
        };
        let links: String = LINKS.map(|l| format!("[[link]]\nname = \"{l}\"\ninterface = \"{l}\"\n")).concat();
        let [hub, _] = HUB;
        write_private(
            &self.path("local.toml"),
            &format!(
                "{}[tun]\naddresses = [\"10.77.0.2/24\", \"fd77::2/64\"]\ndefault_route = true\n\
                 [gateway]\nserve = [\"lan0\"]\n{links}[[peer]]\nname = \"hub\"\npublic_key = \"{remote}\"\n\
                 endpoints = [\"{hub}:4920\"]\nallowed_ips = [\"0.0.0.0/0\", \"::/0\"]\n",
                common("local")
            ),
        );
        write_private(
            &self.path("remote.toml"),
            &format!(
                "{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\", \"fd77::1/64\"]\n\
                 [nat]\nmasquerade = \"eth0\"\n[[peer]]\nname = \"home\"\npublic_key = \"{local}\"\n\
                 allowed_ips = [\"10.77.0.2/32\", \"192.168.8.0/24\", \"fd77::2/128\", \"fd08::/64\"]\n",
                common("remote")
            ),
        );
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces text in a configuration.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(name)).expect("a configuration");
        assert!(text.contains(from), "{from} is not in {name}");
        write_private(&self.path(name), &text.replace(from, to));
    }

    /// Both portals, with all paths active and the TUN device's MTU what these carry.
    pub fn start_both(&self) -> (Portal, Portal) {
        let (local, remote) = self.start();
        local.wait_for_log("tun mtu mtu=1441");
        (local, remote)
    }

    /// Both portals, with all paths active.
    pub fn start(&self) -> (Portal, Portal) {
        let remote = Portal::start(&self.remote, self.folder(), "remote");
        let local = Portal::start(&self.local, self.folder(), "local");
        local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
        (local, remote)
    }

    /// What there is in the namespaces of both portals.
    pub fn footprints(&self) -> [Footprint; 2] {
        [&self.local, &self.remote].map(Footprint::of)
    }

    pub fn assert_same(&self, footprints: &[Footprint; 2], when: &str) {
        let [local, remote] = footprints;
        local.assert_same(&self.local, when);
        remote.assert_same(&self.remote, when);
    }
}

/// Runs a program in a namespace, and gives what it prints on standard output.
pub fn run(namespace: &Namespace, program: &str, arguments: &str) -> String {
    let output = namespace.command(program).args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("run {program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments} in {}: {said}", namespace.name());
    String::from_utf8(output.stdout).expect("text")
}

/// Adds to the ruleset of a namespace.
pub fn nft(namespace: &Namespace, script: &str) {
    let output = namespace.command("nft").arg(script).output().expect("run nft (nftables)");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}
