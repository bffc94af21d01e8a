//! A hub whose peers are in etcd.
//!
//! ```text
//!   home  one 192.0.1.1 -- 192.0.1.2 one  zurich  etcd 192.0.4.2 -- 192.0.4.1 zurich
//!         two 192.0.2.1 -- 192.0.2.2 two  geneva  etcd 192.0.5.2 -- 192.0.5.1 geneva   etcd  lo 198.51.9.1 …
//!   hawser0 203.0.113.8       hawser0 10.77.0.1, lo 203.0.114.1
//! ```
//! Both members answer for 203.0.114.1. Neither has a peer in its file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_portal::api::{Client, EtcdStatus, Event, EventKind, HubList, Status};
use hawser_wire::traffic::{Ping, PingReport};
use hawser_wire::{End, Namespace, veth};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::etcd::{Kind, Servers};
use crate::lab::{PATIENCE, Portal, ms, write_private};

pub const MEMBERS: [&str; 2] = ["zurich", "geneva"];
const HOME: &str = "203.0.113.8";
pub const SERVER: &str = "203.0.114.1";
/// Of etcd: its server, where there is one; three; and their network.
pub const ETCD: &str = "198.51.9.1";
pub const THREE: [&str; 3] = [ETCD, "198.51.9.2", "198.51.9.3"];
const ETCD_NET: &str = "198.51.9.0/24";
const MTU: u32 = 1_500;
/// The least that a lease may be, in seconds: what ends with it is waited for.
pub const LEASE_S: u64 = 3;

pub struct Hub {
    pub home: Namespace,
    pub members: Vec<Namespace>,
    pub servers: Servers,
    pub portals: Vec<Option<Portal>>,
    pub local: Portal,
    home_key: String,
    folder: TempDir,
}

/// The namespaces, with what joins them.
pub struct Net {
    pub home: Namespace,
    pub members: Vec<Namespace>,
    pub store: Namespace,
}

impl Net {
    /// All of them.
    pub fn new() -> Self {
        let make = |tag: &str| Namespace::new(tag).expect("makes a namespace (these tests need root)");
        let (home, store) = (make("home"), make("etcd"));
        let members: Vec<Namespace> = MEMBERS.iter().map(|name| make(name)).collect();
        for (at, member) in members.iter().enumerate() {
            let (link, net, beyond) = (["one", "two"][at], at + 1, at + 4);
            let end = |namespace: &Namespace, name: &str, net: usize, host: u8| {
                End::new(namespace, name, &[&format!("192.0.{net}.{host}/24")])
            };
            veth(&end(&home, link, net, 1), &end(member, link, net, 2), MTU).expect("a veth pair");
            veth(&end(member, "etcd", beyond, 2), &end(&store, MEMBERS[at], beyond, 1), MTU).expect("a veth pair");
            let route = format!("route add {ETCD_NET} via 192.0.{beyond}.1");
            run(member.command("ip").args(route.split(' ')));
            member.add_address("lo", format!("{SERVER}/32").parse().expect("an address")).expect("an address");
        }
        Self { home, members, store }
    }
}

impl Hub {
    /// Members that know etcd and each other, and a home that is nobody's peer yet; more of `[hub]`, for geneva.
    pub fn new(geneva: &str) -> Self {
        Self::by(&[ETCD], Kind::default(), geneva)
    }

    /// The same by servers of etcd that are so.
    pub fn by(addresses: &[&str], kind: Kind, geneva: &str) -> Self {
        let Net { home, members, store } = Net::new();
        let folder = tempfile::tempdir().expect("a folder");
        let servers = Servers::start(&store, folder.path(), addresses, &MEMBERS, kind);
        let home_key = configure(folder.path(), &servers.urls(), geneva);
        let portals: Vec<Option<Portal>> =
            MEMBERS.iter().zip(&members).map(|(name, at)| Some(Portal::start(at, folder.path(), name))).collect();
        let local = Portal::start(&home, folder.path(), "home");
        let hub = Self { home, members, servers, portals, local, home_key, folder };
        for at in 0..2 {
            hub.wait_for_etcd(at, "both members", |etcd| etcd.reached && etcd.members == 2);
        }
        hub
    }

    /// The home becomes a peer of all, and is answered.
    pub fn admit_home(&self) {
        let out = self.hub(0, &["add", "home", "--key", &self.home_key, "--allowed-ips", &format!("{HOME}/32")]);
        assert_eq!(said(&out), "added: all members serve home\n");
        self.wait_until_answered();
    }

    pub fn portal(&self, member: usize) -> &Portal {
        self.portals[member].as_ref().expect("it runs")
    }

    pub fn wait_for_etcd(&self, member: usize, what: &str, holds: impl Fn(&EtcdStatus) -> bool) -> EtcdStatus {
        let status = self.portal(member).wait_for(what, |status| status.etcd.as_ref().is_some_and(&holds));
        status.etcd.expect("it was waited for")
    }

    /// `hawser hub WORDS` at a member.
    pub fn hub(&self, member: usize, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.arg("hub").args(words).arg("--socket").arg(&self.portal(member).socket);
        command.output().expect("it runs")
    }

