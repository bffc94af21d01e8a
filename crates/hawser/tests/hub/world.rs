//! ```text
//!          one 192.0.1.1 -- .2 one          a 198.51.10.254 -- 198.51.10.1 out        up 10.0.1.1 -- 10.0.1.2 a
//!   home   two 192.0.2.1 -- .2 two   net                                       a, b                             router
//!                                           b 198.51.11.254 -- 198.51.11.1 out        up 10.0.2.1 -- 10.0.2.2 b
//! hawser0 203.0.113.8                                            hawser0 10.77.0.1      lan 203.0.114.1 --
//!   203.0.114.2 server
//! ```
//! The home has a public address, which the members announce: no member translates anything.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use hawser_config::PrivateKey;
use hawser_portal::api::Status;
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Namespace, veth};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::frr::Frr;
use crate::lab::{PATIENCE, Portal, ms, write_private};
use crate::watcher::Watcher;

/// The home's address, and the server's.
pub const HOME: &str = "203.0.113.8";
pub const SERVER: &str = "203.0.114.2";
/// The members, as the home calls them; their addresses towards the world, and towards the router with the router's.
pub const MEMBERS: [&str; 2] = ["a", "b"];
pub const OUTSIDE: [&str; 2] = ["198.51.10.1", "198.51.11.1"];
pub const UPWARD: [[&str; 2]; 2] = [["10.0.1.1", "10.0.1.2"], ["10.0.2.1", "10.0.2.2"]];
const MTU: u32 = 1_500;
/// Each of the home's links: Mbit/s.
const LINK_MBPS: f64 = 10.0;
/// A member that drains, and is asked to go at once.
const ENDS: Signal = Signal::TERM;

/// Who brings packets for the home to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The test, which looks at the members' tables as zebra does.
    Watched,
    /// FRR: zebra, bgpd, bfdd in the router and in each member.
    Frr,
}

enum Routers {
    Watched(Watcher),
    // Held until the end.
    Frr { _daemons: Frr },
}

pub struct World {
    pub home: Namespace,
    pub net: Namespace,
    pub members: [Namespace; 2],
    pub router: Namespace,
    pub server: Namespace,
    pub local: Portal,
    portals: [Option<Portal>; 2],
    routers: Routers,
    _links: [EmulatedLink; 2],
    folder: TempDir,
}

impl World {
    /// All of it, with the home's packets going by member a.
    pub fn new(routing: Routing) -> Self {
        let make = |tag: &str| Namespace::new(tag).expect("makes a namespace (these tests need root)");
        let [home, net, router, server] = ["home", "net", "router", "server"].map(make);
        let members = MEMBERS.map(make);
        let folder = tempfile::tempdir().expect("a folder");
        let links = [1, 2].map(|number| link(&home, &net, number));
        for (at, member) in members.iter().enumerate() {
            attach(member, &net, &router, at);
        }
        join(&router, "lan", "203.0.114.1/24", &server, "eth", &format!("{SERVER}/24"));
        ip(&server, "route add default via 203.0.114.1");
        for namespace in [&net, &router].into_iter().chain(&members) {
            namespace.set_forwarding(true).expect("a sysctl");
        }
        write(folder.path());
        let routers = match routing {
            Routing::Watched => Routers::Watched(Watcher::start(&members, &router)),
            Routing::Frr => Routers::Frr { _daemons: Frr::start(&members, &router) },
        };
        let portals = [0, 1].map(|at| Some(Portal::start(&members[at], folder.path(), MEMBERS[at])));
        let local = Portal::start(&home, folder.path(), "home");
        let world = Self { home, net, members, router, server, local, portals, routers, _links: links, folder };
        world.wait_until_ready();
        world
    }

    /// The member that the home's packets go to, by its place.
    pub fn active(&self) -> usize {
        active(&self.local.wait_for("an active member", |status| active(status).is_some())).expect("it was waited for")
    }

