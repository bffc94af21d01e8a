//! A hub of real processes (the network: `hawser_lab::hub`): a home, two members or three, and who routes for them. No
//! member translates anything, but where that is what is tried (`nat`).

use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::{Configurations, Follower, Network, SERVER, SITE, upward};
use hawser_portal::api::{PathState, Status};
use hawser_wire::Namespace;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::frr::Frr;
use crate::lab::{PATIENCE, Portal, ms};
use crate::nat::{INNER, Nat};
use crate::owners::Capture;

/// The members, as the home calls them.
pub const MEMBERS: [&str; 3] = ["a", "b", "c"];
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

/// What is tried. A plain value.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub routing: Routing,
    /// Two or three.
    pub members: usize,
    /// Members translate the home's address, and tell each other of flows.
    pub nat: bool,
}

impl std::fmt::Display for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let three = if self.members == 3 { ", three members" } else { "" };
        write!(f, "{:?}{three}{}", self.routing, if self.nat { ", nat" } else { "" })
    }
}

impl From<Routing> for Setup {
    fn from(routing: Routing) -> Self {
        Self { routing, members: 2, nat: false }
    }
}

enum Routers {
    Watched(Follower),
    Frr(Frr),
}

pub struct World {
    pub local: Portal,
    portals: Vec<Option<Portal>>,
    routers: Routers,
    nat: Option<Nat>,
    pub network: Network,
    folder: TempDir,
}

impl World {
    /// All of it, with the home's packets going by member a.
    pub fn new(setup: impl Into<Setup>) -> Self {
        let Setup { routing, members: count, nat } = setup.into();
        let network = Network::new(&MEMBERS[..count], LINK_MBPS).expect("namespaces (these tests need root)");
        let Network { site, members, router, .. } = &network;
        let folder = tempfile::tempdir().expect("a folder");
        let (own, moving) = if nat { (INNER, vec![INNER, SITE]) } else { (SITE, vec![SITE]) };
        let names = Configurations { site: "home", members: &MEMBERS[..count], own, moving: &moving };
        names.write(folder.path()).expect("they are written");
        let nat = nat.then(|| Nat::start(members, folder.path()));
        let routers = match routing {
            Routing::Watched => {
                let next_hops = (0..count).map(|member| upward(member)[0]).collect();
                Routers::Watched(Follower::start(members, router, SITE, next_hops).expect("threads"))
            }
            Routing::Frr => Routers::Frr(Frr::start(members, router)),
        };
        let portals = (0..count).map(|at| Some(Portal::start(&members[at], folder.path(), MEMBERS[at]))).collect();
        let local = Portal::start(site, folder.path(), "home");
        let world = Self { local, portals, routers, nat, network, folder };
        world.wait_until_ready();
        world
    }

    /// The member that the home's packets go to, by its place.
    pub fn active(&self) -> usize {
        self.holding("active")
    }

    /// The member that is this to the home, by its place.
    pub fn holding(&self, role: &str) -> usize {
        named(&self.local.wait_for(role, |status| named(status, role).is_some()), role).expect("it was waited for")
    }

    /// The members know what they are, all paths work, and the server answers.
    pub fn wait_until_ready(&self) {
        let end = Instant::now() + PATIENCE;
        while !(self.is_settled() && self.is_answered()) {
            assert!(
                Instant::now() < end,
                "not ready: {:#?}; {}",
                self.local.status(),
                said(&self.network.router, "ip", "route")
            );
            sleep(ms(50));
        }
    }

    /// The home's standby may be another from one look to the next, where there are three.
    fn is_settled(&self) -> bool {
        let Some(status) = self.local.status() else { return false };
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        let working = paths.filter(|path| path.state == PathState::Active).count();
        let holds = |seen: &str, own: &str| {
            let portal = named(&status, seen).and_then(|at| self.portals[at].as_ref());
            let status = portal.and_then(Portal::status);
            let hub = status.as_ref().and_then(|status| status.peers.first()?.hub.as_ref());
            hub.is_some_and(|hub| hub.role == own)
        };
        working == 2 * self.network.members.len() && holds("active", "owner") && holds("standby", "standby")
    }

