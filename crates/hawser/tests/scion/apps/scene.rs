//! Network and shims; how programs are run in them, and watched.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::Ipv6Addr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hawser_lab::localnet::Localnet;
use hawser_lab::shim::{Carried, Place, ShimPair, scion_links};
use hawser_scion::select::Criterion;
use hawser_wire::{Capture, Namespace};
use rustix::process::{Pid, Signal, kill_process};

use crate::nobody::copied;

const HAWSER: &str = env!("CARGO_BIN_EXE_hawser");
/// The library that `hawser shim run` preloads, and where cargo leaves it beside the executable.
const LIBRARY: &str = "libhawser_preload.so";
const PLACES: [&str; 2] = ["", "deps"];
/// Paths between the hosts, and flows of each connection.
pub const PATHS: usize = 4;
/// A user without rights that has a shell: it comes with PostgreSQL.
const USER: &str = "postgres";
/// How long anything may take on a busy machine, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(50);
/// The network of links between ASes. Source: localnet's layout.
const LINKS: [u8; 2] = [172, 16];
/// What the kernel calls a listening socket. Source: proc_pid_net(5), tcp_states.h.
const LISTENING: &str = "0A";

/// A running network with shims in two ISDs. Everything ends on drop, servers before (they borrow from it).
pub struct Scene {
    pub pair: ShimPair,
    net: Localnet,
    folder: tempfile::TempDir,
}

/// Who runs servers.
pub struct User {
    pub name: &'static str,
    id: u32,
    group: u32,
}

/// A server. Told to end on drop.
pub struct Serving(Child);

impl User {
    pub fn without_rights() -> Self {
        let accounts = fs::read_to_string("/etc/passwd").expect("accounts");
        let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == USER);
        let fields = fields.expect("there is no user postgres: make tools installs the package postgresql");
        let number = |text: &str| text.parse().expect("a number");
        Self { name: USER, id: number(fields[2]), group: number(fields[3]) }
    }

    /// Gives it a file or folder.
    pub fn owns(&self, path: &Path) {
        chown(path, Some(self.id), Some(self.group)).expect("this test needs root");
    }

    /// A program's command as this user, which ends when this thread does.
    fn command(&self, namespace: &Namespace) -> Command {
        let mut command = namespace.command("setpriv");
        command.args([format!("--reuid={}", self.id), format!("--regid={}", self.group)]);
        command.args(["--clear-groups", "--pdeathsig", "TERM"]).current_dir("/").env("LC_ALL", "C");
        command
    }
}

impl Scene {
    pub fn start() -> Self {
        let place = Place::parallel(PATHS as u8, None).expect("it comes along");
        let net = Localnet::up(&place.topology).expect("the network comes up (needs root, and go)");
        let pair = ShimPair::start(Path::new(HAWSER), &net, place.ends, PATHS as u8, Criterion::Sharability, [""; 2]);
        let pair = pair.expect("shims");
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().expect("a folder");
        // Where the executable lies, a user without rights may not be able to go.
        copied::program(Path::new(HAWSER), &folder.path().join("hawser"));
        let beside = Path::new(HAWSER).parent().expect("a folder");
        let library = PLACES.iter().map(|place| beside.join(place).join(LIBRARY)).find(|file| file.is_file());
        copied::program(&library.expect("the preloaded library is built"), &folder.path().join(LIBRARY));
        Self { pair, net, folder }
    }

    /// At which address the server is reached.
    pub fn address(&self) -> Ipv6Addr {
        self.pair.server.address()
    }