    /// Both members know what they are, all paths work, and the server answers.
    pub fn wait_until_ready(&self) {
        let is_whole = |status: &Status| {
            let roles: Vec<_> =
                status.peers.iter().filter_map(|peer| peer.hub.as_ref()).map(|hub| &*hub.role).collect();
            let paths = status.peers.iter().flat_map(|peer| &peer.paths);
            let active = paths.filter(|path| path.state == hawser_portal::api::PathState::Active).count();
            matches!(roles[..], ["active", "standby"] | ["standby", "active"]) && active == 4
        };
        let active = active(&self.local.wait_for("both members", is_whole)).expect("one is active");
        for (at, role) in [(active, "owner"), (1 - active, "standby")] {
            let portal = self.portals[at].as_ref().expect("it runs");
            let is = |status: &Status| {
                let hub = status.peers.first().and_then(|peer| peer.hub.as_ref());
                hub.is_some_and(|hub| hub.role == role)
            };
            portal.wait_for(role, is);
        }
        let end = Instant::now() + PATIENCE;
        while !self.is_answered() {
            assert!(Instant::now() < end, "the server does not answer; {}", said(&self.router, "ip", "route"));
        }
    }

    fn is_answered(&self) -> bool {
        said(&self.home, "ping", &format!("-c 1 -W 1 {SERVER}")).contains(" 0% packet loss")
    }

    pub fn signal(&self, member: usize, signal: Signal) {
        self.portals[member].as_ref().expect("it runs").signal(signal);
    }

    pub fn log(&self, member: usize) -> String {
        self.portals[member].as_ref().map_or_else(String::new, Portal::log)
    }

    /// Waits for a member's end, and starts it again.
    pub fn restart(&mut self, member: usize) {
        let mut ended = self.portals[member].take().expect("it ran");
        ended.wait();
        drop(ended);
        self.portals[member] = Some(Portal::start(&self.members[member], self.folder.path(), MEMBERS[member]));
    }

    /// All that a member's machine sends, and all that comes to it, is lost from now on; or no more.
    pub fn silence(&self, member: usize, silent: bool) {
        let namespace = &self.members[member];
        if silent {
            let chain = |hook: &str| format!("chain {hook} {{ type filter hook {hook} priority -300; policy drop; }};");
            nft(namespace, &format!("table inet silent {{ {} {} }}", chain("prerouting"), chain("output")));
        } else {
            nft(namespace, "delete table inet silent");
        }
        if let Routers::Watched(watcher) = &self.routers {
            watcher.silence(member, silent);
        }
    }

    /// What matches one of these is lost on its way through the net from now on.
    pub fn lose(&self, matches: &[String]) {
        let rules: String = matches.iter().map(|one| format!("{one} drop; ")).collect();
        let chain = "chain forward { type filter hook forward priority 0; ";
        nft(&self.net, &format!("table inet lost {{ {chain}{rules} }}; }}"));
    }

    pub fn lose_no_more(&self) {
        nft(&self.net, "delete table inet lost");
    }

    /// Packets of the home's that a member gave the router so far: begins to count at the first call.
    pub fn forwarded(&self, member: usize) -> u64 {
        let name = MEMBERS[member];
        let there = said(&self.router, "nft", "list table inet counted");
        if !there.contains("counter") {
            let rule = |name: &str| format!("iifname {name} ip saddr {HOME} counter; ");
            let rules = MEMBERS.map(rule).concat();
            let chain = "chain prerouting { type filter hook prerouting priority -300; ";
            nft(&self.router, &format!("table inet counted {{ {chain}{rules} }}; }}"));
            return 0;
        }
        let line = there.lines().find(|line| line.contains(&format!("iifname \"{name}\""))).expect("it is counted");
        let (_, count) = line.split_once("packets ").expect("a counter");
        count.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
    }
}

impl Drop for World {
    /// The members first, at once: who drains waits for a home that is there.
    fn drop(&mut self) {
        for portal in self.portals.iter().flatten() {
            portal.signal(Signal::CONT);
            portal.signal(ENDS);
            portal.signal(ENDS);
        }
    }
}

