//! A process in a namespace, under test: started, listened to, ended by its id.
//!
//! 1. `start` runs it in its namespace, with its standard error in a file, and noted for cleanup. It gets SIGTERM when the
//!    thread that started it ends, and no signal from the terminal.
//! 2. Drop sends SIGTERM, so that what it set in the system is undone, and SIGKILL after a grace. `kill` is SIGKILL at once.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hawser_wire::Namespace;
use hawser_wire::traffic::ProcessUsage;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::cleanup::{self, GRACE};
use crate::error::LabError;

/// How often a process that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// Lines of a log that are told when a process fails.
const LOG_LINES: usize = 30;

/// A running process. Ended on drop; one owner.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Step 1. Must be called from a thread that outlives the process.
    pub(crate) fn start(
        name: &str,
        namespace: &Namespace,
        program: &Path,
        arguments: &[&str],
        log: PathBuf,
    ) -> Result<Self, LabError> {
        let starting = |error| LabError::system(format!("start {name}"), error);
        let errors = File::options().create(true).append(true).open(&log).map_err(starting)?;
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).process_group(0);
        let die_with_parent = || set_parent_process_death_signal(Some(Signal::TERM)).map_err(io::Error::from);
        // SAFETY: between fork and exec the closure makes one system call (prctl); it neither allocates nor locks.
        unsafe { command.pre_exec(die_with_parent) };
        let child = command.spawn().map_err(starting)?;
        let process = Self { name: name.to_owned(), child, log };
        cleanup::note_process(process.pid());
        Ok(process)
    }

    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What it has cost so far.
    pub(crate) fn usage(&self) -> Result<ProcessUsage, LabError> {
        Ok(ProcessUsage::of(self.id())?)
    }

    /// An error that tells what it did, with the end of its log.
    pub(crate) fn fault(&self, fault: impl Into<String>) -> LabError {
        LabError::Process { process: self.name.clone(), fault: fault.into(), log: self.log_end() }
    }

    /// Its status, where it has ended by itself.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, LabError> {
        self.child.try_wait().map_err(|error| LabError::system(format!("look at {}", self.name), error))
    }

    /// Step 2, as a crash would.
    pub(crate) fn kill(mut self) {
        // Fails only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Fails only where it has ended meanwhile.
            let _ = kill_process(self.pid(), Signal::TERM);
        }
        let late = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > late {
                tracing::warn!(process = self.name, "killed: it did not end when told");
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(GLANCE);
        }
    }

    fn log_end(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_else(|error| format!("(no log: {error})"));
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
        cleanup::forget_process(self.pid());
    }
}
