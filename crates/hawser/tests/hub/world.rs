//! A hub of real processes (the network: `hawser_lab::hub`, `ipv6`): two homes, three members that have their peers
//! from etcd, and FRR, which routes for them. Other worlds are tried as well ([`Setup`]). What is done to it: `faults`.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::{Network, SERVER};
use hawser_portal::api::{EtcdStatus, HubList, PathState, Status};
use hawser_wire::Namespace;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::frr::Frr;
use crate::ipv6;
use crate::lab::{PATIENCE, Portal, ms};
use crate::nat::Nat;
use crate::owners::Capture;
use crate::store::Store;

pub use crate::setup::Setup;

/// The members, as the homes call them.
pub const MEMBERS: [&str; 3] = ["a", "b", "c"];
/// The homes, as members call them. Most harm is done to the first one's active member.
pub const HOMES: [&str; 2] = ["home", "branch"];
/// Each of a home's links: Mbit/s. All of it, with its emulation, leaves a third of two processors idle.
const LINK_MBPS: [f64; 2] = [10.0, 5.0];
/// A member that drains, and is asked to go at once.
const ENDS: Signal = Signal::TERM;

pub struct World {
    pub homes: Vec<Portal>,
    portals: Vec<Option<Portal>>,
    pub frr: Frr,
    nat: Option<Nat>,
    pub store: Store,
    setup: Setup,
    pub network: Network,
    folder: TempDir,
}

impl World {
    /// All of it, with both homes' packets going by some member.
    pub fn new(setup: Setup) -> Self {
        let names = setup.members();
        let network = Network::new(&LINK_MBPS, names).expect("namespaces (these tests need root)");
        ipv6::lay(&network);
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::start(&network, folder.path(), setup.round_trip, setup.servers);
        let keys = setup.configure(folder.path(), &store.section(setup.strict));
        let Network { sites, members, router, .. } = &network;
        let nat = setup.nat.then(|| Nat::start(members, folder.path()));
        let frr = Frr::start(members, router);
        let start = |namespace, name: &&str| Portal::start(namespace, folder.path(), name);
        let portals = members.iter().zip(names).map(|(member, name)| Some(start(member, name))).collect();
        let homes = sites.iter().zip(&HOMES).map(|(site, name)| start(site, name)).collect();
        let world = Self { homes, portals, frr, nat, store, setup, network, folder };
        world.wait_for_etcd();
        if !setup.files {
            keys.iter().enumerate().for_each(|(home, key)| world.admit(home, key));
        }
        world.wait_until_ready();
        world
    }

    /// A home with this key becomes a peer of all members.
    pub fn admit(&self, home: usize, key: &str) {
        let addresses = self.setup.moving(home).into_iter().map(|address| format!("{address}/32"));
        let moving: Vec<String> = addresses.chain([ipv6::PREFIXES[home].to_string()]).collect();
        let words = ["add", HOMES[home], "--key", key, "--allowed-ips", &moving.join(",")];
        assert_eq!(told(&self.hub_command(0, &words)), format!("added: all members serve {}\n", HOMES[home]));
    }

    /// The member that a home's packets go to, by its place.
    pub fn active(&self, home: usize) -> usize {
        self.holding(home, "active")
    }

    /// The member that is this to a home, by its place.
    pub fn holding(&self, home: usize, role: &str) -> usize {
        let status = self.homes[home].wait_for(role, |status| named(status, role).is_some());
        named(&status, role).expect("it was waited for")
    }

    /// The members know what they are, all paths work, and the server answers: for both homes.
    pub fn wait_until_ready(&self) {
        let end = Instant::now() + PATIENCE;
        for (home, name) in HOMES.into_iter().enumerate() {
            while !(self.is_settled(home) && self.is_answered(home)) {
                let status = self.homes[home].status();
                let routes = said(&self.network.router, "ip", "route");
                assert!(Instant::now() < end, "{name} is not ready: {status:#?}; {routes}");
                sleep(ms(100));
            }
        }
    }

    /// A home's standby may be another from one look to the next.
    fn is_settled(&self, home: usize) -> bool {
        let Some(status) = self.homes[home].status() else { return false };
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        let working = paths.filter(|path| path.state == PathState::Active).count();
        let holds = |seen: &str, own: &str| {
            let portal = named(&status, seen).and_then(|at| self.portals[at].as_ref());
            let status = portal.and_then(Portal::status);
            let peer = status.iter().flat_map(|status| &status.peers).find(|peer| peer.name == HOMES[home]);
            peer.and_then(|peer| peer.hub.as_ref()).is_some_and(|hub| hub.role == own)
        };
        working == 2 * self.portals.len() && holds("active", "owner") && holds("standby", "standby")
    }

    pub fn is_answered(&self, home: usize) -> bool {
        self.answers(home) == [true; 2]
    }

    /// Whether the server answers a home: by IPv4, and by IPv6.
    pub fn answers(&self, home: usize) -> [bool; 2] {
        [IpAddr::from(SERVER), IpAddr::from(ipv6::SERVER)].map(|server| {
            said(&self.network.sites[home], "ping", &format!("-c 1 -W 1 {server}")).contains(" 0% packet loss")
        })
    }

