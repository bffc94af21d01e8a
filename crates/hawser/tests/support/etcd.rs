//! Servers of etcd with TLS, and with users and a role as docs/hub.md sets them up.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// How long etcd may take to elect, where builds have the processors.
const PATIENCE: Duration = Duration::from_secs(30);
/// What members may do, and nobody else: the commands of docs/hub.md, before and after each member's own.
const ROLE: [&str; 2] = ["role add hub", "role grant-permission hub --prefix=true readwrite /hawser/hub/"];
const ROOT: [&str; 3] = ["user add root --no-password", "user grant-role root root", "auth enable"];

/// Some servers, all in one namespace, each with an address of its own. Ended when it drops.
pub struct Servers {
    namespace: Namespace,
    folder: PathBuf,
    addresses: Vec<String>,
    quota: Option<u64>,
    running: Vec<Option<Child>>,
}

impl Servers {
    /// They run, and hear from nobody but members and root. A quota is in bytes.
    pub fn start(
        namespace: &Namespace,
        folder: &Path,
        addresses: &[&str],
        members: &[&str],
        quota: Option<u64>,
    ) -> Self {
        certify(folder, addresses, members);
        let addresses: Vec<String> = addresses.iter().map(|address| (*address).to_owned()).collect();
        for address in &addresses {
            let net = format!("{address}/32").parse().expect("an address");
            namespace.add_address("lo", net).expect("an address");
        }
        let running = addresses.iter().map(|_| None).collect();
        let mut servers = Self { namespace: namespace.clone(), folder: folder.to_owned(), addresses, quota, running };
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
        command
            .args(["-n", "19", "etcd"])
            .args(["--name", &name(at), "--data-dir", &file(&name(at)), "--logger", "zap", "--log-level", "error"])
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer(address), "--initial-advertise-peer-urls", &peer(address)])
            .args(["--initial-cluster", &cluster, "--client-cert-auth", "--trusted-ca-file", &file("ca.pem")])
            .args(["--cert-file", &file("etcd.pem"), "--key-file", &file("etcd.key")]);
        if let Some(quota) = self.quota {
            command.arg("--quota-backend-bytes").arg(quota.to_string());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.running[at] = Some(child.expect("etcd starts (`make tools` installs it)"));
    }

    /// One is killed, and its machine with it.
    pub fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.running[at].take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }

    /// Until a quorum serves.
    pub fn wait_until_healthy(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.try_ctl("get health").status.success() {
            let log = fs::read_to_string(self.folder.join("etcd.log")).unwrap_or_default();
            assert!(Instant::now() < end, "etcd does not serve: {log}");
            sleep(Duration::from_millis(50));
        }
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
        let up = self.running.iter().zip(&self.addresses).filter(|(running, _)| running.is_some());
        let endpoints: Vec<String> = up.map(|(_, address)| format!("https://{address}:2379")).collect();
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