fn active(status: &Status) -> Option<usize> {
    let is_active = |name: &str| {
        let peer = status.peers.iter().find(|peer| peer.name == name);
        peer.and_then(|peer| peer.hub.as_ref()).is_some_and(|hub| hub.role == "active")
    };
    MEMBERS.iter().position(|name| is_active(name))
}

/// One of the home's links: 10 ms, a queue of 100 ms.
fn link(home: &Namespace, net: &Namespace, number: u8) -> EmulatedLink {
    let name = ["one", "two"][usize::from(number) - 1];
    let end = |namespace: &Namespace, host: u8| End::new(namespace, name, &[&format!("192.0.{number}.{host}/24")]);
    let direction = Direction::shaped(LINK_MBPS, ms(10), ms(100));
    let spec = LinkSpec::symmetric(name, end(home, 1), end(net, 2), &direction);
    let link = EmulatedLink::new(spec).expect("an emulated link");
    // Bound to an interface, a socket needs a route of that interface.
    ip(home, &format!("route add 198.51.0.0/16 via 192.0.{number}.2 dev {name} metric {number}"));
    link
}

/// A member between the net and the router.
fn attach(member: &Namespace, net: &Namespace, router: &Namespace, at: usize) {
    let (name, outside, [own, next]) = (MEMBERS[at], OUTSIDE[at], UPWARD[at]);
    let beyond = format!("{}.254", outside.rsplit_once('.').expect("an address").0);
    join(member, "out", &format!("{outside}/24"), net, name, &format!("{beyond}/24"));
    join(member, "up", &format!("{own}/24"), router, name, &format!("{next}/24"));
    ip(member, &format!("route add 192.0.0.0/16 via {beyond}"));
    ip(member, &format!("route add 203.0.114.0/24 via {next}"));
}

fn join(one: &Namespace, name: &str, address: &str, other: &Namespace, beyond: &str, there: &str) {
    veth(&End::new(one, name, &[address]), &End::new(other, beyond, &[there]), MTU).expect("a veth pair");
}

/// The configurations of the three portals.
fn write(folder: &Path) {
    let [home, a, b] = ["home", "a", "b"].map(|name| {
        let key = PrivateKey::generate().expect("randomness");
        write_private(&folder.join(format!("{name}.key")), &key.to_base64());
        key.public()
    });
    let portal = |name: &str| {
        let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
        let (socket, state) = (at(".sock"), at(".state"));
        format!("[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
    };
    let links = ["one", "two"].map(|name| format!("[[link]]\nname = \"{name}\"\ninterface = \"{name}\"\n")).concat();
    let peer = |name: &str, key, endpoint: &str, more: &str| {
        format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\nendpoints = [\"{endpoint}:4920\"]\n{more}")
    };
    let text = [
        portal("home"),
        format!("[tun]\naddresses = [\"{HOME}/32\"]\n{links}"),
        peer("a", a, OUTSIDE[0], "allowed_ips = [\"203.0.114.0/24\"]\nstandby = \"b\"\n"),
        peer("b", b, OUTSIDE[1], ""),
    ];
    write_private(&folder.join("home.toml"), &text.concat());
    for name in MEMBERS {
        let text = format!(
            "{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\n[[peer]]\nname = \"home\"\n\
             public_key = \"{home}\"\nallowed_ips = [\"{HOME}/32\"]\n",
            portal(name)
        );
        write_private(&folder.join(format!("{name}.toml")), &text);
    }
}

/// Runs `ip` in a namespace.
pub fn ip(namespace: &Namespace, words: &str) {
    run(namespace.command("ip").args(words.split(' ')));
}

fn nft(namespace: &Namespace, text: &str) {
    run(namespace.command("nft").arg(text));
}

pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error} (`make tools` installs it)"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a program says in a namespace.
pub fn said(namespace: &Namespace, program: &str, words: &str) -> String {
    let output = namespace.command(program).args(words.split(' ')).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
