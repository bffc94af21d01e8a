//! Members that translate the home's inner address to a public one, which is its own: the route to it goes with the
//! home, and conntrackd tells the other member of each flow, into its kernel at once.
//!
//! A packet for the public address of which a member knows no flow goes by its route into the tunnel, where it is
//! nobody's: no member resets a connection that it does not know.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::{SITE, outward};
use hawser_wire::Namespace;
use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{PATIENCE, ms};
use crate::world::{MEMBERS, nft};

/// The home's address in the tunnel.
pub const INNER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PROGRAM: &str = "conntrackd";

/// conntrackd in both members; ended when it drops. One owner.
pub struct Nat(Vec<Child>);

impl Nat {
    /// Returns when both answer.
    pub fn start(members: &[Namespace], folder: &Path) -> Self {
        assert_eq!(members.len(), 2, "conntrackd has one other");
        let mut children = Vec::new();
        for (at, member) in members.iter().enumerate() {
            let chain = "chain postrouting { type nat hook postrouting priority srcnat; ";
            nft(member, &format!("table ip hub {{ {chain} oifname up ip saddr {INNER} snat to {SITE}; }}; }}"));
            // A flow that was begun elsewhere has windows that this kernel did not see.
            member.set_sysctl("netfilter/nf_conntrack_tcp_be_liberal", "1").expect("a sysctl");
            let place = |what: &str| folder.join(format!("{}.conntrackd.{what}", MEMBERS[at])).display().to_string();
            fs::write(place("conf"), configuration(at, &place("lock"), &place("ctl"))).expect("a file");
            let mut command = member.command(PROGRAM);
            command.args(["-C", &place("conf")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = command.spawn();
            children.push(child.unwrap_or_else(|error| panic!("{PROGRAM}: {error} (`make hub-test` installs it)")));
            let end = Instant::now() + PATIENCE;
            while !Path::new(&place("ctl")).exists() {
                assert!(Instant::now() < end, "{PROGRAM} does not start");
                sleep(ms(10));
            }
        }
        Self(children)
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

/// conntrackd.conf(5): each flow is told at once, and goes into the other's kernel, not into a cache.
fn configuration(at: usize, lock: &str, control: &str) -> String {
    let (own, other) = (outward(at)[0], outward(1 - at)[0]);
    let sync = format!(
        "Mode FTFW {{\n DisableExternalCache yes\n}}\nUDP {{\n IPv4_address {own}\n IPv4_Destination_Address {other}\n \
         Port 3780\n Interface out\n SndSocketBuffer 1249280\n RcvSocketBuffer 1249280\n Checksum on\n}}\n"
    );
    let filter = format!(
        "Filter From Kernelspace {{\n Protocol Accept {{\n  TCP\n  UDP\n  ICMP\n }}\n Address Ignore {{\n  \
         IPv4_address {own}\n  IPv4_address {other}\n }}\n}}\n"
    );
    format!(
        "Sync {{\n{sync}}}\nGeneral {{\nHashSize 8192\nHashLimit 65535\nLogFile no\nSyslog no\nLockFile {lock}\n\
         UNIX {{\n Path {control}\n}}\nNetlinkBufferSize 2097152\nNetlinkBufferSizeMaxGrowth 8388608\n{filter}}}\n"
    )
}