    fn is_answered(&self) -> bool {
        said(&self.network.site, "ping", &format!("-c 1 -W 1 {SERVER}")).contains(" 0% packet loss")
    }

    /// Whether members translate the home's address.
    pub fn translates(&self) -> bool {
        self.nat.is_some()
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

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.{extension}"))
    }

    /// What members log, and what they give the router, is looked at from now on.
    pub fn capture(&self) -> Capture {
        Capture::start(&self.network.router, self.network.members.len(), self.folder.path())
    }

    /// All that each member ever logged.
    pub fn logs(&self) -> Vec<String> {
        let names = &MEMBERS[..self.network.members.len()];
        names.iter().map(|name| std::fs::read_to_string(self.path(name, "log")).unwrap_or_default()).collect()
    }

    pub fn signal(&self, member: usize, signal: Signal) {
        self.portals[member].as_ref().expect("it runs").signal(signal);
    }

    /// What each portal logged, beside a test's figures: why it is as it is.
    pub fn tell(&self) {
        let members = MEMBERS.iter().zip(self.logs());
        members.for_each(|(name, log)| eprintln!("member {name}:\n{log}"));
        eprintln!("home:\n{}", self.local.log());
    }

    /// Waits for a member's end, and starts it again.
    pub fn restart(&mut self, member: usize) {
        let mut ended = self.portals[member].take().expect("it ran");
        ended.wait();
        drop(ended);
        self.portals[member] = Some(Portal::start(&self.network.members[member], self.folder.path(), MEMBERS[member]));
    }

    /// All that a member's machine sends, and all that comes to it, is lost from now on; or no more.
    pub fn silence(&self, member: usize, silent: bool) {
        let namespace = &self.network.members[member];
        if silent {
            let chain = |hook: &str| format!("chain {hook} {{ type filter hook {hook} priority -300; policy drop; }};");
            nft(namespace, &format!("table inet silent {{ {} {} }}", chain("prerouting"), chain("output")));
        } else {
            nft(namespace, "delete table inet silent");
        }
        if let Routers::Watched(follower) = &self.routers {
            follower.silence(member, silent);
        }
    }

    /// What matches one of these is lost on its way through the net from now on.
    pub fn lose(&self, matches: &[String]) {
        let rules: String = matches.iter().map(|one| format!("{one} drop; ")).collect();
        let chain = "chain forward { type filter hook forward priority 0; ";
        nft(&self.network.net, &format!("table inet lost {{ {chain}{rules} }}; }}"));
    }

    pub fn lose_no_more(&self) {
        nft(&self.network.net, "delete table inet lost");
    }

    /// What the router's daemons and a member's say to each other is lost from now on: BGP and BFD.
    pub fn unroute(&self, member: usize) {
        let [own, _] = upward(member);
        let lost = |way: &str| format!("ip {way} {own} meta l4proto {{ tcp, udp }} th dport {{ 179, 3784 }} drop; ");
        let chain = |hook: &str, way| format!("chain {hook} {{ type filter hook {hook} priority 0; {} }};", lost(way));
        let [from, to] = [chain("input", "saddr"), chain("output", "daddr")];
        nft(&self.network.router, &format!("table inet unrouted {{ {from} {to} }}"));
    }

    /// No more; returns when the router hears all members' announcements.
    pub fn route_again(&self) {
        nft(&self.network.router, "delete table inet unrouted");
        if let Routers::Frr(frr) = &self.routers {
            frr.wait_for_paths(SITE, self.network.members.len());
        }
    }

    /// Packets of the home's that a member gave the router so far: begins to count at the first call.
    pub fn forwarded(&self, member: usize) -> u64 {
        let (name, members) = (MEMBERS[member], &MEMBERS[..self.network.members.len()]);
        let there = said(&self.network.router, "nft", "list table inet counted");
        if !there.contains("counter") {
            let rule = |name: &str| format!("iifname {name} ip saddr {SITE} counter; ");
            let rules: String = members.iter().map(|name| rule(name)).collect();
            let chain = "chain prerouting { type filter hook prerouting priority -300; ";
            nft(&self.network.router, &format!("table inet counted {{ {chain}{rules} }}; }}"));
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

/// The member that is this to the home.
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