    /// A folder of a program, which the user may write to.
    pub fn folder(&self, name: &str, user: &User) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("ours");
        user.owns(&folder);
        folder
    }

    /// Bytes that nothing compresses.
    pub fn random(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).expect("random bytes");
        bytes
    }

    fn hawser(&self) -> PathBuf {
        self.folder.path().join("hawser")
    }

    /// A program on the client's host, whose sockets become MPTCP.
    pub fn client(&self, program: &str) -> Command {
        let mut command = self.pair.client.host.namespace.command(&self.hawser().to_string_lossy());
        command.args(["shim", "run", program]).env("LC_ALL", "C").current_dir("/");
        command
    }

    /// Runs a program on the server's host to its end, as the user.
    pub fn prepare(&self, user: &User, program: &Path, arguments: &[&str]) -> Child {
        let mut command = user.command(&self.pair.server.host.namespace);
        command.arg(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().expect("it starts")
    }

    /// Starts a server on the server's host, as the user, and waits until it listens.
    pub fn serve(&self, user: &User, program: &Path, arguments: &[&str], port: u16) -> Serving {
        let namespace = &self.pair.server.host.namespace;
        let mut command = user.command(namespace);
        command.arg(self.hawser()).args(["shim", "run"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let name = program.display();
        let mut serving = Serving(command.spawn().expect("it starts"));
        let late = Instant::now() + PATIENCE;
        while !listens(namespace, port) {
            let ended = serving.0.try_wait().expect("ours");
            assert!(ended.is_none(), "{name} ended: {ended:?} (make tools installs what this test needs)");
            assert!(Instant::now() < late, "{name} does not listen");
            thread::sleep(GLANCE);
        }
        serving
    }

    /// Step 2: runs a client to its end with this input; gives what it printed.
    pub fn watched(&self, name: &str, mut command: Command, input: &[u8]) -> Vec<u8> {
        let capture = self.net.router("1-ff00:0:110").map(Capture::start).expect("an AS").expect("a capture");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let mut seen = Seen::default();
        let (printed, said) = thread::scope(|scope| {
            // Who has enough of it closes.
            scope.spawn(move || stdin.write_all(input));
            let printed = scope.spawn(move || {
                let mut bytes = Vec::new();
                stdout.read_to_end(&mut bytes).map(|_| bytes)
            });
            let said = scope.spawn(move || {
                let mut text = String::new();
                stderr.read_to_string(&mut text).map(|_| text)
            });
            while child.try_wait().expect("ours").is_none() {
                seen.look(self);
                thread::sleep(GLANCE);
            }
            (printed.join().expect("no panic").expect("it is read"), said.join().expect("no panic").expect("text"))
        });
        let status = child.wait().expect("ours");
        assert!(status.success(), "{name}: {status}: {said}\nthe client's shim:\n{}", self.pair.client.log());

        assert_eq!(seen.subflows, PATHS - 1, "{name}: subflows beside the first, by ss -M");
        assert_eq!((seen.flows, seen.paths), (PATHS, PATHS), "{name}: flows and paths, by the shim's status");
        let hosts = [&self.pair.client, &self.pair.server].map(|shim| shim.host.address);
        let links = scion_links(&capture.finish().expect("a capture"), hosts[0], hosts[1], Carried::Udp);
        let used = links.keys().filter(|(source, _)| source.octets().starts_with(&LINKS)).count();
        assert_eq!(used, PATHS, "{name}: links between the ASes, by capture: {links:?}");
        printed
    }
}

/// The most that was seen of a program's connections.
#[derive(Default)]
struct Seen {
    subflows: usize,
    flows: usize,
    paths: usize,
}

impl Seen {
    fn look(&mut self, scene: &Scene) {
        let mut ss = scene.pair.client.host.namespace.command("ss");
        let said = ss.args(["-M", "--info", "--numeric", "--no-header"]).output().expect("ss runs (package iproute2)");
        let said = String::from_utf8_lossy(&said.stdout);
        let counts = said.split_whitespace().filter_map(|word| word.strip_prefix("subflows:")?.parse().ok());
        self.subflows = counts.fold(self.subflows, usize::max);
        for connection in scene.pair.client.connections() {
            let flows: Vec<_> = connection.flows.iter().filter(|flow| flow.state == "established").collect();
            let mut paths: Vec<&str> =
                flows.iter().filter_map(|flow| Some(flow.path.as_ref()?.hops.as_str())).collect();
            paths.sort_unstable();
            paths.dedup();
            (self.flows, self.paths) = (self.flows.max(flows.len()), self.paths.max(paths.len()));
        }
    }
}

/// Whether somebody listens on a port of IPv6.
fn listens(namespace: &Namespace, port: u16) -> bool {
    let sockets = namespace.run(|| fs::read_to_string("/proc/thread-self/net/tcp6")).expect("a namespace");
    let end = format!(":{port:04X}");
    let is_it = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|local| local.ends_with(&end)) && fields.get(3) == Some(&LISTENING)
    };
    sockets.expect("the kernel's sockets").lines().any(is_it)
}

impl Drop for Serving {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // Fails only where it has ended meanwhile.
            let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        }
        let late = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() > late {
                let _ = self.0.kill();
            }
            thread::sleep(GLANCE);
        }
    }
}
