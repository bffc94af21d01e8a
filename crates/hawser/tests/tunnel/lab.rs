//! Two namespaces joined by two veth pairs, and a portal as a process in each.
//!
//! ```text
//!   local   one  192.0.1.1 ------- 192.0.1.2  one   remote
//!           two  192.0.2.1 ------- 192.0.2.2  two   lo 198.51.100.7, fd98::7: the remote portal's
//!   hawser0 10.77.0.2, fd77::2            hawser0 10.77.0.1, fd77::1
//! ```
//! Each link has its own route to the remote portal; on `two` the local host has a strict rp_filter.

use std::fs::{self, File};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_config::PrivateKey;
use hawser_portal::api::{Client, PathState, PathStatus, Status};
use hawser_wire::traffic::{Congestion, Ping, PingReport, TcpTransfer};
use hawser_wire::{Direction, EmulatedLink, End, LinkSpec, Namespace, RpFilter, veth};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub const LOCAL: &str = "10.77.0.2";
pub const REMOTE: &str = "10.77.0.1";
pub const REMOTE_V6: &str = "fd77::1";
pub const LOCAL_V6: &str = "fd77::2";
pub const LINKS: [&str; 2] = ["one", "two"];
/// Where the remote portal is reached, over either link.
pub const ENDPOINT: &str = "198.51.100.7";
pub const ENDPOINT_V6: &str = "fd98::7";
const MTU: u32 = 1500;
/// How long anything may take to happen where builds have the processors: a bound of waiting, not of what is promised.
pub const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(20);

pub struct Lab {
    pub local: Namespace,
    pub remote: Namespace,
    folder: TempDir,
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Lab {
    /// The namespaces, keys and configurations; `traffic` goes to both configurations' ends.
    pub fn new(tag: &str, traffic: &str) -> Self {
        let make = || Namespace::new(tag).expect("makes a namespace (these tests need root)");
        let lab = Self { local: make(), remote: make(), folder: tempfile::tempdir().expect("a folder") };
        for address in [format!("{ENDPOINT}/32"), format!("{ENDPOINT_V6}/128")] {
            lab.remote.add_address("lo", parse(&address)).expect("an address");
        }
        for link in LINKS {
            lab.join(link);
        }
        lab.local.set_rp_filter("two", RpFilter::Strict).expect("a sysctl");
        lab.write_configurations(traffic);
        lab
    }

    /// Makes a link with its addresses and its route.
    pub fn join(&self, link: &str) {
        veth(&self.end(&self.local, link, 1), &self.end(&self.remote, link, 2), MTU).expect("a veth pair");
        self.route(link);
    }

    /// Puts an emulated link in the place of the veth pair.
    pub fn emulate(&self, link: &str, direction: &Direction) -> EmulatedLink {
        self.local.delete_interface(link).expect("it can be deleted");
        let (near, far) = (self.end(&self.local, link, 1), self.end(&self.remote, link, 2));
        let emulated = EmulatedLink::new(LinkSpec::symmetric(link, near, far, direction)).expect("an emulated link");
        self.route(link);
        emulated
    }

    pub fn end(&self, namespace: &Namespace, link: &str, host: u8) -> End {
        let net = number(link);
        End::new(namespace, link, &[&format!("192.0.{net}.{host}/24"), &format!("fd00:{net}::{host}/64")])
    }

    /// The link's route to the remote portal, which the kernel drops when the link goes down.
    pub fn route(&self, link: &str) {
        // Bound to an interface, a socket needs a route of that interface; each is to a half of the network, and the
        // host's own packets to the endpoint would take the narrower one.
        let net = number(link);
        let prefix = if net == 1 { format!("{ENDPOINT}/32") } else { "198.51.100.0/24".to_owned() };
        let gateway: IpAddr = parse(&format!("192.0.{net}.2"));
        self.local.add_route(parse(&prefix), Some(gateway), Some(link)).expect("a route");
        let prefix = if net == 1 { format!("{ENDPOINT_V6}/128") } else { "fd98::/16".to_owned() };
        let gateway: IpAddr = parse(&format!("fd00:{net}::2"));
        self.local.add_route(parse(&prefix), Some(gateway), Some(link)).expect("a route");
    }

    fn write_configurations(&self, traffic: &str) {
        let [local, remote] = ["local", "remote"].map(|name| {
            let key = PrivateKey::generate().expect("randomness");
            self.write(&format!("{name}.key"), &key.to_base64());
            key.public()
        });
        let common = |name: &str| {
            let socket = self.path(&format!("{name}.sock"));
            format!("[portal]\nprivate_key_file = \"{name}.key\"\nsocket = \"{}\"\n", socket.display())
        };
        let links: String = LINKS.map(|l| format!("[[link]]\nname = \"{l}\"\ninterface = \"{l}\"\n")).concat();
        self.write(
            "local.toml",
            &format!(
                "{}[tun]\naddresses = [\"{LOCAL}/24\", \"fd77::2/64\"]\n{links}[[peer]]\nname = \"hub\"\n\
                 public_key = \"{remote}\"\nendpoints = [\"{ENDPOINT}:4920\"]\n\
                 allowed_ips = [\"{REMOTE}/32\", \"{REMOTE_V6}/128\", \"10.99.0.0/16\"]\n{traffic}",
                common("local")
            ),
        );
        self.write(
            "remote.toml",
            &format!(
                "{}listen = [\"0.0.0.0:4920\"]\n[tun]\naddresses = [\"{REMOTE}/24\", \"{REMOTE_V6}/64\"]\n\
                 [[peer]]\nname = \"home\"\npublic_key = \"{local}\"\nallowed_ips = [\"{LOCAL}/32\", \"fd77::2/128\"]\n{traffic}",
                common("remote")
            ),
        );
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that only its owner can get at.
    pub fn write(&self, name: &str, text: &str) {
        write_private(&self.path(name), text);
    }

    /// Replaces text in a configuration.
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(name)).expect("a configuration");
        assert!(text.contains(from), "{from} is not in {name}");
        self.write(name, &text.replace(from, to));
    }