    /// Repairs that a home sent to a member (docs/fec.md).
    pub fn repairs(&self, home: usize, member: usize) -> u64 {
        let status = self.homes[home].status().expect("it answers");
        let peer = status.peers.iter().find(|peer| peer.name == MEMBERS[member]);
        peer.expect("a member is a peer").fec.repairs
    }

    /// Whether a member serves a home.
    pub fn serves(&self, member: usize, home: usize) -> bool {
        let status = self.portals[member].as_ref().and_then(Portal::status);
        status.is_some_and(|status| status.peers.iter().any(|peer| peer.name == HOMES[home]))
    }

    /// Until all members reach etcd, and see each other there, if they have to do with it.
    pub fn wait_for_etcd(&self) {
        if self.setup.files {
            return;
        }
        self.wait_for_etcd_to("be reached", |etcd| etcd.reached && etcd.members == MEMBERS.len());
    }

    /// Until all members say this of etcd: what they say then.
    pub fn wait_for_etcd_to(&self, what: &str, holds: impl Fn(&EtcdStatus) -> bool) -> Vec<EtcdStatus> {
        (0..MEMBERS.len()).map(|member| self.wait_for_etcd_to_say(member, what, &holds)).collect()
    }

    /// Until one does.
    pub fn wait_for_etcd_to_say(&self, member: usize, what: &str, holds: impl Fn(&EtcdStatus) -> bool) -> EtcdStatus {
        let portal = self.portals[member].as_ref().expect("it runs");
        let status = portal.wait_for(what, |status| status.etcd.as_ref().is_some_and(&holds));
        status.etcd.expect("it was waited for")
    }

    /// Who owns a home, as etcd has it and the first member tells.
    pub fn owner_in_etcd(&self, home: usize) -> Option<String> {
        let out = self.hub_command(0, &["peers", "--json"]);
        let list: HubList = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
        list.peers.into_iter().find(|peer| peer.name == HOMES[home]).and_then(|peer| peer.owner)
    }

    /// Whether members translate the homes' addresses.
    pub fn translates(&self) -> bool {
        self.nat.is_some()
    }

    /// A member's machine knows no flow any more, but what other members tell it.
    pub fn forget_flows(&mut self, member: usize) {
        self.nat.as_mut().expect("it translates").restart(member, &self.network.members[member]);
    }

    /// Flows that the kernel of a member that translates knows.
    pub fn flows(&self, member: usize) -> usize {
        said(&self.network.members[member], "conntrack", "-C").trim().parse().expect("a number")
    }

    /// `hawser hub WORDS` at a member.
    pub fn hub_command(&self, member: usize, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hawser"));
        command.arg("hub").args(words).arg("--socket").arg(self.path(MEMBERS[member], "sock"));
        command.output().expect("it runs")
    }

    pub fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{extension}"))
    }

    /// What members log, and what they give the router, is looked at from now on.
    pub fn capture(&self) -> Capture {
        Capture::start(&self.network.router, self.folder.path(), self.setup.members())
    }

    /// All that each member ever logged.
    pub fn logs(&self) -> Vec<String> {
        MEMBERS.iter().map(|name| fs::read_to_string(self.path(name, "log")).unwrap_or_default()).collect()
    }

    pub fn signal(&self, member: usize, signal: Signal) {
        self.portals[member].as_ref().expect("it runs").signal(signal);
    }

    /// What each portal and each daemon of FRR's logged, beside a test's figures: why it is as it is.
    pub fn tell(&self) {
        self.frr.tell();
        let members = MEMBERS.iter().zip(self.logs());
        members.for_each(|(name, log)| eprintln!("member {name}:\n{log}"));
        self.homes.iter().zip(HOMES).for_each(|(portal, name)| eprintln!("{name}:\n{}", portal.log()));
    }

    /// Waits for a member's end, and starts it again.
    pub fn restart(&mut self, member: usize) {
        self.restart_by(member, &[]);
    }

    /// The same by a program that becomes it.
    pub fn restart_by(&mut self, member: usize, by: &[&str]) {
        let mut ended = self.portals[member].take().expect("it ran");
        ended.wait();
        drop(ended);
        let namespace = &self.network.members[member];
        self.portals[member] = Some(Portal::start_by(namespace, self.folder.path(), MEMBERS[member], by));
    }
}

impl Drop for World {
    /// The members first, at once: who drains waits for homes that are there.
    fn drop(&mut self) {
        for portal in self.portals.iter().flatten() {
            portal.signal(Signal::CONT);
            portal.signal(ENDS);
            portal.signal(ENDS);
        }
    }
}

/// The member that is this to a home.
fn named(status: &Status, role: &str) -> Option<usize> {
    let is = |name: &str| {
        let peer = status.peers.iter().find(|peer| peer.name == name);
        peer.and_then(|peer| peer.hub.as_ref()).is_some_and(|hub| hub.role == role)
    };
    MEMBERS.iter().position(|name| is(name))
}

/// Runs `nft` in a namespace.
pub fn nft(namespace: &Namespace, text: &str) {
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

/// What a command told: standard output, then standard error.
pub fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
