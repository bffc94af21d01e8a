//! The host of a portal as seen by whoever keeps its name servers: /etc, /run and /usr of its own, in a mount
//! namespace, so that this machine's name servers stay what they are.
//!
//! 1. [`Host::new`] lays the programs of a package over /usr, and hides what this machine has of the kind.
//! 2. It copies /etc, puts an empty /run in place, and gives the host the name servers that it has without a portal.
//! 3. [`Host::by`] starts a program inside. 4. When it drops, its daemons and the mount namespace go.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use hawser_wire::Namespace;

use crate::lab::{Lab, PATIENCE, ms};

/// Whom the host asks without a portal.
pub const BEFORE: &str = "203.0.113.53";
/// What nobody's program wrote: with a line that only this file has.
const BY_HAND: &str = "# written by hand\nnameserver 203.0.113.53\noptions timeout:1 attempts:1\n";
/// What this machine may have, and the host has not.
const HIDDEN: [&str; 4] = ["sbin/resolvconf", "bin/resolvconf", "bin/resolvectl", "local/sbin/resolvconf"];
/// The folders of the mount namespace. `$1` is the host's folder, `$2` the unpacked package, or nothing. It lives until
/// its standard input ends.
const MOUNTS: &str = r#"
set -e
mkdir "$1/etc" && mount -t tmpfs tmpfs "$1/etc" && cp -a /etc/. "$1/etc"
mount -t overlay -o "lowerdir=$1/usr:/usr" overlay /usr
mount --bind "$1/etc" /etc
mount -t tmpfs tmpfs /run
rm -rf /etc/resolvconf /etc/resolvconf.conf /etc/resolv.conf /etc/resolv.conf.bak
[ -z "$2" ] || cp -a "$2/etc/." /etc
echo ready
exec cat
"#;
/// A bus on which everybody may do everything.
const BUS: &str = r#"<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
<allow send_requested_reply="true" send_type="method_return"/><allow send_requested_reply="true" send_type="error"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/><allow receive_type="error"/><allow receive_type="signal"/>
</policy></busconfig>"#;

/// Who keeps a host's name servers. Plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    Nobody,
    Resolvconf,
    Openresolv,
    Resolved,
    /// systemd-resolved is there, with another name of its program as `resolvconf`, and does not run.
    ResolvedStopped,
}

pub struct Host {
    namespace: Namespace,
    folder: PathBuf,
    mounts: String,
    /// What holds the mount namespace is the last one.
    children: Vec<Child>,
}

impl Host {
    pub fn new(lab: &Lab, keeper: Keeper) -> Self {
        let folder = lab.path("host");
        fs::create_dir(&folder).expect("a folder");
        let package = package(keeper);
        lay_over(&folder.join("usr"), package.as_deref());
        let mut holder = lab.local.command("unshare");
        holder.args(["-m", "sh", "-c", MOUNTS, "sh"]).arg(&folder).arg(package.unwrap_or_default());
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run unshare");
        let mut said = [0; 6];
        let ready = holder.stdout.as_mut().expect("a pipe").read_exact(&mut said);
        assert!(ready.is_ok() && said == *b"ready\n", "the mounts of {keeper:?} cannot be made");
        let mounts = format!("--mount=/proc/{}/ns/mnt", holder.id());
        let mut host = Self { namespace: lab.local.clone(), folder, mounts, children: vec![holder] };
        match keeper {
            Keeper::Nobody | Keeper::Openresolv | Keeper::ResolvedStopped => host.write_resolv_conf(BY_HAND),
            Keeper::Resolvconf => host.script(&format!(
                "mkdir -p /run/resolvconf/interface && : > /run/resolvconf/enable-updates
                 ln -s /run/resolvconf/resolv.conf /etc/resolv.conf
                 echo nameserver {BEFORE} | resolvconf -a one.dhclient"
            )),
            Keeper::Resolved => host.start_resolved(),
        }
        host
    }

