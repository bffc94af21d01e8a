//! FRR as an operator would have it: zebra, bgpd and bfdd in the router and in each member, started by hand in their
//! namespaces, never as a service of this machine.
//!
//! A member redistributes the kernel's routes to peers; their metrics become MEDs, of which the least counts. BFD
//! looks every 30 ms, and a machine is dead after 150: one that does not run for 100, as virtual ones do now and then,
//! loses no session, and with it no routes for a second.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::upward;
use hawser_wire::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::lab::{PATIENCE, ms};
use crate::world::{MEMBERS, run};

/// Where Debian has its daemons, in the order in which they start; and whose they are.
const DAEMONS: &str = "/usr/lib/frr";
const NAMES: [&str; 3] = ["zebra", "bfdd", "bgpd"];
const OWNER: &str = "frr:frr";
/// Autonomous systems of private use (RFC 6996): the router's, and the hub's.
const AS_ROUTER: u32 = 65_000;
const AS_HUB: u32 = 65_001;
const BFD: &str = "bfd\n profile fast\n  detect-multiplier 5\n  receive-interval 30\n  transmit-interval 30\n";

/// All daemons; ended when it drops. One owner.
pub struct Frr {
    children: Vec<Child>,
    folder: TempDir,
}

impl Frr {
    /// Returns when BFD sees all members.
    pub fn start(members: &[Namespace], router: &Namespace) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // The daemons give up root.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("its mode");
        let mut frr = Self { children: Vec::new(), folder };
        let place = |name: &str| frr.folder.path().join(name);
        for (at, namespace) in members.iter().enumerate() {
            let [own, next] = upward(at);
            frr.children.extend(start(namespace, &place(MEMBERS[at]), &member(own, next)));
        }
        let at_router = place("router");
        frr.children.extend(start(router, &at_router, &hub_router(members.len())));
        let end = Instant::now() + PATIENCE;
        let seen = || {
            shown(&at_router, "show bfd peers brief").lines().filter(|line| line.trim_end().ends_with(" up")).count()
        };
        while seen() < members.len() {
            assert!(Instant::now() < end, "no BFD: {}", shown(&at_router, "show bfd peers"));
            sleep(ms(100));
        }
        frr
    }

    /// What each daemon logged.
    pub fn tell(&self) {
        for (machine, daemon) in MEMBERS.iter().chain(&["router"]).flat_map(|machine| NAMES.map(|name| (machine, name)))
        {
            let log = fs::read_to_string(self.folder.path().join(machine).join(format!("{daemon}.log")));
            eprintln!("{daemon} of {machine}:\n{}", log.unwrap_or_default());
        }
    }

    /// Returns when the router has routes to this address by that number of members.
    pub fn wait_for_paths(&self, address: Ipv4Addr, count: usize) {
        let (router, end) = (self.folder.path().join("router"), Instant::now() + PATIENCE);
        let said = || shown(&router, &format!("show bgp ipv4 unicast {address}"));
        while !said().contains(&format!("({count} available")) {
            assert!(Instant::now() < end, "{count} do not announce it: {}", said());
            sleep(ms(100));
        }
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            let _ = child.wait();
        }
    }
}

fn member(own: Ipv4Addr, router: Ipv4Addr) -> String {
    format!(
        "ip prefix-list PEERS permit 203.0.113.0/24 le 32\nroute-map PEERS permit 10\n match ip address prefix-list PEERS\n\
         router bgp {AS_HUB}\n bgp router-id {own}\n no bgp ebgp-requires-policy\n{}\
         \x20address-family ipv4 unicast\n  redistribute kernel route-map PEERS\n exit-address-family\n",
        neighbor(router, AS_ROUTER)
    )
}

fn hub_router(members: usize) -> String {
    let neighbors: String = (0..members).map(|member| neighbor(upward(member)[0], AS_HUB)).collect();
    let [_, own] = upward(0);
    format!("router bgp {AS_ROUTER}\n bgp router-id {own}\n no bgp ebgp-requires-policy\n{neighbors}")
}

/// What changes is said at once.
fn neighbor(address: Ipv4Addr, number: u32) -> String {
    let words =
        [&*format!("remote-as {number}"), "timers connect 1", "advertisement-interval 0", "bfd", "bfd profile fast"];
    words.map(|words| format!(" neighbor {address} {words}\n")).concat()
}

/// Starts the three in a namespace, with all that they write in one folder.
fn start(namespace: &Namespace, folder: &Path, bgp: &str) -> Vec<Child> {
    fs::create_dir(folder).expect("a folder");
    let at = |name: &str| -> PathBuf { folder.join(name) };
    for (name, text) in NAMES.into_iter().zip(["", BFD, bgp]) {
        fs::write(at(&format!("{name}.conf")), text).expect("a file");
    }
    run(Command::new("chown").args(["-R", OWNER]).arg(folder));
    let mut children = Vec::new();
    for name in NAMES {
        let mut command = namespace.command(&format!("{DAEMONS}/{name}"));
        command.arg("-f").arg(at(&format!("{name}.conf"))).arg("-i").arg(at(&format!("{name}.pid")));
        command.arg("-z").arg(at("zserv.api")).arg("--vty_socket").arg(folder).args(["-P", "0"]);
        command.arg("--log").arg(format!("file:{}", at(&format!("{name}.log")).display()));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        children.push(child.unwrap_or_else(|error| panic!("{name}: {error} (`make hub-test` installs frr)")));
        let end = Instant::now() + PATIENCE;
        while !at(&format!("{name}.vty")).exists() {
            assert!(Instant::now() < end, "{name} does not start");
            sleep(ms(10));
        }
    }
    children
}

fn shown(folder: &Path, command: &str) -> String {
    let output = Command::new("vtysh").arg("--vty_socket").arg(folder).args(["-c", command]).output();
    String::from_utf8_lossy(&output.expect("vtysh runs").stdout).into_owned()
}
