//! Members that translate each home's inner address to a public one, which is its own: the route to it goes with the
//! home, and conntrackd tells the other members of each flow, into their kernels at once.
//!
//! A packet for a public address of which a member knows no flow goes by its route into the tunnel, where it is
//! nobody's: no member resets a connection that it does not know.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::{SITES, outward, upward};
use hawser_wire::{End, Namespace, veth};
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{PATIENCE, ms};
use crate::world::{MEMBERS, nft, run};

/// The homes' addresses in the tunnel.
pub const INNER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 2), Ipv4Addr::new(10, 78, 0, 3)];
const PROGRAM: &str = "conntrackd";

/// conntrackd in all members; ended when it drops. One owner.
pub struct Nat {
    children: Vec<Child>,
    _switch: Namespace,
}

impl Nat {
    /// Returns when all answer.
    pub fn start(members: &[Namespace], folder: &Path) -> Self {
        let rule = |home: usize| format!("oifname up ip saddr {} snat to {}; ", INNER[home], SITES[home]);
        let chain = "chain postrouting { type nat hook postrouting priority srcnat; ";
        let rules = format!("table ip hub {{ {chain}{}{} }}; }}", rule(0), rule(1));
        let mut nat = Self { children: Vec::new(), _switch: switch(members) };
        for (at, member) in members.iter().enumerate() {
            nft(member, &rules);
            // A flow that was begun elsewhere has windows that this kernel did not see.
            member.set_sysctl("netfilter/nf_conntrack_tcp_be_liberal", "1").expect("a sysctl");
            let place = |what: &str| folder.join(format!("{}.conntrackd.{what}", MEMBERS[at])).display().to_string();
            fs::write(place("conf"), configuration(at, &place("lock"), &place("ctl"))).expect("a file");
            let mut command = member.command(PROGRAM);
            command.args(["-C", &place("conf")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn();
            nat.children.push(child.unwrap_or_else(|error| panic!("{PROGRAM}: {error} (`make hub-test` installs it)")));
            let end = Instant::now() + PATIENCE;
            while !Path::new(&place("ctl")).exists() {
                assert!(Instant::now() < end, "{PROGRAM} does not start");
                sleep(ms(10));
            }
        }
        nat
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
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

/// conntrackd.conf(5): each flow is told to all at once, and goes into their kernels, not into a cache. FTFW, which
/// acknowledges, knows one other only.
fn configuration(at: usize, lock: &str, control: &str) -> String {
    let sync = format!(
        "Mode NOTRACK {{\n DisableExternalCache yes\n}}\nMulticast {{\n IPv4_address 225.0.0.50\n Group 3780\n \
         IPv4_interface {}\n Interface sync\n SndSocketBuffer 1249280\n RcvSocketBuffer 1249280\n Checksum on\n}}\n",
        own(at)
    );
    let ignored: String = [own(at), upward(at)[0].to_string(), outward(at)[0].to_string()]
        .map(|address| format!("  IPv4_address {address}\n"))
        .concat();
    let filter = format!(
        "Filter From Kernelspace {{\n Protocol Accept {{\n  TCP\n  UDP\n  ICMP\n }}\n Address Ignore {{\n{ignored} }}\n}}\n"
    );
    format!(
        "Sync {{\n{sync}}}\nGeneral {{\nHashSize 8192\nHashLimit 65535\nLogFile no\nSyslog no\nLockFile {lock}\n\
         UNIX {{\n Path {control}\n}}\nNetlinkBufferSize 2097152\nNetlinkBufferSizeMaxGrowth 8388608\n{filter}}}\n"
    )
}
