//! Members that translate each home's inner address to a public one, which is its own: the route to it goes with the
//! home, and conntrackd tells the other members of each flow, into their kernels at once; one that starts asks them.
//! All of it as contrib/hub has it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::{SITES, outward, upward};
use hawser_wire::{End, Namespace, veth};
use rustix::process::{Pid, Signal, kill_process};

use crate::contrib;
use crate::lab::{PATIENCE, ms};
use crate::world::{MEMBERS, run};

/// The homes' addresses in the tunnel.
pub const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 2), Ipv4Addr::new(10, 78, 0, 3)];
const PROGRAM: &str = "conntrackd";

/// conntrackd in all members; ended when it drops. One owner.
pub struct Nat {
    children: Vec<Child>,
    folder: PathBuf,
    _switch: Namespace,
}

impl Nat {
    /// Returns when all answer.
    pub fn start(members: &[Namespace], folder: &Path) -> Self {
        let mut nat = Self { children: Vec::new(), folder: folder.to_owned(), _switch: switch(members) };
        let rules = folder.join("nftables.conf");
        fs::write(&rules, nat_rules()).expect("a file");
        for (at, member) in members.iter().enumerate() {
            run(member.command("nft").arg("-f").arg(&rules));
            // A flow that was begun elsewhere has windows that this kernel did not see.
            member.set_sysctl("netfilter/nf_conntrack_tcp_be_liberal", "1").expect("a sysctl");
            fs::write(nat.place(at, "conf"), nat.configuration(at)).expect("a file");
            let child = nat.begin(at, member);
            nat.children.push(child);
        }
        nat
    }

    /// A member's machine begins anew: its kernel knows no flow, and nobody is told to forget one.
    pub fn restart(&mut self, at: usize, member: &Namespace) {
        end(&mut self.children[at]);
        run(member.command("conntrack").arg("-F"));
        self.children[at] = self.begin(at, member);
    }

    fn begin(&self, at: usize, member: &Namespace) -> Child {
        let mut command = member.command(PROGRAM);
        command.arg("-C").arg(self.place(at, "conf"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{PROGRAM}: {error} (`make hub-test` installs it)"));
        let end = Instant::now() + PATIENCE;
        // It is taken away where the program ends.
        while !self.place(at, "ctl").exists() {
            assert!(Instant::now() < end, "{PROGRAM} does not start");
            sleep(ms(10));
        }
        child
    }

    fn place(&self, at: usize, what: &str) -> PathBuf {
        self.folder.join(format!("{}.conntrackd.{what}", MEMBERS[at]))
    }

    /// Of conntrackd at a member.
    fn configuration(&self, at: usize) -> String {
        let file = |what: &str| self.place(at, what).display().to_string();
        let changes = [
            ("192.168.100.1", own(at)),
            ("Interface eth2", "Interface sync".to_owned()),
            ("192.0.2.11", upward(at)[0].to_string()),
            ("198.51.100.10", outward(at)[0].to_string()),
            ("Syslog yes", "Syslog no".to_owned()),
            ("/var/lock/conntrack.lock", file("lock")),
            ("/var/run/conntrackd.ctl", file("ctl")),
        ];
        contrib::changed(contrib::CONNTRACKD, &changes)
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.children.iter_mut().for_each(end);
    }
}

fn end(child: &mut Child) {
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let _ = child.wait();
}

/// Of nftables, for both homes.
fn nat_rules() -> String {
    let [inner, public] = [INNER, SITES].map(|addresses| addresses.map(|address| address.to_string()));
    let line = |line: &str, home: usize| line.replace(&inner[0], &inner[home]).replace(&public[0], &public[home]);
    let text = contrib::repeated(contrib::NFTABLES, &public[0], |one| vec![line(one, 0), line(one, 1)]);
    contrib::changed(&text, &[("oifname up0", "oifname up".to_owned())])
}

/// Of members on the network that is theirs alone.
fn own(member: usize) -> String {
    format!("10.3.0.{}", member + 1)
}

/// A network between members, and nobody else, as conntrackd.conf(5) advises.
fn switch(members: &[Namespace]) -> Namespace {
    let switch = Namespace::new("switch").expect("a namespace");
    run(switch.command("ip").args(["link", "add", "name", "br0", "up", "type", "bridge"]));
    for (at, member) in members.iter().enumerate() {
        let near = End::new(member, "sync", &[&format!("{}/24", own(at))]);
        veth(&near, &End::new(&switch, MEMBERS[at], &[]), 1_500).expect("a veth pair");
        run(switch.command("ip").args(["link", "set", "dev", MEMBERS[at], "master", "br0"]));
    }
    switch
}