    /// systemd-resolved with a bus; it has one server, of a link.
    fn start_resolved(&mut self) {
        fs::write(self.folder.join("bus.conf"), BUS).expect("a file");
        self.script(
            "mkdir -p /run/dbus /run/systemd && ln -s /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
             printf '[Resolve]\\nFallbackDNS=\\nLLMNR=no\\nMulticastDNS=no\\n' > /etc/systemd/resolved.conf
             grep -q ^systemd-resolve: /etc/passwd || echo 'systemd-resolve:x:64991:64991::/:/usr/sbin/nologin' >> /etc/passwd
             grep -q ^systemd-resolve: /etc/group || echo 'systemd-resolve:x:64991:' >> /etc/group",
        );
        let conf = format!("--config-file={}", self.folder.join("bus.conf").display());
        self.spawn("dbus-daemon", &[&conf, "--nofork", "--nopidfile"]);
        self.wait_for("the bus", |host| host.has("/run/dbus/system_bus_socket"));
        self.spawn("/lib/systemd/systemd-resolved", &[]);
        self.wait_for("systemd-resolved", |host| host.has("/run/systemd/resolve/io.systemd.Resolve"));
        self.wait_for("the name server of a link", |host| {
            host.command("resolvectl").args(["dns", "one", BEFORE]).output().is_ok_and(|said| said.status.success())
        });
    }

    fn has(&self, path: &str) -> bool {
        self.command("test").args(["-e", path]).status().is_ok_and(|status| status.success())
    }

    fn spawn(&mut self, program: &str, words: &[&str]) {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("daemons.log")).expect("a log");
        let mut command = self.command(program);
        let child =
            command.args(words).stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log).spawn();
        self.children.insert(0, child.unwrap_or_else(|error| panic!("run {program}: {error}")));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.namespace.command("nsenter");
        command.arg(&self.mounts).arg(program);
        command
    }

    /// Step 3: the words before a program's own.
    pub fn by(&self) -> [&str; 2] {
        ["nsenter", &self.mounts]
    }

    /// What a program prints inside; it succeeds.
    pub fn run(&self, program: &str, words: &[&str]) -> String {
        let said = self.command(program).args(words).output().expect("run nsenter");
        let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        assert!(said.status.success(), "{program} {words:?}: {out}{err}{}", self.daemons_said());
        out.into_owned()
    }

    fn script(&self, script: &str) {
        self.run("sh", &["-e", "-c", script]);
    }

    /// What libc reads.
    pub fn resolv_conf(&self) -> String {
        self.run("cat", &["/etc/resolv.conf"])
    }

    /// Somebody else writes what libc reads.
    pub fn write_resolv_conf(&self, text: &str) {
        self.script(&format!("printf '{text}' > /etc/resolv.conf"));
    }

    /// Whom libc asks.
    pub fn asked(&self) -> Vec<String> {
        let text = self.resolv_conf();
        text.lines().filter_map(|line| line.strip_prefix("nameserver ").map(str::to_owned)).collect()
    }

    pub fn wait_for(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < end, "waited for {what} in vain; {}", self.daemons_said());
            sleep(ms(50));
        }
    }

    fn daemons_said(&self) -> String {
        fs::read_to_string(self.folder.join("daemons.log")).unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where a package is unpacked.
fn package(keeper: Keeper) -> Option<PathBuf> {
    let name = match keeper {
        Keeper::Nobody => return None,
        Keeper::Resolvconf => "resolvconf",
        Keeper::Openresolv => "openresolv",
        Keeper::Resolved | Keeper::ResolvedStopped => "systemd-resolved",
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../name-servers").join(name);
    assert!(path.is_dir(), "{} is not there: `make name-servers` unpacks it", path.display());
    Some(path)
}

/// Step 1: what lies over /usr, where /bin, /sbin and /lib are links to (`usrmerge`).
fn lay_over(layer: &Path, package: Option<&Path>) {
    fs::create_dir_all(layer.join("local/sbin")).expect("a folder");
    for (from, to) in [("usr", ""), ("sbin", "sbin"), ("bin", "bin"), ("lib", "lib")] {
        let to = layer.join(to);
        fs::create_dir_all(&to).expect("a folder");
        if let Some(from) = package.map(|package| package.join(from)).filter(|from| from.is_dir()) {
            let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(&to).status();
            assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", from.display());
        }
    }
    for hidden in HIDDEN.map(|hidden| layer.join(hidden)).iter().filter(|hidden| hidden.symlink_metadata().is_err()) {
        // An overlay hides what has such a device above it (overlayfs, "whiteouts").
        let made = Command::new("mknod").arg(hidden).args(["c", "0", "0"]).status();
        assert!(made.is_ok_and(|status| status.success()), "{} cannot be hidden (this needs root)", hidden.display());
    }
}
