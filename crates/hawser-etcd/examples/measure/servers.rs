//! Three servers of the installed etcd, on the loopback of this machine.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The first server's ports, for members and for servers; the others' follow.
const PORTS: [u16; 2] = [23_790, 23_800];
const SERVERS: u16 = 3;
/// Ticks in a second, of processor times in /proc (USER_HZ, proc(5): 100 on all that Linux runs on now).
const TICKS: f64 = 100.0;
/// Where /proc/PID/stat has user and system time, counted from the program's name on (proc_pid_stat(5)).
const TIMES: [usize; 2] = [11, 12];

/// They run; ended when it drops, and what they wrote goes. One owner.
pub struct Servers {
    folder: PathBuf,
    running: Vec<Child>,
}

impl Servers {
    /// Starts them.
    pub fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("hawser-etcd-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let mut servers = Self { folder, running: Vec::new() };
        for at in 0..SERVERS {
            let child = servers.command(at).spawn().expect("etcd starts (`make tools` installs it)");
            servers.running.push(child);
        }
        servers
    }

    fn command(&self, at: u16) -> Command {
        let url = |which: usize, at: u16| format!("http://127.0.0.1:{}", PORTS[which] + at);
        let all: Vec<String> = (0..SERVERS).map(|at| format!("e{at}={}", url(1, at))).collect();
        let log = File::create(self.folder.join(format!("e{at}.log"))).expect("a log");
        let mut command = Command::new("etcd");
        command.args(["--name", &format!("e{at}"), "--logger", "zap", "--log-level", "error"]);
        command.arg("--data-dir").arg(self.folder.join(format!("e{at}")));
        command.args(["--listen-client-urls", &url(0, at), "--advertise-client-urls", &url(0, at)]);
        command.args(["--listen-peer-urls", &url(1, at), "--initial-advertise-peer-urls", &url(1, at)]);
        command.args(["--initial-cluster", &all.join(",")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Where members reach them.
    pub fn urls(&self) -> Vec<String> {
        (0..SERVERS).map(|at| format!("http://127.0.0.1:{}", PORTS[0] + at)).collect()
    }

    /// Processor time of all of them, in seconds.
    pub fn seconds(&self) -> f64 {
        let of = |child: &Child| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it runs");
            let (_, fields) = stat.rsplit_once(')').expect("a name");
            let fields: Vec<&str> = fields.split_whitespace().collect();
            TIMES.iter().map(|at| fields[*at].parse::<f64>().expect("ticks")).sum::<f64>()
        };
        self.running.iter().map(of).sum::<f64>() / TICKS
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in &mut self.running {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
