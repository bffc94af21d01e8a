//! Servers of etcd with TLS, and with users and a role as docs/hub.md sets them up.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::disk::{self, Hung};

/// How long etcd may take to elect, where builds have the processors.
const PATIENCE: Duration = Duration::from_secs(30);
/// What members may do, and nobody else: the commands of docs/hub.md, before and after each member's own.
const ROLE: [&str; 2] = ["role add hub", "role grant-permission hub --prefix=true readwrite /hawser/hub/"];
const ROOT: [&str; 3] = ["user add root --no-password", "user grant-role root root", "auth enable"];

/// What servers are like. A plain value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    /// How much each takes, in bytes.
    pub quota: Option<u64>,
    /// Each has a disk of its own, that may hang.
    pub disks: bool,
}

/// Some servers, all in one namespace, each with an address of its own. Ended when it drops.
pub struct Servers {
    namespace: Namespace,
    folder: PathBuf,
    addresses: Vec<String>,
    kind: Kind,
    running: Vec<Option<Child>>,
    hung: Vec<Option<Hung>>,
}

impl Servers {
    /// They run, and hear from nobody but members and root.
    pub fn start(namespace: &Namespace, folder: &Path, addresses: &[&str], members: &[&str], kind: Kind) -> Self {
        certify(folder, addresses, members);
        let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        for address in &addresses {
            let net = format!("{address}/32").parse().expect("an address");
            namespace.add_address("lo", net).expect("an address");
        }
        let running = addresses.iter().map(|_| None).collect();
        let hung = addresses.iter().map(|_| None).collect();
        let (namespace, folder) = (namespace.clone(), folder.to_owned());
        let mut servers = Self { namespace, folder, addresses, kind, running, hung };
        (0..servers.addresses.len()).for_each(|at| servers.begin(at));
        servers.wait_until_healthy();
        let each = members
            .iter()
            .flat_map(|name| [format!("user add {name} --no-password"), format!("user grant-role {name} hub")]);
        let all = ROLE.map(str::to_owned).into_iter().chain(each).chain(ROOT.map(str::to_owned));
        all.for_each(|words| drop(servers.ctl(&words)));
        servers
    }

    /// What `[hub] etcd` is to say.
    pub fn urls(&self) -> String {
        let urls: Vec<String> = self.addresses.iter().map(|address| format!("\"https://{address}:2379\"")).collect();
        format!("[{}]", urls.join(", "))
    }

