//! FRR as contrib/hub has it: zebra, bgpd and bfdd in the router and in each member, started by hand in their
//! namespaces, never as a service of this machine.
//!
//! BFD looks every 30 ms, and a machine is dead after 150: one that does not run for 100, as virtual ones do now and
//! then, loses no session, and with it no routes for a second.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_lab::hub::upward;
use hawser_wire::Namespace;
use ipnet::IpNet;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::contrib;
use crate::lab::{PATIENCE, ms};
use crate::world::{MEMBERS, run};

/// Where Debian has its daemons, in the order in which they start; and whose they are.
const DAEMONS: &str = "/usr/lib/frr";
const NAMES: [&str; 3] = ["zebra", "bfdd", "bgpd"];
const OWNER: &str = "frr:frr";
/// The examples' addresses.
const MEMBER: &str = "192.0.2.11";
const ROUTER: &str = "192.0.2.1";

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
            frr.children.extend(start(namespace, &place(MEMBERS[at]), &member(upward(at))));
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

    /// Returns when the router has routes to this prefix by that number of members.
    pub fn wait_for_paths(&self, prefix: IpNet, count: usize) {
        let (router, end) = (self.folder.path().join("router"), Instant::now() + PATIENCE);
        let family = if prefix.addr().is_ipv4() { "ipv4" } else { "ipv6" };
        let said = || shown(&router, &format!("show bgp {family} unicast {prefix}"));
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

/// A member's: bfdd's, and bgpd's.
fn member([own, router]: [Ipv4Addr; 2]) -> [String; 2] {
    let changes = [(MEMBER, own.to_string()), (ROUTER, router.to_string())];
    parts(&contrib::changed(contrib::FRR, &changes))
}

/// The router's, with all members.
fn hub_router(members: usize) -> [String; 2] {
    let text = contrib::repeated(contrib::FRR_ROUTER, MEMBER, |line| {
        (0..members).map(|member| line.replace(MEMBER, &upward(member)[0].to_string())).collect()
    });
    parts(&contrib::changed(&text, &[(ROUTER, upward(0)[1].to_string())]))
}

/// What of an operator's one file (frr.conf) is for bfdd, and what for bgpd.
fn parts(text: &str) -> [String; 2] {
    let (lists, rest) = text.split_once("\nbfd\n").expect("it has BFD");
    let (bfd, bgp) = rest.split_once("\nexit\n").expect("BFD's part ends");
    [format!("bfd\n{bfd}\n"), format!("{lists}\n{bgp}")]
}

/// Starts the three in a namespace, with all that they write in one folder.
fn start(namespace: &Namespace, folder: &Path, [bfd, bgp]: &[String; 2]) -> Vec<Child> {
    fs::create_dir(folder).expect("a folder");
    let at = |name: &str| -> PathBuf { folder.join(name) };
    for (name, text) in NAMES.into_iter().zip(["", bfd.as_str(), bgp.as_str()]) {
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
