//! The programs, and what each is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::scene::{Scene, Serving, User};

/// Ports of the servers.
const IPERF3: u16 = 5201;
const NGINX: u16 = 8080;
const SSHD: u16 = 2222;
const POSTGRES: u16 = 5433;
/// Bytes a second that nginx sends: the client's connection is to be looked at meanwhile.
const NGINX_RATE: &str = "3m";
/// What the database is asked for.
pub const ROWS: u64 = 20_000;
/// Where Debian has PostgreSQL's programs, by version.
const POSTGRESQL: &str = "/usr/lib/postgresql";

pub fn iperf3_server(scene: &Scene, user: &User) -> Serving {
    scene.serve(user, Path::new("iperf3"), &["--server", "--port", &IPERF3.to_string()], IPERF3)
}

pub fn iperf3(scene: &Scene) -> Command {
    let mut command = scene.client("iperf3");
    let (address, port) = (scene.address().to_string(), IPERF3.to_string());
    // Held to a rate: a busy machine is to have time for others, too.
    command.args(["--client", &address, "--port", &port, "--time", "2", "--bitrate", "40M"]);
    command
}

pub fn nginx(scene: &Scene, user: &User, content: &[u8]) -> Serving {
    let folder = scene.folder("nginx", user);
    fs::write(folder.join("data"), content).expect("a file");
    user.owns(&folder.join("data"));
    let place = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|kind| format!("  {kind}_temp_path {place}/{kind};\n")).collect();
    let text = format!(
        "daemon off;\nworker_processes 1;\npid {place}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n  access_log off;\n{temporary}  \
         server {{\n    listen [::]:{NGINX};\n    root {place};\n    limit_rate {NGINX_RATE};\n  }}\n}}\n"
    );
    let config = folder.join("nginx.conf");
    fs::write(&config, text).expect("a file");
    user.owns(&config);
    let arguments = ["-e", "stderr", "-p", &folder.to_string_lossy(), "-c", &config.to_string_lossy()];
    scene.serve(user, Path::new("/usr/sbin/nginx"), &arguments, NGINX)
}

pub fn curl(scene: &Scene) -> Command {
    let mut command = scene.client("curl");
    let url = format!("http://[{}]:{NGINX}/data", scene.address());
    command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", &url]);
    command
}

/// The server, and the key that its user is let in by.
pub fn sshd(scene: &Scene, user: &User) -> (Serving, PathBuf) {
    let folder = scene.folder("sshd", user);
    let [host, own] = ["host", "own"].map(|name| folder.join(name));
    for key in [&host, &own] {
        let mut command = Command::new("ssh-keygen");
        let made = command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(key).status();
        assert!(made.expect("ssh-keygen runs (package openssh-client)").success());
    }
    user.owns(&host);
    let place = folder.display();
    let text = format!(
        "Port {SSHD}\nListenAddress ::\nHostKey {place}/host\nAuthorizedKeysFile {place}/own.pub\nPidFile none\nUsePAM no\n\
         StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    );
    let config = folder.join("config");
    fs::write(&config, text).expect("a file");
    user.owns(&config);
    let arguments = ["-D", "-e", "-f", &config.to_string_lossy()];
    (scene.serve(user, Path::new("/usr/sbin/sshd"), &arguments, SSHD), own)
}

/// What is put in comes back, a second later.
pub fn ssh(scene: &Scene, user: &User, key: &Path) -> Command {
    let mut command = scene.client("ssh");
    let (port, there) = (SSHD.to_string(), format!("{}@{}", user.name, scene.address()));
    command.args(["-F", "none", "-p", &port, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]);
    command.args(["-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i"]).arg(key);
    command.args([&there, "sleep 1; cat"]);
    command
}

/// A cluster of databases that is being made.
pub struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    making: Child,
}

impl Cluster {
    /// Begins to make one: it takes a second or two.
    pub fn begin(scene: &Scene, user: &User) -> Self {
        let folder = scene.folder("postgres", user);
        let versions = fs::read_dir(POSTGRESQL).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
        let programs = versions.filter(|programs| programs.join("postgres").is_file()).max();
        let programs = programs.expect("there is no PostgreSQL: make tools installs it");
        let place = folder.to_string_lossy();
        let arguments = ["--pgdata", &*place, "--auth=trust", "--username=postgres", "--no-sync", "--no-locale"];
        let making = scene.prepare(user, &programs.join("initdb"), &arguments);
        Self { programs, folder, making }
    }

    pub fn serve(mut self, scene: &Scene, user: &User) -> Serving {
        let made = self.making.wait().expect("ours");
        assert!(made.success(), "initdb: {made}");
        let rules = self.folder.join("pg_hba.conf");
        fs::write(&rules, "host all all ::/0 trust\nlocal all all trust\n").expect("a file");
        let place = self.folder.to_string_lossy();
        let port = POSTGRES.to_string();
        let arguments = ["-D", &*place, "-k", &*place, "-p", &port, "-c", "listen_addresses=::", "-c", "fsync=off"];
        scene.serve(user, &self.programs.join("postgres"), &arguments, POSTGRES)
    }
}

/// A query whose rows come in a second or so.
pub fn psql(scene: &Scene, user: &User) -> Command {
    let mut command = scene.client("psql");
    let (address, port) = (scene.address().to_string(), POSTGRES.to_string());
    command.args(["--no-psqlrc", "--host", &address, "--port", &port, "--username", user.name, "--dbname", "postgres"]);
    let wait = "select 0 where pg_sleep(1) is null";
    let rows = format!("select number, repeat(md5(number::text), 8) from generate_series(1, {ROWS}) number");
    command.args(["--tuples-only", "--no-align", "--command", wait, "--command", &rows]);
    command
}