    /// One is started, or again.
    pub fn begin(&mut self, at: usize) {
        let name = |at: usize| format!("e{at}");
        let peer = |address: &String| format!("http://{address}:2380");
        let all = self.addresses.iter().enumerate();
        let cluster = all.map(|(at, address)| format!("{}={}", name(at), peer(address))).collect::<Vec<_>>().join(",");
        let (address, file) = (&self.addresses[at], |name: &str| self.folder.join(name).display().to_string());
        let url = format!("https://{address}:2379");
        let log = File::options().create(true).append(true).open(file("etcd.log")).expect("a log");
        // A machine of its own would take no processor time from portals.
        let mut command = self.namespace.command("nice");
        command.args(["-n", "19"]);
        if self.kind.disks {
            disk::make(&self.data(at));
            command.args(disk::mounted(&self.data(at)));
        }
        command
            .args(["etcd", "--name", &name(at), "--logger", "zap", "--log-level", "error", "--data-dir"])
            .arg(self.data(at))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer(address), "--initial-advertise-peer-urls", &peer(address)])
            .args(["--initial-cluster", &cluster, "--client-cert-auth", "--trusted-ca-file", &file("ca.pem")])
            .args(["--cert-file", &file("etcd.pem"), "--key-file", &file("etcd.key")]);
        if let Some(quota) = self.kind.quota {
            command.arg("--quota-backend-bytes").arg(quota.to_string());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.running[at] = Some(child.expect("etcd starts (`make tools` installs it)"));
    }

    /// Where one keeps what it has.
    fn data(&self, at: usize) -> PathBuf {
        self.folder.join(format!("e{at}"))
    }

    /// The disk of one hangs. The server answers as before until something is to be written there.
    pub fn hang(&mut self, at: usize) {
        let process = self.running[at].as_ref().expect("it runs").id();
        self.hung[at] = Some(Hung::begin(process, &self.data(at)));
    }

    /// The disk goes on, with all that waited for it.
    pub fn go_on(&mut self, at: usize) {
        self.hung[at] = None;
    }

    /// The disk of one is full, to the last block.
    pub fn fill(&self, at: usize) {
        disk::fill(self.running[at].as_ref().expect("it runs").id(), &self.data(at));
    }

    /// One ends by itself.
    pub fn wait_for_end(&mut self, at: usize) {
        let (mut child, end) = (self.running[at].take().expect("it ran"), Instant::now() + PATIENCE);
        while child.try_wait().expect("it can be waited for").is_none() {
            assert!(Instant::now() < end, "server {at} of etcd goes on");
            sleep(Duration::from_millis(50));
        }
    }

    /// One is killed, if it runs, and its disk has room again.
    pub fn empty(&mut self, at: usize) {
        self.kill(at);
        disk::empty(&self.data(at));
    }

    /// None hears another one any more, and each still hears members; or no more.
    pub fn part(&self, parted: bool) {
        let chain = "chain input { type filter hook input priority 0; tcp dport 2380 drop; tcp sport 2380 drop; };";
        let parting = format!("table inet parted {{ {chain} }}");
        let text = if parted { parting.as_str() } else { "delete table inet parted" };
        let output = self.namespace.command("nft").arg(text).output().expect("run nft (nftables)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The processes of those that run.
    pub fn processes(&self) -> Vec<u32> {
        self.running.iter().flatten().map(Child::id).collect()
    }

    /// One is killed, and its machine with it.
    pub fn kill(&mut self, at: usize) {
        self.go_on(at);
        if let Some(mut child) = self.running[at].take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }

    /// Until a quorum serves, and writes.
    pub fn wait_until_healthy(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.try_ctl("put health 1").status.success() {
            let log = fs::read_to_string(self.folder.join("etcd.log")).unwrap_or_default();
            assert!(Instant::now() < end, "etcd does not serve: {log}");
            sleep(Duration::from_millis(50));
        }
    }

    /// The one that a member talks to, by its place; none while it connects.
    pub fn asked_by(&self, member: &Namespace) -> Option<usize> {
        let words = ["-tnH", "state", "established", "dport = :2379"];
        let output = member.command("ss").args(words).output().expect("run ss (iproute2)");
        let said = String::from_utf8_lossy(&output.stdout);
        self.addresses.iter().position(|address| said.contains(&format!(" {address}:2379")))
    }

    /// What etcdctl says, as root; it succeeds.
    pub fn ctl(&self, words: &str) -> String {
        let output = self.try_ctl(words);
        assert!(output.status.success(), "etcdctl {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn try_ctl(&self, words: &str) -> Output {
        self.ctl_command().args(words.split(' ')).output().expect("it runs")
    }

    fn ctl_command(&self) -> Command {
        let file = |name: &str| self.folder.join(name);
        let answers = |at: &usize| self.running[*at].is_some() && self.hung[*at].is_none();
        let up = (0..self.addresses.len()).filter(answers);
        let endpoints: Vec<String> = up.map(|at| format!("https://{}:2379", self.addresses[at])).collect();
        let mut command = self.namespace.command("etcdctl");
        command.env("ETCDCTL_API", "3").arg("--command-timeout=3s").arg("--endpoints").arg(endpoints.join(","));
        command.arg("--cacert").arg(file("ca.pem"));
        command.arg("--cert").arg(file("root.pem")).arg("--key").arg(file("root.key"));
        command
    }

    /// Resident memory of all that run, in bytes.
    pub fn memory(&self) -> u64 {
        let of = |child: &Child| {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().trim_end_matches(" kB").parse::<u64>().ok()
        };
        self.running.iter().flatten().filter_map(of).sum::<u64>() * 1024
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        (0..self.running.len()).for_each(|at| self.kill(at));
    }
}

/// A certificate authority, the servers' certificate, and one for each user.
fn certify(folder: &Path, addresses: &[&str], members: &[&str]) {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "test authority");
    let key = KeyPair::generate().expect("a key");
    write("ca.pem", &params.self_signed(&key).expect("a certificate").pem());
    let authority = Issuer::new(params, key);
    let issue = |name: &str, alternatives: Vec<String>| {
        let mut params = CertificateParams::new(alternatives).expect("addresses");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        write(&format!("{name}.pem"), &certificate.pem());
        crate::lab::write_private(&folder.join(format!("{name}.key")), &key.serialize_pem());
    };
    issue("etcd", addresses.iter().map(|address| (*address).to_owned()).collect());
    members.iter().chain(&["root"]).for_each(|user| issue(user, Vec::new()));
}