    pub fn start(&self, name: &str) -> Portal {
        self.start_by(name, &[])
    }

    /// Starts a portal by a program that becomes it.
    pub fn start_by(&self, name: &str, by: &[&str]) -> Portal {
        let namespace = if name == "local" { &self.local } else { &self.remote };
        Portal::start_by(namespace, self.folder.path(), name, by)
    }

    /// Both portals, with all paths active.
    pub fn start_both(&self) -> (Portal, Portal) {
        let (remote, local) = (self.start("remote"), self.start("local"));
        local.wait_for("all paths to be active", |status| states(status) == [PathState::Active; 2]);
        (local, remote)
    }

    pub fn ping(&self, destination: &str, interval: Duration, duration: Duration) -> Ping {
        let destination = destination.parse().expect("an address");
        Ping { from: self.local.clone(), destination, interval, duration }
    }

    /// Asks until the first answer, and says how long that took.
    pub fn answered_within(&self, limit: Duration) -> Duration {
        let start = Instant::now();
        while start.elapsed() < limit {
            let report = self.ping(REMOTE, ms(50), ms(100)).run().expect("a ping");
            if !report.echoes.is_empty() {
                return start.elapsed();
            }
        }
        panic!("no answer within {limit:?}");
    }

    /// All requests of a report were answered; else what the portals say of themselves is shown.
    pub fn assert_none_lost(&self, report: &PingReport) {
        assert!(!report.sent.is_empty());
        let said = ["local.sock", "remote.sock"].map(|socket| Client::status(&self.path(socket)));
        let lost: Vec<usize> =
            (0..report.sent.len()).filter(|n| report.echoes.iter().all(|e| e.number != *n as u64)).collect();
        assert!(lost.is_empty(), "of {} the requests {lost:?} were lost; {said:#?}", report.sent.len());
    }

    /// What a portal could leave behind in the local namespace: interfaces, addresses, routes, sysctls.
    pub fn traces(&self) -> Vec<String> {
        let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("it can be read");
        let columns = |text: &str, wanted: &[usize]| -> Vec<String> {
            let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines.map(|line| wanted.iter().map(|&at| line.get(at).copied().unwrap_or("")).collect()).collect()
        };
        let work = || {
            // The inner nodes say how the kernel stores it, which depends on what was there before.
            let leaves =
                |text: String| text.lines().filter(|l| !l.contains("+--")).map(|l| l.trim().to_owned()).collect();
            let mut traces: Vec<String> = leaves(read("fib_trie"));
            traces.extend(columns(&read("dev"), &[0]));
            traces.extend(columns(&read("ipv6_route"), &[0, 1, 4, 9]));
            traces.extend(columns(&read("if_inet6"), &[0, 5]));
            traces
        };
        let mut traces = self.local.run(work).expect("the namespace can be entered");
        for link in LINKS {
            let value = self.local.sysctl(&format!("ipv4/conf/{link}/rp_filter")).expect("a sysctl");
            traces.push(format!("rp_filter of {link} is {value}"));
        }
        traces
    }

