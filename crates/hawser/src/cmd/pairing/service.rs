//! A portal that runs on after the command that started it: by systemd where that runs and has the unit, else in the
//! background.

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use hawser_config::DEFAULT_FILE;
use hawser_portal::api::Client;
use hawser_portal::pairing::make_folder;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, kill_process};

use super::home::Home;
use crate::failure::Failure;

/// There while systemd runs the system (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
const UNIT: &str = "hawser.service";
/// A portal that has not begun to answer by then will not.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
/// Undoing takes well under a second; a busy machine takes longer.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const GLANCE: Duration = Duration::from_millis(50);
/// Lines of its log that tell why a portal did not start.
const LINES_SHOWN: usize = 4;

/// Who runs the portal of a configuration. Plain data.
#[derive(Debug)]
pub enum Service {
    /// systemd, by its unit.
    Systemd,
    /// Nobody: it runs in the background, until the machine stops.
    Background {
        /// What it says.
        log: PathBuf,
        /// The process, where this command started it.
        child: Option<Child>,
    },
}

impl Service {
    /// Whoever runs this one here.
    pub fn of(home: &Home) -> Self {
        let known = || run("systemctl", &["cat", UNIT]).is_ok();
        if home.config == Path::new(DEFAULT_FILE) && Path::new(SYSTEMD).is_dir() && known() {
            return Self::Systemd;
        }
        Self::Background { log: home.socket.with_extension("log"), child: None }
    }

    /// Starts it, and waits until it answers.
    pub fn start(&mut self, home: &Home) -> Result<(), Failure> {
        match self {
            Self::Systemd => run("systemctl", &["start", UNIT]).map(drop).map_err(|said| {
                let lines = LINES_SHOWN.to_string();
                let log = run("journalctl", &["-u", UNIT, "-t", "hawser", "-n", &lines, "-o", "cat", "--no-pager"]);
                let why = log.map(|log| log.trim_end().replace('\n', "\n  ")).unwrap_or(said);
                Failure::failed(format!("start {UNIT}:\n  {why}")).hint("journalctl -u hawser -n 20")
            }),
            Self::Background { log, child } => start_in_background(home, log, child),
        }
    }

    /// Has it start with the machine; what to do where this command cannot say so.
    pub fn keep(&self) -> Option<String> {
        match self {
            Self::Systemd => run("systemctl", &["enable", UNIT])
                .err()
                .map(|said| format!("it does not start with the machine: {said}")),
            Self::Background { log, .. } => {
                let log = log.display();
                Some(format!(
                    "it runs in the background until the machine stops, and logs to {log}; have `hawser up` started at boot"
                ))
            }
        }
    }

    /// Ends it, and waits until all it set is undone. Whether it ran.
    pub fn stop(&mut self, home: &Home) -> Result<bool, Failure> {
        match self {
            Self::Systemd => {
                let ran = run("systemctl", &["is-active", "--quiet", UNIT]).is_ok();
                let stopped = run("systemctl", &["disable", "--now", UNIT]);
                stopped.map(|_| ran).map_err(|said| Failure::failed(format!("stop {UNIT}: {said}")))
            }
            Self::Background { log, child } => {
                let ran = stop_background(&home.socket, child)?;
                let _ = std::fs::remove_file(log);
                Ok(ran)
            }
        }
    }
}

/// Whether a portal answers there.
pub fn is_running(home: &Home) -> bool {
    Client::status(&home.socket).is_ok()
}

fn start_in_background(home: &Home, log: &Path, child: &mut Option<Child>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("start portal: {error}"));
    make_folder(log.parent().unwrap_or(Path::new(""))).map_err(Failure::failed)?;
    let file = File::create(log).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    // Signals of the terminal are not for it.
    command
        .arg("up")
        .arg("-c")
        .arg(&home.config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        .process_group(0);
    let mut started = command.spawn().map_err(failed)?;
    let start = Instant::now();
    while !is_running(home) {
        if let Ok(Some(status)) = started.try_wait() {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n  ");
            return Err(Failure::failed(format!("start portal: it ended ({status}):\n  {last}")));
        }
        if start.elapsed() > STARTS_WITHIN {
            *child = Some(started);
            return Err(Failure::failed(format!("start portal: it does not answer at {}", home.socket.display())));
        }
        sleep(GLANCE);
    }
    *child = Some(started);
    Ok(())
}

fn stop_background(socket: &Path, child: &mut Option<Child>) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("stop portal: {error}"));
    let own = child.as_ref().map(|child| child.id().cast_signed());
    let pid = match own {
        Some(pid) => Pid::from_raw(pid),
        None => match UnixStream::connect(socket) {
            Ok(stream) => Some(socket_peercred(&stream).map_err(|errno| failed(errno.into()))?.pid),
            Err(_) => None,
        },
    };
    let Some(pid) = pid else { return Ok(false) };
    let start = Instant::now();
    while lives(pid, child) {
        // Again and again: it may not have begun to listen to signals.
        let _ = kill_process(pid, Signal::TERM);
        if start.elapsed() > ENDS_WITHIN {
            return Err(Failure::failed(format!("stop portal: process {} does not end", pid.as_raw_nonzero())));
        }
        sleep(GLANCE);
    }
    Ok(true)
}

fn lives(pid: Pid, child: &mut Option<Child>) -> bool {
    if let Some(child) = child {
        return matches!(child.try_wait(), Ok(None));
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The state stands behind the name, which may hold anything (proc_pid_stat(5)).
    stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()).is_some_and(|state| !"ZX".contains(state))
}

/// Runs a program; what it says where it fails.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() { output.status.to_string() } else { said })
}