    pub fn list(&self, member: usize) -> HubList {
        let out = self.hub(member, &["peers", "--json"]);
        serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"))
    }

    /// What a member remembers of losing etcd, and having it again.
    pub fn told_of_etcd(&self, member: usize) -> Vec<Event> {
        let events = Client::events(&self.portal(member).socket, 0).expect("it answers").events.into_iter();
        events.filter(|event| matches!(event.kind, EventKind::EtcdAway | EventKind::EtcdReached)).collect()
    }

    /// The member that the home's packets go to.
    pub fn active(&self) -> usize {
        let status = self.local.wait_for("an owner", |status| active(status).is_some());
        active(&status).expect("it was waited for")
    }

    /// The member that the home's packets go to is killed; gives the other one, once they go there.
    pub fn kill_active(&mut self) -> usize {
        let owner = self.active();
        self.portal(owner).signal(Signal::KILL);
        self.portals[owner] = None;
        self.local.wait_for("the other member to have it", |status| active(status) == Some(1 - owner));
        self.wait_until_answered();
        1 - owner
    }

    /// Whether a member serves the home.
    pub fn serves_home(&self, member: usize) -> bool {
        let status = self.portal(member).status();
        status.is_some_and(|status| status.peers.iter().any(|peer| peer.name == "home"))
    }

    /// How long after `begun` no member serves the home any more, and nothing is answered.
    pub fn gone_after(&self, begun: Instant) -> Duration {
        while (0..2).any(|member| self.portals[member].is_some() && self.serves_home(member)) {
            assert!(begun.elapsed() < PATIENCE, "the home is served still");
            std::thread::sleep(ms(5));
        }
        let gone = begun.elapsed();
        let report = self.ping(ms(50), ms(200)).run().expect("a ping");
        assert!(report.echoes.is_empty(), "its packets pass still");
        gone
    }

    pub fn ping(&self, interval: Duration, duration: Duration) -> Ping {
        Ping { from: self.home.clone(), destination: SERVER.parse().expect("an address"), interval, duration }
    }

    pub fn wait_until_answered(&self) {
        let end = Instant::now() + PATIENCE;
        while self.ping(ms(50), ms(100)).run().expect("a ping").echoes.is_empty() {
            assert!(Instant::now() < end, "not answered: {:#?}; {}", self.local.status(), self.portal(0).log());
        }
    }

    pub fn start_member(&mut self, member: usize) {
        self.portals[member] = Some(Portal::start(&self.members[member], self.folder.path(), MEMBERS[member]));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The member that is active, as the home says.
pub fn active(status: &Status) -> Option<usize> {
    let is = |name: &str| {
        let peer = status.peers.iter().find(|peer| peer.name == name);
        peer.and_then(|peer| peer.hub.as_ref()).is_some_and(|hub| hub.role == "active")
    };
    MEMBERS.iter().position(|name| is(name))
}

/// Requests without an answer.
pub fn lost(report: &PingReport) -> usize {
    report.sent.len() - report.echoes.len()
}

pub fn said(out: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&out.stdout) + &text(&out.stderr)
}

/// Configurations and keys; the home's public key.
fn configure(folder: &Path, urls: &str, geneva: &str) -> String {
    let key = |name: &str| {
        let key = PrivateKey::generate().expect("randomness");
        write_private(&folder.join(format!("{name}.portal")), &key.to_base64());
        key.public().to_string()
    };
    let portal = |name: &str| {
        let at = |what: &str| folder.join(format!("{name}{what}")).display().to_string();
        let (socket, state) = (at(".sock"), at(".state"));
        format!("[portal]\nprivate_key_file = \"{name}.portal\"\nsocket = \"{socket}\"\nstate_dir = \"{state}\"\n")
    };
    let mut peers = String::new();
    for (at, name) in MEMBERS.iter().enumerate() {
        let (public, endpoint, more) = (key(name), format!("192.0.{}.2:4920", at + 1), ["", geneva][at]);
        peers += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{public}\"\nendpoints = [\"{endpoint}\"]\n");
        peers += ["allowed_ips = [\"203.0.114.0/24\"]\nstandby = \"geneva\"\n", ""][at];
        let text = format!(
            "{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"10.77.0.1/24\"]\n[hub]\nname = \"{name}\"\n\
             etcd = {urls}\netcd_ca = \"ca.pem\"\netcd_certificate = \"{name}.pem\"\netcd_key = \"{name}.key\"\n\
             etcd_lease = {LEASE_S}\nendpoints = [\"{endpoint}\"]\nrack = {at}\n{more}",
            portal(name)
        );
        write_private(&folder.join(format!("{name}.toml")), &text);
    }
    let links = ["one", "two"].map(|name| format!("[[link]]\nname = \"{name}\"\ninterface = \"{name}\"\n")).concat();
    let text = format!("{}[tun]\naddresses = [\"{HOME}/32\"]\n{links}{peers}", portal("home"));
    let home = key("home");
    write_private(&folder.join("home.toml"), &text);
    home
}

fn run(command: &mut Command) {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