    pub fn rp_filter(&self, link: &str) -> String {
        self.local.sysctl(&format!("ipv4/conf/{link}/rp_filter")).expect("a sysctl")
    }
}

/// A portal as a process; ended when it drops.
pub struct Portal {
    child: Child,
    log: PathBuf,
    pub socket: PathBuf,
}

impl Portal {
    /// Starts the portal NAME in a namespace, by NAME.toml of a folder, with NAME.log and NAME.sock there.
    pub fn start(namespace: &Namespace, folder: &Path, name: &str) -> Self {
        Self::start_by(namespace, folder, name, &[])
    }

    /// The same by a program that becomes it.
    pub fn start_by(namespace: &Namespace, folder: &Path, name: &str, by: &[&str]) -> Self {
        let path = |extension: &str| folder.join(format!("{name}.{extension}"));
        let log = path("log");
        let file = File::options().create(true).append(true).open(&log).expect("a log");
        let words: Vec<&str> = by.iter().copied().chain([env!("CARGO_BIN_EXE_hawser")]).collect();
        let mut command = namespace.command(words[0]);
        command.args(&words[1..]).arg("up").arg("-c").arg(path("toml")).stdin(Stdio::null());
        let child = command.env("HAWSER_LOG", "debug").stderr(file).spawn().expect("it starts");
        Self { child, log, socket: path("sock") }
    }

    pub fn status(&self) -> Option<Status> {
        Client::status(&self.socket).ok()
    }

    pub fn wait_for(&self, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let end = Instant::now() + PATIENCE;
        let mut last = None;
        while Instant::now() < end {
            last = self.status().or(last);
            if let Some(status) = last.as_ref().filter(|status| holds(status)) {
                return status.clone();
            }
            sleep(GLANCE);
        }
        panic!("waited for {what} in vain; last status {last:#?}; log:\n{}", self.log());
    }

    pub fn wait_for_log(&self, words: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.log().contains(words) {
            assert!(Instant::now() < end, "{words:?} is not in the log:\n{}", self.log());
            sleep(GLANCE);
        }
    }

    /// Until the host has these routes, and not those.
    pub fn wait_for_routes(
        &self,
        lab: &Lab,
        wanted: &[(&'static str, bool)],
        has: impl Fn(&Lab, &'static str) -> bool,
    ) {
        let end = Instant::now() + PATIENCE;
        while wanted.iter().any(|(network, there)| has(lab, network) != *there) {
            assert!(Instant::now() < end, "not so: {wanted:?}; log:\n{}", self.log());
            sleep(GLANCE);
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        kill_process(pid, signal).expect("it can be signalled");
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status;
            }
            assert!(Instant::now() < end, "it does not end; log:\n{}", self.log());
            sleep(GLANCE);
        }
    }
}

impl Drop for Portal {
    /// Politely first: a killed portal leaves a journal for the next one in a namespace of this number, which the
    /// kernel gives again to a namespace of another test.
    fn drop(&mut self) {
        let end = Instant::now() + PATIENCE;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            self.signal(Signal::TERM);
            sleep(GLANCE);
        }
    }
}

/// A transfer of one stream of CUBIC.
pub fn transfer(from: &Namespace, to: &Namespace, destination: SocketAddr, duration: Duration) -> TcpTransfer {
    let (from, to) = (from.clone(), to.clone());
    TcpTransfer { from, to, destination, source: None, congestion: Congestion::Cubic, duration }
}

/// Writes a file that only its owner can read.
pub fn write_private(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// The number of a link, from 1.
fn number(link: &str) -> usize {
    1 + LINKS.iter().position(|name| *name == link).expect("one of the links")
}

/// The states of the first peer's paths.
pub fn states(status: &Status) -> Vec<PathState> {
    paths(status).iter().map(|path| path.state).collect()
}

pub fn paths(status: &Status) -> &[PathStatus] {
    status.peers.first().map_or(&[], |peer| &peer.paths)
}

pub fn parse<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("it is written in the test")
}
